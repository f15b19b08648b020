"""Generated texts: the worker's log with its double runs, load tests, rows of the ledger."""

import re
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from random import Random

from .staging import staging_log

Generator = Callable[[Random, dict[str, str], list[str]], str]

_ZONE = timezone(timedelta(hours=8))
_KINDS = ("points_award", "points_award", "refund_points", "export_statement", "brew_receipt")
# Points posted twice, in yuan: their sum (332.50) is a number that the conversation works with.
_TWICE = (38.50, 12.00, 25.80, 66.00, 18.00, 42.20, 30.00, 9.90, 15.60, 21.00, 53.50)
_RESETS = (6, 5, 6)
_NOISE = (
    "event=idle slept_s=1.0",
    "event=checkpoint wal_pages={n} mode=passive",
    "event=gc collected={n} gen=2 pause_ms={m}",
    "event=metrics ready={m} running=2 done_1m={n}",
)


class _Log:
    def __init__(self, rng: Random, start: datetime) -> None:
        self.rng = rng
        self.now = start
        self.lines: list[tuple[datetime, str]] = []
        self.job = 18_204

    def add(self, at: datetime, level: str, worker: str, text: str) -> None:
        pid = {"w1": 4121, "w2": 4188}[worker]
        stamp = at.isoformat(timespec="milliseconds")
        self.lines.append((at, f"{stamp} {level:<5} worker={worker} pid={pid} {text}"))

    def run(self, at: datetime, worker: str, job: int, kind: str, amount: float) -> datetime:
        rng, name = self.rng, f"job=J-{job:06d} kind={kind}"
        wait = int(rng.expovariate(1 / 340))
        self.add(at, "INFO", worker, f"{name} attempt=1 event=claimed wait_ms={wait}")
        took = rng.uniform(0.04, 0.9) if kind != "export_statement" else rng.uniform(4, 39)
        done = at + timedelta(seconds=took)
        if kind in ("points_award", "refund_points"):
            account = f"member:{rng.randrange(1000, 9800)}"
            between = at + timedelta(seconds=took * 0.7)
            text = f"{name} event=posted account={account} amount={amount:.2f} currency=CNY"
            self.add(between, "INFO", worker, text)
        self.add(done, "INFO", worker, f"{name} event=done took_ms={took * 1000:.0f}")
        return done

    def fail(self, at: datetime, worker: str, job: int) -> None:
        name = f"job=J-{job:06d} kind=brew_receipt"
        self.add(at, "INFO", worker, f"{name} attempt=1 event=claimed wait_ms=88")
        late = at + timedelta(seconds=2)
        reason = self.rng.choice(
            (
                "ConnectionRefusedError: [Errno 111] 127.0.0.1:9100",
                "TimeoutError: printer did not answer within 2.0 s",
                "ValueError: receipt template 'autumn-tea' has no field 'origin'",
            )
        )
        self.add(late, "ERROR", worker, f'{name} attempt=1 event=failed error="{reason}"')

    def restart(self, jobs: list[tuple[int, str, float]]) -> None:
        """w2 starts, takes back what w1 is still doing, and both finish it."""
        for job, kind, amount in jobs:
            self.run(self.now, "w1", job, kind, amount)
        again = self.now + timedelta(seconds=0.02)
        self.add(again, "WARN", "w2", "event=start version=0.8.2 reason=deploy")
        text = f"event=recover reset={len(jobs)} note=running_jobs_returned_to_ready"
        self.add(again + timedelta(seconds=0.011), "WARN", "w2", text)
        for n, (job, kind, amount) in enumerate(jobs):
            self.run(again + timedelta(seconds=0.03 + n * 0.017), "w2", job, kind, amount)


