"""Read the facts of a conversation, and compare rules for them with what its compactions recorded."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple, cast

from refold.application.conversation.stream_places import StreamPlaces
from refold.application.rendering.render import pin_line
from refold.application.runtime.core import Core
from refold.application.runtime.plain_lines import raised
from refold.application.summaries.ledger_and_index import Gathering
from refold.domain.conversation import Coverage
from refold.domain.errors import InvalidSetting
from refold.domain.events import CompactionPerformed, MessageAppended
from refold.domain.facts.fact import Fact
from refold.domain.facts.reading import RELEASED, Place, Rules
from refold.domain.ledger import IndexEntry, LedgerLine
from refold.domain.ledger.line import key_of

AT_ONCE = 500
"""Number of events that are read at a time."""


class RuleDifference(NamedTuple):
    """A text that one set of rules finds and the other does not."""

    kind: str
    """Kind of the ledger line or of the index entry."""
    text: str
    position: int


class RulesCompared(NamedTuple):
    """Findings of rules in the messages of one compaction, compared with its record."""

    version: int
    """Version of the compaction."""
    summary_id: str
    messages: int
    """Number of messages that it was the first to cover."""
    added: tuple[RuleDifference, ...]
    """Texts that the rules would have added to the record."""
    missing: tuple[RuleDifference, ...]
    """Recorded texts that the rules do not find."""


def rules_named(rules: str | Rules | None) -> Rules:
    """Return the rules of a released version, the newest if None.

    Raises:
        InvalidSetting: there is no such version.
    """
    if callable(rules):
        return rules
    # A caller without a type checker may pass anything.
    name = next(reversed(RELEASED)) if rules is None else cast("object", rules)
    if not isinstance(name, str) or name not in RELEASED:
        raise InvalidSetting(
            f"rules={rules!r} is not a version of the rules ({', '.join(RELEASED)}) or a function",
            setting="rules",
            value=rules,
        )
    return RELEASED[name]


def facts_of(
    core: Core, thread_id: str, start: int, stop: int | None, rules: str | Rules | None
) -> tuple[Fact, ...]:
    """Return the facts of the messages from position ``start`` up to but not including ``stop``."""
    read = rules_named(rules)
    length = core.log.load(thread_id).state.length
    first, last, _ = slice(start, stop).indices(length)
    found = _apply(read, list(unerased_messages(core, thread_id, first, last)))
    return tuple(sorted(found, key=lambda fact: fact.position))


def _apply(rules: Rules, messages: Sequence[Place]) -> tuple[Fact, ...]:
    """Return the facts that rules find.

    Raises:
        InvalidSetting: the rules are a function that fails or returns something else.
    """
    try:
        # A function of a program without a type checker may return anything.
        found = cast("tuple[object, ...]", tuple(rules(messages)))
    except Exception as error:
        raise InvalidSetting(
            f"the rules raised {raised(error)}", setting="rules", value=rules
        ) from error
    facts = tuple(one for one in found if isinstance(one, Fact))
    if len(facts) < len(found):
        raise InvalidSetting(
            "the rules must return facts (refold.Fact)", setting="rules", value=rules
        )
    return facts


def compare_rules(core: Core, thread_id: str, rules: str | Rules | None) -> Iterator[RulesCompared]:
    """Yield a comparison for each compaction, oldest first. What a rebuilt summary recorded is left out.

    The rules read the messages that each compaction was the first to cover, and continue what the one before
    recorded. Messages that were erased since give nothing, in neither of the two.
    """
    read = rules_named(rules)
    version = core.log.load(thread_id).state.version
    for first in range(1, version + 1, AT_ONCE):
        for logged in core.log.read(thread_id, first, min(version, first + AT_ONCE - 1)):
            made = logged.event
            if isinstance(made, CompactionPerformed) and made.trigger != "erasure":
                before = core.log.load(thread_id, at=logged.version - 1).window.summary
                yield _compare(core, thread_id, logged.version, before, made, read)


def _compare(
    core: Core,
    thread_id: str,
    version: int,
    before: CompactionPerformed | None,
    made: CompactionPerformed,
    read: Rules,
) -> RulesCompared:
    covered = before.coverage if before else None
    messages = list(_first_covered(core, thread_id, made.coverage, covered))
    gathering = Gathering(
        core, thread_id, before.ledger if before else (), before.index if before else ()
    )
    gathering.take(_apply(read, messages))
    # Without room, the lines and entries remain that a compaction keeps in any case.
    lines = gathering.select(0).lines
    entries = gathering.select_index(0, "", has_ledger=True).entries
    recorded = {*map(_key, made.ledger), *map(_key, made.index)}
    known = {*map(_key, gathering.lines), *map(_key, gathering.entries)}
    return RulesCompared(
        version,
        made.summary_id,
        len(messages),
        added=_not_in(recorded, (*lines, *entries)),
        missing=_not_in(known, (*made.ledger, *made.index)),
    )


_Found = LedgerLine | IndexEntry


def _not_in(keys: Collection[object], found: Iterable[_Found]) -> tuple[RuleDifference, ...]:
    return tuple(
        RuleDifference(one.kind, one.text, one.position) for one in found if _key(one) not in keys
    )


def _key(one: _Found) -> object:
    return key_of(one) if isinstance(one, LedgerLine) else (one.kind, one.text)


def _first_covered(
    core: Core, thread_id: str, covered: Coverage, known: Coverage | None
) -> Iterator[Place]:
    for position, message in unerased_messages(core, thread_id, covered.start, covered.stop):
        if covered.covers(position) and not (known and known.covers(position)):
            yield position, message


def unerased_messages(core: Core, thread_id: str, start: int, stop: int) -> Iterator[Place]:
    """Yield the messages at these positions that were not erased."""
    state = core.log.load(thread_id).state
    places = StreamPlaces(partial(core.log.read, thread_id), state.version, state.length)
    for logged in places.messages(start, stop):
        event = logged.event
        if isinstance(event, MessageAppended) and not logged.erased:
            yield event.position, event.message


_LEDGER_SHARE = 0.5


def remembered_text(core: Core, thread_id: str, tokens: int) -> str:
    """Return what code keeps of a conversation, in at most so many tokens, or an empty string.

    Raises:
        LogError: the log cannot be read.
    """
    loaded = core.log.load(thread_id)
    gathering = Gathering(core, thread_id)
    gathering.take(facts_of(core, thread_id, 0, None, None))
    pins = "\n".join(map(pin_line, loaded.window.pins))
    room = tokens - core.counter.count_text(pins)
    ledger = gathering.select(int(room * _LEDGER_SHARE))
    index = gathering.select_index(
        room - ledger.tokens, f"{pins}\n{ledger.text}", has_ledger=bool(ledger.text)
    )
    pinned = f"## Pinned\n{pins}" if pins else ""
    return "\n".join(filter(None, (pinned, ledger.text, index.text)))
