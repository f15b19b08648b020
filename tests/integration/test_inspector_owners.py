"""A reader with ``Access(owner=…)`` sees the conversations of that owner on every page, and nothing of others."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import refold
from refold.inspector import Access
from tests.support.inspected import (
    GUEST,
    MINE,
    OTHERS,
    addresses,
    client_of,
    fill_owners,
    open_quiet,
)

SHARED = ("/?", "/api/conversations?")
"""Addresses that are about no single conversation."""
QUESTIONS = ("one", "two three four", "label", f"{MINE}-elsewhere")


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[refold.Memory]:
    with open_quiet(tmp_path / "agent.db") as opened:
        fill_owners(opened)
        yield opened


@pytest.mark.parametrize("thread", ["theirs", "nobodys"])
def test_no_page_shows_anything_of_others(memory: refold.Memory, thread: str) -> None:
    client = client_of(memory, lambda _: Access(owner="me"))
    for question in QUESTIONS:
        for address in addresses(memory, thread, q=question, check=""):
            answer = client.get(address)
            assert OTHERS not in answer.text, address
            assert f"{MINE}-elsewhere two" not in answer.text, address
            if not address.startswith(SHARED):
                assert answer.status_code == 404, address
                assert client.get(address.replace(thread, "nowhere")).status_code == 404


def test_a_conversation_of_others_cannot_be_told_from_one_that_is_not_there(
    memory: refold.Memory,
) -> None:
    client = client_of(memory, lambda _: Access(owner="me"))
    for address in addresses(memory, "theirs"):
        if not address.startswith(SHARED):
            there, nowhere = (
                client.get(address.replace("theirs", name)) for name in ("theirs", "nowher")
            )
            assert there.status_code == nowhere.status_code
            assert there.text.replace("theirs", "nowher") == nowhere.text


def test_the_owner_reads_all_of_their_conversation_with_what_a_guest_said(
    memory: refold.Memory,
) -> None:
    client = client_of(memory, lambda _: Access(owner="me"))
    for address in addresses(memory, "mine", q="one", check=""):
        assert client.get(address).status_code == 200 or "/media" in address, address
    page = client.get("/conversation?id=mine").text
    assert f"{MINE} one" in page
    assert f"{GUEST} two" in page
    assert [row["id"] for row in client.get("/api/conversations").json()["conversations"]] == [
        "mine"
    ]
    assert f"{MINE} three" in client.get("/?q=three").text
    assert f"{GUEST} two" in client.get("/conversation?id=mine&panel=recall&q=two").text


def test_a_search_finds_nothing_in_conversations_that_the_reader_may_not_open(
    memory: refold.Memory,
) -> None:
    found = client_of(memory, lambda _: Access(owner="me")).get(f"/?q={MINE}-elsewhere").text
    assert "theirs" not in found
    assert "elsewhere two" not in found
    assert "theirs" in client_of(memory).get(f"/?q={MINE}-elsewhere").text


def test_what_an_owner_said_as_a_guest_does_not_hide_what_they_have(memory: refold.Memory) -> None:
    words = "The port of the wombat database is 5433, please remember this for the long term."
    memory.conversation("mine", owner="me").append({"role": "user", "content": words})
    room = memory.conversation("theirs", owner="other")
    for n in range(60):
        room.append({"role": "user", "content": f"wombat port? n{n}"}, owner="me")
        room.append({"role": "assistant", "content": "Yes."})
    mine = client_of(memory, lambda _: Access(owner="me")).get("/?q=wombat port").text
    for page in (mine, client_of(memory).get("/?q=wombat port&owner=me").text):
        assert "wombat database" in page.replace("<mark>", "").replace("</mark>", "")
        assert "theirs" not in page


def test_only_a_reader_of_everything_may_verify_the_log(memory: refold.Memory) -> None:
    address = "/conversation?id=mine&panel=health&check=1"
    assert client_of(memory, lambda _: Access(owner="me")).get(address).status_code == 404
    assert client_of(memory).get(address).status_code == 200


@pytest.mark.parametrize("owner", ["", " ", "nobody", "ME"])
def test_an_owner_who_has_nothing_sees_nothing(memory: refold.Memory, owner: str) -> None:
    client = client_of(memory, lambda _: Access(owner=owner))
    for thread in ("mine", "theirs", "nobodys"):
        for address in addresses(memory, thread, q="one", check=""):
            answer = client.get(address)
            assert not {MINE, OTHERS, GUEST} & set(answer.text.split()), address
            assert answer.status_code in (400, 404) or address.startswith(SHARED), address


def test_a_reader_of_everything_sees_all_owners(memory: refold.Memory) -> None:
    rows = client_of(memory).get("/api/conversations").json()["conversations"]
    assert {row["id"] for row in rows} == {"mine", "theirs", "nobodys"}
    assert OTHERS in client_of(memory).get("/?q=three").text
