"""Examine what a memory still shows of a recorded session when the session uses it again."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from refold.application.conversation.transcripts import RecordedConversation, RecordedMessage
from refold.application.ports.token_counter import TokenCounter
from refold.domain.messages import Message
from refold.domain.value import Value

from .exam_facts import KINDS, Fact, Reuse, Shown, facts_of, one_line, request_texts, texts_of
from .exam_memories import ExamMemory, Factory, Request
from .exam_questions import RESUME_KINDS, Needle, ResumeFacts, needles_in

PLAYED = 0.7
"""Share of the messages that is played. The rest shows which facts are used again."""
_CUT = 0.85
"""A request with at most this share of the size of the request before shows that the memory cut."""


class Share(Value, frozen=True):
    """How many facts the request still shows, of how many that are used again."""

    kept: int = 0
    of: int = 0

    @property
    def percent(self) -> float | None:
        """The share in percent, or None without any fact."""
        return 100 * self.kept / self.of if self.of else None


class ExamFigures(Value, frozen=True):
    """The results of one memory. Shares of the budget are fractions."""

    sessions: int
    reuse: dict[str, Share]
    """By kind: the facts of messages that are not shown in full, and that the rest of the session uses."""
    resume: dict[str, Share]
    """By kind: the facts that an agent needs to go on, in the request after each cut."""
    needles: Share
    """Questions whose literal answer stands in the request with the question."""
    use: float
    """Size of the measured requests by their budget, in the mean."""
    after_cut: float
    """Size of the request after a cut by its budget, in the median."""
    written: float
    """Tokens of texts in the measured requests that no message has, by their budget, in the mean."""
    refused: int
    """Requests that the memory could not make."""
    over_budget: int
    """Requests that were larger than their budget."""


@dataclass
class _Marks:
    """The results of one memory so far."""

    sessions: int = 0
    reuse: Counter[tuple[str, bool]] = field(default_factory=Counter[tuple[str, bool]])
    resume: Counter[tuple[str, bool]] = field(default_factory=Counter[tuple[str, bool]])
    needles: Counter[bool] = field(default_factory=Counter[bool])
    use: list[float] = field(default_factory=list[float])
    after_cut: list[float] = field(default_factory=list[float])
    written: list[float] = field(default_factory=list[float])
    refused: int = 0
    over_budget: int = 0

    def figures(self) -> ExamFigures:
        return ExamFigures(
            sessions=self.sessions,
            reuse=_shares(self.reuse, KINDS),
            resume=_shares(self.resume, RESUME_KINDS),
            needles=Share(kept=self.needles[True], of=self.needles.total()),
            use=_mean(self.use),
            after_cut=median(self.after_cut) if self.after_cut else 0.0,
            written=_mean(self.written),
            refused=self.refused,
            over_budget=self.over_budget,
        )


def _shares(marks: Counter[tuple[str, bool]], kinds: Sequence[str]) -> dict[str, Share]:
    return {k: Share(kept=marks[k, True], of=marks[k, True] + marks[k, False]) for k in kinds}


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def budget_of(recorded: RecordedConversation, counter: TokenCounter, percent: float) -> int:
    """Return so many percent of the tokens of the played messages."""
    played = recorded.messages[: _split(recorded)]
    return int(sum(counter.count_message(m.message).total for m in played) * percent / 100)


def _split(recorded: RecordedConversation) -> int:
    """Return the number of played messages. The next one is an answer, so that a request comes before it."""
    messages = recorded.messages
    first = int(len(messages) * PLAYED)
    answers = (i for i in range(first, len(messages)) if messages[i].message.role == "assistant")
    return next(answers, len(messages))


class Exam:
    """Examines one memory with several recorded sessions."""

    def __init__(self, factory: Factory, counter: TokenCounter, percent: float) -> None:
        """Prepare the exam; ``percent`` is the budget in percent of each session's tokens."""
        self._factory = factory
        self._counter = counter
        self._percent = percent
        self._marks = _Marks()

    def examine(self, recorded: RecordedConversation) -> None:
        """Play one session and mark what the memory shows."""
        budget = budget_of(recorded, self._counter, self._percent)
        memory = self._factory(budget)
        try:
            sitting = _Sitting(memory, recorded, self._counter, budget, self._marks)
            sitting.play()
        finally:
            memory.close()
        self._marks.sessions += 1

    def figures(self) -> ExamFigures:
        """Return the results of all sessions so far."""
        return self._marks.figures()


