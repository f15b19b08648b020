"""The recorder of a log on a server does what the library's own test cases ask of any recorder."""

from unittest import TestCase
from uuid import UUID, uuid4

import pytest
from eventsourcing.tests import persistence as cases

from refold.infrastructure.postgres.connections import Address, Store
from refold.infrastructure.postgres.event_rows import PostgresRecorder
from refold.infrastructure.postgres.schema import prepare_schema


class Databases(TestCase):
    """A database of its own for each case."""

    place: str

    @pytest.fixture(autouse=True)
    def _database(self, database: str) -> None:
        self.place = database

    def new_originator_id(self) -> UUID | str:
        return f"talk {uuid4()}"

    def create_recorder(self) -> PostgresRecorder:
        store = Store(Address.of(self.place, pool=16))
        self.addCleanup(store.close)
        prepare_schema(store, create=True)
        return PostgresRecorder(store)


class TestEvents(Databases, cases.ApplicationRecorderTestCase[PostgresRecorder]):
    pass
