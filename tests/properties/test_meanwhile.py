"""While a summariser works, everything else goes on: no append is lost, at most one summary commits."""

import asyncio
import itertools
import tempfile
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

import refold
from refold.application.ports.summariser import SummaryDraft, SummaryRequest
from refold.domain.messages import Block
from refold.testing.history_layout import Message, marked, marker
from refold.testing.request_judge import preserved_thinking_violations
from refold.testing.request_parts import blocks_of
from refold.testing.request_rules import unanswered_calls
from tests.support.effort import one_in
from tests.support.fake_summarisers import GoodSummariser, RecordingSummariser, SlowSummariser
from tests.support.talk import strings
from tests.support.witness import SHM

THREAD = "talk"
WORDS = "The build failed in step 7, please look at it once more. " * 6
# Each example waits for other threads and commits to a file: a quarter is enough.
FEWER = one_in(4)
MOMENTS = st.lists(st.sampled_from(("append", "elsewhere", "round", "ask")), max_size=6)


class Talk:
    """A conversation for asyncio that knows what was appended and acknowledged."""

    def __init__(self, path: Path, summariser: refold.Summariser, window: int = 4_000) -> None:
        self.path = path
        self.window = window
        self.memory = refold.aopen(path, window=window, summariser=summariser, compaction_wait=0)
        self.conversation = self.memory.conversation(THREAD)
        self.appended: list[Message] = []

    async def say(self, *contents: object, role: str = "user") -> None:
        messages: list[Message] = [{"role": role, "content": content} for content in contents]
        await self.conversation.append(messages)
        self.appended += messages

    async def chatter(self, exchanges: int) -> None:
        for _ in range(exchanges):
            await self.say(self.marked(WORDS))
            await self.say(self.marked(WORDS), role="assistant")

    def marked(self, words: str) -> str:
        return f"{marker(len(self.appended))} {words}"

    async def elsewhere(self) -> None:
        """Another memory on the same file appends."""
        message = {"role": "user", "content": self.marked("from elsewhere")}
        async with refold.aopen(self.path, window=self.window) as other:
            await other.conversation(THREAD).append(message)
        self.appended.append(message)

    async def tool_round(self) -> None:
        """A call, and its result in a second append."""
        call_id = f"call_{len(self.appended)}"
        call: Block = {"type": "tool_use", "id": call_id, "name": "bash", "input": {}}
        await self.say([call], role="assistant")
        text = self.marked("result")
        await self.say([{"type": "tool_result", "tool_use_id": call_id, "content": text}])

    async def do(self, moment: str) -> None:
        match moment:
            case "append":
                await self.say(self.marked("meanwhile"))
            case "elsewhere":
                await self.elsewhere()
            case "round":
                await self.tool_round()
            case _:
                await self.conversation.context()

    async def everything_is_there(self) -> None:
        """Each acknowledged message is in the log once, in order, and shown or covered."""
        stored = await self.conversation.messages()
        assert [m.position for m in stored] == list(range(len(self.appended)))
        for found, said in zip(stored, self.appended, strict=True):
            content = found.message.content
            plain = content if isinstance(content, str) else list(content)
            assert {"role": found.message.role, "content": plain} == said
        context = await self.conversation.context()
        covered = context.summary.coverage if context.summary else None
        messages = context.messages
        if context.opening:  # Summary and ledger, which may quote what is covered.
            rest = blocks_of(messages[0]["content"])[context.opening :]
            messages = [{"content": rest}, *messages[1:]]
        shown = {n for text in strings(messages) for n in marked(text)}
        for position, said in enumerate(self.appended):
            if any(marked(text) for text in strings(said)):
                assert (position in shown) != bool(covered and covered.covers(position))
        assert list(unanswered_calls(context.for_anthropic())) == []


def in_a_new_file(act: Callable[[Path], Coroutine[None, None, None]]) -> None:
    with tempfile.TemporaryDirectory(dir=SHM) as folder:
        asyncio.run(act(Path(folder) / "talk.db"))


@FEWER
@given(before=st.integers(4, 8), moments=MOMENTS)
def test_what_is_appended_while_a_summariser_works_survives(
    before: int, moments: list[str]
) -> None:
    async def act(path: Path) -> None:
        slow = SlowSummariser()
        talk = Talk(path, slow)
        async with talk.memory:
            await talk.chatter(before)
            compaction = asyncio.create_task(talk.conversation.compact())
            await slow.started.wait()
            for moment in moments:
                await talk.do(moment)
            slow.release.set()
            result = await compaction
            assert result.outcome == "performed", result
            assert result.messages_kept >= len(talk.appended) - 2 * before
            await talk.everything_is_there()

    in_a_new_file(act)


