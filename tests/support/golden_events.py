"""One full and one sparse event of every stored name: what the golden files of shapes are made from."""

from typing import get_args

from refold.domain.compaction.policy import CompactionPolicy
from refold.domain.conversation import ActiveSummary, Conversation, Topic
from refold.domain.events import (
    CompactionFailed,
    CompactionReverted,
    ConversationErased,
    ConversationForked,
    ConversationLabelled,
    EditDecided,
    EditProposed,
    Event,
    EventLost,
    GivenInPart,
    LeafSummary,
    LinesRecalled,
    MessageAppended,
    MessageErased,
    MessagePinned,
    MessagesCondensed,
    MessageUnpinned,
    OmittedMessage,
    RecalledLine,
    SaidPart,
    ShortenedPart,
    SummarySuperseded,
    ToolContentOffloaded,
    UserContentShortened,
)
from refold.domain.evolve import fold
from refold.domain.frames import FramePart, RequestFrameChanged
from refold.domain.ledger import IndexEntry, LedgerLine
from refold.domain.messages import Message
from refold.domain.notes import ChosenMemory, MemoriesChosen, Note, NotesFlushed, Rewritten
from refold.domain.originals import Original
from refold.domain.value import replace

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

POLICY = replace(  # More than the whole together, as older logs may have it.
    CompactionPolicy(),
    trigger_share=0.65,
    target_share=0.45,
    margin_share=0.05,
    reserve_tokens=12000,
    reserve_share=0.2,
    keep_last=7,
    keep_tokens=1,
    keep_turns=1,
    whole_turn_share=0.61,
    summary_tier=0.13,
    condensed_tier=0.43,
    whole_tier=0.67,
    whole_last=11,
    offload_tokens=1001,
    giant_share=0.2,
    enough_freed_tokens=15001,
    enough_freed_share=0.13,
    preview_head=900,
    preview_tail=300,
    condensed_characters=201,
    tiny_preview=100,
    summary_tokens=4000,
    summary_slack=1.5,
    summary_tries=4,
    repairs=2,
    most_calls=25,
    request_share=0.4,
    split_share=0.61,
    split_slack=1.08,
    split_prefix_share=0.49,
    split_prefix_least=0.19,
    chunk_share=0.49,
    chunk_least=0.19,
    chunk_large=0.13,
    chunk_slack=1.08,
    oversized_share=0.61,
    rebuild_after=6,
    rebuild_over_share=2.5,
    rebuild_over_tokens=1001,
    leaf_tokens=1001,
    ledger_share=0.14,
    ledger_tokens=6001,
    index_share=0.19,
    index_tokens=12001,
    failures_kept=9,
    failure_characters=241,
    first_summary_after=31,
    archive_over=201,
    archive_buffer=21,
    topics_kept=41,
    topics_shown=13,
    lease_seconds=300,
    retry_growth=0.05,
    breaker_after=4,
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
        extra={"usage": {"output_tokens": 12}, "name": "Bob \U0001f44d", "seen": [True, None]},
        unknown=("new_in_2030",),
    ),
    tokens=321,
    thinking_tokens=12,
    key="delivery-3",
    written_at=NOON,
    model="claude-opus-5-5",
    stop_reason="tool_use",
    stale_thinking=True,
    owner="user-8",
    conversation_owner="user-7",
    original=Original(
        format="openai-responses",
        data=[
            {"type": "reasoning", "id": "rs_1"},
            {"text": {"$ref": [1, "text"]}, "n": [1.5, None]},
        ],
    ),
)

_PART = ShortenedPart(position=4, call_id="toolu_1", side="result", tokens_freed=900)
_COVERED = coverage(9, start=1, exclusions=(2, 5))


_RECALLED = LinesRecalled(
    position=6,
    message_id="m6",
    lines=(
        RecalledLine(position=2, version=3, start=5, stop=12, digest="ab12", speaker="tool"),
        RecalledLine(position=4, version=5, start=0, stop=9, digest="cd34", speaker="user"),
    ),
    tokens=70,
    asked_at=8,
)
_SUMMARY = ActiveSummary(
    summary_id="s1",
    version=11,
    coverage=_COVERED,
    tokens=50,
    at_length=12,
    at_tokens=700,
    generation=2,
    text_tokens=31,
    leaves=(5, 11),
    effective=False,
)


def _offloaded(*parts: ShortenedPart) -> ToolContentOffloaded:
    return ToolContentOffloaded(parts=parts, head=1_200, tail=400)


