"""The facts that a text does not have, and their order."""

from refold.application.inspection.missing_facts import find_missing
from refold.application.lab.scan_facts import KeptText
from refold.domain.facts.fact import Fact


def test_values_of_several_messages_come_before_one_that_a_person_named_once() -> None:
    facts = [
        Fact("path", "a/once.c", 0, "person"),
        Fact("path", "a/twice.c", 1, "result"),
        Fact("path", "a/twice.c", 2, "result"),
        Fact("rule", "Never touch the parser again.", 3, "person"),
        Fact("id", "KEPT_NAME", 4, "person"),
    ]
    found = find_missing(facts, KeptText("It has KEPT_NAME."), {"a/once.c"})
    assert [(fact.text, fact.uses, fact.is_kept_unseen) for fact in found.facts] == [
        ("Never touch the parser again.", 1, False),
        ("a/twice.c", 2, False),
        ("a/once.c", 1, True),
    ]
    assert (dict(found.counts), found.examined) == ({"path": 2, "rule": 1}, 4)
