"""The generated log of a night on staging: leases at work, and the host's freeze at three o'clock."""

from datetime import datetime, timedelta, timezone
from random import Random

_ZONE = timezone(timedelta(hours=8))
_KINDS = ("points_award", "points_award", "refund_points", "export_statement", "brew_receipt")
_FREEZE_SECONDS = 58.4


def staging_log(rng: Random, _files: dict[str, str], numbers: list[str]) -> str:
    """About ``numbers[0]`` lines of two workers between 22:00 and 06:00."""
    now = datetime(2026, 3, 10, 22, 0, 3, tzinfo=_ZONE)
    freeze = datetime(2026, 3, 11, 3, 0, 4, tzinfo=_ZONE)
    step = 8 * 3600 / (int(numbers[0]) / 2.6)
    lines: list[tuple[datetime, str]] = []
    job, frozen = 310, False
    while now.hour >= 22 or now.hour < 6:
        job += 1
        if not frozen and now >= freeze:
            frozen = True
            lines += _freeze(freeze, job)
            job, now = job + 1, freeze + timedelta(seconds=110)
            continue
        lines += _run(rng, now, rng.choice(("s1", "s2")), job, rng.choice(_KINDS))
        now += timedelta(seconds=rng.expovariate(1 / step))
        if not frozen and now > freeze - timedelta(seconds=70):
            now = max(now, freeze)
    return "\n".join(_line(at, text) for at, text in sorted(lines)) + "\n"


def _run(rng: Random, at: datetime, worker: str, job: int, kind: str) -> list[tuple[datetime, str]]:
    name = f"worker={worker} job=J-{job:06d}"
    took = rng.uniform(16, 41) if kind == "export_statement" else rng.uniform(0.02, 0.7)
    found = [(at, f"INFO  {name} kind={kind} event=claimed")]
    found += [
        (at + timedelta(seconds=n), f"DEBUG {name} event=beat lease_s=45")
        for n in range(15, int(took), 15)
    ]
    done = f"INFO  {name} event=done took_ms={took * 1000:.0f}"
    if kind == "brew_receipt" and rng.random() < 0.3:
        done = f"ERROR {name} event=failed error=TimeoutError retry_in_s={rng.uniform(0, 2):.2f}"
    return [*found, (at + timedelta(seconds=took), done)]


def _freeze(freeze: datetime, job: int) -> list[tuple[datetime, str]]:
    back = freeze + timedelta(seconds=_FREEZE_SECONDS)
    found = list[tuple[datetime, str]]()
    for n, worker in enumerate(("s1", "s2")):
        name, other = f"worker={worker} job=J-{job + n:06d}", ("s2", "s1")[n]
        later = back + timedelta(seconds=0.1 + n * 0.02)
        found += [
            (
                freeze - timedelta(seconds=11 - n),
                f"INFO  {name} kind=export_statement event=claimed",
            ),
            (later, f"WARN  worker={other} event=reap jobs=1"),
            (later + timedelta(seconds=0.2), f"WARN  {name} event=lease_lost"),
            (back + timedelta(seconds=9 + n * 3), f"WARN  {name} event=not_counted"),
            (
                back + timedelta(seconds=9.4 + n * 3),
                f"INFO  worker={other} job=J-{job + n:06d} kind=export_statement event=claimed",
            ),
            (
                back + timedelta(seconds=35 + n * 4),
                f"INFO  worker={other} job=J-{job + n:06d} event=done took_ms={25_600 + n * 1_000}",
            ),
        ]
    return found


def _line(at: datetime, text: str) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S},{at.microsecond // 1000:03d} {text}"