class _Sitting:
    """One session played into one memory."""

    def __init__(
        self,
        memory: ExamMemory,
        recorded: RecordedConversation,
        counter: TokenCounter,
        budget: int,
        marks: _Marks,
    ) -> None:
        self._memory = memory
        self._messages = recorded.messages
        self._split = _split(recorded)
        self._counter = counter
        self._budget = max(1, budget)
        self._marks = marks
        self._resume = ResumeFacts()
        self._size = 0

    def play(self) -> None:
        start = 0
        for index, recorded in enumerate(self._messages[: self._split]):
            if recorded.message.role == "assistant":
                self._append(self._messages[start:index])
                self._request()
                start = index
        self._append(self._messages[start : self._split])
        request = self._request()
        if request is not None:
            self._measure(request)
            self._ask(request)

    def _append(self, messages: Sequence[RecordedMessage]) -> None:
        if messages:
            self._memory.append(messages)
        for recorded in messages:
            self._resume.take(recorded.message)

    def _request(self) -> Request | None:
        try:
            request = self._memory.context()
        except Exception:  # Any error of a memory stops the agent.
            self._marks.refused += 1
            return None
        size = self._size_of(request)
        self._marks.over_budget += size > self._budget
        if size <= self._size * _CUT:
            self._marks.after_cut.append(size / self._budget)
            shown = Shown(request_texts(request))
            for kind, text in self._resume.facts().items():
                self._marks.resume[kind, shown.has(text)] += 1
        self._size = size
        return request

    def _size_of(self, request: Request) -> int:
        sizes = (self._counter.count_message(_message(m)).total for m in request["messages"])
        system = request.get("system")
        return sum(sizes) + sum(
            map(self._counter.count_text, request_texts({"system": system, "messages": []}))
        )

    def _measure(self, request: Request) -> None:
        shown = Shown(request_texts(request))
        history = [recorded.message for recorded in self._messages[: self._split]]
        visible = [shown.has_all(message) for message in history]
        reuse = Reuse(recorded.message for recorded in self._messages[self._split :])
        pairs = list(zip(history, visible, strict=True))
        for fact in set[Fact]().union(*(facts_of(m) for m, is_full in pairs if not is_full)):
            if reuse.uses(fact):
                self._marks.reuse[fact.kind, shown.has(fact.text)] += 1
        said = {one_line(text) for message in history for text in texts_of(message)}
        own = (text for text in request_texts(request) if one_line(text) not in said)
        self._marks.use.append(self._size / self._budget)
        self._marks.written.append(sum(map(self._counter.count_text, own)) / self._budget)

    def _ask(self, request: Request) -> None:
        """Ask for values of messages that are not shown, each with a message of its own."""
        shown = Shown(request_texts(request))
        history = [recorded.message for recorded in self._messages[: self._split]]
        hidden = [message for message in history if not shown.has_all(message)]
        for number, needle in enumerate(needles_in(hidden, history)):
            self._append([_question(needle, number)])
            asked = self._request()
            if asked is not None:
                has = Shown(request_texts(asked)).has(needle.answer)
                self._marks.needles[has] += 1
            self._append([_reply(number)])


def _message(given: dict[str, Any]) -> Message:
    content = given["content"]
    return Message(
        role=given["role"], content=content if isinstance(content, str) else tuple(content)
    )


def _question(needle: Needle, number: int) -> RecordedMessage:
    message = Message(role="user", content=needle.question, author="person")
    return RecordedMessage(message=message, key=f"exam-question-{number}")


def _reply(number: int) -> RecordedMessage:
    message = Message(role="assistant", content="I am looking it up.")
    return RecordedMessage(message=message, key=f"exam-reply-{number}")
