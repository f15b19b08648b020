"""What the ledger takes from messages, kind by kind."""

import time

import pytest

from refold.domain.facts.reading import read_facts
from refold.domain.ledger import LedgerLine, LineKind
from refold.domain.ledger.line import Gathered, gather
from refold.domain.messages import Block, Message
from tests.support.builders import assistant, text, tool_result, tool_use, user


def call(name: str, call_id: str = "c", **given: object) -> Block:
    return {**tool_use(call_id, **given), "name": name}


def ran(
    command: str, output: str = "fine", *, failed: bool = False, call_id: str = "c"
) -> list[Message]:
    return [
        assistant(call("Bash", call_id, command=command)),
        user(tool_result(call_id, output, is_error=failed)),
    ]


def gathered(*messages: Message, start: int = 0) -> Gathered:
    return gather(read_facts(enumerate(messages, start)))


def lines(kind: LineKind, *messages: Message) -> list[LedgerLine]:
    return [line for line in gathered(*messages).lines if line.kind == kind]


def texts(kind: LineKind, *messages: Message) -> list[str]:
    return [line.text for line in lines(kind, *messages)]


WORK = ran("make all")
"""With a tool call among them, messages are work and not a chat."""


@pytest.mark.parametrize(
    "rule",
    [
        "Never run the importer on the live database.",
        "Please do not rename public functions.",
        "You must not change the schema.",
        "I prefer short commit messages.",
        "From now on answer in French.",
        "不要修改这个接口。",
        "严禁直接推送到主干。",
        "变量名一律用英文。",
        "我喜欢简短的回答。",
    ],
)
def test_what_the_user_forbids_or_prefers_is_a_rule(rule: str) -> None:
    said = f"The build is red. {rule}" if rule.isascii() else f"构建失败了。{rule}"
    assert texts("rule", user(said), *WORK) == [rule]


def test_what_the_model_says_is_no_rule() -> None:
    assert texts("rule", assistant("You must never do that. I prefer tea."), *WORK) == []


@pytest.mark.parametrize(
    "said", ["I don't see it in the log.", "我不能够理解", "别人写的代码在这里"]
)
def test_not_every_negation_forbids(said: str) -> None:
    assert texts("rule", user(said), *WORK) == []


def test_a_short_message_is_a_request_line_by_line() -> None:
    message = user("Fix the parser. It fails on empty input.\n- add a test\n\nthanks")
    assert texts("request", message, *WORK) == [
        "Fix the parser. It fails on empty input.",
        "add a test",
    ]


def test_a_long_message_is_a_request_where_it_asks() -> None:
    filler = "The second stage reads what the first one wrote, and so on. " * 12
    message = user(f"Look at the importer.\n{filler}\nCould you also update the manual?\n{filler}")
    found = texts("request", message, *WORK)
    assert found[0] == "Look at the importer."
    assert "Could you also update the manual?" in found


def test_an_acknowledgement_asks_for_nothing() -> None:
    assert texts("request", user("ok, thanks!"), user("好的"), *WORK) == []


def test_what_a_harness_put_between_is_nobodys_wish() -> None:
    reminder = "<system-reminder>Never mention this.</system-reminder>Fix it"
    found = gathered(user(reminder), *WORK).lines
    assert [x.text for x in found if x.kind in ("rule", "request")] == ["Fix it"]


def test_code_in_fences_is_no_speech() -> None:
    message = user("Run this:\n```python\n# never do that\n```")
    assert texts("rule", message, *WORK) == []


def test_decisions_of_user_and_model_are_kept() -> None:
    found = lines(
        "decision",
        user("We agreed to keep the old format."),
        assistant("Going with SQLite since it needs no server. That was easy."),
        user("决定用队列方案。"),
        *WORK,
    )
    assert [(line.text, line.said_by) for line in found] == [
        ("We agreed to keep the old format.", "user"),
        ("Going with SQLite since it needs no server.", "assistant"),
        ("决定用队列方案。", "user"),
    ]


def test_files_are_read_or_modified_by_what_their_tools_did() -> None:
    messages = [
        assistant(
            call("Read", "r", file_path="/app/a b.py"),
            call("Edit", "e", file_path="src/图.ts", old_string="x", new_string="y"),
            call("Bash", "b", command="cat > notes/plan.md <<'EOF'\nhello\nEOF"),
        ),
        user(tool_result("r", "1"), tool_result("e", "done"), tool_result("b", "")),
    ]
    assert texts("read", *messages) == ["/app/a b.py"]
    assert sorted(texts("modified", *messages)) == ["notes/plan.md", "src/图.ts"]


def test_a_file_that_was_read_and_then_modified_is_modified() -> None:
    messages = [
        assistant(
            call("Read", "r", file_path="a.py"), call("Write", "w", file_path="a.py", content="")
        ),
        user(tool_result("r", "1"), tool_result("w", "done")),
    ]
    assert texts("read", *messages) == []
    [line] = lines("modified", *messages)
    assert line.text == "a.py"