EVENTS: dict[str, tuple[Event, Event]] = {
    "message_appended": (
        _FULL_MESSAGE,
        appended(0, replace(user("half \ud83d of a pair"), author="person")),
    ),
    "compaction_requested": (
        requested(
            9,
            coverage=_COVERED,
            supersedes="s0",
            policy=POLICY,
            focus="the parser",
            split_at=4,
            rebuilds=True,
            owner="host/boot/4711/1767355200",
        ),
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
            split_at=4,
            text_tokens=31,
            target_tokens=480,
            effective=False,
            generation=3,
            ledger=(
                LedgerLine(kind="rule", text="不要推送", position=2, count=2, note="said twice"),
                LedgerLine(kind="command", text="pytest -q", position=4),
                LedgerLine(kind="value", text="port 6390", position=8, was="port 6379"),
                LedgerLine(
                    kind="decision",
                    text="Keep SQLite",
                    position=7,
                    said_by="assistant",
                    reason="不需要服务器",
                    rejected=("Postgres", "a file of JSON"),
                ),
                LedgerLine(
                    kind="prohibition",
                    text="push to main",
                    position=2,
                    said_by="user",
                    under=("Release", "Never:"),
                    author="person",
                    cut=12,
                ),
            ),
            ledger_shown=1,
            leaf=LeafSummary(start=3, stop=9, text="[3] the parser", tokens=6),
            omitted=(OmittedMessage(position=7, tokens=120_000),),
            given_in_part=(GivenInPart(position=6, given=19_940, characters=120_000),),
            block={"type": "compaction", "content": "…", "signature": "c2ln"},
            model_calls=2,
            topics=(
                Topic(name="解析器", count=4, last_position=8),
                Topic(name="retry policy", count=2, last_position=4),
            ),
            topics_shown=1,
            message_count=12,
            topics_ask=False,
            index=(
                IndexEntry("decision", "Keep SQLite, because 不需要服务器", 7, 1, 0, -1, "model"),
                IndexEntry("path", "src/解析/parser.py", 8, 5, 3, 6, "person", edited=True),
                IndexEntry("name", "retry_policy", 4),
            ),
            index_shown=2,
            index_left_out=9,
            earlier=(
                LeafSummary(start=0, stop=2, text="Früher: 开始了 src/解析", tokens=6),
                LeafSummary(start=2, stop=5, text="Then the parser was moved", tokens=5),
            ),
        ),
        performed(9, trigger="manual"),
    ),
    "compaction_failed": (
        CompactionFailed(
            attempt_id="a1",
            reason="overloaded",
            detail="529",
            live_tokens=77_000,
            model_calls=3,
        ),
        CompactionFailed(attempt_id="a1", reason="empty"),
    ),
    "compaction_reverted": (
        CompactionReverted(
            summary_id="s2",
            restored=_SUMMARY,
            messages=fold([*history(user("why?"), calls("c1"), start=6), _RECALLED]).live,
            older_live=3,
            older_tokens=300,
            live_from=2,
            reason="it lost the point",
        ),
        CompactionReverted(
            summary_id="s1", restored=None, messages=(), older_live=0, older_tokens=0, live_from=1
        ),
    ),
    "summary_superseded": (
        SummarySuperseded(summary_id="s0", by="s1"),
        SummarySuperseded(summary_id="", by=""),
    ),
    "tool_content_offloaded": (
        _offloaded(_PART, replace(_PART, side="call", tokens_freed=10)),
        _offloaded(),
    ),
    "messages_condensed": (
        MessagesCondensed(parts=(_PART,), characters=100, tail=90),
        MessagesCondensed(parts=(), characters=0),
    ),
    "user_content_shortened": (
        UserContentShortened(
            parts=(
                SaidPart(position=4, block=0, tokens_freed=90_000),
                SaidPart(position=6, block=2, tokens_freed=-3),
            ),
            head=4_000,
            tail=4_000,
            left_out=True,
        ),
        UserContentShortened(parts=(), head=0, tail=0),
    ),
    "message_pinned": (
        MessagePinned(pin_id="p1", position=3, text="不要推送 to main\n", tokens=9),
        MessagePinned(pin_id="p1", position=None, text="x", tokens=0),
    ),
    "message_unpinned": (MessageUnpinned(pin_id="p1"), MessageUnpinned(pin_id="")),
    "notes_flushed": (
        NotesFlushed(
            flush_id="n1",
            start=3,
            stop=9,
            notes=(
                Note(kind="decision", text="端口 5433 for postgres", positions=(4, 7)),
                Note(kind="preference", text="short answers"),
            ),
            taken_by="anthropic",
            model="claude-haiku-5-5",
            prompt_fingerprint="5e" * 32,
            model_calls=2,
            reason="empty",
            replaces="n0",
            taken_at="2026-01-02T03:04:05.678901Z",
        ),
        NotesFlushed(flush_id="n1", start=0, stop=0, notes=(), taken_by="ledger"),
    ),
    "lines_recalled": (
        _RECALLED,
        LinesRecalled(position=0, message_id="", lines=(), tokens=0, asked_at=0),
    ),
    "memories_chosen": (
        MemoriesChosen(
            query_position=12,
            memories=(
                ChosenMemory(
                    position=4,
                    message_id="m4",
                    role="user",
                    at="2026-01-02T03:04:05.678901Z",
                    text="端口 5433",
                    score=0.75,
                ),
                ChosenMemory(
                    position=2,
                    message_id="n1",
                    role="note",
                    at="2026-01-01T03:04:05.678901Z",
                    text="short answers",
                    score=0.4,
                    thread_id="monday",
                    kind="note",
                    start=2,
                    stop=9,
                ),
            ),
            tokens=31,
            rewritten=(Rewritten(version=8, remains="5e" * 32),),
        ),
        MemoriesChosen(query_position=0, memories=(), tokens=0),
    ),
    "message_erased": (
        MessageErased(
            position=7,
            message_id="m7",
            tokens=12,
            tokens_freed=388,
            rewritten=(
                Rewritten(version=8, remains="5e" * 32),
                Rewritten(version=11, remains="0f" * 32),
            ),
            reason="asked for by its author",
        ),
        MessageErased(position=0, message_id="m0", tokens=1, tokens_freed=0, rewritten=()),
    ),
    "conversation_erased": (
        ConversationErased(reason="the account was closed"),
        ConversationErased(),
    ),
    "conversation_forked": (
        ConversationForked(source="origin", version=42),
        ConversationForked(source="对话", version=1),
    ),
    "request_frame_changed": (
        RequestFrameChanged(
            digest="0f" * 16,
            model="claude-opus-5-5",
            place="system",
            signed=True,
            binds_thinking=False,
            asked_at=7,
            system=("1a" * 16, "2b" * 16),
            system_is_text=False,
            instructions=("3c" * 16,),
            tools=("4d" * 16,),
            parts=(
                FramePart(digest="1a" * 16, value={"type": "text", "text": "规则: be brief"}),
                FramePart(digest="3c" * 16, value="# AGENTS.md\n"),
                FramePart(
                    digest="4d" * 16, value={"name": "look", "input_schema": {"type": "object"}}
                ),
            ),
        ),
        RequestFrameChanged(
            digest="5e" * 16,
            model=None,
            place="user",
            signed=False,
            binds_thinking=True,
            asked_at=0,
            system=None,
            system_is_text=False,
            instructions=(),
            tools=(),
            parts=(),
        ),
    ),
    "edit_proposed": (
        EditProposed(
            edit_id="e1",
            action="remember",
            text="端口 5433 for postgres",
            position=3,
            kind="decision",
            target="n1",
            author="planner",
        ),
        EditProposed(
            edit_id="", action="pin", text="", position=None, kind=None, target=None, author=""
        ),
    ),
    "edit_decided": (
        EditDecided(edit_id="e1", allowed=True, by="program", reason="不需要"),
        EditDecided(edit_id="", allowed=False, by=""),
    ),
    "event_lost": (EventLost(position=3), EventLost()),
    "conversation_labelled": (
        ConversationLabelled(label="the parser 解析器"),
        ConversationLabelled(label=""),
    ),
}

assert {type(full) for full, _ in EVENTS.values()} == set(get_args(Event))

_HISTORY: list[Event] = [
    *history(system("rules"), *talk(5)),
    appended(11, calls("toolu_1"), thinking_tokens=5, stop_reason="pause_turn"),
    appended(12, assistant("and on")),
    requested(9, supersedes=None),
    performed(9, coverage=coverage(9, start=1, exclusions=(5,))),
    requested(10, "a2", coverage=coverage(10, start=1), supersedes="s1"),
    CompactionFailed(attempt_id="a2", reason="timeout", live_tokens=650),
    requested(10, "a3", coverage=coverage(10, start=1), supersedes="s1"),
    EVENTS["request_frame_changed"][0],
    ConversationLabelled(label="a talk"),
    EVENTS["edit_proposed"][0],
    MessagePinned(pin_id="p1", position=None, text="不要推送", tokens=9),
    appended(13, user("mine"), conversation_owner="user-7"),
]

SNAPSHOTS: tuple[Conversation, Conversation] = (
    replace(fold(_HISTORY), older_live=3, older_tokens=300),
    Conversation(),
)
