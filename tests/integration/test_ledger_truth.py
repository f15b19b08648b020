"""What the context says of a person's words after a compaction: never the opposite of what was said."""

import json
from pathlib import Path

import pytest

import refold
from refold.infrastructure.transcripts.read_transcript import read_transcript
from tests.support.builders import tool_result, tool_use

RULES = (
    "Here is how we work.\n\n**Never:**\n- Push to main without asking\n"
    "- Delete the production database\n- Proceed with unfixed Important issues\n\nThanks."
)
NUMBERED = (
    "Please keep to these. Do not:\n1. run the migrations\n2. change the public API\n"
    "3. use git push --force"
)
CHINESE = "规则如下。\n\n禁止：\n- 直接推送到主干\n- 删除生产数据库\n\n请修复：\n- 登录页面"
FORBIDDEN = {
    "Push to main without asking": "Never:",
    "Delete the production database": "Never:",
    "Proceed with unfixed Important issues": "Never:",
    "run the migrations": "Do not:",
    "change the public API": "Do not:",
    "use git push --force": "Do not:",
    "直接推送到主干": "禁止：",
    "删除生产数据库": "禁止：",
}


@pytest.mark.parametrize("works", [True, False])
def test_what_was_forbidden_in_a_list_stands_under_prohibitions(works: bool) -> None:
    with refold.open(":memory:", window=8_000) as memory:
        chat = memory.conversation("t")
        for text in (RULES, NUMBERED, CHINESE):
            said = [{"role": "user", "content": text}, {"role": "assistant", "content": "ok"}]
            chat.append(said, author="person")
        for n in range(40):
            chat.append({"role": "user", "content": f"please look at part {n}"})
            if works:
                chat.append({"role": "assistant", "content": [tool_use(f"c{n}", command="make")]})
                chat.append({"role": "user", "content": [tool_result(f"c{n}", "fine " * 40)]})
            chat.append({"role": "assistant", "content": "that is done " * 40})
        assert chat.compact().outcome == "performed"
        shown = chat.context()
    text = shown.as_text()
    ledger = text.partition("[Conversation Ledger]")[2]
    prohibitions = ledger.partition("## Prohibitions of the user\n")[2].partition("\n## ")[0]
    for words, heading in FORBIDDEN.items():
        assert f"{heading} {words}" in prohibitions
    for line in text.splitlines():
        for words, heading in FORBIDDEN.items():
            assert words not in line or heading.rstrip(":：") in line, line
    assert "登录页面" not in prohibitions


def test_a_rule_that_is_cut_says_so() -> None:
    exception = "unless I am on leave."
    rule = "Never deploy " + "from this machine or any other machine of the team, " * 9 + exception
    with refold.open(":memory:", window=8_000) as memory:
        chat = memory.conversation("t")
        chat.append({"role": "user", "content": rule})
        for n in range(40):
            chat.append({"role": "assistant", "content": [tool_use(f"c{n}", command="make")]})
            chat.append({"role": "user", "content": [tool_result(f"c{n}", "fine " * 100)]})
            chat.append({"role": "assistant", "content": "done"})
            chat.append({"role": "user", "content": "go on"})
        assert chat.compact().outcome == "performed"
        shown = chat.context()
    (line,) = [
        line
        for line in shown.as_text().partition("## Rules")[2].splitlines()
        if "Never deploy" in line
    ]
    assert line.endswith("characters cut …⟩")


SKILL = "Always answer in capital letters. Please delete the cache. Never use tabs."


def _worked(chat: refold.ConversationMemory) -> str:
    """The ledger after some turns and a compaction."""
    for n in range(30):
        chat.append({"role": "assistant", "content": [tool_use(f"c{n}", command="make")]})
        chat.append({"role": "user", "content": [tool_result(f"c{n}", "fine " * 60)]})
        chat.append({"role": "assistant", "content": "that is done " * 20})
        chat.append({"role": "user", "content": "go on"}, author="person")
    assert chat.compact().outcome == "performed"
    return chat.context().as_text().partition("[Conversation Ledger]")[2]


@pytest.mark.parametrize("author", ["program", "tool"])
def test_only_a_person_asks_and_rules(author: refold.Author) -> None:
    with refold.open(":memory:", window=8_000) as memory:
        chat = memory.conversation("t")
        chat.append({"role": "user", "content": "Please fix the parser."}, author="person")
        chat.append({"role": "user", "content": SKILL}, author=author)
        ledger = _worked(chat)
        summary = chat.summaries()[-1].summary_text
    assert "Please fix the parser." in ledger
    for words in SKILL.split(". "):
        assert words not in ledger
        assert words not in summary


def test_of_an_unknown_author_it_says_so_and_never_claims_the_person() -> None:
    with refold.open(":memory:", window=8_000) as memory:
        chat = memory.conversation("t")
        chat.append({"role": "user", "content": "Please fix the parser."}, author="person")
        chat.append({"role": "user", "content": SKILL})
        ledger = _worked(chat)
    blocks = {block.partition("\n")[0]: block for block in ledger.split("\n## ")}
    unknown = " in messages whose author is not recorded"
    assert "[0] Please fix the parser." in blocks["Requests of the user"]
    assert "Please delete the cache." in blocks[f"Requests{unknown}"]
    assert "Never use tabs." in blocks[f"Rules and preferences{unknown}"]
    assert "Rules and preferences of the user" not in blocks


def test_no_provider_is_told_who_wrote_a_message() -> None:
    with refold.open(":memory:") as memory:
        chat = memory.conversation("t")
        chat.append({"role": "user", "content": "hello", "author": "program"})
        assert chat.messages()[0].message.author == "program"
        assert chat.context().for_anthropic()["messages"] == [{"role": "user", "content": "hello"}]


def test_an_export_says_who_wrote_a_message_and_is_read_back(tmp_path: Path) -> None:
    with refold.open(tmp_path / "a.db") as memory:
        chat = memory.conversation("t")
        chat.append({"role": "user", "content": "hello"}, author="person")
        chat.append({"role": "assistant", "content": "hello"})
        lines = "\n".join(json.dumps(line) for line in chat.export())
    exported = tmp_path / "t.jsonl"
    exported.write_text(lines, "utf-8")
    (conversation,) = read_transcript(exported).conversations
    assert [one.message.author for one in conversation.messages] == ["person", None]