@FEWER
@given(rivals=st.integers(2, 5))
def test_of_several_compactions_at_once_exactly_one_asks_a_model(rivals: int) -> None:
    async def act(path: Path) -> None:
        slow = SlowSummariser()
        counted = RecordingSummariser(slow)
        talk = Talk(path, counted)
        async with talk.memory:
            await talk.chatter(5)
            attempts = [asyncio.create_task(talk.conversation.compact()) for _ in range(rivals)]
            await slow.started.wait()
            while sum(attempt.done() for attempt in attempts) < rivals - 1:
                await asyncio.sleep(0.001)
            slow.release.set()
            results = sorted(await asyncio.gather(*attempts), key=lambda result: result.outcome)
            outcomes = [result.outcome for result in results]
            assert outcomes == ["in_flight"] * (rivals - 1) + ["performed"]
            assert len(counted.requests) == results[-1].model_calls <= 2
            assert len({request.part for request in counted.requests}) == len(counted.requests)
            assert len([row for row in await talk.conversation.summaries() if row.is_active]) == 1
            await talk.everything_is_there()

    in_a_new_file(act)


def test_a_compaction_that_was_overtaken_commits_nothing() -> None:
    """The context may not wait: the embedded summariser takes over, and the slow one is too late."""

    async def act(path: Path) -> None:
        slow = SlowSummariser()
        talk = Talk(path, slow, window=2_000)
        async with talk.memory:
            await talk.chatter(4)
            compaction = asyncio.create_task(talk.conversation.compact())
            await slow.started.wait()
            await talk.chatter(6)
            await talk.say(talk.marked("And now?"))
            context = await talk.conversation.context()
            assert context.summary is not None
            assert context.summary.summariser == "extractive"
            slow.release.set()
            late = await compaction
            assert (late.outcome, late.reason) == ("failed", "overtaken")
            assert (await talk.conversation.context()).for_anthropic() == context.for_anthropic()
            assert len(await talk.conversation.summaries()) == 1
            await talk.everything_is_there()

    in_a_new_file(act)


@FEWER
@given(moments=MOMENTS)
def test_a_cancelled_compaction_leaves_everything_as_it_was(moments: list[str]) -> None:
    async def act(path: Path) -> None:
        slow = SlowSummariser()
        talk = Talk(path, slow)
        async with talk.memory:
            await talk.chatter(5)
            compaction = asyncio.create_task(talk.conversation.compact())
            await slow.started.wait()
            for moment in moments:
                await talk.do(moment)
            compaction.cancel()
            await asyncio.gather(compaction, return_exceptions=True)
            assert compaction.cancelled()
            assert (await talk.conversation.context()).summary is None
            assert [row.outcome for row in await talk.conversation.compactions()] == ["failed"]
            slow.release.set()
            assert (await talk.conversation.compact()).outcome == "performed"
            await talk.everything_is_there()

    in_a_new_file(act)


def test_an_answer_that_was_under_way_while_it_was_compacted_is_shown_without_thinking() -> None:
    """It was signed for the request from before the compaction."""

    async def act(path: Path) -> None:
        talk = Talk(path, GoodSummariser())
        async with talk.memory:
            await talk.chatter(6)
            await talk.say(talk.marked("And now?"))
            asked = (await talk.conversation.context()).for_anthropic()
            assert (await talk.conversation.compact()).outcome == "performed"
            answer = [
                {"type": "thinking", "thinking": "Let me see.", "signature": "c2lnbmVk"},
                {"type": "text", "text": "Done."},
            ]
            await talk.say(answer, role="assistant")
            await talk.say(talk.marked("And now?"))
            again = (await talk.conversation.context()).for_anthropic()
            assert preserved_thinking_violations([{**asked, "answer": answer}, again]) == []

    in_a_new_file(act)


class Gated:
    """A good summariser that asks a test before it answers."""

    name = "gated"

    def __init__(self, gate: Callable[[], Awaitable[None]]) -> None:
        self.gate = gate

    async def summarise(self, request: SummaryRequest) -> SummaryDraft:
        await self.gate()
        return await GoodSummariser().summarise(request)


@FEWER
@given(generations=st.integers(3, 12), moment=st.sampled_from(("append", "elsewhere", "round")))
def test_appends_in_every_one_of_many_generations_survive(generations: int, moment: str) -> None:
    async def act(path: Path) -> None:
        async def gate() -> None:
            await talk.do(moment)

        talk = Talk(path, Gated(gate))
        async with talk.memory:
            for number in itertools.count(1):
                await talk.chatter(4)
                result = await talk.conversation.compact()
                assert result.outcome == "performed", (number, result)
                if number == generations:
                    break
            assert len(await talk.conversation.summaries()) == generations
            await talk.everything_is_there()

    in_a_new_file(act)
