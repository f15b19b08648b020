"""What the context of a conversation shows of each message: the truth that hits are marked with."""

from refold.application.conversation.addresses import address_of
from refold.application.conversation.loaded import LoadedConversation
from refold.application.projections.entries import Entry, entry_at, positions_of
from refold.application.projections.fates import Fate, fate_of
from refold.application.projections.message_list import readable
from refold.application.projections.window import SAID, Preview, PreviewKey
from refold.application.rendering.request_blocks import shortened
from refold.domain.messages import Block, Message
from refold.domain.value import replace


class Sight:
    """How the window of one conversation shows its messages."""

    def __init__(self, loaded: LoadedConversation) -> None:
        self.thread_id = loaded.thread_id
        self.length = loaded.state.length
        """How many messages the conversation has."""
        self._loaded = loaded
        self._window = loaded.window
        self._previews: dict[int, dict[PreviewKey, Preview]] = {}
        for key, preview in loaded.window.previews.items():
            self._previews.setdefault(key[0], {})[key] = preview

    def fate(self, position: int, *, erased: bool = False) -> Fate:
        """How the message is shown; ``erased``: whether the log says that it was."""
        previews = self._previews.get(position, {}).values()
        entry = self._entry(position)
        return fate_of(self._loaded, position, entry, previews, erased=erased)

    def shows(self, position: int, text: str) -> bool:
        """Whether these words of the message are in the context now, none of them cut."""
        entry = self._entry(position)
        if entry is None:
            return False
        previews = self._previews.get(position)
        return not previews or text in readable(self._shortened(entry, previews))

    def in_full(self) -> frozenset[int]:
        """The positions of all messages that are shown as they are."""
        return frozenset(
            at for at in positions_of(self._window.entries) if at not in self._previews
        )

    def _entry(self, position: int) -> Entry | None:
        return entry_at(self._window.entries, position)

    def _shortened(self, entry: Entry, previews: dict[PreviewKey, Preview]) -> Message:
        address = address_of(self.thread_id, entry.position)

        def shown(index: int, block: Block) -> Block:
            preview = previews.get(_key(entry.position, index, block))
            return block if preview is None else shortened(block, preview, address)

        blocks = (shown(index, block) for index, block in enumerate(entry.message.blocks()))
        return replace(entry.message, content=tuple(blocks))


def _key(position: int, index: int, block: Block) -> PreviewKey:
    match block.get("type"):
        case "tool_result":
            return (position, str(block.get("tool_use_id")), "result")
        case "tool_use":
            return (position, str(block.get("id")), "call")
        case _:
            return (position, str(index), SAID)
