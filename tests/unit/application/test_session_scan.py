"""Figures of a scan, against counts made by hand of a session with two compactions."""

from datetime import UTC, datetime

import pytest

from refold.application.conversation.transcripts import (
    RecordedConversation,
    RecordedMessage,
    RecordedSummary,
)
from refold.application.lab.recorded_summaries import ledgers_of
from refold.application.lab.scan_facts import KeptText, Need, needs_of, telling_part
from refold.application.lab.session_scan import (
    ScannedCompaction,
    ScannedSession,
    mark_kept,
    scan_session,
)
from refold.application.lab.tool_actions import Action, actions_of
from refold.domain.messages import Message
from refold.domain.value import replace
from refold.infrastructure.bootstrap import open_core
from refold.infrastructure.tokens.estimator import EstimatingTokenCounter
from tests.support.builders import assistant, tool_result, user

COUNTER = EstimatingTokenCounter()
RULE = "Never touch the generated files in proto."
REQUEST = "Please add a retry budget to the uploader."
TESTS = "make check && make docs-site"


def person(words: str) -> Message:
    return Message(role="user", content=words, author="person")


def call(number: int, name: str, **fields: object) -> Message:
    block = {"type": "tool_use", "id": f"c{number}", "name": name, "input": fields}
    return Message(role="assistant", content=(block,))


def done(number: int, words: str = "ok", **more: object) -> Message:
    return user(tool_result(f"c{number}", words, **more))


BEFORE = (
    person(f"{REQUEST} {RULE}"),  # 0
    call(1, "Read", file_path="/w/src/uploader.py"),
    done(1, "old text " * 50),
    call(2, "Bash", command=TESTS),  # 3
    done(2, "all green " * 20),
    call(3, "Read", file_path="/w/src/limits.py"),  # 5
    done(3, "limit = 3"),
    call(4, "Read", file_path="/w/src/never_again.py"),  # 7
    done(4, "x"),
)
MIDDLE = (
    assistant("I go on."),  # 9
    call(5, "Read", file_path="/w/src/uploader.py"),  # 10: again
    done(5, "old text " * 50),
    call(6, "Read", file_path="/w/src/uploader.py"),  # 12: counts once
    done(6, "old text " * 50),
    call(7, "Bash", command="git diff --stat HEAD~1"),  # 14: new
    done(7, "1 file"),
    call(8, "Edit", file_path="/w/src/limits.py", old_string="3", new_string="4"),  # 16
    done(8),
)
END = (
    assistant("On."),  # 18
    call(9, "Bash", command=TESTS),  # 19: again
    done(9, "all green " * 20),
    call(10, "Grep", pattern="retry budget of the uploader", path="/w/src"),  # 21
    done(10, "none"),
)
FIRST = "The uploader.py gets a retry budget. The person said: Never touch the generated files in proto."
SECOND = "We changed limits.py and uploader.py."
AT = datetime(2026, 2, 1, tzinfo=UTC)


def recorded(*messages: Message, summaries: dict[int, str]) -> RecordedConversation:
    made = [RecordedMessage(message=m, key=str(n)) for n, m in enumerate(messages)]
    written = [RecordedSummary(position=at, text=t, key=f"k{at}") for at, t in summaries.items()]
    return RecordedConversation(thread_id="t", messages=tuple(made), summaries=tuple(written))


SESSION = recorded(*BEFORE, *MIDDLE, *END, summaries={9: FIRST, 18: SECOND})


@pytest.fixture(name="scanned")
def scanned_session() -> ScannedSession:
    return scan_session(SESSION, COUNTER)


def lost(compaction: ScannedCompaction) -> list[tuple[str, str, int, int | None]]:
    return [(f.kind, f.text, f.position, f.needed_at) for f in compaction.lost]


def test_a_session_has_its_compactions_in_order(scanned: ScannedSession) -> None:
    assert scanned.messages == 23
    assert scanned.label.startswith(REQUEST[:30])
    assert [(c.number, c.key, c.position) for c in scanned.compactions] == [
        (1, "k9", 9),
        (2, "k18", 18),
    ]