def test_a_failed_edit_modifies_nothing() -> None:
    messages = [
        assistant(call("Edit", "e", file_path="a.py", old_string="x", new_string="y")),
        user(tool_result("e", "String not found", is_error=True)),
    ]
    assert texts("modified", *messages) == []
    assert texts("failure", *messages) == ["String not found"]


def test_commands_are_counted_step_by_step_whatever_trims_their_output() -> None:
    messages = [
        *ran("cd /app && make lint && pytest -q tests/unit 2>&1 | tail -5"),
        *ran("pytest -q tests/unit | grep FAILED", "boom", failed=True, call_id="d"),
    ]
    found = lines("command", *messages)
    assert [(line.text, line.count, line.note) for line in found] == [
        ("make lint", 1, "ok"),
        ("pytest -q tests/unit | grep FAILED", 2, "failed"),
    ]


def test_a_command_between_quotes_is_one_step() -> None:
    assert texts("command", *ran('psql -c "select 1; select 2 && 3"')) == [
        'psql -c "select 1; select 2 && 3"'
    ]


def test_looking_around_is_no_command_that_mattered() -> None:
    assert texts("command", *ran("ls -la"), *ran("git status", call_id="d")) == []


def test_commands_that_nobody_ran_are_values() -> None:
    messages = (
        user("Check it with `npm run lint -- --fix` please."),
        assistant("Then:\n```bash\ndocker compose up -d db\n```"),
        *ran("make x", "error: run `make clean all` to start over"),
    )
    assert texts("command", *messages) == ["make x"]
    quoted = {"npm run lint -- --fix", "docker compose up -d db", "make clean all"}
    assert quoted <= set(texts("value", *messages))


def test_a_long_command_is_cut_with_a_mark_and_one_of_many_lines_as_well() -> None:
    (long,) = lines("command", *ran("make all " + "TARGET=one " * 40))
    assert long.text.endswith("TARGET=one")
    assert long.cut == len("make all " + "TARGET=one " * 40) - 1 - len(long.text)
    (first,) = lines("command", *ran("# Build it all.\nmake all\nmake test\n"))
    assert (first.text, first.cut) == ("make all", len("\nmake test"))


def test_a_loop_is_one_command() -> None:
    command = "for f in a b; do make $f && echo done; done"
    assert texts("command", *ran("cd /x && " + command)) == [command]


def test_values_that_everybody_knows_are_not_kept() -> None:
    found = texts(
        "value", *ran("make x >/dev/null", "Found 3 files and 17 lines in /var/lib/app.db, 2006")
    )
    assert found == ["/var/lib/app.db"]


@pytest.mark.parametrize(
    "said",
    [
        "yes please",
        "ok, go ahead.",
        "The fix is straightforward.",
        "Step 3: Decide what to do",
        "Now I understand the root cause.",
        "The fix is in place, and the tests are green.",
        "The plan is clear and well-structured.",
        "yes, let's add this",
        "if yes, do it, if not commit first",
        "I would have expected that an agent picked it up.",
    ],
)
def test_what_says_nothing_is_no_decision(said: str) -> None:
    assert texts("decision", user(said), assistant(said), *WORK) == []


def test_a_failure_is_told_by_the_line_that_names_it() -> None:
    output = "Exit code 1\n" + "collecting …\n" * 60 + "E   AssertionError: 3 != 4\n" + "x\n" * 300
    [line] = lines("failure", *ran("pytest -q", output, failed=True))
    assert line.text == "E   AssertionError: 3 != 4"
    assert line.note == "`pytest -q`"


def test_a_failure_and_its_note_are_240_characters_at_most() -> None:
    [line] = lines("failure", *ran("make " + "x" * 300, "Error: " + "y" * 900, failed=True))
    assert len(line.text) + len(line.note) <= 240


def test_exact_values_are_kept_with_what_they_are_values_of() -> None:
    found = {
        line.text: line.note
        for line in lines(
            "value",
            user("The p95 latency was 412.7 ms; see https://ci.example.org/run/77 and OPS-1234."),
            user("端口是 8443，缓存占了12.5 GB，文件在services/图/../api/main.go里。"),
            assistant("It fails since v2.14.3 with E1402 at 10.0.0.7:5432."),
            *WORK,
        )
    }
    assert found["412.7 ms"] == "The p95 latency was"
    assert "https://ci.example.org/run/77" in found
    assert {"OPS-1234", "12.5 GB", "E1402", "10.0.0.7:5432"} <= found.keys()
    assert any(value.startswith("v2.14.3") for value in found)


def test_a_number_in_a_path_is_no_value_of_its_own() -> None:
    assert texts("value", user("see lib/shard_12/part-7.csv there"), *WORK) == [
        "lib/shard_12/part-7.csv"
    ]


def test_in_the_bulk_of_a_tools_output_values_only_echo() -> None:
    bulk = "\n".join(f"line {n}: took {n}.5 ms" for n in range(100, 300))
    found = gathered(*ran("make bench", bulk))
    assert not any(line.text == "150.5 ms" for line in found.lines)
    assert any(line.text == "150.5 ms" for line in found.echoes)
    assert any(line.text == "299.5 ms" for line in found.lines)


