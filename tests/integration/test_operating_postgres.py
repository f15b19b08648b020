"""The page about servers: its roles and rights are enough, and a dumped log goes on where it ended."""

import re
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

import refold
from refold.infrastructure.postgres.connections import Address
from refold.infrastructure.postgres.schema import upgrade_schema
from tests.support.postgres import Server, private_server

PAGE = Path(__file__).parents[2] / "docs" / "postgres.md"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with private_server() as started:
        yield started


def run(place: str, statements: str) -> None:
    with psycopg.connect(place, autocommit=True) as connection:
        for statement in filter(str.strip, statements.split(";")):
            connection.execute(statement.encode())


def place(server: Server, role: str, database: str = "agents") -> str:
    return f"postgresql://{role}@/{database}?host={server.folder}"


@pytest.fixture(scope="module")
def roles(server: Server) -> Server:
    """A server on which the statements of the page were run."""
    section = PAGE.read_text("utf-8").partition("<!-- roles: begin -->")[2]
    first, second = re.findall(
        r"```sql\n(.*?)```", section.partition("<!-- roles: end -->")[0], re.DOTALL
    )
    run(server.place(), first)
    with pytest.raises(refold.LogNotWritable, match="check the role's rights"):
        refold.open(place(server, "agents_app"))
    upgrade_schema(Address.of(place(server, "agents_owner")))
    run(place(server, "agents_owner"), second)
    return server


def test_the_role_of_the_agents_may_do_all_that_agents_do(roles: Server) -> None:
    with refold.open(place(roles, "agents_app"), window=8_000) as memory:
        one = memory.conversation("one")
        with one.turn():
            one.append(
                [{"role": "user", "content": f"quokka {n}"} for n in range(3)], recorded=True
            )
        one.pin(1)
        one.fork(thread_id="two")
        report = one.erase(0)
        assert {p.place: p.state for p in report.places}["keys"] == "gone"
        assert one.recall("quokka").hits
        assert memory.stats().events
        assert memory.verify().ok


def test_without_maintain_an_erasure_stays_pending(roles: Server) -> None:
    run(
        place(roles, "agents_owner"),
        "REVOKE MAINTAIN ON ALL TABLES IN SCHEMA refold FROM agents_app",
    )
    with refold.open(place(roles, "agents_app")) as memory:
        memory.conversation("three").append({"role": "user", "content": "quokka"})
        report = memory.conversation("three").erase(0)
    assert {p.place: p.state for p in report.places}["keys"] == "pending"
    assert not report.complete
    with refold.open(place(roles, "agents_owner")) as memory:
        assert memory.verify().ok  # The owner finishes it at opening.
    with psycopg.connect(place(roles, "agents_owner")) as connection:
        left = connection.execute("SELECT count(*) FROM refold.pending_erasures").fetchone()
    assert left == (0,)


def test_a_dumped_log_goes_on(roles: Server) -> None:
    owned, restored = place(roles, "agents_owner"), place(roles, "agents_owner", "restored")
    with refold.open(owned) as memory:
        memory.conversation("dumped").append({"role": "user", "content": "before"})
    dump = roles.folder / "agents.dump"
    roles.run(
        "pg_dump", "--format=custom", "--schema=refold", f"--file={dump}", f"--dbname={owned}"
    )
    run(roles.place(), "CREATE DATABASE restored OWNER agents_owner")
    roles.run("pg_restore", "--exit-on-error", "--no-acl", f"--dbname={restored}", dump)
    with refold.open(owned) as memory, refold.open(restored) as copy:
        assert copy.verify().ok
        copy.conversation("dumped").append({"role": "user", "content": "after"})
        assert [m.message.content for m in copy.conversation("dumped").messages()] == [
            "before",
            "after",
        ]
        assert copy.stats().events == memory.stats().events + 1
        assert copy.verify().ok
    assert refold.copy_log(restored, owned).copied == 1