def test_lost_is_what_was_there_is_needed_and_is_not_in_the_summary(
    scanned: ScannedSession,
) -> None:
    first, second = scanned.compactions
    # uploader.py, limits.py and the tests come again, the rule holds, the request is the newest words.
    assert first.needed == {"files": 2, "commands": 1, "rules": 1, "requests": 1}
    assert lost(first) == [
        ("commands", TESTS, 3, 19),
        ("files", "/w/src/limits.py", 5, 16),
    ]
    # The tests had left the context before; git diff and both files are not needed again.
    assert second.needed == {"rules": 1, "requests": 1}
    assert lost(second) == [("requests", REQUEST, 0, 21), ("rules", RULE, 0, None)]


def test_calls_before_the_first_edit_are_counted_up_to_the_next_compaction(
    scanned: ScannedSession,
) -> None:
    first, second = scanned.compactions
    assert (first.actions_before_edit, first.actions) == (3, 4)
    assert (second.actions_before_edit, second.actions) == (None, 2)


def test_a_file_read_again_and_a_command_run_again_are_paid_twice(scanned: ScannedSession) -> None:
    first, second = scanned.compactions
    read = '{"file_path": "/w/src/uploader.py"}'
    count = COUNTER.count_text
    assert (first.twice.files, first.twice.commands) == (1, 0)
    assert first.twice.file_tokens == count(read) + count("old text " * 50)
    assert first.twice.summary_tokens == count(FIRST)
    assert (second.twice.files, second.twice.commands) == (0, 1)
    ran = f'{{"command": "{TESTS}"}}'
    assert second.twice.command_tokens == count(ran) + count("all green " * 20)
    assert second.twice.tokens == second.twice.command_tokens + count(SECOND)


def test_other_lines_of_a_file_and_failed_calls_are_not_paid_twice() -> None:
    messages = (
        call(1, "Read", file_path="/w/a.py", offset=1, limit=100),
        done(1),
        call(2, "Read", file_path="/w/b.py"),
        done(2, "no such file", is_error=True),
        call(3, "Read", file_path="/w/a.py", offset=200, limit=100),
        done(3),
        call(4, "Read", file_path="/w/b.py"),
        done(4),
        call(5, "Read", file_path="/w/a.py", offset=50, limit=10),
        done(5),
    )
    (only,) = scan_session(recorded(*messages, summaries={4: "x"}), COUNTER).compactions
    assert only.twice.files == 1


def test_lines_that_were_read_again_already_do_not_count_once_more() -> None:
    ranges = ((1, 100), (50, 100), (200, 50), (1, 10))
    messages = [call(0, "Read", file_path="/w/a.py"), done(0)]
    for number, (offset, limit) in enumerate(ranges, 1):
        messages += [
            call(number, "Read", file_path="/w/a.py", offset=offset, limit=limit),
            done(number),
        ]
    (only,) = scan_session(recorded(*messages, summaries={2: "x"}), COUNTER).compactions
    assert only.twice.files == 2


def test_ledger_and_index_are_asked_for_what_was_lost(scanned: ScannedSession) -> None:
    core = open_core(":memory:", telemetry=False)
    try:
        marked = mark_kept(core, SESSION, scanned)
        only_second = mark_kept(
            core, SESSION, replace(scanned, compactions=scanned.compactions[1:])
        )
    finally:
        core.log.close()
    assert [[f.kept for f in c.lost] for c in marked.compactions] == [[True, True], [True, True]]
    assert all(compaction.ledger_tokens for compaction in marked.compactions)
    # These summaries are so short that headings alone fill a ledger and an index of their size.
    assert not any(f.kept_short for c in marked.compactions for f in c.lost)
    assert only_second.compactions == marked.compactions[1:]


