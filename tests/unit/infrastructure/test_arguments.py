"""Suggested commands do what they say, also for ids and words that look like options."""

import shlex

import pytest

from refold.infrastructure.cli.arguments import next_command


@pytest.mark.parametrize(
    ("words", "suggested"),
    [
        (("show", "t/3", "--full"), "refold show t/3 --full --db a.db"),
        (("show", "-x/3", "--full"), "refold show --full --db a.db -- -x/3"),
        (("read", "refold://it's/6"), """refold read 'refold://it'"'"'s/6' --db a.db"""),
        (("recall", "t", "--force"), "refold recall --db a.db -- t --force"),
        (("diff", "--db", 3, 9, "--full"), "refold diff --full --db a.db -- --db 3 9"),
        (("query", "t", "--text", "--force"), "refold query t --text --force --db a.db"),
        (("inspect", "--bundle", "DIR"), "refold inspect --bundle DIR --db a.db"),
    ],
)
def test_a_suggested_command_can_be_typed(words: tuple[object, ...], suggested: str) -> None:
    assert next_command(*words, db="a.db") == suggested
    assert set(map(str, words)) <= set(shlex.split(suggested))
