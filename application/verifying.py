"""Use cases: verify that everything follows from the log, and rebuild what does not."""

from refold.domain.value import Value

from .core import Core
from .event_log import Damage


class DamageReport(Value, frozen=True):
    """One finding of a verification."""

    place: str
    thread_id: str
    version: int
    kind: str
    detail: str


class Verification(Value, frozen=True):
    """What a verification found."""

    ok: bool
    events: int
    """How many events of the log were read."""
    conversations: int
    damage: tuple[DamageReport, ...] = ()

    @property
    def log_damaged(self) -> bool:
        """Whether the log itself is damaged: replay cannot repair that."""
        return any(d.place == "log" for d in self.damage)


class Replayed(Value, frozen=True):
    """What a replay rebuilt."""

    events: int


def verify(core: Core) -> Verification:
    """Check every event of the log, then compare every read model with a fresh fold."""
    damage = list(core.log.check())
    events, threads = 0, set[str]()
    if not damage:
        for logged in core.log.scan():
            events += 1
            threads.add(logged.thread_id)
        damage.extend(core.views.check())
    return Verification(
        ok=not damage,
        events=events,
        conversations=len(threads),
        damage=tuple(_report(d) for d in damage),
    )


def replay(core: Core) -> Replayed:
    """Drop every read model and fold the log again. No model is called."""
    return Replayed(events=core.views.rebuild())


def _report(damage: Damage) -> DamageReport:
    return DamageReport(**damage._asdict())
