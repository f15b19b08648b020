"""A conversation under test, compared with a separate record of what happened in it, and its watched summariser."""

import asyncio
import inspect
import json
import warnings
from collections.abc import Awaitable, Callable, Sequence
from copy import deepcopy
from typing import cast

import refold
from refold.application.api.conversation_memory import ConversationMemory as Conversation
from refold.application.api.memory import Memory
from refold.application.api.results import Context
from refold.application.conversation.block_checks import UnknownBlockWarning
from refold.application.errors import SummariserError
from refold.application.ports.summariser import Summariser, SummaryDraft, SummaryRequest, is_by_code
from refold.application.summaries.summariser_calls import relay
from refold.domain.compaction.summary_rules import SummaryRefused, judge_text
from refold.testing.checked_store import as_json
from refold.testing.findings import Finding, describe_error, show_value
from refold.testing.history_layout import Message
from refold.testing.request_judge import violations
from refold.testing.request_parts import blocks_of, message_blocks

SHORT = 100
"""Characters of a text that is never shortened."""
COMPACTED = ("performed", "shortened")


class Broken(AssertionError):
    """An invariant does not hold. The message names it, with the expected and the seen value."""


def holds(condition: bool, invariant: str, seen: object) -> None:
    """Assert an invariant.

    Raises:
        Broken: the invariant does not hold.
    """
    if not condition:
        raise Broken(f"{invariant}\n  seen: {show_value(seen, quoted=not isinstance(seen, str))}")


