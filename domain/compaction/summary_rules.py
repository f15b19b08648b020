"""Rules for summaries: maximum length, when to rebuild, and which texts to refuse before recording."""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from refold.domain.conversation import ActiveSummary, Conversation, SummaryLength, Topic
from refold.domain.errors import RefoldError
from refold.domain.events import CompactionPerformed, GivenInPart, LeafSummary, OmittedMessage
from refold.domain.lazy_pattern import lazy_pattern
from refold.domain.ledger import IndexEntry, LedgerLine
from refold.domain.messages import Block
from refold.domain.value import Value

from .policy import CompactionPolicy

LEAST_WORDS = 3
"""Minimum number of different words in a text. Each Chinese, Japanese or Korean character counts as one."""
LONGEST_ROUND = 12
"""Maximum length, in words, of a repeated phrase that is detected."""
MOST_ROUNDS = 6
"""Number of repetitions that make a text empty of content; half as many for a single word."""

_FILLERS = frozenset("\u115f\u1160\u3164\uffa0")
"""Unicode letters that are invisible."""
_WORD = lazy_pattern(r"\w+", re.UNICODE)
_MARKS = 50
"""Length of a run of one character that does not count as a word."""
_RUN = lazy_pattern(rf"(.)\1{{{_MARKS - 1},}}", re.DOTALL)
_CJK = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff"
_CJK_OR_WORD = lazy_pattern(rf"[{_CJK}]|[^\W{_CJK}]+")
_TAG = lazy_pattern(r"</?[a-z][\w:.-]*(?:\s[^<>\n]*)?/?>", re.IGNORECASE)
_HEADING = lazy_pattern(
    r"""^[ \t>]*(?:
      \#{1,6}(?:[ \t].*)?                           # "## Key Decisions"
    | (?:[-*•+][ \t]+|\d{1,2}[.)][ \t]+)?(?:
        (?:\*\*|__)\S+(?:[ \t]+\S+){0,5}(?:\*\*|__):?   # "**Key Decisions**", alone in its line
      | \w\S*(?:[ \t]+\S+){0,5}[:：](?:\*\*|__)?         # "Key Decisions:", the same
      )
    | 【[^】\n]*】
    )[ \t]*$""",
    re.MULTILINE | re.VERBOSE,
)


def is_blank(text: str) -> bool:
    """Return whether a text has no letters or digits, only spaces, marks or invisible characters."""
    return not any(c.isalnum() and c not in _FILLERS for c in text)


