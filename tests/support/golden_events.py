"""One full and one sparse event of every stored name: what the golden files of shapes are made from."""

from refold.domain.conversation import Conversation, fold
from refold.domain.events import (
    CompactionFailed,
    CompactionPerformed,
    CompactionRequested,
    ConversationLabelled,
    Event,
    MessageAppended,
    ShortenedPart,
    SummarySuperseded,
    ToolContentOffloaded,
)
from refold.domain.messages import Message
from refold.domain.policy import CompactionPolicy

from .builders import (
    NOON,
    appended,
    assistant,
    calls,
    coverage,
    history,
    performed,
    requested,
    system,
    talk,
    text,
    thinking,
    tool_use,
    user,
)

POLICY = CompactionPolicy(
    trigger_share=0.65,
    target_share=0.45,
    margin_share=0.05,
    reserve_tokens=12_000,
    reserve_share=0.2,
    keep_last=7,
    summary_tokens=4_000,
    summary_slack=1.5,
    giant_share=0.2,
    preview_head=900,
    preview_tail=300,
    tiny_preview=100,
    request_share=0.4,
    lease_seconds=300,
    retry_growth=0.05,
)
"""No setting has its default: a changed default must not change what a stored event says."""

_FULL_MESSAGE = MessageAppended(
    position=3,
    message_id="msg_3",
    message=Message(
        role="assistant",
        content=(
            thinking("Überlegung 思考 👍", "c2ln"),
            text('Done.\n"quoted" \\ \u2028 end'),
            tool_use("toolu_1", path="src/app.py", n=1.5, big=10**20, flags=[True, None, {}]),
            {"type": "new_in_2030", "unknown": {"kept": ["as", "it", "came"]}},
        ),
    ),
    tokens=321,
    thinking_tokens=12,
    key="delivery-3",
    written_at=NOON,
    model="claude-opus-5-5",
    stop_reason="tool_use",
)

_PART = ShortenedPart(position=4, call_id="toolu_1", side="result", tokens_freed=900)
_COVERED = coverage(9, start=1, exclusions=(2, 5))


def _offloaded(*parts: ShortenedPart) -> ToolContentOffloaded:
    return ToolContentOffloaded(parts=parts, head=1_200, tail=400)


EVENTS: dict[str, tuple[Event, Event]] = {
    "message_appended": (_FULL_MESSAGE, appended(0, user("half \ud83d of a pair"))),
    "compaction_requested": (
        requested(9, coverage=_COVERED, supersedes="s0", policy=POLICY, focus="the parser"),
        requested(9, trigger="manual"),
    ),
    "compaction_performed": (
        performed(
            9,
            text="Was geschah 发生了什么 ✅",
            coverage=_COVERED,
            policy=POLICY,
            focus="the parser",
            is_split_turn=True,
            split_turn_prefix="the request was",
        ),
        performed(9, trigger="manual"),
    ),
    "compaction_failed": (
        CompactionFailed(attempt_id="a1", reason="overloaded", detail="529", live_tokens=77_000),
        CompactionFailed(attempt_id="a1", reason="empty"),
    ),
    "summary_superseded": (
        SummarySuperseded(summary_id="s0", by="s1"),
        SummarySuperseded(summary_id="", by=""),
    ),
    "tool_content_offloaded": (
        _offloaded(_PART, _PART.replaced(side="call", tokens_freed=10)),
        _offloaded(),
    ),
    "conversation_labelled": (
        ConversationLabelled(label="the parser 解析器"),
        ConversationLabelled(label=""),
    ),
}

_KINDS: tuple[type[Event], ...] = (
    MessageAppended,
    CompactionRequested,
    CompactionPerformed,
    CompactionFailed,
    SummarySuperseded,
    ToolContentOffloaded,
    ConversationLabelled,
)
assert {type(full) for full, _ in EVENTS.values()} == set(_KINDS)

_HISTORY: list[Event] = [
    *history(system("rules"), *talk(5)),
    appended(11, calls("toolu_1"), thinking_tokens=5, stop_reason="pause_turn"),
    appended(12, assistant("and on")),
    requested(9, supersedes=None),
    performed(9, coverage=coverage(9, start=1, exclusions=(5,))),
    requested(10, "a2", coverage=coverage(10, start=1), supersedes="s1"),
    CompactionFailed(attempt_id="a2", reason="timeout", live_tokens=650),
    requested(10, "a3", coverage=coverage(10, start=1), supersedes="s1"),
    ConversationLabelled(label="a talk"),
]

SNAPSHOTS: tuple[Conversation, Conversation] = (
    fold(_HISTORY).replaced(older_live=3, older_tokens=300),
    Conversation(),
)
