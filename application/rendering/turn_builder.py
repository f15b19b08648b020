"""Build the turns of a request."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from refold.application.conversation.entries import SAID, Entry, PreviewKey
from refold.application.conversation.loaded import Window
from refold.domain.messages import THINKING, Block, ToolNames, is_refused, is_unknown
from refold.domain.originals import RESPONSES, Original
from refold.domain.value import byte_size, replace

from . import request_blocks as blocks
from . import request_blocks as texts
from .request_blocks import text_block
from .shortened_blocks import shorten_block


class LeftOut:
    """A run of adjacent blocks that are left out, possibly across several messages."""

    def __init__(self) -> None:
        self.block = text_block("")
        """The block that replaces the run; its text is empty until the run ends."""
        self._kinds: Counter[str] = Counter()
        self._addresses: list[str] = []

    def add(self, block: Block, address: str) -> None:
        """Add a block to the run."""
        self._kinds[str(block.get("type"))] += 1
        self._addresses = [*self._addresses[:1], address]

    def end(self) -> str:
        """End the run, put its marker into the block, and return the marker."""
        what = ", ".join(f"{n:,} {kind}{'s' * (n > 1)}" for kind, n in self._kinds.items())
        marker = texts.left_out_marker(what, self._addresses[0], self._addresses[-1])
        self.block["text"] = marker
        return marker


Turn = dict[str, Any]
_TURN_BYTES = 40
"""Bytes of a turn in addition to its content: role, names and brackets."""
_BLOCK_BYTES = 100
"""Bytes of a block in addition to its text, at most."""
FRAME_TOKENS = 40
"""Tokens of a block or turn that refold adds, in addition to its text. No counter has a larger frame."""


class TurnBuilder:
    """Builds the turns of one request, oldest entry first."""

    hides_thinking = False
    """True if the thinking of a message is left out because of its position."""
    images = 0
    """Number of images and documents."""

    def __init__(
        self,
        window: Window,
        address: Callable[[int], str],
        count: Callable[[str], int],
        recalled: Mapping[int, str] = MappingProxyType({}),
    ) -> None:
        """Start a request.

        ``address`` returns the address of a position, ``count`` measures added texts. ``recalled`` are the
        texts of recalled lines by position.
        """
        self.turns: list[Turn] = []
        self._parts, self._turns_scanned = list[tuple[int, _Parts]](), 0
        self.extra_tokens = 0
        """Tokens that rendering itself adds."""
        self.extra_bytes = 0
        """Bytes that rendering itself adds, less those saved by shortening."""
        self.opening = 0
        """Number of memory blocks at the beginning of the first turn."""
        self.originals: dict[int, Original] = {}
        """Foreign forms of what is shown whole, by the index of its turn: of answers, and of OpenAI's items."""
        self._window = window
        self._address = address
        self._count = count
        self._recalled = recalled
        self._used_ids, self._names = set[str](), ToolNames()
        self._thoughts: set[tuple[Any, ...]] = set()
        """Signed thinking seen so far; a repetition is valid only in its first position."""
        self._server_calls = _server_calls(window)
        self._calls: list[tuple[str, str]] = []
        """Open calls of the last assistant turn, as pairs of logged id and rendered id."""
        self._results: list[Block] = []
        self._user_blocks: list[Block] = []
        self._said: list[Entry] = []
        """Messages of the open user turn."""
        self._left_out: LeftOut | None = None
        """The run that is left out right before the next block, or None."""
        self._single_text: str | None = None
        self._paused = self._silent = False
        """True if the model's last response has nothing that can be shown."""
        self.said_tokens = 0
        """Tokens of the messages, without thinking that is not shown."""
        self.said_bytes = 0
        """Bytes of the messages with their turns, at most."""

    @property
    def may_go_on(self) -> bool:
        """True if later messages cannot change how those that were added are shown."""
        return self._left_out is None and not self._server_calls.is_used

    def go_on(self, window: Window, recalled: Mapping[int, str]) -> None:
        """Prepare for more messages, of a window that agrees with the one before in everything else."""
        self._window, self._recalled = window, recalled
        self._server_calls = _server_calls(window)

    def measured(self) -> "TurnBuilder":
        """Return a copy that can be finished and measured. Its turns must not be given away."""
        fork = TurnBuilder.__new__(TurnBuilder)
        fork.__dict__.update(self.__dict__)
        fork.turns, fork._calls = [*self.turns], [*self._calls]
        fork._results, fork._user_blocks = [*self._results], [*self._user_blocks]
        fork.originals, fork._said = {**self.originals}, [*self._said]
        return fork

    def fork(self) -> "TurnBuilder":
        """Return a copy that can be finished and shares nothing that changes."""
        fork = TurnBuilder.__new__(TurnBuilder)
        fork.__dict__.update(self.__dict__)
        fork.turns, fork._parts, fork._turns_scanned = self._separate_turns(), [], 0
        fork._results = blocks.separate(self._results)
        fork._user_blocks = blocks.separate(self._user_blocks)
        fork._calls, fork._said = [*self._calls], [*self._said]
        fork.originals = _separate_originals(self.originals)
        return fork

    def _separate_turns(self) -> list[Turn]:
        """Return copies of the turns. One call copies all that are plain text.

        For the others, the places of their dictionaries and lists are remembered, so that nothing else is looked at.
        """
        turns, parts = self.turns, self._parts
        first = max(self._turns_scanned - 1, 0)  # The last turn may have been replaced since.
        if parts and parts[-1][0] >= first:
            parts.pop()
        new = ((at, _parts_of(turns[at])) for at in range(first, len(turns)))
        parts += [one for one in new if one[1]]
        self._turns_scanned = len(turns)
        copies = list(map(dict[str, Any].copy, turns))
        for at, inner in parts:
            _separate_parts(copies[at], inner)
        return copies

    def open(self, memory: Sequence[Block]) -> None:
        """Begin with the summary and the ledger as data in the user's turn, never as words of the assistant."""
        self.opening = len(memory)
        self._user_blocks.extend(memory)

    def add(self, entries: Iterable[Entry]) -> None:
        """Add messages in order."""
        thinking_from = self._window.thinking_from
        for entry in entries:
            self.said_tokens += entry.tokens
            if entry.position < thinking_from:
                self.said_tokens -= entry.thinking
                self.hides_thinking |= entry.thinking > 0
            self.said_bytes += entry.bytes + _TURN_BYTES
            if self._silent and entry.message.role != "assistant":
                self._end_silence()
            match entry.message.role:
                case "assistant":
                    self._add_assistant(entry)
                case "user":
                    self._add_user(entry)
                case "system":
                    self._add_system(entry)

    def finish(self, *, answered: bool = True) -> list[Turn]:
        """Close the request and return its turns.

        Open calls get a marker as result. If the request will be ``answered``, it ends with a user
        turn.
        """
        self._close_user_turn()
        if not self.turns and self._window.entries:
            self._say(texts.NO_CONTENT)
        ends = answered and not self._paused
        if ends and self.turns and self.turns[-1]["role"] == "assistant":
            self._say(texts.CONTINUE)
        return self.turns

    def _add_user(self, entry: Entry) -> None:
        self._said.append(entry)
        content = entry.message.content
        alone = not self._user_blocks and not self._results and not self._calls
        self._single_text = None
        for index, block in enumerate(entry.message.blocks()):
            if block.get("type") == "tool_result":
                self._add_result(entry, block)
                continue
            if is_unknown(block, entry.message.unknown) or is_refused(block):
                self._add_block(self._as_text(entry, block))
                continue
            key = (entry.position, str(index), SAID)
            said = self._apply_preview(entry, block, key)
            if self._is_left_out(key):
                self._leave_out(entry, block)
            elif (shown := blocks.user_block(said)) is not None:
                self._add_block(shown)
                if isinstance(content, str) and alone:
                    self._single_text = shown["text"]
        if (lines := self._recalled.get(entry.position)) is not None:
            self.add_lines(lines)

    def add_lines(self, lines: str) -> None:
        """Add recalled lines after the message that was added last, one of the user."""
        self._add_block(text_block(lines))
        self._single_text = None
        self.extra_bytes += byte_size(lines) + _BLOCK_BYTES

    def _add_block(self, block: Block) -> None:
        self._end_left_out()
        self.images += blocks.count_images(block)
        self._user_blocks.append(block)

    def _is_left_out(self, key: PreviewKey) -> bool:
        preview = self._window.previews.get(key)
        return preview is not None and preview.method == "left-out"

    def _leave_out(self, entry: Entry, block: Block) -> None:
        if self._left_out is None:
            self._left_out = LeftOut()
            self._user_blocks.append(self._left_out.block)
        self._left_out.add(block, self._address(entry.position))

    def _end_left_out(self) -> None:
        if self._left_out is not None:
            self._measure(self._left_out.end())
        self._left_out = None

    def _add_result(self, entry: Entry, block: Block) -> None:
        logged_id = str(block.get("tool_use_id"))
        call_id = self._take_call(logged_id)
        block = self._apply_preview(entry, block, (entry.position, logged_id, "result"))
        block = blocks.replace_parts(block, lambda part: self._show_part(entry, part))
        if call_id is None:
            self._add_block(blocks.orphan_result(block))
            self.extra_tokens += FRAME_TOKENS
        else:
            shown = blocks.tool_result(block, call_id)
            if note := blocks.failure_note(shown):
                self._measure(note)
            self.images += blocks.count_images(shown)
            self._results.append(shown)

    def _take_call(self, logged_id: str) -> str | None:
        for index, (logged, rendered) in enumerate(self._calls):
            if logged == logged_id:
                del self._calls[index]
                return rendered
        return None

    def _add_system(self, entry: Entry) -> None:
        # Some models reject the system role between messages; a note in a user turn is always
        # valid.
        self._single_text = None
        for block in entry.message.blocks():
            if block.get("type") == "text" and str(block.get("text", "")).strip():
                text = blocks.copied(str(block["text"]))
                self._add_block(blocks.text_block(texts.SYSTEM_NOTE + text))
                self.extra_tokens += FRAME_TOKENS

    def _add_assistant(self, entry: Entry) -> None:
        shown, calls = self._assistant_blocks(entry)
        self._silent = not shown
        if not shown:
            return
        self._close_user_turn()
        self._calls = calls
        content: str | list[Block] = shown
        if isinstance(entry.message.content, str):
            content = blocks.copied(entry.message.content)
        if not self.turns:
            self._say(texts.BEGINS_WITH_ASSISTANT)
        if self.turns[-1]["role"] == "assistant" and self._paused:
            # Another turn: a copy that is measured has the one before.
            said = [*_as_blocks(self.turns[-1]["content"]), *shown]
            self.turns[-1] = {"role": "assistant", "content": said}
            self.originals.pop(len(self.turns) - 1, None)
        else:
            if self.turns[-1]["role"] == "assistant":
                self._say(texts.CONTINUE)
            if entry.original is not None and shown == blocks.without_unsigned(entry.message):
                self.originals[len(self.turns)] = entry.original.restore(entry.message.content)
            self.turns.append({"role": "assistant", "content": content})
        self._paused = entry.stop_reason == "pause_turn"

    def _end_silence(self) -> None:
        # Without a turn between them, the user's messages before and after would become one turn,
        # and earlier requests that ended with the first part would no longer be a prefix of this
        # one.
        self._silent = False
        self._close_user_turn()
        if self.turns and self.turns[-1]["role"] == "user":
            self.turns.append({"role": "assistant", "content": texts.SILENCE})
            self._measure(texts.SILENCE)

    def _assistant_blocks(self, entry: Entry) -> tuple[list[Block], list[tuple[str, str]]]:
        thinking = entry.position >= self._window.thinking_from
        shown: list[Block] = []
        calls: list[tuple[str, str]] = []
        for logged in entry.message.blocks():
            if is_unknown(logged, entry.message.unknown):
                shown.append(self._as_text(entry, logged))
                thinking = False  # The thinking that follows was signed after the original block.
                continue
            block = logged
            if block.get("type") == "tool_use":
                key = (entry.position, str(block.get("id")), "call")
                block = self._apply_preview(entry, block, key)
            is_new = self._is_new(block)
            made = blocks.assistant_block(
                block, thinking=thinking and is_new, calls=self._server_calls
            )
            if made is None:
                continue
            if made.get("type") == "tool_use":
                made["id"] = self._unused_id(made["id"], entry.position)
                made["name"] = self._names.shown(str(block.get("name") or "unknown"))
                calls.append((str(block.get("id")), made["id"]))
            shown.append(made)
        while shown and shown[-1].get("type") in THINKING:
            shown.pop()
        return shown, calls

    def _is_new(self, block: Block) -> bool:
        if not self._window.thoughts_once or block.get("type") not in THINKING:
            return True
        thought = tuple(str(block.get(name)) for name in ("thinking", "signature", "data"))
        is_new = thought not in self._thoughts
        self._thoughts.add(thought)
        return is_new

    def _as_text(self, entry: Entry, block: Block) -> Block:
        marker = blocks.unknown_marker(block, self._address(entry.position))
        self._measure(marker)
        return blocks.unknown_block(block, marker)

    def _show_part(self, entry: Entry, part: Block) -> Block:
        refused = is_unknown(part, entry.message.unknown) or is_refused(part)
        return self._as_text(entry, part) if refused else part

    def _apply_preview(self, entry: Entry, block: Block, key: PreviewKey) -> Block:
        preview = self._window.previews.get(key)
        if preview is None:
            return block
        shown = shorten_block(block, preview, self._address(entry.position))
        self.extra_bytes += byte_size(shown) - byte_size(block)
        return shown

    def _unused_id(self, call_id: str, position: int) -> str:
        candidate, number = call_id, position
        while candidate in self._used_ids:
            candidate = f"{call_id}_{number}"
            number += 1
        self._used_ids.add(candidate)
        return candidate

    def _close_user_turn(self) -> None:
        self._end_left_out()
        for _, call_id in self._calls:
            self._results.append(_missing_result(call_id))
            self._measure(texts.NO_RESULT)
        self._calls = []
        said = [*self._results, *self._user_blocks]
        if said:
            content: str | list[Block] = said
            if self._single_text is not None and len(said) == 1:
                content = self._single_text
            if (own := _items_of(self._said, said)) is not None:
                self.originals[len(self.turns)] = own
            self.turns.append({"role": "user", "content": content})
        self._results, self._user_blocks, self._single_text, self._said = [], [], None, []

    def _say(self, text: str) -> None:
        self.turns.append({"role": "user", "content": text})
        self._measure(text)

    def _measure(self, text: str) -> None:
        self.extra_bytes += byte_size(text) + _BLOCK_BYTES
        self.extra_tokens += self._count(text) + FRAME_TOKENS


