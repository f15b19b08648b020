"""Choose the search program from the settings, and delete its files after an erasure."""

from pathlib import Path
from typing import TYPE_CHECKING, get_args

from refold.application.ports.conversation_log import ConversationLog
from refold.application.ports.search_backend import SearchBackend
from refold.domain.errors import InvalidSetting
from refold.infrastructure.settings.option_checks import refuse_unfit

if TYPE_CHECKING:
    from refold.infrastructure.settings.settings_model import RefoldSettings

_PARTS = ("name", "find", "drop", "close")
"""Required attributes of a ``SearchBackend``."""


def qmd_folder(path: str | Path) -> Path:
    """Return the folder with QMD's copy of the messages: ``agent.qmd`` next to ``agent.db``."""
    log = Path(path).absolute()
    return log.with_name(f"{log.stem}.qmd")


def refuse_files_of(settings: "RefoldSettings", path: str | Path, *, encrypted: bool) -> None:
    """Reject a program that needs plain text files if the log must not be stored in any.

    Raises:
        InvalidSetting: QMD is configured, and the log is encrypted or in memory.
    """
    in_memory = str(path) == ":memory:"
    if settings.search_backend == "qmd" and (encrypted or in_memory):
        why = "is encrypted" if encrypted else "is in memory"
        raise InvalidSetting(
            f"search_backend: 'qmd' searches files of plain text, and this log {why}; "
            "use search_backend='builtin'",
            setting="search_backend",
            value="qmd",
        )


def given_backend(given: str | SearchBackend | None) -> SearchBackend | None:
    """Return the given search program, or None if a name or nothing was given.

    Raises:
        InvalidSetting: the object is not a search program.
    """
    if given is None or isinstance(given, str):
        return None
    from refold.infrastructure.settings.settings_model import SearchBackendName

    refuse_unfit("search_backend", given, names=get_args(SearchBackendName), parts=_PARTS)
    return given


def named_backend(
    settings: "RefoldSettings", path: str | Path, log: ConversationLog
) -> SearchBackend | None:
    """Return the search program that the settings name, or None for the built-in search."""
    if settings.search_backend != "qmd":
        return None
    from .qmd import Qmd

    return Qmd(qmd_folder(path), log, like=Path(path).absolute(), timeout=settings.backend_timeout)


def drop_handed_over(path: str | Path) -> bool:
    """Delete the files that QMD got from the log at ``path``, and return whether nothing is left.

    An erasure does this regardless of the settings, because another process may use QMD.
    """
    if str(path) == ":memory:":
        return True
    from .qmd import delete_all

    return delete_all(qmd_folder(path), Path(path).absolute())
