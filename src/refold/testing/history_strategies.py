"""Hypothesis strategies for conversation histories, in the format of the Messages API.

``live_histories`` generates what a running agent appends: ids are unique, and a result answers a call
of the last assistant message. ``recorded_histories`` adds oddities of real transcripts. Every text
contains the marker of its message's index (``marker``), so that a test can find the message in a
rendered request. Blank texts, images and redacted thinking have none.
"""

from functools import cache

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from refold.testing.history_layout import Layout, Message, Step, marked, marker
from refold.testing.history_moves import (
    EVERY_KIND,
    Blank,
    Foreign,
    Interjection,
    Kinds,
    Move,
    Part,
    Pictured,
    Result,
    Said,
    Searched,
    Speaks,
    StrayResult,
    Thought,
    ToolRound,
)

__all__ = [
    "Message",
    "Step",
    "histories",
    "live_histories",
    "marked",
    "marker",
    "recorded_histories",
    "turns",
    "words",
]

_SENTENCES = (
    "Please fix the failing test in src/app.py, line 42.",
    "ok",
    "请修复这个测试,用户偏好是简体中文。",
    "👍 👩‍💻 🇨🇳 🤷🏽‍♀️ é ✅",
    "Done: 3 files changed, 请看 diff ✅",
)
_SURROGATES = ("broken \ud83d", "\udc4d", "half 字\ud800 here")
_MARKER_ROOM = 24
_LIVE_ID_STYLES = ("toolu_{n:04d}", "call_{n:04d}", "functions-bash-{n}")
_ODD_ID_STYLES = ("functions.bash:{n}", "call|{n}", "工具-{n}", "id with space {n}", "fc_{n}\n", "")


