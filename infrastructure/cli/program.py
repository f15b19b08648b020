"""Where the program begins: before anything is imported that takes a while, Ctrl-C ends it in one sentence."""

import json
import sys
from collections.abc import Sequence

_STORED_NOTHING = ("simulate",)
"""Commands that store nothing anywhere."""
_ONLY_LOOK = (
    *(
        "list",
        "show",
        "context",
        "explain",
        "summaries",
        "diff",
        "stats",
        "recall",
        "search",
        "query",
    ),
    *("read", "expand", "topics", "notes", "search-notes", "pins", "export", "verify", "anchor"),
    "settings",
)
"""Commands that change nothing of what is stored."""
_IN_A_LOG_IF_NAMED = ("play",)
"""Commands that store nothing that stays unless a log is named."""
_CHANGE = frozenset({"--repair", "--out", "--accept", "--write"})
"""Options with which one that only looks writes something."""


def main() -> None:
    """Run a command; exit codes are those of the command line, and 130 after Ctrl-C."""
    try:
        from .app import main as run

        run(lambda: stopped(sys.argv[1:]))
    except KeyboardInterrupt:
        _end()


def stopped(words: Sequence[str]) -> str:
    """What Ctrl-C left of a command that was given in these words."""
    command = next((word for word in words if not word.startswith("-")), "")
    named = any(word == "--db" or word.startswith("--db=") for word in words)
    if command == "demo":
        return "What was played until then is in the demo's log; give the same command again to begin anew."
    if command in _STORED_NOTHING or (command in _IN_A_LOG_IF_NAMED and not named):
        return "Nothing was stored; give the same command again to begin anew."
    options = {word.partition("=")[0] for word in words}
    if command in _ONLY_LOOK and not _CHANGE & options:
        return "Nothing was changed; give the same command again."
    return "What is in your log (--db) stays; the same command goes on from there."


def _end() -> None:
    told = stopped(sys.argv[1:])
    if "--json" in sys.argv:
        message = f"stopped by Ctrl-C. {told}"
        sys.stdout.write(json.dumps({"error": "Interrupted", "message": message}) + "\n")
    sys.stderr.write(f"Stopped. {told}\n")
    sys.exit(130)  # What a shell reports of a program that Ctrl-C ended.
