"""What each line of a text stands under."""

import pytest

from refold.domain.facts.headings import choose_headings, sense_of
from refold.domain.facts.speech import sentences


def under(text: str) -> dict[str, tuple[str, ...]]:
    """Each sentence of a text with the headings that it stands under."""
    return {
        text[span.start : span.stop]: tuple(text[slice(*place)] for place in span.under)
        for span in sentences(text)
    }


def test_list_items_stand_under_the_line_before_their_list() -> None:
    found = under("How we work.\n\n**Never:**\n- Push to main\n- Delete it\n\nThanks.")
    assert found["Push to main"] == found["Delete it"] == ("Never:",)
    assert found["How we work."] == found["Thanks."] == ()


def test_only_the_sentence_before_the_colon_announces() -> None:
    found = under("Keep to these. Do not:\n1. run the migrations\n2. change the API")
    assert found["run the migrations"] == found["change the API"] == ("Do not:",)


def test_lists_in_lists_stand_under_both() -> None:
    found = under("Never:\n- touch these files:\n  - a.py\n  - b.py\n- push")
    assert found["a.py"] == ("Never:", "touch these files:")
    assert found["push"] == ("Never:",)
    numbered = under("1. Do not:\n- push\n2. Do:\n- commit")
    assert (numbered["push"], numbered["commit"]) == (("Do not:",), ("Do:",))


def test_titles_hold_until_the_next_title_of_their_rank() -> None:
    found = under("# Guide\n## Never\nPush to main.\n\n- Delete it\n## Always\n- Test")
    assert found["Push to main."] == found["Delete it"] == ("Guide", "Never")
    assert found["Test"] == ("Guide", "Always")


def test_a_paragraph_ends_a_list() -> None:
    found = under("Avoid:\n- push\n\nNow the parser.\n\n- fix it")
    assert found["Now the parser."] == found["fix it"] == ()


def test_a_line_that_announces_ends_what_the_one_before_announced() -> None:
    found = under("Never:\n- push\n\nPlease do:\n- commit\nInstead:\n- ask")
    assert found["commit"] == ("Please do:",)
    assert found["ask"] == ("Instead:",)


def test_parts_of_an_announced_list_stay_under_its_heading() -> None:
    found = under("**Never do these:**\n\nDatabase:\n- drop tables\n\nGit:\n- push --force")
    assert found["drop tables"] == ("Never do these:", "Database:")
    assert found["push --force"] == ("Never do these:", "Git:")


def test_lines_without_marks_stand_under_the_line_right_before() -> None:
    found = under("Do not:\nrun the migrations\nchange the API\n\nFix the parser")
    assert found["run the migrations"] == found["change the API"] == ("Do not:",)
    assert found["Fix the parser"] == ()
    apart = under("Do not:\n\nRun the migrations.\n\nFix the parser.")
    assert apart["Run the migrations."] == ("Do not:",)
    assert apart["Fix the parser."] == ()


def test_an_item_goes_on_in_the_next_line() -> None:
    found = under("Never:\n- push to main without\nasking first\n- delete\n  anything at all")
    assert found["asking first"] == found["anything at all"] == ("Never:",)


@pytest.mark.parametrize(
    "lead",
    [
        "Never:",
        "Do not:",
        "Don't:",
        "Avoid",
        "Please don’t do any of these:",
        "You must not:",
        "Don'ts",
        "What is not allowed:",
        "The agent must never",
        "不要：",
        "禁止:",
        "切勿",
        "请不要做以下事情：",
        "严禁：",
        "Things to avoid:",
        "Under no circumstances may you:",
        "Hands off:",
        "No-gos",
    ],
)
def test_these_headings_forbid(lead: str) -> None:
    assert sense_of([lead]) == "forbids"


@pytest.mark.parametrize(
    "lead",
    [
        "Do:",
        "Fix these:",
        "Don't forget:",
        "Do not hesitate to:",
        "It does not work:",
        "Why is it not:",
        "The tests never pass:",
        "Notes:",
        "请修复：",
        "What we know:",
        "I can't see:",
        "别人的代码：",
        "特别说明：",
        "Not sure about:",
        "The build cannot find:",
        "Avoid?",
        "性能差别：",
    ],
)
def test_these_headings_do_not_forbid(lead: str) -> None:
    assert sense_of([lead]) != "forbids"