def test_a_ledger_and_an_index_in_the_size_of_the_summary_are_asked_as_well() -> None:
    long = replace(SESSION.summaries[0], text=f"{FIRST} " + "We talked about the weather. " * 60)
    session = replace(SESSION, summaries=(long,))
    core = open_core(":memory:", telemetry=False)
    try:
        (only,) = mark_kept(core, session, scan_session(session, COUNTER)).compactions
        (made,) = ledgers_of(core, session, short=True)
    finally:
        core.log.close()
    assert [fact.kept_short for fact in only.lost] == [True, True]
    assert COUNTER.count_text(made.short_text) <= only.twice.summary_tokens


def test_what_the_tool_kept_in_full_is_not_lost() -> None:
    whole = recorded(*BEFORE, *MIDDLE, summaries={9: FIRST})
    kept = replace(whole.summaries[0], kept="→ Read /w/src/limits.py")
    (only,) = scan_session(replace(whole, summaries=(kept,)), COUNTER).compactions
    assert [fact.kind for fact in only.lost] == []


def test_a_session_that_ends_with_a_compaction_needs_nothing_again() -> None:
    (only,) = scan_session(recorded(*BEFORE, summaries={9: "x"}), COUNTER).compactions
    assert (only.needed, only.lost, only.actions_before_edit) == ({}, (), None)


def test_a_session_that_begins_with_a_summary_has_nothing_to_lose() -> None:
    begun = recorded(*MIDDLE, summaries={0: FIRST})
    scanned = scan_session(begun, COUNTER)
    (only,) = scanned.compactions
    assert (only.lost, only.actions_before_edit) == ((), 3)
    core = open_core(":memory:", telemetry=False)
    try:
        assert mark_kept(core, begun, scanned) == scanned
    finally:
        core.log.close()


def test_only_the_newest_request_is_needed_without_a_later_use() -> None:
    older = person("Please rename the cache module to store.")
    newest = person("Please count the retries of the uploader.")
    talk = (older, assistant("a"), newest, assistant("b"), assistant("c"))
    (only,) = scan_session(recorded(*talk, summaries={4: "x"}), COUNTER).compactions
    assert lost(only) == [("requests", "Please count the retries of the uploader.", 2, None)]


def test_a_compaction_after_a_beginning_with_a_summary_is_compared() -> None:
    begun = recorded(*BEFORE, *MIDDLE, summaries={0: FIRST, 9: "x"})
    core = open_core(":memory:", telemetry=False)
    try:
        first, second = mark_kept(core, begun, scan_session(begun, COUNTER)).compactions
    finally:
        core.log.close()
    assert (first.lost, first.ledger_tokens) == ((), None)
    assert second.lost
    assert all(fact.kept for fact in second.lost)


def test_copies_of_a_compaction_without_an_id_have_the_same_key() -> None:
    def key(at: datetime, text: str) -> str:
        summary = RecordedSummary(position=1, text=text, at=at)
        session = replace(SESSION, summaries=(summary,))
        return scan_session(session, COUNTER).compactions[0].key

    assert key(AT, "a") == key(AT, "a")
    assert len({key(AT, "a"), key(AT, "b"), key(AT.replace(hour=1), "a")}) == 3


def test_shown_texts_have_no_credentials_and_no_control_characters() -> None:
    secret = "sk-" + "a1b2" * 8
    asked = person(f"Never print {secret}\x1b[31m in the log of the server.")
    (only,) = scan_session(
        recorded(asked, assistant("ok"), assistant("on"), summaries={2: "x"}), COUNTER
    ).compactions
    assert [f.text for f in only.lost] == ["Never print [redacted] in the log of the server."]


@pytest.mark.parametrize(
    ("sentence", "kind"),
    [
        ("Always run the linter before a commit.", "rules"),
        ("don't change the public names", "rules"),
        ("We should not add a dependency here.", "rules"),
        ("Should we never do that again?", None),
        ("I don't see the button anywhere.", None),
        ("Can you look at the parser?", "requests"),
        ("Fix the parser of headers", "requests"),
        ("Is this how it works today?", None),
        ("The weather is fine in here.", None),
    ],
)
def test_rules_and_requests_are_told_from_other_sentences(sentence: str, kind: str | None) -> None:
    assert [need.kind for need in needs_of(person(sentence))] == ([kind] if kind else [])


