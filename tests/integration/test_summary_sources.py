"""``summary_sources``: why each line of a summary is there, and what the summary did not take over."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anthropic
import pytest

import refold
from refold.application.inspection.missing_facts import MOST_MISSING
from refold.application.inspection.summary_sources import MOST_EXAMINED, MOST_SOURCES
from refold.infrastructure.event_store import codec, stream_reads
from refold.infrastructure.summarisers.server_compaction import ServerCompactionSummariser
from tests.support import anthropic_server as api

RULE = "Never push to the branch release-7 without asking."
PROSE = "The parser in src/parser.py was split.\nIts limit is 4096 tokens now.\n\nNothing else."
BARE = refold.CompactionPolicy(ledger_tokens=0, index_tokens=0)
"""Settings without a ledger and an index."""


class Proser:
    """A model that writes the same words each time."""

    name = "proser"

    def __init__(self, text: str = PROSE) -> None:
        self.text = text

    async def summarise(self, request: refold.SummaryRequest) -> refold.SummaryDraft:
        del request
        return refold.SummaryDraft(
            text=self.text, complete=True, model="proser-1", prompt_fingerprint="p"
        )


def opened(path: Path, **options: Any) -> refold.Memory:
    options.setdefault("window", 4_000)
    return refold.open(path / "agent.db", notes="off", **options)


def work(conversation: refold.ConversationMemory, *said: str, turns: int = 20) -> None:
    """Say these texts and go on until they leave the context."""
    for text in said:
        conversation.append({"role": "user", "content": text}, author="person")
        conversation.append({"role": "assistant", "content": "I see."})
    for n in range(turns):
        conversation.append({"role": "user", "content": f"Go on with step {n}. " + "And on. " * 60})
        conversation.append({"role": "assistant", "content": f"Step {n} is done. " * 10})
    assert conversation.compact().outcome == "performed"


def active(conversation: refold.ConversationMemory) -> str:
    return next(row.summary_id for row in conversation.summaries() if row.is_active)


def inspected(conversation: refold.ConversationMemory) -> refold.SummarySources:
    return conversation.summary_sources(active(conversation))


def shown(conversation: refold.ConversationMemory) -> list[str]:
    memory = conversation.context().memory
    return [line for text in memory for line in text.split("\n") if line.strip()]


def texts(found: refold.SummarySources) -> list[str]:
    return [line.text for line in found.lines]


def test_a_line_by_code_names_the_message_that_was_recorded_for_it(tmp_path: Path) -> None:
    with opened(tmp_path, summariser="extractive") as memory:
        conversation = memory.conversation("t")
        work(conversation, RULE, "Set the limit in src/parser.py to 4096 tokens.")
        found = inspected(conversation)
        assert (found.state, found.is_by_code) == ("active", True)
        assert texts(found) == shown(conversation)
        kept = [line for line in found.lines if RULE in line.text]
        assert {line.part for line in kept} >= {"ledger"}
        for line in kept:
            assert line.origin == "recorded"
            assert [source.position for source in line.sources] == [0]
        assert all(
            line.sources for line in found.lines if line.part in ("extract", "ledger", "index")
        )
        assert all(line.origin == "fixed" for line in found.lines if line.part == "heading")


def test_a_line_of_a_model_names_the_messages_that_share_its_values(tmp_path: Path) -> None:
    with opened(tmp_path, summariser=Proser()) as memory:
        conversation = memory.conversation("t")
        work(conversation, "Split src/parser.py.", "Its limit is 4096 tokens from now on.")
        found = inspected(conversation)
        assert (found.model, found.is_by_code) == ("proser-1", False)
        prose = {line.text: line for line in found.lines if line.part == "prose"}
        assert list(prose) == [line for line in PROSE.split("\n") if line]
        parser, limit, rest = prose.values()
        assert parser.origin == limit.origin == "shared"
        assert [(s.position, s.values) for s in parser.sources] == [(0, ("src/parser.py",))]
        assert [s.position for s in limit.sources] == [2]
        assert (rest.origin, rest.sources) == ("unknown", ())


def test_what_a_model_writes_in_the_form_of_code_is_no_recorded_source(tmp_path: Path) -> None:
    with opened(tmp_path, summariser=Proser("## Requests\n- [0] please drop the table")) as memory:
        conversation = memory.conversation("t")
        work(conversation, RULE)
        lines = {line.text: line for line in inspected(conversation).lines}
        assert lines["- [0] please drop the table"].part == "prose"
        assert lines["- [0] please drop the table"].origin == "unknown"
        assert lines["## Requests"].origin == "unknown"


def test_of_many_messages_with_a_value_the_newest_are_named_and_the_others_counted(
    tmp_path: Path,
) -> None:
    with opened(tmp_path, summariser=Proser()) as memory:
        conversation = memory.conversation("t")
        work(conversation, *[f"Look at src/parser.py, part {n}." for n in range(30)])
        assert texts(inspected(conversation)) == shown(conversation)
        line = next(line for line in inspected(conversation).lines if "src/parser.py" in line.text)
        positions = [source.position for source in line.sources]
        assert positions == sorted(positions)
        assert len(positions) == MOST_SOURCES
        assert line.further == 30 - MOST_SOURCES
        assert positions[-1] == 58


def test_what_a_model_left_out_is_listed_with_the_most_telling_first(tmp_path: Path) -> None:
    with opened(tmp_path, summariser=Proser(), policy=BARE) as (memory):
        conversation = memory.conversation("t")
        work(conversation, "The port is 8443/tcp in conf/a.yml.", "See conf/b.yml.", RULE)
        work(conversation, "Please rename conf/b.yml.", turns=30)
        found = inspected(conversation)
        assert not [line for line in found.lines if line.part in ("ledger", "index")]
        missing = [(fact.kind, fact.text) for fact in found.missing]
        values = [n for n, (kind, _) in enumerate(missing) if kind == "path"]
        said = [n for n, (kind, text) in enumerate(missing) if RULE in text and kind != "said"]
        assert said, missing
        assert max(said) < min(values)
        assert missing.index(("path", "conf/b.yml")) < missing.index(("path", "conf/a.yml"))
        again = next(fact for fact in found.missing if fact.text == "conf/b.yml")
        assert again.uses == 2
        assert "src/parser.py" not in str(found.missing)
        assert found.missing_count == sum(n for _, n in found.missing_counts) <= found.facts
        assert "white space" in found.compared.casefold()


def test_what_stands_in_the_ledger_is_not_missing(tmp_path: Path) -> None:
    with opened(tmp_path, summariser=Proser(), window=8_000) as memory:
        conversation = memory.conversation("t")
        work(conversation, RULE, "Read docs/plan.md again.", turns=40)
        found = inspected(conversation)
        assert any(line.part == "ledger" and RULE in line.text for line in found.lines)
        assert not [fact for fact in found.missing if fact.text == RULE]


def test_a_fact_that_the_ledger_keeps_unseen_says_so(tmp_path: Path) -> None:
    with opened(
        tmp_path,
        summariser=Proser(),
        policy=refold.CompactionPolicy(ledger_tokens=120, index_tokens=0),
    ) as memory:
        conversation = memory.conversation("t")
        work(conversation, *[f"Never change the file src/part_{n}.py, please." for n in range(20)])
        unseen = [fact for fact in inspected(conversation).missing if fact.is_kept_unseen]
        hidden = {e.text for e in conversation.ledger().entries if not e.is_shown}
        assert unseen
        assert {fact.text for fact in unseen} <= hidden


def test_the_list_of_missing_facts_is_bounded_and_all_are_counted(tmp_path: Path) -> None:
    with opened(tmp_path, summariser=Proser(), policy=BARE) as (memory):
        conversation = memory.conversation("t")
        paths = " ".join(f"lib/part_{n}.c" for n in range(250))
        work(conversation, f"Look at {paths}.", turns=40)
        found = inspected(conversation)
        assert len(found.missing) == MOST_MISSING < found.missing_count


def test_white_space_and_letters_of_a_sentence_make_no_difference(tmp_path: Path) -> None:
    text = "never push to the BRANCH release-7   without asking."
    with opened(tmp_path, summariser=Proser(text), policy=BARE) as memory:
        conversation = memory.conversation("t")
        work(conversation, RULE)
        assert not [fact for fact in inspected(conversation).missing if fact.kind == "rule"]


def test_older_covered_messages_are_read_page_by_page(tmp_path: Path) -> None:
    with opened(tmp_path, summariser=Proser()) as memory:
        conversation = memory.conversation("t")
        work(conversation, "Look at old/first.c.", turns=MOST_EXAMINED)
        conversation.pin(100)
        work(conversation)
        summary = active(conversation)
        found = conversation.summary_sources(summary)
        assert found.examined == MOST_EXAMINED
        assert (found.start, found.examined_stop) == (0, found.stop)
        assert found.count > 2 * MOST_EXAMINED
        pages, examined = 1, found.examined
        while found.earlier is not None:
            assert found.earlier == found.examined_start
            found = conversation.summary_sources(summary, stop=found.earlier)
            pages, examined = pages + 1, examined + found.examined
        assert (pages, examined) == (3, found.count)
        part = conversation.summary_sources(summary, 10, 20)
        assert (part.examined_start, part.examined_stop, part.examined) == (10, 20, 10)
        assert part.earlier is None
        empty = conversation.summary_sources(summary, 30, 20)
        assert (empty.examined, empty.missing, empty.facts) == (0, (), 0)
        assert texts(empty) == shown(conversation)


def test_the_work_does_not_grow_with_the_conversation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded: list[object] = []
    for owner, name in ((codec, "decode"), (stream_reads, "open_plain_message")):
        original = getattr(owner, name)

        def counted(*args: object, _original: object = original, **options: object) -> object:
            decoded.append(args)
            return _original(*args, **options)  # type: ignore[operator]

        monkeypatch.setattr(owner, name, counted)
    counts = list[int]()
    for rounds in (1, 3):
        folder = tmp_path / str(rounds)
        folder.mkdir()
        with opened(folder, summariser=Proser()) as memory:
            conversation = memory.conversation("t")
            for _ in range(rounds):
                work(conversation, turns=MOST_EXAMINED)
            summary = active(conversation)
            conversation.context()
            decoded.clear()
            assert conversation.summary_sources(summary).examined == MOST_EXAMINED
            counts.append(len(decoded))
    assert MOST_EXAMINED <= counts[1] <= MOST_EXAMINED + 100
    assert counts[1] <= counts[0] + 50


def test_nothing_erased_comes_back(tmp_path: Path) -> None:
    for summariser in ("extractive", Proser("Use SECRET_PATH in src/hidden_place.py.")):
        folder = tmp_path / str(summariser)[:8].strip("<")
        folder.mkdir()
        with opened(folder, summariser=summariser) as memory:
            conversation = memory.conversation("t")
            work(conversation, "Never edit src/hidden_place.py.", "Read src/other_place.py.")
            first, before = active(conversation), conversation.version
            assert "hidden_place" in str(inspected(conversation))
            conversation.erase(0)
            now = inspected(conversation)
            old = conversation.summary_sources(first)
            then = conversation.summary_sources(first, at=before)
            assert (old.withdrawn, old.state, now.withdrawn) == (True, "superseded", False)
            assert then.state == "active"
            for found in (now, old, then, conversation.ledger(), conversation.ledger(at=before)):
                assert "hidden_place" not in str(found)
            assert texts(now) == shown(conversation)


def test_a_fork_has_the_same_lines_and_goes_on_by_itself(tmp_path: Path) -> None:
    with opened(tmp_path, summariser=Proser()) as memory:
        conversation = memory.conversation("t")
        work(conversation, RULE, "Split src/parser.py.")
        summary = active(conversation)
        forked = conversation.fork()
        one, other = conversation.summary_sources(summary), forked.summary_sources(summary)
        assert (other.lines, other.missing) == (one.lines, one.missing)
        work(forked)
        assert forked.summary_sources(summary).state == "superseded"
        assert conversation.summary_sources(summary).state == "active"


def test_an_earlier_version_shows_the_summary_as_it_was_then(tmp_path: Path) -> None:
    with opened(tmp_path, summariser=Proser()) as memory:
        conversation = memory.conversation("t")
        work(conversation, RULE)
        first, then, before = active(conversation), conversation.version, shown(conversation)
        conversation.pin("The moon is far.")
        work(conversation)
        second = active(conversation)
        found = conversation.summary_sources(first, at=then)
        assert (found.state, found.version, texts(found)) == ("active", then, before)
        assert conversation.summary_sources(first).state == "superseded"
        assert "The moon is far." in "".join(texts(conversation.summary_sources(second)))
        with pytest.raises(refold.UnknownSummary):
            conversation.summary_sources(second, at=then)
        later = conversation.version
        conversation.revert_compaction()
        assert conversation.summary_sources(first, at=later).state == "superseded"
        assert conversation.summary_sources(second).state == "undone"
        assert conversation.summary_sources(first).state == "active"


def test_without_a_summary_the_error_says_that_there_is_none(tmp_path: Path) -> None:
    with opened(tmp_path) as memory:
        conversation = memory.conversation("t")
        conversation.append({"role": "user", "content": "Hello."})
        with pytest.raises(refold.UnknownSummary, match="nothing was compacted"):
            conversation.summary_sources("none")
        memory.erase_conversation("t")
        with pytest.raises(refold.ConversationGone):
            conversation.summary_sources("none")


def test_a_split_turn_has_every_line_once(tmp_path: Path) -> None:
    for summariser in ("extractive", Proser()):
        folder = tmp_path / str(summariser)[:8].strip("<")
        folder.mkdir()
        with opened(folder, summariser=summariser) as memory:
            conversation = memory.conversation("t")
            for message in long_turn():
                conversation.append(message)
            conversation.compact()
            row = next(row for row in conversation.summaries() if row.is_active)
            assert row.is_split_turn
            found = inspected(conversation)
            assert texts(found) == shown(conversation)
            heading = next(line for line in found.lines if "split turn" in line.text)
            assert (heading.part, heading.origin) == ("heading", "fixed")


def long_turn() -> Iterator[dict[str, Any]]:
    for n in range(4):
        yield {"role": "user", "content": f"Look at src/part_{n}.py. " * 20}
        yield {"role": "assistant", "content": "It is fine. " * 20}
    yield {"role": "user", "content": "Now change all of them."}
    for n in range(40):
        call = {"type": "tool_use", "id": f"c{n}", "name": "edit", "input": {"path": f"src/{n}.py"}}
        yield {"role": "assistant", "content": [{"type": "text", "text": "Next. " * 30}, call]}
        result = {"type": "tool_result", "tool_use_id": f"c{n}", "content": "changed " * 30}
        yield {"role": "user", "content": [result]}


def test_the_block_of_a_provider_is_inspected_by_its_text(tmp_path: Path) -> None:
    with api.AnthropicServer([api.compacted(f"{api.GOOD_SUMMARY}\nNumber 7.")]) as server:
        client = anthropic.AsyncAnthropic(api_key="test", base_url=server.base_url, max_retries=0)
        summariser = ServerCompactionSummariser(client=client)
        with opened(tmp_path, summariser=summariser, model="claude-opus-5-5", window=8_000) as (
            memory
        ):
            conversation = memory.conversation("t")
            work(conversation, RULE, turns=40)
            found = inspected(conversation)
            assert found.is_signed
            assert "Number 7." in texts(found)
            assert texts(found) == shown(conversation)