def is_repetition(text: str) -> bool:
    """Return whether a text is only one character, word or short phrase, repeated from start to end."""
    if not _RUN.sub("", text).strip():
        return True
    words = [word.casefold() for word in _WORD.findall(text)]
    for size in range(1, min(LONGEST_ROUND, len(words) // 2) + 1):
        rounds = MOST_ROUNDS // 2 if size == 1 else MOST_ROUNDS
        if len(words) >= size * rounds and words[size:] == words[:-size]:
            return True
    return False


def says_nothing(text: str, headings: Iterable[str] = ()) -> bool:
    """Return whether a text has hardly any words outside headings and tags, or only repeated ones.

    ``headings`` are known headings, in addition to lines that look like one.
    """
    said = _TAG.sub(" ", _HEADING.sub("", text))
    for heading in headings:
        said = said.replace(heading, " ")
    words = {word.casefold() for word in _CJK_OR_WORD.findall(said)}
    return len(words) < LEAST_WORDS or is_repetition(said)


class SummaryRefused(RefoldError):
    """The summary is not acceptable. ``reason`` is a short constant."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Summary(Value, frozen=True):
    """A finished summary with its sizes, ready to be judged and recorded."""

    summary_id: str
    text: str
    text_tokens: int
    tokens: int
    """Tokens of the rendered summary, including heading, guidance, topics and ledger."""
    complete: bool
    summariser: str
    model: str
    prompt_fingerprint: str
    required: tuple[str, ...] = ()
    """Texts that a complete summary must contain."""
    source_digest: str | None = None
    """Digest of the text that was really sent, or None if it is the requested one."""
    is_split_turn: bool = False
    split_turn_prefix: str | None = None
    split_at: int | None = None
    ledger: tuple[LedgerLine, ...] = ()
    ledger_shown: int = 0
    leaf: LeafSummary | None = None
    omitted: tuple[OmittedMessage, ...] = ()
    given_in_part: tuple[GivenInPart, ...] = ()
    block: Block | None = None
    model_calls: int = 1
    topics: tuple[Topic, ...] = ()
    topics_shown: int = 0
    topics_ask: bool = True
    index: tuple[IndexEntry, ...] = ()
    index_shown: int = 0
    index_left_out: int = 0
    earlier: tuple[LeafSummary, ...] = ()


def judge_text(
    text: str, *, complete: bool, required: Sequence[str] = (), by_code: bool = False
) -> None:
    """Refuse a text that is empty, cut off, repetitive, an error message, or incomplete.

    A text without letters and digits counts as empty, and so does one with hardly any words besides
    headings and tags. A text is repetitive if it repeats one word or a few words. ``by_code`` allows texts
    with few words, because code extracts no more than the source contains.

    Raises:
        SummaryRefused: with the reason.
    """
    if is_blank(text):
        problem = "is empty" if not text.strip() else "has no words in it, only marks or blanks"
        raise SummaryRefused("empty", f"the summary {problem}")
    if not complete:
        raise SummaryRefused("incomplete", "the summary was cut off before its end")
    if is_repetition(text):
        raise SummaryRefused("repetitive", "the summary is the same words again and again")
    if _is_error(text):
        raise SummaryRefused("error_text", f"an error in place of a summary: {text.strip()[:200]}")
    missing = [part for part in required if part not in text]
    if missing:
        raise SummaryRefused("missing_parts", f"missing in the summary: {', '.join(missing)}")
    if not by_code and says_nothing(text, required):
        raise SummaryRefused("empty", "the summary says nothing besides its headings and tags")


def judge_length(text_tokens: int, limit: int, tokens: int, covered_tokens: int) -> None:
    """Refuse a text over its limit, or a summary that is not smaller than the messages it covers.

    ``tokens`` is the size of the rendered summary. ``covered_tokens`` is the size of the content it
    replaces.

    Raises:
        SummaryRefused: with the reason.
    """
    if tokens >= covered_tokens:
        raise SummaryRefused(
            "not_smaller",
            f"the summary has {tokens:,} tokens as rendered, what it stands for {covered_tokens:,}",
        )
    if text_tokens > limit:
        raise SummaryRefused(
            "too_long", f"the summary has {text_tokens:,} tokens, there is room for {limit:,}"
        )


# Only a short text that begins like an error counts as one: a summary may well mention errors.
_MOST_OF_AN_ERROR = 400
_ERROR = lazy_pattern(
    r"""\W*(?:
      (?:(?:an?|api|http|network|connection|server|internal|fatal|unexpected|runtime|unknown)\s){0,2}
        \w*(?:error|exception)\s*(?::|\(|\[|-\s|\d{3}\b|occurred\b)
    | traceback\ \(most\ recent
    | (?:http\S*\s+|status\s+|code\s+|error\s+)?[45]\d\d\b\W+(?:error|too\ many|internal|service|bad|gateway
        |unauthorized|forbidden|not\ found|overloaded|request)
    | (?:rate\ limit(?:\ exceeded|\ reached)?|overloaded|service\ unavailable
        |internal\ server\ error|request\ timed\ out)\s*(?:$|[:.,;(\[{!])
    | (?:i['’]?m\ sorry,?\ (?:but\ )?)?i\ (?:can(?:no|['’])t|am\ unable\ to)\ (?:assist|help|summari|complete
        |continue|comply|provide)
    )""",
    re.IGNORECASE | re.VERBOSE,
)
_ERROR_DATA = lazy_pattern(
    r"""\s*(?:\{\s*"(?:error|type)"\s*:\s*(?:\{|"[^"]*error)|<!doctype\ html|<html\b)""",
    re.IGNORECASE | re.VERBOSE,
)


def _is_error(text: str) -> bool:
    is_short = len(text.strip()) <= _MOST_OF_AN_ERROR
    return bool(_ERROR_DATA.match(text) or (is_short and _ERROR.match(text)))


REMEMBERED = 6
"""Number of summary lengths that a conversation remembers."""
LAST = 3
"""Number of the newest lengths of one model that are used."""


class ExpectedLength(NamedTuple):
    """The expected size of the next summary, in tokens."""

    text: int
    beside: int
    """Tokens rendered in addition to the text."""


def add_length(
    lengths: tuple[SummaryLength, ...], event: CompactionPerformed
) -> tuple[SummaryLength, ...]:
    """Return ``lengths`` extended by the length of a new summary."""
    if not event.text_tokens:  # Old versions of refold did not measure the text separately.
        return lengths
    extra = max(0, event.tokens - event.text_tokens)
    # What had no room counts, so that an index with too little room does not stay small.
    extra += event.index_left_out
    length = SummaryLength(event.summariser, event.model, event.text_tokens, extra)
    return (*lengths, length)[-REMEMBERED:]


def expect_length(state: Conversation, summariser: str) -> ExpectedLength | None:
    """Return the length of the longest recent summary by the same model, or None if none exists."""
    own = [length for length in state.lengths if length.summariser == summariser]
    last = [length for length in own if length.model == own[-1].model][-LAST:]
    if not last:
        return None
    return ExpectedLength(max(one.text for one in last), max(one.beside for one in last))


def must_rebuild(
    summary: ActiveSummary | None, policy: CompactionPolicy, target_tokens: int
) -> bool:
    """Return whether to rebuild the next summary instead of extending the active one.

    ``target_tokens`` is its target length. With ``rebuild_after`` = 5, every fifth summary is rebuilt, and
    so is one whose text is much longer than its target. It requires leaf summaries for all covered messages,
    because other content would be lost.
    """
    if summary is None or not summary.leaves:
        return False
    is_worn = summary.generation + 1 >= policy.rebuild_after
    return is_worn or summary.text_tokens > _longest(policy, target_tokens)


def _longest(policy: CompactionPolicy, target_tokens: int) -> float:
    if policy.rebuild_over_tokens is not None:
        return policy.rebuild_over_tokens
    return policy.rebuild_over_share * target_tokens
