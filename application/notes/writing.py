"""Use case: bring the files of notes up to date with the log (requirement C2)."""

from refold.application.core import Core
from refold.application.plain_lines import plain_logger
from refold.domain.errors import RefoldError

from .days import dated
from .files import files_of

logger = plain_logger(__name__)


def write_notes(core: Core) -> bool:
    """Bring the files of the folder that is configured up to date with the log, if one is.

    Whether that worked; where it did not a warning is logged, and the next time makes up for it.
    """
    if core.notes_folder is None:
        return True
    try:
        core.notes_folder.write(
            lambda: files_of(
                dated(core.views.all_notes(), core.settings.notes.timezone),
                core.views.conversations(),
                core.views.owners_of,
            )
        )
    except (OSError, RefoldError) as error:
        logger.warning("the files of notes cannot be written: %s", error)
        return False
    return True