def test_a_text_that_recurs_counts_its_messages() -> None:
    [line] = lines("value", user("use 3.5 GB"), assistant("3.5 GB, and again 3.5 GB"), *WORK)
    assert (line.count, line.position, line.said_by) == (2, 1, "user")


def test_credentials_are_never_kept() -> None:
    secret = "sk-" + "a1B2" * 8
    found = gathered(
        user(f"Never print {secret} or password=hunter22x"), *ran(f"export K={secret}")
    )
    assert not any(secret in line.text + line.note for line in found.lines)
    assert not any("hunter22x" in line.text + line.note for line in found.lines)


def test_in_a_chat_only_what_binds_is_a_rule_and_what_asks_a_request() -> None:
    found = gathered(
        user("Music is always important to me. Can you recommend a book?"),
        user("Please never call me Bob."),
    )
    assert [(line.kind, line.text) for line in found.lines] == [
        ("request", "Can you recommend a book?"),
        ("rule", "Please never call me Bob."),
    ]


def test_a_users_refusal_of_a_call_is_heard() -> None:
    refusal = "The user doesn't want to proceed. The user said: never delete tests"
    found = lines("rule", *ran("rm -r tests", refusal, failed=True))
    assert [line.text for line in found] == ["never delete tests"]


def test_odd_blocks_are_passed_over() -> None:
    blocks: list[Block] = [
        {"type": "text"},
        {"type": "tool_use"},
        {"type": "tool_result", "content": [None, {"type": "image"}, ["deep"]]},
        {"type": "future", "text": 3},
        text("Add a test"),
    ]
    assert texts("request", user(*blocks)) == ["Add a test"]


@pytest.mark.parametrize("unit", ["a/", ".", "12 ms ", "a && ", "[1] ", "1,", "a@"])
def test_a_huge_line_is_read_in_no_time(unit: str) -> None:
    huge, began = unit * 100_000, time.process_time()
    gathered(user(huge), assistant(huge), *ran(huge, huge, failed=True), *ran("ls", huge))
    assert time.process_time() - began < 3


def test_the_end_of_one_huge_line_is_what_a_result_comes_to() -> None:
    output = "row 1234 ms " + "x" * 5_000 + " and the whole took 92.5 ms"
    found = [line.text for line in lines("value", *ran("make bench", output))]
    assert "92.5 ms" in found
    assert "1234 ms" not in found


@pytest.mark.parametrize(
    "said",
    [
        "No emojis in the commit messages.",
        "We explicitly don't want visual tests.",
        "Not claude in the cloud.",
        "Stop using print for logging.",
        "Can we not commit the docs?",
        "We use pnpm, not npm.",
    ],
)
def test_these_sentences_are_rules_and_no_requests(said: str) -> None:
    assert texts("rule", user(said), *WORK) == [said]


@pytest.mark.parametrize(
    "said", ["Avoid global state.", "I don't want you to push.", "Never push."]
)
def test_what_is_forbidden_without_any_tool_is_a_rule_too(said: str) -> None:
    assert (texts("rule", user(said)), texts("request", user(said))) == ([said], [])


@pytest.mark.parametrize(
    "said",
    [
        "But why do you think the logs shouldn't be overwritten?",
        "Can we add that we always warn before?",
    ],
)
def test_a_question_that_names_a_rule_is_none(said: str) -> None:
    assert texts("rule", user(said), *WORK) == []


def test_what_is_struck_through_is_not_said() -> None:
    assert texts("request", user("~~Please drop it~~\n\nPlease fix the parser."), *WORK) == [
        "Please fix the parser."
    ]


def test_a_command_that_the_person_ran_is_no_request() -> None:
    assert texts("request", user("<bash-input>git fetch --all</bash-input>"), *WORK) == []


@pytest.mark.parametrize(
    "refusal",
    [
        "The user doesn't want to proceed with this tool use. The tool use was rejected.",
        "Permission to use Bash has been denied.",
        "<tool_use_error>Sibling tool call errored</tool_use_error>",
    ],
)
def test_what_was_refused_did_not_run(refusal: str) -> None:
    assert texts("command", *ran("rm -rf build", refusal, failed=True)) == []


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("make test | tail -5", [("make test | tail -5", "")]),
        ("make test && make deploy", [("make test", "ok"), ("make deploy", "ok")]),
        ("make test; exit 0; git push", [("make test; exit 0; git push", "")]),
        ("test -f x && rm -rf y; make all", [("test -f x && rm -rf y; make all", "")]),
        ("make test || make clean", [("make test || make clean", "")]),
        ("set -e\nmake all\nmake check", [("make all", "")]),
    ],
)
def test_only_what_surely_ended_well_is_called_ok(
    command: str, found: list[tuple[str, str]]
) -> None:
    assert [(line.text, line.note) for line in lines("command", *ran(command))] == found


def test_which_steps_of_a_failed_line_ran_is_not_known() -> None:
    line = "make test && git push --force"
    assert texts("command", *ran(line, "boom", failed=True)) == [line]
