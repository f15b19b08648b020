"""Times that people type stand for all that they name, in the zone of whoever types them."""

from datetime import UTC, datetime

import pytest
import typer

from refold.infrastructure.cli.options import TO_SECONDS, format_time, read_at, read_time


@pytest.mark.parametrize(
    ("typed", "end"),
    [
        ("2026-03-10T05:44Z", "2026-03-10T05:44:59.999999"),
        ("2026-03-10 05:44+00:00", "2026-03-10T05:44:59.999999"),
        (" 2026-03-10T05:44+01:00 ", "2026-03-10T04:44:59.999999"),
        ("2026-03-10T05Z", "2026-03-10T05:59:59.999999"),
        ("2026-03-10T05:44:12Z", "2026-03-10T05:44:12.999999"),
        ("2026-03-10T05:44:12.250000Z", "2026-03-10T05:44:12.250000"),
        ("2026-03-10T05:44:12.250000-02:00", "2026-03-10T07:44:12.250000"),
        ("20260310T0544Z", "2026-03-10T05:44:59.999999"),
    ],
)
def test_a_time_to_look_at_is_the_end_of_what_it_names(typed: str, end: str) -> None:
    assert read_at(typed) == datetime.fromisoformat(end).replace(tzinfo=UTC)


def test_a_number_is_a_version() -> None:
    assert read_at(" 12 ") == 12


def test_a_day_lasts_until_its_end_and_a_time_without_a_zone_is_local() -> None:
    end = datetime(2026, 3, 10, 23, 59, 59, 999_999).astimezone(UTC)
    assert read_at("2026-03-10") == end
    begin = datetime(2026, 3, 10, 5, 44).astimezone(UTC)
    assert read_time("2026-03-10 05:44") == f"{begin:%Y-%m-%dT%H:%M:%S.%f}Z"


@pytest.mark.parametrize("typed", ["yesterday", "", "10:00", "2026-13-01", "0001-01-01x"])
def test_what_is_no_time_is_refused_with_an_example(typed: str) -> None:
    for read in (read_at, read_time):
        with pytest.raises(typer.BadParameter, match="2026-01-02T03:04:05Z"):
            read(typed)


def test_the_ends_of_the_calendar_are_times_or_refused() -> None:
    assert read_at("9999-12-31T23:59:59.999999Z") == datetime.max.replace(tzinfo=UTC)
    assert read_at("9999-12-31T23:59Z") == datetime(9999, 12, 31, 23, 59, tzinfo=UTC)


def test_what_is_shown_can_be_typed() -> None:
    at = "2026-03-10T05:44:12.250000Z"
    assert read_time(format_time(at)) <= at
    shown = read_at(format_time(at))
    assert isinstance(shown, datetime)
    assert shown >= datetime.fromisoformat(at)
    assert len(format_time(at, TO_SECONDS)) == TO_SECONDS
    assert format_time("", TO_SECONDS) == ""