def test_a_long_rule_is_shown_with_the_words_that_make_it_one() -> None:
    before = "and so we go on with the other part of the plan " * 5
    need = Need(
        "rules", f"My password: hunter22 {before}and you must never touch the vault, {before}"
    )
    shown = telling_part(need, 160)
    assert "must never touch the vault" in shown[:100]
    assert shown.startswith("… ")
    secret = Need(
        "rules", f"{before} the password: hunter22sesame and you must never tell it {before}"
    )
    assert "hunter22sesame" not in telling_part(secret, 160)
    short = Need("rules", "Never touch the vault.")
    assert telling_part(short, 160) == short.text
    other = Need("requests", before * 2)
    assert telling_part(other, 160) == other.text


def test_files_are_those_that_calls_name_and_not_folders_or_content() -> None:
    message = Message(
        role="assistant",
        content=(
            {"type": "tool_use", "id": "1", "name": "Edit",
             "input": {"file_path": "/w/a.py", "new_string": "import deep/other.py"}},
            {"type": "tool_use", "id": "2", "name": "shell",
             "input": {"command": ["bash", "-lc", "cat src/b.py > /dev/null"]}},
            {"type": "tool_use", "id": "3", "name": "Grep", "input": {"path": "/w/src/deep"}},
            {"type": "tool_use", "id": "4", "name": "apply_patch",
             "input": {"input": "*** Begin Patch\n*** Update File: src/c.rs\n@@"}},
        ),
    )  # fmt: skip
    files = [need.text for need in needs_of(message) if need.kind == "files"]
    assert files == ["/w/a.py", "src/b.py", "src/c.rs"]


@pytest.mark.parametrize(
    ("text", "need", "has"),
    [
        ("see src/a/state.go", Need("files", "/w/b/state.go"), True),
        ("see old-state.go", Need("files", "/w/b/state.go"), False),
        ("run `mise run lint`", Need("commands", "cd /w && mise run lint 2>&1 | tail -20"), True),
        ("run lint", Need("commands", "mise run lint 2>&1 | tail -20"), False),
        ("The budget of the uploader: retry", Need("requests", REQUEST), True),
        ("The budget\nof the uploader: retry", Need("requests", REQUEST), False),
        ("Do it", Need("requests", "Do it now, please"), False),
    ],
)
def test_a_fact_counts_as_kept_by_its_telling_part(text: str, need: Need, has: bool) -> None:
    assert KeptText(text).has(need) == has


@pytest.mark.parametrize(
    ("name", "fields", "edits"),
    [
        ("MultiEdit", {}, True),
        ("write_file", {}, True),
        ("apply_patch", {"input": "*** Begin Patch"}, True),
        ("Read", {"file_path": "a"}, False),
        ("Bash", {"command": "sed -i s/a/b/ x.py"}, False),
        ("shell", {"command": ["bash", "-lc", "apply_patch <<'EOF'\n*** Begin Patch"]}, True),
        ("exec_command", {"cmd": "cat > src/a.py <<'EOF'"}, True),
        ("exec_command", {"cmd": "sed -i '' s/a/b/ x.py"}, True),
        ("exec_command", {"cmd": "cat a.py 2>/dev/null"}, False),
        ("shell", {"command": "rg pattern > /dev/null"}, False),
    ],
)
def test_edits_are_told_from_other_calls(name: str, fields: dict[str, object], edits: bool) -> None:
    assert Action(0, name, fields).is_edit == edits


def test_a_call_without_a_result_has_none() -> None:
    (action,) = actions_of([call(1, "Bash", command="x")])
    assert (action.result, action.command) == (None, "x")
