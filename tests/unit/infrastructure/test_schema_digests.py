"""The digests that spare a program the making of tables are those of the tables that are made."""

from contextlib import closing

import pytest

from refold.infrastructure.projection_store.projection import (
    Content,
    begin,
    digest_of_schema,
    expected_schema,
    kind_of,
)
from refold.infrastructure.projection_store.read_models import VIEWS
from refold.infrastructure.projection_store.row_checksums import FoldDamaged
from refold.infrastructure.projection_store.tables import SQLiteTables
from refold.infrastructure.recall.recall_index import RECALL
from refold.infrastructure.sqlite.sqlite_connection import declared_in, open_sqlite

CONTENTS = [VIEWS, RECALL]


@pytest.mark.parametrize("content", CONTENTS, ids=lambda content: content.name)
def test_the_digests_are_those_of_new_files(content: Content) -> None:
    with closing(open_sqlite(":memory:", isolation_level=None)) as connection:
        begin(content, SQLiteTables(connection))
        made = {digest_of_schema(declared_in(connection))}
    made.add(digest_of_schema(expected_schema(content)))
    assert made == content.schemas


@pytest.mark.parametrize("content", CONTENTS, ids=lambda content: content.name)
def test_other_tables_are_refused_after_the_expected_ones_were_seen(content: Content) -> None:
    check = kind_of(content).check
    with closing(open_sqlite(":memory:", isolation_level=None)) as connection:
        begin(content, SQLiteTables(connection))
        check(connection)
        check(connection)
        connection.execute("CREATE TABLE other (name TEXT)")
        with pytest.raises(FoldDamaged, match="other"):
            check(connection)
