"""API pages by autodoc: docstrings of refold are plain text, and become reStructuredText here."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from docutils import nodes

if TYPE_CHECKING:
    from sphinx.addnodes import pending_xref
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment

_NAMED = re.compile(r"``[^`]+``(?:, ``[^`]+``)*: ")
_SECTION = re.compile(r"(Args|Returns|Yields|Raises):")
_TITLES = {"Args": "Arguments"}
_ENTRY = re.compile(r"    (\w+(?:, \w+)*): (.*)")


def to_rst(lines: list[str]) -> list[str]:
    """Return a docstring with lists where it has lines that begin with a name, and for arguments and errors."""
    return list(_named(_sections(lines)))


def _sections(lines: list[str]) -> Iterator[str]:
    """Make a list of each section, such as "Raises:", whose lines are indented."""
    section = ""
    for line in lines:
        if found := _SECTION.fullmatch(line):
            section = found[1]
            yield from (f".. rubric:: {_TITLES.get(section, section)}", "")
        elif section and line.startswith("    "):
            yield _entry(section, line)
        elif section and line.strip():  # What follows a section is text again.
            section = ""
            yield from ("", line)
        else:
            yield line


def _entry(section: str, line: str) -> str:
    found = _ENTRY.fullmatch(line)
    if section in ("Returns", "Yields"):
        return line.strip()
    if found is None:
        return f"  {line.strip()}"
    names = found[1].split(", ")
    shown = [f":exc:`{n}`" if section == "Raises" else f"``{n}``" for n in names]
    return f"- {', '.join(shown)}: {found[2]}"


def _named(lines: Iterator[str]) -> Iterator[str]:
    """Make an item of each line that begins with a name and a colon, with the lines that continue it."""
    inside = False
    for line in lines:
        if _NAMED.match(line):
            if not inside:
                yield ""
            inside = True
            yield f"- {line}"
        elif inside and line.strip():
            yield f"  {line}"
        else:
            inside = False
            yield line


def process_docstring(
    app: "Sphinx", what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Turn a docstring."""
    del app, what, name, obj, options
    lines[:] = to_rst(lines)


def process_signature(
    app: "Sphinx",
    what: str,
    name: str,
    obj: Any,
    options: Any,
    signature: str | None,
    returned: str | None,
) -> tuple[str, str] | None:
    """Leave out the signature of a class that refold itself creates, and of a value: its fields follow."""
    del app, name, options, returned
    module = str(getattr(obj, "__module__", ""))
    is_made_by_users = module.startswith(("refold.adapters.", "refold.testing."))
    is_class = what in ("class", "exception")
    return ("", "") if signature and is_class and not is_made_by_users else None


def skip_member(
    app: "Sphinx", what: str, name: str, obj: Any, skip: bool, options: Any
) -> bool | None:
    """Skip what pydantic adds to a value."""
    del app, what, obj, skip, options
    return True if name.startswith("model_") else None


def resolve(
    app: "Sphinx", env: "BuildEnvironment", node: "pending_xref", content: nodes.Element
) -> nodes.reference | None:
    """Link a type to its public name, wherever its module is."""
    target = str(node.get("reftarget", ""))
    if node.get("refdomain") != "py" or not target:
        return None
    public = f"refold.{target.rpartition('.')[2]}"
    python = env.domains.python_domain
    if public == target or public not in python.objects:
        return None
    page, anchor = python.objects[public][:2]
    uri = app.builder.get_relative_uri(str(node["refdoc"]), page)
    return nodes.reference("", "", content, internal=True, refuri=f"{uri}#{anchor}")


def setup(app: "Sphinx") -> dict[str, bool]:
    """Connect to Sphinx."""
    app.connect("autodoc-process-docstring", process_docstring)
    app.connect("autodoc-process-signature", process_signature)
    app.connect("autodoc-skip-member", skip_member)
    app.connect("missing-reference", resolve)
    return {"parallel_read_safe": True}
