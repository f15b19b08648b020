"""Whatever was erased is in no file any more, and everything else goes on as if nothing had happened."""

import json
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

import refold
from refold.application.api.conversation_memory import ConversationMemory
from refold.application.api.memory import Memory
from refold.application.api.results import Context
from refold.application.conversation.loaded import LoadedConversation
from refold.application.ports.summariser import SummaryDraft, SummaryRequest
from refold.domain.compaction.policy import CompactionPolicy
from refold.domain.erasing import make_stub
from refold.domain.errors import ContextWindowExceeded, InvalidMessage
from refold.domain.messages import Message as OurMessage
from refold.domain.messages import gist
from refold.infrastructure.event_store.store import SQLiteLog
from refold.testing.history_layout import Step, marker
from refold.testing.history_strategies import turns
from refold.testing.request_judge import violations
from tests.support.effort import one_in
from tests.support.fake_summarisers import source_text
from tests.support.witness import SHM

POLICY = CompactionPolicy(
    keep_last=1, whole_last=2, offload_tokens=60, giant_share=0.1, condensed_characters=50
)
WINDOW = 3_000

deeds = st.one_of(
    *[st.tuples(st.just("say"), st.just(0))] * 4,
    st.tuples(st.sampled_from(("compact", "revert", "restart", "fork")), st.just(0)),
    st.tuples(st.sampled_from(("erase", "erase", "pin")), st.integers(0, 60)),
)


class QuotingSummariser:
    """Repeats the beginning of everything that it is given, as far as that may be."""

    name = "quoting"

    async def summarise(self, request: SummaryRequest) -> SummaryDraft:
        said = " ".join(line[:40] for line in source_text(request).splitlines())
        text = f"{request.previous or ''} {said}"[: 2 * request.limit_tokens]
        return SummaryDraft(text=text, complete=True, model="quoting", prompt_fingerprint="q")


class Session:
    """A conversation in a file, with what was erased from it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.erased: set[int] = set()
        self.memory = self._opened()

    def _opened(self) -> Memory:
        path = self.folder / "a.db"
        return refold.open(
            path,
            window=WINDOW,
            policy=POLICY,
            summariser=QuotingSummariser(),
            scrub_megabytes=0,
        )

    @property
    def conversation(self) -> ConversationMemory:
        return self.memory.conversation("t")

    def do(self, kind: str, number: int) -> None:
        count = len(self.conversation.messages())
        match kind:
            case "compact":
                self.conversation.compact()
            case "revert":
                self.conversation.revert_compaction()
            case "restart":
                self.memory.close()
                self.memory = self._opened()
            case "fork" if count:
                self.conversation.fork()
            case "pin" if count:
                self.conversation.pin(number % count)
            case "erase" if count:
                assert self.conversation.erase(number % count).complete
                self.erased.add(number % count)
                assert not self.conversation.erase(number % count).changed
            case _:
                pass

    def judge(self) -> None:
        nothing_is_left(self.folder, self.erased)
        found = self.memory.verify()
        assert found.ok, found.damage
        log = SQLiteLog(self.folder / "a.db")
        try:
            for row in self.memory.conversations():
                replay_equals_live(log, row.thread_id)
                is_legal_at_every_version(self.memory.conversation(row.thread_id))
        finally:
            log.close()
        stubs = {m.position for m in self.conversation.messages() if m.erased}
        assert stubs == self.erased
        fates = {f.position for f in self.conversation.explain() if f.fate == "erased"}
        assert fates == self.erased


@contextmanager
def session() -> Generator[Session]:
    with tempfile.TemporaryDirectory(dir=SHM) as folder:
        made = Session(Path(folder))
        try:
            yield made
        finally:
            made.memory.close()


def nothing_is_left(folder: Path, positions: set[int]) -> None:
    for path in folder.iterdir():
        content = path.read_bytes()
        for position in positions:
            for form in (marker(position), json.dumps(marker(position))[1:-1]):
                assert form.encode() not in content, f"{form} in {path.name}"


def replay_equals_live(log: SQLiteLog, thread_id: str) -> None:
    live = log.load(thread_id)
    events = [e.event for e in log.read(thread_id, 1, live.state.version)]
    replayed = LoadedConversation(thread_id).after(events)
    assert live.state == replayed.state
    assert live.window == replayed.window


def is_legal_at_every_version(conversation: ConversationMemory) -> None:
    for version in range(1, conversation.version + 1):
        shown = conversation.context(at=version)
        if shown.messages:
            assert violations(shown.for_anthropic(), allow_pending_at_end=True) == []
    adds_up(conversation, conversation.context(at=conversation.version))


def adds_up(conversation: ConversationMemory, shown: Context) -> None:
    beside = shown.summary.tokens if shown.summary else 0
    fates = sum(fate.shown_tokens for fate in conversation.explain())
    assert fates + beside <= shown.tokens


@one_in(4)
@given(turns(recorded=True, min_messages=3, max_messages=30), st.lists(deeds, max_size=25))
def test_what_is_erased_is_in_no_file_and_the_rest_goes_on(
    steps: Sequence[Step], chosen: Sequence[tuple[str, int]]
) -> None:
    left = list(steps)
    with session() as made:
        for kind, number in (*chosen, ("erase", 1), ("restart", 0)):
            try:
                if kind == "say" and left:
                    made.conversation.append(left.pop(0), recorded=True)
                    made.conversation.context()
                else:
                    made.do(kind, number)
            except (ContextWindowExceeded, InvalidMessage):
                continue
            if kind in ("erase", "restart"):
                made.judge()


@given(turns(recorded=True, max_messages=12))
def test_a_stub_has_the_same_part_in_tool_rounds_and_no_text(steps: Sequence[Step]) -> None:
    for message in (message for step in steps for message in step):
        content = message["content"]
        whole = OurMessage(
            role=message["role"], content=content if isinstance(content, str) else tuple(content)
        )
        stub = make_stub(whole, "[gone]")
        assert gist(stub)[:2] == gist(whole)[:2]
        assert "⟦" not in json.dumps(stub.content, ensure_ascii=False)
        assert stub.content
        assert make_stub(stub, "[gone]") == stub
