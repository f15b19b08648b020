"""Where the demo leaves its log: in a file of its own, never in the place of anything else."""

from pathlib import Path

from refold.application.errors import TargetExists
from refold.application.recordings.transcripts import RecordedConversation
from refold.domain.errors import RefoldError
from refold.infrastructure.new_files import refuse
from refold.infrastructure.opening import open_memory
from refold.infrastructure.own_files import files_of


def make_room(path: Path, recorded: RecordedConversation) -> None:
    """Remove what an earlier demo left at ``path``.

    Raises:
        TargetExists: something else is there; it stays as it is.
        LogNotFound: there is no such folder.
    """
    refuse(path, replace=True)
    if not path.exists():
        return
    if not _is_of_a_demo(path, recorded):
        raise TargetExists(
            path,
            "is there already and holds something else than a demo; give another path with --db",
        )
    for file in files_of(path):
        Path(file).unlink(missing_ok=True)


def _is_of_a_demo(path: Path, recorded: RecordedConversation) -> bool:
    """Whether a log has the demo's conversation and nothing else."""
    try:
        with open_memory(path, create=False, background=False) as memory:
            rows = memory.conversations()
            if not rows:
                return memory.stats().events == 0
            if [row.thread_id for row in rows] != [recorded.thread_id]:
                return False
            said = memory.conversation(recorded.thread_id).messages()
    except (RefoldError, OSError):
        return False
    if len(said) > len(recorded.messages):
        return False
    known = (one.message for one in recorded.messages)
    return all(
        one.erased or one.message.role == told.role for one, told in zip(said, known, strict=False)
    )
