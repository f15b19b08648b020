"""How entries of the index are merged from one compaction to the next."""

from refold.domain.ledger import IndexEntry
from refold.domain.ledger.index import merge_entries

PATH = IndexEntry("path", "src/a.py", 3, 2, 1, 3, "call")


def test_uses_add_up_and_the_strongest_source_stays() -> None:
    later = IndexEntry("path", "src/a.py", 9, 1, 0, -1, "model", edited=True)
    assert merge_entries([PATH], [later]) == (
        IndexEntry("path", "src/a.py", 9, 3, 1, 3, "model", edited=True),
    )


def test_the_same_text_of_another_kind_is_another_entry() -> None:
    assert len(merge_entries([PATH], [PATH._replace(kind="file")])) == 2


def test_of_where_the_work_stood_only_the_newest_is_kept() -> None:
    decisions = [IndexEntry("decision", f"because {n}", n, by="model") for n in range(5)]
    files = [IndexEntry("file", f"src/{n}.py", n, by="call") for n in range(5)]
    merged = merge_entries([*decisions[:3], *files[:3]], [*decisions[3:], *files[3:]])
    assert {e.text for e in merged} == {"because 3", "because 4", "src/4.py"}
