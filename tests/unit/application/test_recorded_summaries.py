"""What a recorded summary has of what the session uses again, and what ledger and index add."""

from refold.application.conversation.transcripts import (
    RecordedConversation,
    RecordedMessage,
    RecordedSummary,
)
from refold.application.lab.recorded_summaries import SharesOfTexts, compare_summaries
from refold.domain.messages import Message
from refold.infrastructure.bootstrap import open_core
from tests.support.builders import assistant, tool_result, tool_use, user

OLD = (
    Message(role="user", content="Please repair the old parser.", author="person"),
    assistant(tool_use("a", command="make check && make docs", path="src/deep/old.py")),
    user(tool_result("a", "ok")),
    assistant("I repaired parse_header in src/deep/old.py."),
)
LATER = (
    assistant(tool_use("z", command="make check && make docs", path="src/deep/old.py")),
    user(tool_result("z", "ok")),
    assistant(tool_use("y", code="parse_header(1)")),
    user(tool_result("y", "ok")),
)


def recorded(*messages: Message, summaries: dict[int, str]) -> RecordedConversation:
    told = [RecordedMessage(message=m, key=str(n)) for n, m in enumerate(messages)]
    written = [RecordedSummary(position=at, text=text) for at, text in summaries.items()]
    return RecordedConversation(thread_id="t", messages=tuple(told), summaries=tuple(written))


def compared(recording: RecordedConversation) -> list[dict[str, SharesOfTexts]]:
    core = open_core(":memory:", window=60_000, telemetry=False)
    try:
        return [one.reuse for one in compare_summaries(core, recording)]
    finally:
        core.log.close()


def test_what_is_used_again_is_looked_for_in_both() -> None:
    (reuse,) = compared(recorded(*OLD, *LATER, summaries={4: "We repaired src/deep/old.py."}))
    assert (reuse["paths"].of, reuse["paths"].summary, reuse["paths"].together) == (1, 1, 1)
    assert reuse["commands"] == SharesOfTexts(of=1, summary=0, ledger=1, together=1)
    assert reuse["names"] == SharesOfTexts(of=1, summary=0, ledger=1, together=1)
    assert reuse["asked"] == SharesOfTexts(of=1, summary=0, ledger=1, together=1)


def test_the_index_leaves_out_what_the_summary_says() -> None:
    said = (*OLD[:3], assistant("Done: see `retry_policy` and `cache_limit`."))
    uses = (assistant(tool_use("z", code="retry_policy(cache_limit)")), user(tool_result("z", "")))
    (reuse,) = compared(recorded(*said, *uses, summaries={4: "The retry_policy."}))
    assert reuse["names"] == SharesOfTexts(of=2, summary=1, ledger=1, together=2)


def test_a_summary_at_the_end_has_nothing_to_be_used_again() -> None:
    (reuse,) = compared(recorded(*OLD, summaries={4: "We repaired src/deep/old.py."}))
    assert reuse["paths"].of == reuse["commands"].of == 0


def test_later_summaries_go_on_from_the_ledger_before() -> None:
    rest = (Message(role="user", content="And now the docs, please.", author="person"),)
    first, second = compared(
        recorded(*OLD, *rest, *LATER, summaries={4: "The parser.", 5: "The parser and docs."})
    )
    assert first["commands"] == second["commands"] == SharesOfTexts(of=1, ledger=1, together=1)


def test_a_recording_without_summaries_compares_nothing() -> None:
    assert not compared(recorded(*OLD, *LATER, summaries={}))
