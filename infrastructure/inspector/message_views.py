"""Messages as the pages show them: who speaks, in which blocks, with which badges, how long."""

import base64
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from markupsafe import escape

from refold.application.api.results import Context, StoredMessage
from refold.application.history.explain import MessageFate
from refold.application.rendering.request_blocks import LEDGER_HEADING, RECALLED_HEADING
from refold.domain.messages import (
    CALLS,
    THINKING,
    Block,
    Message,
    Role,
    block_text,
    gist,
    text_of,
)
from refold.domain.value import is_object
from refold.infrastructure.palette import Meaning
from refold.infrastructure.shown_text import strip_control

QUIET = ("full", "preamble")
"""Fates without a badge."""
SHOWN_AT_ONCE = 500
"""Characters of a block that are shown without unfolding it."""
LEAST_SHOWN, LEAST_FOLDED = 200, 120
"""Characters of a block that a page shows at least, and that are worth unfolding."""
PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")


class BlockView(NamedTuple):
    """One block of a message."""

    meaning: Meaning
    label: str
    """Name of the tool or kind of the block; empty for words."""
    head: str
    """Text that is shown at once."""
    rest: str
    """Text that is shown after unfolding, or an empty text."""
    folded: int
    """Characters of ``rest`` in the message."""
    left_out: int
    """Characters that only the page of the message shows."""
    characters: int
    failed: bool = False
    partner: int | None = None
    """Position of the result of a call, or of the call of a result, if it is known."""
    picture: int | None = None
    """Index of the block if it is an image that can be shown, or None."""


class Badge(NamedTuple):
    """A short word on a message, with its reason."""

    word: str
    why: str
    meaning: Meaning


class MessageView(NamedTuple):
    """One message with its fate."""

    position: int
    version: int
    who: str
    meaning: Meaning
    at: str
    tokens: int
    shown_tokens: int
    badges: tuple[Badge, ...]
    blocks: tuple[BlockView, ...]
    why: str
    fate: str
    mark: str | None
    """Id of the summary that ends before this message, or None."""
    is_split_turn: bool
    near: range
    """Positions of the messages on the same page."""

    @property
    def is_cut(self) -> bool:
        """True if only its own page shows all of it."""
        return any(block.left_out for block in self.blocks)

    def here(self, position: int) -> str | None:
        """Return the address of a message on the same page, or None if it is on another one."""
        return f"#m{position}" if position in self.near else None


_BADGES: Mapping[str, Badge] = {
    "condensed": Badge("condensed", "", "tool"),
    "offloaded": Badge("offloaded", "", "tool"),
    "summarised": Badge("compacted", "", "summary"),
    "omitted": Badge("left out", "", "summary"),
    "pinned": Badge("pinned", "", "pinned"),
    "protected": Badge("protected", "", "pinned"),
    "erased": Badge("erased", "", "damage"),
}


def message_views(
    stored: Sequence[StoredMessage],
    fates: Mapping[int, MessageFate],
    *,
    budget: int | None,
    around: Sequence[StoredMessage] = (),
    near: range = range(0),
) -> list[MessageView]:
    """Return views of messages whose texts take about ``budget`` bytes of HTML together, or of all texts.

    ``around``: more messages in which partners of calls and results are found. ``near``: positions of the
    messages that links reach on the same page.
    """
    partners = _partners((one.position, one.message) for one in (*stored, *around))
    messages = [one.message for one in stored]
    most = _fitting(messages, budget) if budget is not None else sys.maxsize
    views = (_view(one, fates.get(one.position), partners, most) for one in stored)
    return [view._replace(near=near) for view in views]


class SentView(NamedTuple):
    """One message of a request."""

    who: str
    meaning: Meaning
    blocks: tuple[BlockView, ...]


def sent_views(context: Context, *, budget: int) -> list[SentView]:
    """Return views of the messages of a request, whose texts take about ``budget`` bytes of HTML together."""
    sent = [_sent(one["role"], one["content"]) for one in context.messages]
    partners, most = _partners(enumerate(sent)), _fitting(sent, budget)
    views: list[SentView] = []
    for index, message in enumerate(sent):
        who, meaning = speaker_of(message)
        blocks = list(_blocks(message, meaning, partners, most))
        opening = context.opening if index == 0 else 0
        shown = [*map(_by_memory, blocks[:opening]), *map(_as_sent, blocks[opening:])]
        views.append(SentView(who, meaning, tuple(shown)))
    return views


def _sent(role: Role, content: str | Sequence[Block]) -> Message:
    return Message(role=role, content=content if isinstance(content, str) else tuple(content))


def _by_memory(block: BlockView) -> BlockView:
    is_ledger = block.head.startswith(LEDGER_HEADING)
    kind: Literal["ledger", "summary"] = "ledger" if is_ledger else "summary"
    return block._replace(meaning=kind, label=kind)


def _as_sent(block: BlockView) -> BlockView:
    """Return a block without links: messages of a request have no positions."""
    if block.head.startswith(RECALLED_HEADING):
        return block._replace(meaning="ledger", label="recalled lines")
    return block._replace(partner=None, picture=None)


def _view(
    stored: StoredMessage, fate: MessageFate | None, partners: "_Partners", most: int
) -> MessageView:
    who, meaning = speaker_of(stored.message)
    badges = tuple(_badges(fate)) if fate else ()
    return MessageView(
        position=stored.position,
        version=stored.version,
        who=who,
        meaning=meaning,
        at=stored.at,
        tokens=stored.tokens,
        shown_tokens=fate.shown_tokens if fate else 0,
        badges=badges,
        blocks=tuple(_blocks(stored.message, meaning, partners, most)),
        why=fate.why if fate else "",
        fate=fate.fate if fate else "full",
        mark=stored.mark.summary_id if stored.mark else None,
        is_split_turn=stored.mark.is_split_turn if stored.mark else False,
        near=range(0),
    )


