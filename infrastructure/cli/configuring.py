"""``refold settings``: every setting, its value, and where it comes from."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from refold.domain.errors import InvalidSetting

from .options import Json, PolicyFile, SettingNames
from .output import clean, print_json, say, show_table

Check = Annotated[
    Path | None,
    typer.Option(
        "--check",
        metavar="FILE",
        help="Check a policy file, and show nothing. Exit code 1: refused.",
    ),
]
Markdown = Annotated[
    bool, typer.Option("--markdown", help="Print the page docs/settings.md.", metavar="")
]


def settings(
    names: SettingNames = None,
    policy: PolicyFile = None,
    check: Check = None,
    markdown: Markdown = False,
    json: Json = False,
) -> None:
    """Show every setting: its value, and whether argument, variable, file or default says it."""
    from refold.infrastructure.settings.listing import as_markdown, with_values
    from refold.infrastructure.settings.reading import read_configuration

    if check is not None:
        _check(check, json)
        return
    if markdown:
        typer.echo(as_markdown(), nl=False)
        return
    rows = list(with_values(read_configuration(policy_file=policy)))
    if names:
        _refuse_unknown(names, {row.name for row in rows})
        rows = [row for row in rows if row.name in names]
    if json:
        typed = [{**row.model_dump(exclude={"typed"}), "value": row.typed} for row in rows]
        print_json({"settings": typed})
        return
    show_table(
        "",
        ["setting", "value", "from", "meaning…"],
        [
            (row.name, clean(row.value), clean(row.source), clean(row.meaning.replace("``", "")))
            for row in rows
        ],
    )
    say(
        "Ranges and whole texts: refold settings --markdown. Check a file: refold settings --check FILE"
    )


def _refuse_unknown(names: Sequence[str], known: set[str]) -> None:
    from refold.infrastructure.settings.sources import nearest

    for name in names:
        if name not in known:
            raise typer.BadParameter(f"there is no setting {name!r}{nearest(name, known)}")


def _check(file: Path, json: bool) -> None:
    from refold.infrastructure.settings.reading import read_configuration

    try:
        read_configuration(policy_file=file)
    except InvalidSetting as error:
        if json:
            print_json({"file": str(file), "ok": False, "message": str(error)})
        else:
            say(f"[red]Refused[/red]: {clean(error)}")
        raise typer.Exit(1) from None
    if json:
        print_json({"file": str(file), "ok": True})
    else:
        say(f"{clean(file)}: [green]all is well[/green].")