def worker_log(rng: Random, _files: dict[str, str], numbers: list[str]) -> str:
    """A day of two workers, about ``numbers[0]`` lines; three restarts run 17 jobs twice."""
    log = _Log(rng, datetime(2026, 3, 9, 9, 0, 2, tzinfo=_ZONE))
    count, amounts = int(numbers[0]), list(_TWICE)
    restarts = [count // 4, count // 2, count * 4 // 5]
    kinds = ["points_award"] * len(_TWICE) + ["export_statement"] * (sum(_RESETS) - len(_TWICE))
    rng.shuffle(kinds)
    while len(log.lines) < count:
        log.now += timedelta(seconds=rng.expovariate(1 / 95))
        log.job += rng.randrange(1, 4)
        worker = rng.choice(("w1", "w2"))
        if restarts and len(log.lines) >= restarts[0]:
            size = _RESETS[len(_RESETS) - len(restarts)]
            restarts.pop(0)
            log.restart([_victim(log.job + n, kinds, amounts) for n in range(size)])
            log.job += size
        elif rng.random() < 0.16:
            text = rng.choice(_NOISE).format(n=rng.randrange(3, 420), m=rng.randrange(1, 36))
            log.add(log.now, "DEBUG", worker, text)
        elif rng.random() < 0.06:
            log.fail(log.now, worker, log.job)
        else:
            log.run(log.now, worker, log.job, rng.choice(_KINDS), rng.randrange(20, 900) / 10)
    return "\n".join(line for _, line in sorted(log.lines)) + "\n"


def _victim(job: int, kinds: list[str], amounts: list[float]) -> tuple[int, str, float]:
    kind = kinds.pop()
    return job, kind, amounts.pop(0) if kind == "points_award" else 0.0


def duplicates(_rng: Random, files: dict[str, str], numbers: list[str]) -> str:
    """What the analysis script prints for a log file: the jobs that finished more than once."""
    text = files[numbers[0]]
    done = Counter(re.findall(r"job=(J-\d+) kind=(\w+) event=done", text))
    twice = [(job, kind) for (job, kind), n in done.items() if n > 1]
    rows, total = [f"{'job':<10} {'kind':<17} runs  posted_twice"], 0.0
    for job, kind in twice:
        posted = re.findall(rf"job={job} kind=\w+ event=posted .*amount=([\d.]+)", text)
        total += float(posted[0]) if posted else 0.0
        amount = posted[0] if posted else "-"
        rows.append(f"{job:<10} {kind:<17} {done[job, kind]:>4}  {amount:>12}")
    by_kind = Counter(kind for _, kind in twice)
    kinds = ", ".join(f"{kind} {n}" for kind, n in by_kind.most_common())
    rows += ["", f"{len(done)} jobs finished, {len(twice)} of them more than once ({kinds})"]
    return "\n".join([*rows, f"posted twice: {total:.2f} CNY"])


def load_log(rng: Random, _files: dict[str, str], numbers: list[str]) -> str:
    """Progress lines of a load run: seconds, rate around ``numbers[1]`` jobs a second."""
    seconds, rate = int(numbers[0]), float(numbers[1])
    lines, done, late = list[str](), 0, 1000 / rate
    for second in range(1, seconds + 1):
        now = rate * rng.uniform(0.93, 1.06) * (0.72 if second % 17 == 0 else 1)
        done += int(now)
        p50, p99 = late * rng.uniform(4.2, 5.2), late * rng.uniform(15, 18)
        wal = rng.randrange(90, 980)
        lines.append(
            f"[{second:>4}s] claimed={done:<8} rate={now:>7.1f}/s p50={p50:.2f}ms p99={p99:.2f}ms"
            f" busy_retries={rng.randrange(0, 3)} wal_pages={wal}"
        )
    return "\n".join(lines)


def ledger_rows(rng: Random, _files: dict[str, str], numbers: list[str]) -> str:
    """Rows of the old ledger table, amounts still REAL and some of them showing it."""
    lines = ["id     at                   debit            credit           amount"]
    number = 40_000
    for _ in range(int(numbers[0])):
        number += rng.randrange(1, 37)
        amount = rng.randrange(100, 9900) / 100
        shown = f"{amount:.2f}" if rng.random() < 0.8 else repr(amount + rng.choice((0.1, 0.7)) * 3)
        at = f"2026-0{rng.randrange(1, 3)}-{rng.randrange(1, 29):02d} {rng.randrange(9, 22):02d}:"
        at += f"{rng.randrange(60):02d}:{rng.randrange(60):02d}"
        member = f"member:{rng.randrange(1000, 9800)}"
        lines.append(f"{number:<6} {at}  {'house:points':<16} {member:<16} {shown}")
    return "\n".join(lines)


def requests(rng: Random, _files: dict[str, str], numbers: list[str]) -> str:
    """The access log of a smoke run against the HTTP interface."""
    lines = list[str]()
    for n in range(int(numbers[0])):
        path, status = rng.choice(
            (("POST /jobs", 201), ("POST /jobs", 200), ("GET /healthz", 200), ("GET /metrics", 200))
        )
        if rng.random() < 0.3:
            path, status = f"GET /jobs/J-{rng.randrange(18000, 19999):06d}", 200
        if rng.random() < 0.05:
            path, status = "POST /jobs", 422
        took = rng.expovariate(1 / 2.4) + 0.3
        second, milli = divmod(n * 37 + rng.randrange(30), 1000)
        lines.append(f"+{second:>3}.{milli:03d}s {status} {took:6.2f}ms {path}")
    return "\n".join(lines)


GENERATORS: dict[str, Generator] = {
    "worker_log": worker_log,
    "staging_log": staging_log,
    "duplicates": duplicates,
    "load_log": load_log,
    "ledger_rows": ledger_rows,
    "requests": requests,
}
