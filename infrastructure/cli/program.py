"""Where the program begins: before anything is imported that takes a while, Ctrl-C ends it in one sentence."""

import json
import sys

INTERRUPTED = 130


def main() -> None:
    """Run a command; exit codes are those of the command line, and 130 after Ctrl-C."""
    try:
        from .app import main as run

        run()
    except KeyboardInterrupt:
        _end()


def _end() -> None:
    if "--json" in sys.argv:
        message = "stopped by Ctrl-C; what is in your log (--db) stays"
        sys.stdout.write(json.dumps({"error": "Interrupted", "message": message}) + "\n")
    sys.stderr.write("Stopped. What is in your log (--db) stays; give the same command again.\n")
    sys.exit(INTERRUPTED)
