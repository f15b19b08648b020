"""Entry point of the program. It handles Ctrl-C before slow imports."""

from __future__ import annotations

import gc
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_STORED_NOTHING = ("simulate", "exam")
"""Commands that never store anything."""
_ONLY_LOOK = (
    *(
        "list",
        "show",
        "context",
        "explain",
        "why",
        "facts",
        "summaries",
        "diff",
        "stats",
        "recall",
        "search",
        "query",
    ),
    *(
        "read",
        "expand",
        "topics",
        "notes",
        "search-notes",
        "pins",
        "proposals",
        "export",
        "verify",
        "anchor",
    ),
    *("settings", "scan", "inspect"),
)
"""Commands that do not change stored data."""
_IN_A_LOG_IF_NAMED = ("play",)
"""Commands that store permanent data only if a log is named."""
_CHANGE = frozenset({"--repair", "--out", "--accept", "--write", "--html"})
"""Options with which a read-only command writes something."""
_PAGES = frozenset({("export", "--html"), ("inspect", "--bundle")})
"""Commands and options that write pages, which appear only when they are complete."""

_COLLECTED = 50_000
"""New objects after which Python looks for cycles. A command makes many objects and few cycles: with Python's own 700,
looking takes a seventh of the time of a short command, and a quarter of that of an import.
"""


def main() -> None:
    """Run a command. Exit codes are those of the command line, and 130 after Ctrl-C."""
    gc.set_threshold(_COLLECTED)
    # OpenBLAS, which numpy loads, makes a thread for each processor. Where it cannot, it sends the signal of Ctrl-C.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    _replace_closed_streams()
    try:
        if sys.argv[1:] == ["--version"]:
            _print_version()
            sys.exit(0)
        from .app import main as run

        run(lambda: stopped(sys.argv[1:]))
    except KeyboardInterrupt:
        _end()


def _replace_closed_streams() -> None:
    """Read nothing from and write nowhere to what was closed for this process, such as by ``>&-``.

    Otherwise the next file that is opened, such as the log, would get its number.
    """
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115, PTH123 (kept to the end)


def _print_version() -> None:
    """Print the version before anything else is imported: scripts ask for nothing else."""
    found = _installed_version()
    if found is None:
        from refold import __version__ as found
    sys.stdout.write(f"refold {found}\n")


def _installed_version() -> str | None:
    """Return the version in the name of the folder that installers make, or None if there is no such folder.

    Reading it by ``importlib.metadata`` takes three times as long as all the rest.
    """
    for folder in sys.path:
        try:
            names = os.listdir(folder or ".")  # noqa: PTH208 (pathlib takes longer to import)
        except OSError:
            continue
        for name in names:
            if name.startswith("refold-") and name.endswith(".dist-info"):
                return name.removeprefix("refold-").removesuffix(".dist-info")
    return None


def stopped(words: Sequence[str]) -> str:
    """Describe what Ctrl-C left behind of a command with these arguments."""
    command = next((word for word in words if not word.startswith("-")), "")
    named = any(word == "--db" or word.startswith("--db=") for word in words)
    if command == "demo":
        return "Messages played so far are in the demo's log; run the same command again to start over."
    if command == "copy":
        return "What was copied stays in the target; the same command continues from there."
    if command in _STORED_NOTHING or (command in _IN_A_LOG_IF_NAMED and not named):
        return "Nothing was stored; run the same command again to start over."
    options = {word.partition("=")[0] for word in words}
    if any((command, option) in _PAGES for option in options):
        return "No page was written, and what was there is unchanged; run the same command again."
    if command in _ONLY_LOOK and not _CHANGE & options:
        return "Nothing was changed; run the same command again."
    return "Stored data remains in your log (--db); the same command continues from there."


def _end() -> None:
    note = stopped(sys.argv[1:])
    if "--json" in sys.argv:
        import json

        message = f"stopped by Ctrl-C. {note}"
        sys.stdout.write(json.dumps({"error": "Interrupted", "message": message}) + "\n")
    sys.stderr.write(f"Stopped. {note}\n")
    sys.exit(130)  # Exit code that a shell reports for a program ended by Ctrl-C.
