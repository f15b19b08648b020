"""The words of recalled lines, read from the messages that the lines are part of."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from refold.domain.events import LinesRecalled, MessageAppended, RecalledLine
from refold.domain.messages import readable

if TYPE_CHECKING:
    from refold.application.ports.conversation_log import ConversationLog

    from .loaded import LoadedConversation


REMEMBERED = 5_000
"""Number of lines whose words are remembered."""


class RecalledText(NamedTuple):
    """A recalled line with its words."""

    line: RecalledLine
    text: str


_Found = dict[int, "tuple[LinesRecalled, Sequence[RecalledText]]"]


class RecalledTexts:
    """Reads the words of recalled lines, and remembers them."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, RecalledLine], str] = OrderedDict()
        self._found: dict[str, _Found] = {}
        """Lines of the events of the newest window of each conversation, by position."""

    def remember(self, thread_id: str, found: Sequence[RecalledText]) -> None:
        """Remember the words of lines that were just read."""
        for line, text in found:
            self._known[thread_id, line] = text
            self._known.move_to_end((thread_id, line))
        while len(self._known) > REMEMBERED:
            key, _ = self._known.popitem(last=False)
            self._found.pop(key[0], None)

    def find(
        self, log: ConversationLog, loaded: LoadedConversation
    ) -> Mapping[int, Sequence[RecalledText]]:
        """Return the recalled lines of each message in the window that has any, by its position.

        A line is left out if its message was erased or has other words now.

        Raises:
            LogError: the log cannot be read.
        """
        thread_id = loaded.thread_id
        before, now = self._found.pop(thread_id, {}), _Found()
        for at, event in loaded.window.recalled.items():
            known = before.get(at)
            # A window keeps its events, so that their lines need not be looked up for each request.
            if known is None or known[0] is not event or len(known[1]) < len(event.lines):
                known = event, self._read(log, thread_id, event)
            now[at] = known
        if now:
            self._found[thread_id] = now
        return {at: found for at, (_, found) in now.items()}

    def _read(
        self, log: ConversationLog, thread_id: str, event: LinesRecalled
    ) -> Sequence[RecalledText]:
        from refold.application.recall.tokens import digest_of

        missing = {o.version for o in event.lines if (thread_id, o) not in self._known}
        messages = {
            logged.version: logged.event.message
            for logged in (log.read_at(thread_id, missing) if missing else ())
            if isinstance(logged.event, MessageAppended) and not logged.erased
        }
        found: list[RecalledText] = []
        for line in event.lines:
            known = self._known.get((thread_id, line))
            message = messages.get(line.version)
            text = readable(message)[line.start : line.stop] if message else ""
            if known is not None:
                found.append(RecalledText(line, known))
            elif message is not None and digest_of(text) == line.digest:
                found.append(RecalledText(line, text))
        self.remember(thread_id, found)
        return found

    def forget(self, thread_id: str) -> None:
        """Forget the words of a conversation in which something was erased."""
        self._found.pop(thread_id, None)
        for key in [key for key in self._known if key[0] == thread_id]:
            del self._known[key]
