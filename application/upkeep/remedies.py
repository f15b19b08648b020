"""What can be done about each kind of damage, in words."""

from collections.abc import Mapping
from types import MappingProxyType

from refold.application.event_log import Damage

_RESTORE = "restore the log from a backup, or copy every intact event with `refold salvage NEW.db`"
_BEHIND = (
    "put the newer file back; or copy what is here with `refold salvage NEW.db`; or, to go on with the log "
    "as it is, `refold anchor --accept`"
)
_OF_LOG: Mapping[str, str] = MappingProxyType(
    {
        "behind": _BEHIND,
        "missing": _BEHIND,
        "empty": _BEHIND,
        "erased": "nobody recorded this erasure: restore the log from a backup, if there is one of before",
        "restored": "erase it again: `refold erase`",
        "newer": "install a newer refold",
        "write-ahead": "copy every intact event with `refold salvage NEW.db`, which reads it frame by frame, "
        "then put that in place: `refold restore NEW.db --force`",
        "unsealed": "somebody without the key put it there: see who may write the file; "
        f"{_RESTORE}, which leaves it out",
    }
)
_OF_SNAPSHOTS = (
    "nothing is lost: it is not used, and replaced at the next load or by `refold verify --repair`"
)
_OF_KEYS = (
    "nothing is lost or doubled: it is not believed, and made anew from the messages when a key of the "
    "conversation is used next, or by `refold verify --repair`"
)
_OF_ANCHOR = "nothing is lost: `refold verify --repair` makes the anchor anew from the log"
_OF_VECTORS = "nothing is lost: it is made again when somebody searches by meaning; `refold verify --repair` deletes it"
_OF_VIEWS = (
    "nothing is lost: it is rebuilt when it is read, by `refold verify --repair` or `refold replay`"
)

_OF_FOREIGN = (
    "nothing is lost: it is left alone, and what would lie there is kept in memory meanwhile; give that "
    "file, or the log, another name"
)


def remedy_of(damage: Damage) -> str:
    """What can be done about it."""
    match damage.place:
        case "log":
            return _OF_LOG.get(damage.kind, _RESTORE)
        case _ if damage.kind == "foreign":
            return _OF_FOREIGN
        case "snapshots":
            return _OF_SNAPSHOTS
        case "keys":
            return _OF_KEYS
        case "anchor":
            return _OF_ANCHOR
        case "vectors":
            return _OF_VECTORS
        case _:
            return _OF_VIEWS