def speaker_of(message: Message) -> tuple[str, Meaning]:
    """Return the author of a message for people, and the meaning of its colour."""
    if message.role == "assistant":
        return "assistant", "assistant"
    if message.role == "system":
        return "system", "system"
    does = gist(message)
    if does.results and not does.speaks:
        return "tool result", "tool"
    match message.author:
        case "program":
            return "program", "system"
        case "tool":
            return "tool", "tool"
        case _:
            return "user", "user"


def _badges(fate: MessageFate) -> Iterator[Badge]:
    if fate.fate not in QUIET:
        # The most frequent reason says no more than the mark below the messages.
        is_plain = fate.fate == "summarised" and fate.why.endswith(" covers it")
        yield _BADGES[fate.fate]._replace(why="" if is_plain else fate.why)
    elif fate.fate == "preamble":
        yield Badge("system text", fate.why, "system")
    if fate.thinking_dropped_at is not None:
        yield Badge("thinking left out", "the text before it changed", "thinking")
    if "recalled after it" in fate.why:
        yield Badge("recall added lines", fate.why, "ledger")


class _Partners(NamedTuple):
    calls: Mapping[str, tuple[int, str]]
    """Position and tool of each call, by its id."""
    results: Mapping[str, int]


def _partners(messages: Iterable[tuple[int, Message]]) -> _Partners:
    calls, results = dict[str, tuple[int, str]](), dict[str, int]()
    for position, message in messages:
        for block in _blocks_of(message):
            if block.get("type") in CALLS:
                calls[str(block.get("id"))] = position, str(block.get("name"))
            elif "tool_use_id" in block:
                results[str(block["tool_use_id"])] = position
    return _Partners(calls, results)


def _blocks_of(message: Message) -> Sequence[Block]:
    content = message.content
    return ({"type": "text", "text": content},) if isinstance(content, str) else content


def _blocks(
    message: Message, meaning: Meaning, partners: _Partners, most: int
) -> Iterator[BlockView]:
    for index, block in enumerate(_blocks_of(message)):
        kind, text = str(block.get("type")), full_text(block)
        shown: Meaning = meaning
        label, failed, partner = "", False, None
        if kind in CALLS:
            name = str(block.get("name"))
            shown, label = "tool", f"calls {name}"
            partner = partners.results.get(str(block.get("id")))
        elif "tool_use_id" in block:
            partner, name = partners.calls.get(str(block["tool_use_id"]), (None, "a tool"))
            failed = block.get("is_error") is True
            shown, label = "tool", f"{'error' if failed else 'result'} of {name}"
        elif kind in THINKING:
            shown, label = "thinking", "thinking"
        elif kind != "text":
            label = kind
        elif not text.strip():
            continue
        yield _block(shown, label, text, most)._replace(
            failed=failed, partner=partner, picture=index if picture_of(block) else None
        )


def _block(meaning: Meaning, label: str, text: str, most: int) -> BlockView:
    head, rest = text, ""
    if len(text) > min(most, SHOWN_AT_ONCE):
        head = _to_line_end(text, min(most, SHOWN_AT_ONCE))
        rest = text[len(head) : most]
        if len(rest) <= LEAST_FOLDED:
            head, rest = head + rest, ""
    return BlockView(
        meaning,
        label,
        strip_control(head.rstrip("\n")),
        strip_control(rest),
        len(rest),
        len(text) - len(head) - len(rest),
        len(text),
    )


def _to_line_end(text: str, most: int) -> str:
    """Return the beginning of a text, up to the end of a line if one ends in its second half."""
    end = text.rfind("\n", most // 2, most)
    return text[: end + 1] if end > 0 else text[:most]


def full_text(block: Block) -> str:
    """Return all readable text of a block: words, thinking, the input of a call, a result."""
    kind = block.get("type")
    if kind in CALLS:
        return _input_text(block.get("input"))
    if kind in THINKING:
        return str(block.get("thinking") or "[encrypted]")
    return text_of(block) or block_text(block)


def _input_text(given: object) -> str:
    if is_object(given):
        return "\n".join(f"{key}: {_one(value)}" for key, value in given.items())
    return _one(given)


def _one(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def picture_of(block: Block) -> tuple[bytes, str] | None:
    """Return the bytes and the media type of a block that is an image to show, or None."""
    source = block.get("source")
    if block.get("type") != "image" or not is_object(source):
        return None
    kind, data = source.get("media_type"), source.get("data")
    if source.get("type") != "base64" or kind not in PICTURES or not isinstance(data, str):
        return None
    try:
        return base64.b64decode(data, validate=True), kind
    except ValueError:
        return None


def _fitting(messages: Sequence[Message], budget: int) -> int:
    """Return how many characters of each block can be shown, so that all take about ``budget`` bytes."""
    texts = [full_text(block) for one in messages for block in _blocks_of(one)]
    most = max(budget, LEAST_SHOWN)
    while most > LEAST_SHOWN:
        if sum(html_size(text[:most]) for text in texts) <= budget:
            break
        most = 2 * most // 3
    return max(most, LEAST_SHOWN)


def html_size(text: str) -> int:
    """Return the bytes that a text takes in a page."""
    return len(str(escape(text)).encode("utf-8", "replace"))
