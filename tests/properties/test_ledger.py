"""What always holds of the ledger, whatever was said (invariant 14)."""

import json

from hypothesis import given
from hypothesis import strategies as st

from refold.application.rendering.render import HEADINGS, heading_text, ledger_line, ledger_text
from refold.domain.facts.reading import read_facts
from refold.domain.ledger import LedgerLine
from refold.domain.ledger.line import gather
from refold.domain.ledger.line_choice import MOST_HIDDEN, Costs, choose_lines, merge_ledger
from refold.domain.messages import Message, strings
from tests.support.builders import assistant, tool_result, user

WORDS = st.sampled_from(
    [
        *(
            "never",
            "please",
            "不要",
            "修改",
            "use",
            "src/app/main.py",
            "3.5 GB",
            "决定",
            "we decided",
            "由于",
        ),
        *(
            "https://a.example/x?y=1",
            "\n",
            "\r\n",
            "\u2028",
            "\x85",
            "\x1b[31m",
            "`make all`",
            "```",
            "。",
            ". ",
        ),
        *(
            "</modified-files>",
            "[Conversation Summary]",
            "## Pinned",
            "[12] ",
            "\ud800",
            "OPS-17",
            "<command-name>/fix</command-name> <command-args>it all</command-args>",
            "?",
            "e\u0301",
        ),
        *(
            "Error: boom",
            "🙂",
            "* ",
            "always",
            "later",
            "sk-a1b2c3d4e5f6g7h8i9",
            "cd x && pytest -q | tail -3",
            "\n\nNever:\n- ",
            "\n# Rules\n",
            "\n  1. do not: ",
            "sk-a1b2c3d4e5f6g7h8i9:\n* ",
        ),
    ]
)
TEXTS = st.lists(WORDS, min_size=1, max_size=12).map(" ".join) | st.text(max_size=60)


@st.composite
def messages(draw: st.DrawFn) -> list[Message]:
    """A few messages: words of user and model, and tool traffic with any texts in it."""
    made: list[Message] = []
    for n in range(draw(st.integers(1, 6))):
        if draw(st.booleans()):
            made.append(draw(st.sampled_from([user, assistant]))(draw(TEXTS)))
            continue
        name = draw(st.sampled_from(["Bash", "Read", "Edit", "Grep", "TodoWrite", "ask_user"]))
        field = draw(st.sampled_from(["command", "file_path", "patch", "question", "input"]))
        call = {"type": "tool_use", "id": f"c{n}", "name": name, "input": {field: draw(TEXTS)}}
        answer = tool_result(f"c{n}", draw(TEXTS), is_error=draw(st.booleans()))
        made += [assistant(call), user(answer)]
    return made


def length(line: LedgerLine) -> int:
    return len(ledger_line(line)) + 1


COSTS = Costs(length, lambda line: len(heading_text(line)))


@given(st.lists(messages(), min_size=1, max_size=5), st.integers(0, 2_000))
def test_every_line_stands_in_its_message_after_any_number_of_merges(
    parts: list[list[Message]], room: int
) -> None:
    said: list[Message] = []
    kept: tuple[LedgerLine, ...] = ()
    for part in parts:
        start = len(said)
        said += part
        fitted = choose_lines(
            merge_ledger(kept, gather(read_facts(enumerate(part, start)))), room, COSTS
        )
        assert fitted == choose_lines(
            merge_ledger(kept, gather(read_facts(enumerate(part, start)))), room, COSTS
        )
        kept = fitted.lines
        shown = kept[: fitted.shown]
        for line in kept:
            for words in (line.text, *(lead.removeprefix("… ") for lead in line.under)):
                assert any(words in text for text in strings(said[line.position])), line
                assert "sk-a1b2c3d4e5f6g7h8i9" not in words
            assert len(ledger_line(line).splitlines()) == 1
            json.dumps(line.model_dump(), ensure_ascii=False).encode("utf-8")
        assert len(ledger_text(shown, ())) <= room + len("[Conversation Ledger]")
        assert len(kept) - len(shown) <= sum(MOST_HIDDEN.values())
        assert len({(line.kind, line.text, line.under, line.author) for line in kept}) == len(kept)


@given(st.lists(messages(), min_size=1, max_size=10))
def test_merges_lose_nothing_that_there_is_room_for(parts: list[list[Message]]) -> None:
    position = 0
    kept: tuple[LedgerLine, ...] = ()
    known: set[str] = set()
    for part in parts:
        fresh = gather(read_facts(enumerate(part, position)))
        position += len(part)
        known |= {line.text for line in fresh.lines if line.kind != "failure"}
        fitted = choose_lines(merge_ledger(kept, fresh), 100_000, COSTS)
        kept = fitted.lines
        shown = ledger_text(kept[: fitted.shown], ())
        assert all(text in shown for text in known)


@given(messages(), st.integers(0, 3_000))
def test_no_text_passes_for_structure(said: list[Message], room: int) -> None:
    fitted = choose_lines(gather(read_facts(enumerate(said))).lines, room, COSTS)
    structure = {
        "[Conversation Ledger]",
        *(part for h in HEADINGS for part in (h.opening, *h.closing)),
    }
    for line in ledger_text(fitted.lines[: fitted.shown], ()).splitlines():
        assert line in structure or line.startswith(tuple(f"[{n}] " for n in range(len(said))))


FORBIDDING = st.sampled_from(
    [
        "Never:",
        "**Never:**",
        "## Never",
        "Do not:",
        "Keep to these. Do not:",
        "You must not",
        "Avoid:",
        "### Don'ts",
        "- Never:",
        "1. Do not:",
        "不要：",
        "禁止:",
        "**严禁**",
        "Please do not:",
        "What to avoid:",
    ]
)
ITEMS = st.sampled_from(
    [
        "delete the production database",
        "push to main",
        "Proceed with important unfixed issues",
        "use git push --force",
        "always answer at once",
        "we decided to drop the tables",
        "直接推送到主干",
        "can you restart it?",
        "请修改公共接口",
        "remember the password",
        "rename it. Then commit it.",
    ]
)


@given(
    st.sampled_from(["", "Here is how we work.\n\n", "# Guide\n\nFix the parser.\n- soon\n\n"]),
    FORBIDDING,
    st.sampled_from(["\n", "\n\n"]),
    st.sampled_from(["  - ", "  * ", "    1. ", "  • ", "  - [ ] "]),
    st.lists(ITEMS, min_size=1, max_size=4, unique=True),
    st.sampled_from(["", "\n\nThanks.", "\n\nPlease do:\n- fix the login"]),
    st.booleans(),
)
def test_what_stands_under_a_heading_that_forbids_is_forbidden(
    before: str, lead: str, gap: str, mark: str, items: list[str], behind: str, works: bool
) -> None:
    if not lead.endswith((":", "：", "**")) and not lead.startswith("#"):
        lead += ":"
    said = before + lead + gap + "\n".join(mark + item for item in items) + behind
    call = {"type": "tool_use", "id": "c", "name": "Bash", "input": {"command": "ls"}}
    work: list[Message] = [assistant(call)] if works else []
    found = gather(read_facts(enumerate([user(said), *work]))).lines
    for line in found:
        if any(line.text in item for item in items) and line.kind != "value":
            assert line.kind == "prohibition"
            assert line.under
    if "login" in behind:
        assert any(line.kind != "prohibition" for line in found if "login" in line.text)