def words(max_text: int = 300, *, surrogates: bool = False) -> SearchStrategy[str]:
    """Generate text of people, models and tools, up to ``max_text`` characters."""
    room = max(max_text - _MARKER_ROOM, 1)

    sentences = st.sampled_from(_SENTENCES)
    anything = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
    very_long = sentences.map(lambda words: words * (room // len(words) + 1))
    kinds = [sentences, sentences, sentences, anything, very_long]
    if surrogates:
        kinds.append(st.sampled_from(_SURROGATES))
    return st.one_of(kinds).map(lambda text: text[:room])


_BLANKS = st.builds(Blank, st.sampled_from((" ", "\n\n", "", "\t \n", "\u3000")))
_FOREIGN = st.builds(Foreign, st.sampled_from(("future_block", "container_upload_v9")))
_PICTURES = st.builds(Pictured, st.sampled_from(("base64", "url")))


def _weighted(often: SearchStrategy[Part], *seldom: SearchStrategy[Part]) -> SearchStrategy[Part]:
    return st.one_of(often, often, often, *seldom)


def _chain(first: tuple[Part, ...], rest: tuple[Part, ...]) -> tuple[Part, ...]:
    return (*first, *rest)


def _user_parts(texts: SearchStrategy[str], least: int = 1) -> SearchStrategy[tuple[Part, ...]]:
    part = _weighted(st.builds(Said, texts), _BLANKS, _PICTURES, _FOREIGN)
    return st.lists(part, min_size=least, max_size=3).map(tuple)


def _thoughts(texts: SearchStrategy[str]) -> SearchStrategy[tuple[Part, ...]]:
    seals = st.sampled_from(("signed", "signed", "redacted"))
    return st.lists(st.builds(Thought, texts, seals), max_size=2).map(tuple)


def _answer_parts(texts: SearchStrategy[str]) -> SearchStrategy[tuple[Part, ...]]:
    part = _weighted(st.builds(Said, texts), _BLANKS, st.builds(Searched), _FOREIGN)
    said = st.lists(part, min_size=1, max_size=2).map(tuple)
    return st.builds(_chain, _thoughts(texts), said)


def _user_speaks(texts: SearchStrategy[str]) -> SearchStrategy[Speaks]:
    return st.builds(Speaks, st.just("user"), _user_parts(texts), st.booleans())


def _assistant_speaks(texts: SearchStrategy[str]) -> SearchStrategy[Speaks]:
    parts = st.one_of(*[_answer_parts(texts)] * 5, st.just(()))
    return st.builds(Speaks, st.just("assistant"), parts, st.booleans())


def _results(texts: SearchStrategy[str]) -> SearchStrategy[Result]:
    outcomes = ("text", "text", "texts", "picture", "mixed", "nothing", "no content", "no blocks")
    outcome = st.sampled_from((*outcomes, "blank", "huge"))
    return st.builds(Result, outcome, texts, st.booleans())


def _tool_rounds(
    texts: SearchStrategy[str],
    id_styles: tuple[str, ...] = _LIVE_ID_STYLES,
    *,
    recorded: bool = False,
) -> SearchStrategy[ToolRound]:
    interjections = st.builds(Interjection, _user_parts(texts), st.integers(0, 5), st.booleans())
    return st.builds(
        ToolRound,
        thoughts=st.one_of(_thoughts(texts), _answer_parts(texts)),
        results=st.lists(_results(texts), min_size=1, max_size=5).map(tuple),
        order=st.one_of(st.just(range(5)), st.permutations(range(5))).map(tuple),
        withheld=st.one_of(st.just(0), st.just(0), st.integers(1, 5)),
        apart=st.frozensets(st.integers(1, 4), max_size=2),
        interjection=st.one_of(st.none(), st.none(), interjections),
        id_style=st.sampled_from(id_styles),
        together=st.booleans(),
        reuse_id=st.booleans() if recorded else st.just(False),
        streamed=st.booleans() if recorded else st.just(False),
    )


def _live_moves(texts: SearchStrategy[str]) -> SearchStrategy[Move]:
    return st.one_of(_user_speaks(texts), _assistant_speaks(texts), _tool_rounds(texts))


def _odd_moves(texts: SearchStrategy[str]) -> SearchStrategy[Move]:
    unsealed = st.builds(Thought, texts, st.sampled_from(("signed", "empty", "missing")))
    alone = st.tuples(unsealed)
    before = st.one_of(st.just(()), _answer_parts(texts))
    thinks_last = st.builds(Speaks, st.just("assistant"), st.builds(_chain, before, alone))
    thinks_unsealed = st.builds(
        Speaks, st.just("assistant"), st.builds(_chain, alone, _answer_parts(texts))
    )
    hung_search = st.builds(Speaks, st.just("assistant"), st.just((Searched(answered=False),)))
    system = st.builds(
        Speaks,
        st.just("system"),
        st.lists(st.builds(Said, texts), min_size=1, max_size=2).map(tuple),
        st.booleans(),
    )
    stray = st.builds(StrayResult, st.sampled_from(("unknown", "again", "late")), _results(texts))
    silent_user = st.builds(Speaks, st.just("user"), st.just(()))
    odd_round = _tool_rounds(texts, _LIVE_ID_STYLES + _ODD_ID_STYLES, recorded=True)
    return st.one_of(
        stray, odd_round, system, thinks_last, thinks_unsealed, hung_search, silent_user
    )


@cache
def turns(
    *,
    recorded: bool = False,
    min_messages: int = 1,
    max_messages: int = 40,
    max_text: int = 300,
    huge: int = 2_000,
    kinds: Kinds = EVERY_KIND,
) -> SearchStrategy[list[Step]]:
    """Generate a history in steps. Each step is a list of messages that are appended together.

    A state machine may run other actions between two steps, such as a compaction.

    Args:
        recorded: whether to add the oddities of transcripts (``recorded_histories``).
        min_messages: the minimum number of messages in all steps together, at least 1.
        max_messages: the maximum number of messages in all steps together.
        max_text: the maximum characters of a text with its marker, except for huge results.
        huge: the number of characters of a huge tool result.
        kinds: the allowed kinds of blocks and texts.
    """
    texts = words(max_text, surrogates=recorded)
    live = _live_moves(texts)
    if recorded:
        any_move = st.one_of(live, _odd_moves(texts))
        moves = st.lists(any_move, min_size=min_messages, max_size=max_messages)
    else:
        later = st.lists(live, min_size=min_messages - 1, max_size=max_messages - 1)
        moves = st.builds(_prepend, _user_speaks(texts), later)
    return moves.map(lambda chosen: _steps([*map(kinds.filter, chosen)], max_messages, huge))


def _prepend(first: Move, rest: list[Move]) -> list[Move]:
    return [first, *rest]


def _steps(moves: list[Move], max_messages: int, huge: int) -> list[Step]:
    layout = Layout(huge=huge)
    room = max_messages
    steps: list[Step] = []
    for move in moves:
        for step in layout.steps(move):
            if room > 0:
                steps.append(step[:room])
                room -= len(steps[-1])
    return steps


def _join_steps(steps: list[Step]) -> list[Message]:
    return [message for step in steps for message in step]


def live_histories(
    *, min_messages: int = 1, max_messages: int = 40, max_text: int = 300, huge: int = 2_000
) -> SearchStrategy[list[Message]]:
    """Generate histories that a strict append accepts: results only for open calls, every id unique.

    The first message is the user's. Calls may stay unanswered, in the middle and at the end. Sizes are
    as in ``turns``.
    """
    return turns(
        min_messages=min_messages, max_messages=max_messages, max_text=max_text, huge=huge
    ).map(_join_steps)


def recorded_histories(
    *, min_messages: int = 1, max_messages: int = 40, max_text: int = 300, huge: int = 2_000
) -> SearchStrategy[list[Message]]:
    """Generate histories as in real transcripts: live ones, and ones that break the rules of the API.

    They may have results of unknown calls, repeated or too late; repeated ids or ids with odd
    characters; system messages anywhere; lone surrogates; the assistant first; thinking last or without
    a signature; server calls without a result; an answer spread over several messages; empty user
    messages. Sizes are as in ``turns``.
    """
    return turns(
        recorded=True,
        min_messages=min_messages,
        max_messages=max_messages,
        max_text=max_text,
        huge=huge,
    ).map(_join_steps)


def histories(
    *,
    damaged: bool = False,
    multilingual: bool = True,
    tools: bool = True,
    thinking: bool = True,
    images: bool = True,
    min_messages: int = 1,
    max_messages: int = 40,
    max_text: int = 300,
    huge: int = 2_000,
) -> SearchStrategy[list[Message]]:
    """Generate conversations as lists of messages of the Messages API, with all kinds of blocks.

    ``conversation.append`` accepts legal ones. Damaged ones have oddities of recordings, such as results
    of unknown calls and repeated ids: ``conversation.append(history, recorded=True)`` accepts them.

    Args:
        damaged: whether the conversation may break the rules of the API.
        multilingual: whether texts are in several scripts with emoji. Otherwise they are ASCII after
            the marker ``⟦m3⟧`` of their message.
        tools: whether tools are called.
        thinking: whether answers contain thinking.
        images: whether messages and results contain images.
        min_messages, max_messages: how many messages, at least 1.
        max_text, huge: the longest text, and the length of a huge tool result, in characters.

    >>> @given(histories(max_messages=10))
    ... def test_any_history_gives_a_legal_request(history):
    ...     with refold.open(":memory:") as memory:
    ...         conversation = memory.conversation("t")
    ...         conversation.append(history)
    ...         request = conversation.context().for_anthropic()
    ...         assert violations(request, allow_pending_at_end=True) == []
    """
    kinds = Kinds(multilingual=multilingual, tools=tools, thinking=thinking, images=images)
    sizes = {"min_messages": min_messages, "max_messages": max_messages, "max_text": max_text}
    drawn = turns(recorded=damaged, huge=huge, kinds=kinds, **sizes).map(_join_steps)
    return drawn if damaged else drawn.map(_appendable)


def _appendable(messages: list[Message]) -> list[Message]:
    """Replace empty content, which an append rejects, with white space."""
    return [{**message, "content": message["content"] or " "} for message in messages]
