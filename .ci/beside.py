"""Use refold beside another package, in an environment that has both: beside.py MODULE..."""

import sys
import tempfile
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import refold


def main() -> None:
    """Import the modules, then open a log, append and make a context, also after a compaction."""
    for name in sys.argv[1:]:
        import_module(name)
    with (
        tempfile.TemporaryDirectory() as folder,
        refold.open(Path(folder) / "a.db", window=8_000) as memory,
    ):
        conversation = memory.conversation("t")
        for n in range(30):
            conversation.append(
                {"role": "user", "content": f"{n}: " + "What about the next part? " * 30}
            )
            request = conversation.context(system="Be kind.").for_anthropic()
            conversation.append({"role": "assistant", "content": "It is fine. " * 30})
        assert request["messages"], "no request was made"
        assert any(row.is_active for row in conversation.summaries()), "nothing was compacted"
        assert len(conversation.recall("what about the next part?")), "nothing was found"
        assert memory.verify().ok, "the log is damaged"
    sys.stdout.write(
        f"refold {version('refold')} works beside {', '.join(sys.argv[1:]) or 'nothing else'}\n"
    )


main()