class CheckedConversation:
    """A driver of one conversation that knows its expected content."""

    def __init__(self, opening: Callable[[], Memory], thread_id: str) -> None:
        self._opening = opening
        self._thread_id = thread_id
        self.memory = opening()
        self.said: list[Message] = []
        self.erased: set[int] = set()
        self.pins: dict[str, str] = {}
        self.sent: dict[int, str] = {}
        """Rendered text of each version that was sent."""

    @property
    def conversation(self) -> Conversation:
        """Conversation in the memory that is open now."""
        return self.memory.conversation(self._thread_id)

    def restart(self) -> None:
        """Close the memory and open another one."""
        self._forget_newest()
        self.memory.close()
        self.memory = self._opening()

    def append(self, messages: Sequence[Message], key: str | None = None) -> None:
        """Append messages, and record those that were acknowledged as new."""
        messages = [{**one, "content": one["content"] or " "} for one in messages]
        keys = None if key is None else [key, *[None] * (len(messages) - 1)]
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", UnknownBlockWarning
            )  # Such blocks are drawn on purpose.
            appended = self.conversation.append(messages, key=keys)
        for message, at in zip(messages, appended.messages, strict=True):
            if at.new:
                holds(
                    at.position == len(self.said),
                    "an append answers with the next free position",
                    f"{at.position} where {len(self.said)} messages are stored",
                )
                self.said.append(message)

    def append_elsewhere(self, message: Message) -> None:
        """Append through a second memory, as another process does."""
        self._forget_newest()
        second = self._opening()
        try:
            second.conversation(self._thread_id).append(message)
        finally:
            second.close()
        self.said.append(message)

    def compact(self, focus: str | None, *, all: bool) -> None:
        """Compact, and check that the result matches what happened."""
        before = self._bytes(self.shown())
        result = self.conversation.compact(focus=focus, all=all, keep_last=2)
        after = self._bytes(self.shown())
        if result.outcome == "failed":
            holds(before == after, "a compaction that fails changes nothing", result)
        elif result.outcome in COMPACTED:
            smaller = result.tokens_after < result.tokens_before
            holds(smaller or bool(focus), "a compaction makes the request smaller", result)
            holds(
                before != after or bool(focus),  # The same words may be written for another focus.
                "a compaction that is performed changes the request",
                result,
            )

    def ask(self) -> None:
        """Build the next request twice. It must fit, and both must be equal."""
        if not self.said:
            return
        try:
            context = self.conversation.context()
        except refold.ContextWindowExceeded:
            return
        fits = context.tokens <= context.budget.limit
        holds(fits, "a request fits its budget", f"{context.tokens} of {context.budget.limit}")
        again = self.conversation.context()
        same = context.version != again.version or self._bytes(context) == self._bytes(again)
        holds(same, "the same request again has the same bytes", again)
        self.sent[again.version] = self._bytes(again)

    def pin(self, text: str) -> None:
        """Pin a text."""
        self.pins[self.conversation.pin(text)] = text

    def unpin(self) -> None:
        """Remove the oldest pin."""
        pin = next(iter(self.pins))
        holds(self.conversation.unpin(pin), "an existing pin can be removed", pin)
        del self.pins[pin]

    def edit(self, text: str, *, allow: bool) -> None:
        """Let a model propose to remember a text, and allow or refuse that. No request changes."""
        before = self._bytes(self.shown())
        told = self.conversation.tools(edits="propose").call(
            "remember", {"text": text, "kind": "fact"}
        )
        holds(not told.is_error, "a model can propose to remember a text", told)
        for proposal in self.conversation.proposals():
            if allow:
                self.conversation.allow(proposal.edit_id)
            else:
                self.conversation.refuse(proposal.edit_id)
        waiting = self.conversation.proposals()
        holds(not waiting, "a proposal that was decided waits no more", waiting)
        noted = any(note.text == text for note in self.conversation.notes())
        holds(noted or not allow, f"what was allowed is noted: {text!r}", self.conversation.notes())
        same = before == self._bytes(self.shown())
        holds(same, "noting something changes no request", "other bytes")

    def erase(self, number: int) -> None:
        """Erase one message permanently."""
        position = number % len(self.said)
        self.conversation.erase(position)
        self.erased.add(position)
        self.sent.clear()  # Contexts of the past lose the message as well: that is its purpose.

    def shown(self, at: int | None = None) -> Context:
        """Return the context at a version without a decision."""
        return self.conversation.context(at=self.conversation.version if at is None else at)

    def _forget_newest(self) -> None:
        """Forget requests of the newest version, because their frames are recorded with the next event only."""
        newest = self.conversation.version
        self.sent = {version: sent for version, sent in self.sent.items() if version < newest}

    def judge(self) -> None:
        """Check all invariants."""
        self._nothing_is_lost()
        if not self.said:
            return
        context = self.shown()
        holds(bool(context.messages), "what was said is in a request", context)
        self._is_legal(context)
        self._newest_words_are_whole(context)
        self._thinking_is_whole(context)
        self._one_summary_is_active(context)
        self._each_message_has_one_fate()
        self._pins_are_kept(context)
        self._erased_is_gone(context)
        for version in sorted(self.sent)[-2:]:
            self._is_as_it_was(version)

    def judge_in_hindsight(self) -> None:
        """Check the whole history after a restart."""
        self.restart()
        self.judge()
        for version in self.sent:
            self._is_as_it_was(version)
        verified = self.memory.verify()
        holds(verified.ok, "the log has no damage", verified)

    def _nothing_is_lost(self) -> None:
        stored = self.conversation.messages()
        holds(
            [one.position for one in stored] == [*range(len(self.said))],
            f"each of {len(self.said)} acknowledged messages is stored once, in order",
            f"positions {[one.position for one in stored]}",
        )
        for one, message in zip(stored, self.said, strict=True):
            if one.position not in self.erased:
                same = as_json(one.message.content) == as_json(message["content"])
                holds(same, f"message {one.position} is read back word for word", one.message)

    def _is_legal(self, context: Context) -> None:
        found = violations(context.for_anthropic(), allow_pending_at_end=True)
        holds(not found, "a request keeps the rules of the Messages API", "; ".join(found))

    def _newest_words_are_whole(self, context: Context) -> None:
        newest = self.said[-1]
        words = newest["content"]
        if newest["role"] == "user" and isinstance(words, str) and len(words) < SHORT:
            written = as_json(context.messages)
            is_there = as_json(words.strip())[1:-1] in written
            is_there |= len(self.said) - 1 in self.erased
            holds(
                is_there, f"the newest words of the user stand in the request: {words!r}", written
            )

    def _thinking_is_whole(self, context: Context) -> None:
        said = {as_json(b) for message in self.said for b in blocks_of(message["content"])}
        for placed in message_blocks(context.for_anthropic()):
            if placed.block.get("type") in ("thinking", "redacted_thinking"):
                whole = as_json(dict(placed.block)) in said
                holds(whole, "a thinking block is shown as it came, or not at all", placed.block)

    def _one_summary_is_active(self, context: Context) -> None:
        active = [row.summary_id for row in self.conversation.summaries() if row.is_active]
        shown_one = [context.summary.summary_id] if context.summary else []
        holds(active == shown_one, f"the active summary is the one shown, {shown_one}", active)

    def _each_message_has_one_fate(self) -> None:
        fates = [fate.position for fate in self.conversation.explain()]
        every = fates == [*range(len(self.said))]
        holds(every, f"each of {len(self.said)} messages has exactly one fate", fates)

    def _pins_are_kept(self, context: Context) -> None:
        pinned = {item.pin_id for item in self.conversation.pins()}
        holds(pinned == set(self.pins), f"the pins are {sorted(self.pins)}", sorted(pinned))
        if context.summary:
            written = json.dumps([context.system, context.messages], ensure_ascii=False)
            for text in self.pins.values():
                holds(text in written, f"the pinned text {text!r} is in the request", written)

    def _erased_is_gone(self, context: Context) -> None:
        written = json.dumps([context.system, context.messages], ensure_ascii=False)
        for position in self.erased:
            gone = f"⟦m{position}⟧" not in written
            holds(gone, f"nothing of the erased message {position} is in a request", written)

    def _is_as_it_was(self, version: int) -> None:
        same = self._bytes(self.shown(version)) == self.sent[version]
        holds(same, f"the context at version {version} is the same bytes as then", version)

    @staticmethod
    def _bytes(context: Context) -> str:
        return as_json([context.system, context.messages, context.tools])