def _missing_result(call_id: str) -> Block:
    """Return a result for a call that has none."""
    return {
        "type": "tool_result",
        "tool_use_id": call_id,
        "content": texts.NO_RESULT,
        "is_error": True,
    }


def _separate_originals(originals: Mapping[int, Original]) -> dict[int, Original]:
    """Return copies of foreign forms that share nothing that changes."""
    return {at: replace(one, data=blocks.separate(one.data)) for at, one in originals.items()}


_Parts = tuple[tuple[Any, "_Parts"], ...]
"""Key or index of each dictionary and list in JSON data, with those that it has."""


def _parts_of(data: dict[str, Any] | list[Any]) -> _Parts:
    places: Iterable[tuple[Any, Any]] = data.items() if isinstance(data, dict) else enumerate(data)
    return tuple((at, _parts_of(part)) for at, part in places if type(part) in (dict, list))


def _separate_parts(copy: Any, parts: _Parts) -> None:
    """Make a flat copy deep by copying these parts. A look at each value would take three times as long."""
    for at, inner in parts:
        copy[at] = part = copy[at].copy()
        if inner:
            _separate_parts(part, inner)


def _items_of(entries: Sequence[Entry], shown: Sequence[Block]) -> Original | None:
    """Return the items of OpenAI's API that a user turn was made of, if it shows all of them unchanged."""
    items: list[Any] = []
    for entry in entries:
        if entry.original is None or entry.original.format != RESPONSES:
            return None
        items += entry.original.restore(entry.message.content).data
    given = [block for entry in entries for block in entry.message.blocks()]
    given.sort(key=lambda block: block.get("type") != "tool_result")
    return Original(format=RESPONSES, data=items) if items and given == list(shown) else None


def _as_blocks(content: str | list[Block]) -> list[Block]:
    return [blocks.text_block(content)] if isinstance(content, str) else content


def _server_calls(window: Window) -> blocks.ServerCalls:
    last = window.entries[-1] if window.entries else None
    paused = last.message.blocks() if last and last.stop_reason == "pause_turn" else ()
    return blocks.ServerCalls(
        lambda: (b for e in window.entries for b in e.message.blocks()), paused
    )