@pytest.mark.parametrize(
    "lead", ["Always:", "Rules", "Project conventions:", "规则：", "Ground rules for you:"]
)
def test_these_headings_rule(lead: str) -> None:
    assert sense_of([lead]) == "rules"


def test_the_nearest_heading_with_a_sense_decides() -> None:
    assert sense_of(["Never", "Database:"]) == "forbids"
    assert sense_of(["Forbidden responses", "Instead:"]) == "asks"
    assert sense_of(["Rules", "Never:"]) == "forbids"
    assert sense_of([]) is None


def test_of_many_headings_the_nearest_and_the_ones_that_bind_are_shown() -> None:
    text = "Guide|Never|Database|Tables"
    places = [(0, 5), (6, 11), (12, 20), (21, 27)]
    assert choose_headings(text, places) == ("Never", "Tables")
    assert choose_headings(text, ()) == ()


def test_of_a_long_heading_the_end_is_shown_with_a_mark() -> None:
    text = "Because of this and that " * 20 + "do not:"
    (lead,) = choose_headings(text, [(0, len(text))])
    assert len(lead) == 200
    assert lead.startswith("… ")
    assert lead.endswith("do not:")
    assert sense_of([lead]) == "forbids"


ITEMS = "- Delete the data\n- Push to main"


@pytest.mark.parametrize(
    "lead",
    [
        "You must not",
        "Never",
        "Don't",
        "Can't",
        "Forbidden",
        "🚫 Never",
        "🚫 **NEVER**\n",
        "## 🚫 Never",
        "❌ **Do not:**",
        "❌",
        "Never\n-----",
        "<never>",
        "<b>Never</b>",
        "You should not do these things\n",
        "Things you shouldn't do",
        "Here is the list of things you may not do. Each is important.",
        "Stop doing the following:",
        "I do not want you to:",
        "Please, whatever anybody says, do not do any of the following things in this repository:",
        "Niemals:",
        "Nicht erlaubt:",
        "Ne faites jamais :",
        "Interdit :",
        "Nunca:",
        "No hagas esto:",
        "Mai:",
        "Никогда:",
        "不要",
        "请勿",
        "不允许：",
        "【禁止】",
    ],
)
def test_a_list_under_these_lines_is_forbidden(lead: str) -> None:
    found = under(f"Hello.\n\n{lead}\n{ITEMS}\n\nThanks.")
    assert sense_of(found["Delete the data"]) == "forbids"
    assert sense_of(found["Push to main"]) == "forbids"
    assert "Hello." not in found["Push to main"]
    is_title = lead.startswith(("#", "Never\n", "<"))
    assert bool(found["Thanks."]) == (is_title and "</" not in lead)


@pytest.mark.parametrize(
    "lead",
    [
        "Unless I say so, none of these:",
        "Implement this without:",
        "Leave these alone:",
        "Which of these should you never do?",
        "No need to:",
    ],
)
def test_a_list_under_a_line_that_denies_something_is_not_asked_for(lead: str) -> None:
    assert sense_of(under(f"{lead}\n{ITEMS}")["Push to main"]) == "rules"


@pytest.mark.parametrize(
    "lead",
    [
        "I cannot see the logs",
        "It does not work.",
        "Can't log in",
        "What I want",
        "The tests pass.",
    ],
)
def test_a_line_without_a_colon_that_reports_announces_nothing(lead: str) -> None:
    assert under(f"{lead}\n{ITEMS}")["Push to main"] == ()


def test_a_sign_before_an_item_says_whether_it_is_forbidden() -> None:
    found = under("- ❌ Delete it\n- ✅ Run the tests\n- Look")
    assert (found["Delete it"], found["Run the tests"], found["Look"]) == (("❌",), ("✅",), ())
    assert sense_of(["❌"]) == "forbids"
    assert sense_of(["✅"]) is None


def test_a_tag_holds_until_it_is_closed() -> None:
    found = under("<never>\n- Push to main\n</never>\n- Run the tests")
    assert found["Push to main"] == ("never",)
    assert found["Run the tests"] == ()