class Watch:
    """A record of the errors of a summariser. ``summariser`` is the watched wrapper to use instead."""

    def __init__(self, behind: Summariser) -> None:
        self.found: list[Finding] = []
        self.summariser: Summariser = relay(behind, self._ask)

    async def _ask(self, behind: Summariser, request: SummaryRequest) -> SummaryDraft:
        given = deepcopy(request)
        try:
            answer: object = behind.summarise(given)
            if inspect.isawaitable(answer):
                answer = await cast("Awaitable[object]", answer)
            else:
                self._add("async", "`async def summarise`", type(answer).__name__)
        except (SummariserError, asyncio.CancelledError):
            raise
        except BaseException as error:
            self._add("raises", "an answer, or SummariserError", describe_error(error))
            raise
        if given != request:
            self._add("mutates", "an unchanged request", "another one")
        if isinstance(answer, SummaryDraft):
            self._judge(answer, by_code=is_by_code(behind))
        else:
            self._add("type", "a refold.SummaryDraft", show_value(answer))
        return cast("SummaryDraft", answer)

    def _judge(self, draft: SummaryDraft, *, by_code: bool) -> None:
        if not draft.complete:
            return  # Its own text says that this is not a summary.
        try:
            judge_text(draft.text, complete=True, required=draft.required, by_code=by_code)
        except SummaryRefused as refusal:
            self._add(
                refusal.reason, "a text that refold accepts", f"{refusal}: {show_value(draft.text)}"
            )

    def _add(self, rule: str, expected: str, seen: str) -> None:
        advice = "Run check_summariser on it: it reports more and is faster."
        self.found.append(Finding(f"summariser: {rule}", expected, seen, advice))
