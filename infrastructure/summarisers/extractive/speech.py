"""Reads what the user and the assistant said: requests, decisions, facts, plans, open questions."""

from collections.abc import Callable, Iterator

from refold.domain.ledger import cues
from refold.domain.ledger.wording import clean, excerpt, redact, shorten, squeeze

from .lines import Line, Section

_REQUEST_ROOM = 6_000
_SCANNED = 60_000
_PER_MESSAGE = 8
_TYPED = 1_500  # A longer text is pasted, and only partly the user's own words.


def handover_lines(position: int, words: str) -> list[Line]:
    """The lines of an earlier session's summary, each with the message that brought it."""
    body = words.rpartition("\nSummary:\n")[2] if "\nAnalysis:" in words else words
    lines = [excerpt(s, 500) for s in cues.sentences(cues.prose(body[:_SCANNED]))]
    return [Line(Section.EARLIER, position, line) for line in lines if len(line) > 24]


def request_line(position: int, words: str, question: str) -> Line | None:
    """The user's own words, verbatim but folded to one line; a short answer names its question."""
    text = clean(words if len(words) < 4 * _REQUEST_ROOM else _ends(words))
    if not text:
        return None
    text = shorten(text, _REQUEST_ROOM)
    if question and len(text) <= 60 and not text.endswith(("?", "？")):
        text = f"{text} ← asked: “{squeeze(question, 140)}”"
    return Line(Section.REQUESTS, position, text)


def decision_lines(position: int, words: str, *, by_user: bool, chat: bool) -> list[Line]:
    """The sentences that decide, forbid or prefer; the assistant's only where it decides."""
    wanted = _binding(by_user, chat)
    if not wanted(words):
        return []
    sentences = cues.sentences_under if by_user else cues.sentences
    found = [s for s in _joined(sentences(words)) if wanted(s)]
    if by_user:
        # A short message that only agrees is kept as a request: twice would waste room.
        found = [s for s in found if len(s) < 0.9 * len(words) or cues.lasting(s)]
        limit = _PER_MESSAGE if len(words) < _TYPED else _PER_MESSAGE // 2
    else:
        found = [s for s in found if len(s) >= 25 and not s.endswith(("?", "？", ":", "："))]
        limit = 3
    best = sorted(dict.fromkeys(found), key=lambda s: -cues.weight(s))[:limit]
    speaker = "user" if by_user else "assistant"
    return [
        _said_line(Section.DECISIONS, position, speaker, s, by_user)
        for s in dict.fromkeys(found)
        if s in best
    ]


def _binding(by_user: bool, chat: bool) -> Callable[[str], object]:
    if chat:
        return cues.CHAT_BINDING.search
    return cues.binding if by_user else cues.ASSISTANT_DECISION.search


def fact_lines(position: int, words: str, *, by_user: bool, chat: bool) -> list[Line]:
    """Sentences about persons, likings and plans. In a ``chat`` (no tools) also looser ones and what
    was recommended; in a working session only what plainly names something of the user's.
    """
    in_chat = cues.told_in_chat if by_user else cues.advised_in_chat
    wanted = in_chat if chat else cues.IDENTITY.search
    if not wanted(words):
        return []
    sentences = cues.sentences_under if by_user else cues.sentences
    told = [s for s in sentences(words) if len(s) > 6 and not s.endswith(("?", "？"))]
    told = [s for s in told if wanted(s)]
    best = sorted(told, key=lambda s: -len(cues.FACT.findall(s)))[: 4 if by_user else 2]
    speaker = "user" if by_user else "assistant"
    return [_said_line(Section.FACTS, position, speaker, s, by_user) for s in told if s in best]


def next_lines(position: int, words: str) -> list[Line]:
    """Sentences in which the assistant says what remains."""
    if not cues.NEXT.search(words):
        return []
    found = [s for s in cues.sentences(words) if cues.NEXT.search(s) and not s.endswith("?")]
    return [Line(Section.TASKS, position, f"next: {excerpt(s, 300)}") for s in found[-3:]]


def last_question(words: str) -> str:
    """The question that an assistant text ends with, or an empty text."""
    if "?" not in words[-1_500:] and "？" not in words[-1_500:]:
        return ""
    ending = [s for s in cues.sentences(words[-1_500:]) if s.endswith(("?", "？"))]
    return excerpt(ending[-1], 300) if ending else ""


def _joined(found: Iterator[str]) -> Iterator[str]:
    """A heading goes with the sentence that it announces."""
    heading = ""
    for sentence in found:
        if sentence.endswith((":", "：")) or (len(sentence) < 16 and sentence.istitle()):
            heading = f"{heading}{sentence} "
        else:
            yield f"{heading}{sentence}" if len(heading) < 160 else sentence
            heading = ""


def _said_line(section: Section, position: int, speaker: str, said: str, verbatim: bool) -> Line:
    text = clean(said)
    return Line(section, position, f"{speaker}: {shorten(text if verbatim else redact(text), 700)}")


def _ends(words: str) -> str:
    return words[: 3 * _REQUEST_ROOM] + "\n" + words[-_REQUEST_ROOM:]
