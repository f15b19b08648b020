"""The cache report of any conversation: shares are shares, and the totals are those of its requests."""

from hypothesis import given
from hypothesis import strategies as st

from refold.application.inspection.cache_report import cache_report
from tests.support.fake_ports import MemoryLog, core_of
from tests.support.planned_histories import Story, stories


@given(stories(), st.data())
def test_the_totals_add_up(story: Story, data: st.DataObject) -> None:
    log = MemoryLog()
    log.streams["t"] = story.events
    version = data.draw(st.integers(0, len(story.events)))
    report = cache_report(core_of(log), "t", version)
    requests = report.newest_requests
    for one in requests:
        assert min(one.tokens, one.kept, one.new, one.written_again) >= 0
        assert one.kept + one.new + one.written_again == one.tokens
    assert 0 <= report.kept_share <= 1
    assert report.kept + report.new + report.written_again == report.tokens
    assert report.breaks == sum(one.count for one in report.totals)
    assert report.written_again == sum(one.written_again for one in report.totals)
    if len(requests) == report.requests:
        assert report.tokens == sum(one.tokens for one in requests)
        assert report.kept == sum(one.kept for one in requests)
    assert sum(one.replies for one in report.use) == report.requests
    assert sum(one.sent for one in report.use) == report.tokens


@given(stories())
def test_the_last_request_has_the_size_of_the_state_before_it(story: Story) -> None:
    log = MemoryLog()
    log.streams["t"] = story.events
    requests = cache_report(core_of(log), "t").newest_requests
    for one in requests:
        assert one.tokens == log.load("t", at=one.version).state.tokens
