"""``ConversationMachine``: Hypothesis appends, compacts, pins, erases and restarts, and checks invariants."""

import inspect
import tempfile
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, cast

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from refold.application.api.memory import Memory
from refold.application.ports.summariser import Summariser
from refold.application.ports.token_counter import TokenCounter
from refold.domain.compaction.policy import CompactionPolicy
from refold.infrastructure.summarisers.extractive.summariser import ExtractiveSummariser
from refold.infrastructure.tokens.estimator import EstimatingTokenCounter
from refold.testing.checked_conversation import Broken, CheckedConversation, Watch
from refold.testing.checked_store import Place, opening_of
from refold.testing.history_layout import Step, number_through
from refold.testing.history_strategies import turns

MOST_PINS = 3
SMALL_IMAGE = 60
"""Tokens of an image. Windows are small here, so images are too."""
# Deferred, because their representations are longer than Hypothesis should print.
_STEPS = st.deferred(lambda: turns(min_messages=1, max_messages=8, max_text=250, huge=2_000))
_LONG = st.deferred(lambda: turns(min_messages=8, max_messages=16, max_text=400, huge=2_000))
_FOCI = st.sampled_from((None, None, "What was decided about the parser?"))
_PINNED = st.sampled_from(
    ("Never push to main.", "永远不要删除 data/ 目录。", "Port 7341 is taken.")
)

_NOTED = st.sampled_from(("Port 7342 is taken.", "端口 7343 已被占用。"))


class ConversationMachine(RuleBasedStateMachine):
    """A state machine on one conversation that checks the guarantees of refold after each step.

    Subclass it and set the attributes for your own parts. The guarantees hold with any policy and any
    summariser. A store that loses data breaks them. A summariser is a finding as well if it raises
    anything but a ``SummariserError``, returns no usable draft, or changes its request.

    >>> class MyConversations(ConversationMachine):
    ...     policy = refold.CompactionPolicy(keep_last=2)
    ...     summariser = MySummariser()
    ...     place = staticmethod(lambda **options: refold.open(new_path(), **options))
    >>> TestMyConversations = MyConversations.TestCase
    """

    policy: ClassVar[CompactionPolicy | None] = None
    """Policy that decides when and how far contexts are compacted."""
    summariser: ClassVar[Summariser | Callable[[], Summariser] | None] = None
    """Summariser, a function that creates one for each run, or None for the built-in one."""
    token_counter: ClassVar[TokenCounter | None] = None
    """Token counter, or None for the built-in estimator."""
    place: ClassVar[Any] = None
    """Place of the log: a path, or a callable that opens a memory, or None for a new file in each run. A
    callable gets the options of ``refold.open`` as keyword arguments if it accepts any.
    """
    window: ClassVar[int] = 3_000
    """Context window in tokens. It is small so that much is compacted."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self._watch = Watch(self._summariser())
        self._talk = CheckedConversation(self._opening(), f"refold-check-{uuid.uuid4().hex[:12]}")
        self._parts = 0
        self._judged = -1
        self._is_broken = False

    def _summariser(self) -> Summariser:
        given = inspect.getattr_static(type(self), "summariser")
        given = given.__func__ if isinstance(given, staticmethod) else given
        if given is None:
            return ExtractiveSummariser(EstimatingTokenCounter())
        if hasattr(given, "summarise") and not inspect.isclass(given):
            return cast("Summariser", given)
        return cast("Callable[[], Summariser]", given)()

    def _opening(self) -> Callable[[], Memory]:
        options: dict[str, Any] = {
            "window": self.window,
            "policy": self.policy,
            "summariser": self._watch.summariser,
            "counter": self.token_counter or EstimatingTokenCounter(image_tokens=SMALL_IMAGE),
            "background": False,
            "scrub_megabytes": 0,
        }
        given = inspect.getattr_static(type(self), "place")
        given = given.__func__ if isinstance(given, staticmethod) else given
        place: Place = Path(self._folder.name) if given is None else given
        if callable(place) and inspect.signature(place).parameters:
            opening = cast("Callable[..., Memory]", place)
            return lambda: opening(**options)
        return opening_of(place, **options)

    @initialize(steps=_LONG)
    def begin(self, steps: list[Step]) -> None:
        """Append the first messages."""
        self.talk(steps)

    @rule(steps=_STEPS)
    def talk(self, steps: list[Step]) -> None:
        """Append a few messages, in the groups in which an agent appends them."""
        self._parts += 1
        for step in number_through(steps, len(self._talk.said), self._parts):
            self._talk.append(step)

    @rule(steps=_LONG)
    def talk_long(self, steps: list[Step]) -> None:
        """Append enough messages to require a compaction, and build the context."""
        self.talk(steps)
        self._talk.ask()

    @rule()
    def ask(self) -> None:
        """Build the next request."""
        self._talk.ask()

    @rule(focus=_FOCI, all=st.booleans())
    def compact(self, focus: str | None, all: bool) -> None:
        """Compact on demand."""
        self._talk.compact(focus, all=all)

    @rule()
    def undo(self) -> None:
        """Revert the newest compaction."""
        self._talk.conversation.revert_compaction("a step of a test")

    @rule()
    def restart(self) -> None:
        """Close the memory and open it again."""
        self._talk.restart()
        self._judged = -1

    @rule()
    def deliver_twice(self) -> None:
        """Append one message twice with the same key."""
        text = f"⟦m{len(self._talk.said)}⟧ And now?"
        for _ in range(2):
            self._talk.append([{"role": "user", "content": text}], key=f"delivery of {text}")

    @rule()
    def append_elsewhere(self) -> None:
        """Append through a second memory."""
        text = f"⟦m{len(self._talk.said)}⟧ This comes from elsewhere."
        self._talk.append_elsewhere({"role": "user", "content": text})

    @precondition(lambda self: len(self._talk.pins) < MOST_PINS)
    @rule(text=_PINNED)
    def pin(self, text: str) -> None:
        """Pin a text."""
        self._talk.pin(text)

    @precondition(lambda self: self._talk.pins)
    @rule()
    def unpin(self) -> None:
        """Remove a pin."""
        self._talk.unpin()

    @precondition(lambda self: self._talk.said)
    @rule(text=_NOTED, allow=st.booleans())
    def edit(self, text: str, allow: bool) -> None:
        """Let a model propose to remember a text, and decide that."""
        self._talk.edit(text, allow=allow)

    @precondition(lambda self: self._talk.said)
    @rule(number=st.integers(0, 100))
    def erase(self, number: int) -> None:
        """Erase a message."""
        self._talk.erase(number)

    @invariant()
    def what_is_promised_holds(self) -> None:
        """Check all invariants if something has changed."""
        try:
            if self._watch.found:
                raise Broken(str(self._watch.found[0]))
            version = self._talk.conversation.version
            if version != self._judged:
                self._talk.judge()
                self._judged = self._talk.conversation.version
        except BaseException:
            self._is_broken = True
            raise

    def teardown(self) -> None:
        """Check the whole history after a restart, and close everything."""
        try:
            if not self._is_broken:
                self._talk.judge_in_hindsight()
        finally:
            self._talk.memory.close()
            self._folder.cleanup()
