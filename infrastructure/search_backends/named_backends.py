"""Which search program answers, by the settings; and what any of them was handed is deleted with erasures."""

from pathlib import Path
from typing import TYPE_CHECKING, get_args

from refold.application.ports.conversation_log import ConversationLog
from refold.application.ports.search_backend import SearchBackend
from refold.domain.errors import InvalidSetting
from refold.infrastructure.settings.option_checks import refuse_unfit

if TYPE_CHECKING:
    from refold.infrastructure.settings.settings_model import RefoldSettings

_PARTS = ("name", "find", "drop", "close")
"""Of a ``SearchBackend``."""


def qmd_folder(path: str | Path) -> Path:
    """Where QMD has the messages of a log: ``agent.qmd`` beside ``agent.db``."""
    log = Path(path).absolute()
    return log.with_name(f"{log.stem}.qmd")


def refuse_files_of(settings: "RefoldSettings", path: str | Path, *, encrypted: bool) -> None:
    """Refuse a program that needs files of plain text, where the log is not to be in any.

    Raises:
        InvalidSetting: QMD is named, and the log is encrypted or in memory.
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
    """The search program that was given as an object; None where one was named, or none was.

    Raises:
        InvalidSetting: what was given is no search program.
    """
    if given is None or isinstance(given, str):
        return None
    from refold.infrastructure.settings.settings_model import SearchBackendName

    refuse_unfit("search_backend", given, names=get_args(SearchBackendName), parts=_PARTS)
    return given


def named_backend(
    settings: "RefoldSettings", path: str | Path, log: ConversationLog
) -> SearchBackend | None:
    """The search program that the settings name; None for the built-in search."""
    if settings.search_backend != "qmd":
        return None
    from .qmd import Qmd

    return Qmd(qmd_folder(path), log, like=Path(path).absolute(), timeout=settings.backend_timeout)


def drop_handed_over(path: str | Path) -> bool:
    """Delete what QMD was given of the log at ``path``, whoever gave it; whether nothing is left.

    An erasure needs it whatever the settings are: another process may have given it.
    """
    if str(path) == ":memory:":
        return True
    from .qmd import delete_all

    return delete_all(qmd_folder(path), Path(path).absolute())
