"""What the test runner prints: the tests found in the files, with the failures of the screenplay."""

import re
from random import Random


def run_tests(files: dict[str, str], rng: Random, options: list[str], script: str) -> str:
    """A run over the test files named in ``options``, or all; ``!fail name`` blocks fail."""
    wanted = [o.split("::")[0] for o in options if o.startswith("tests")]
    only = {o.split("::")[1] for o in options if "::" in o}
    found = [
        (path, name)
        for path in sorted(files)
        if path.startswith("tests/") and (not wanted or any(path.startswith(w) for w in wanted))
        for name in re.findall(r"^def (test_\w+)", files[path], re.MULTILINE)
        if not only or name in only
    ]
    failures = _failures(script)
    unknown = failures.keys() - {name for _, name in found}
    if unknown:
        raise ValueError(f"no such tests: {unknown}")
    verbose = "-v" in options
    shown = _verbose(found, failures) if verbose else _dots(found, failures)
    parts = [*_head(verbose, len(found)), *shown, *_traces(found, failures)]
    if any(o.startswith("--durations") for o in options):
        parts += _durations(rng, found)
    return "\n".join([*parts, _last(rng, len(found), len(failures), verbose)])


def _failures(script: str) -> dict[str, str]:
    blocks = re.split(r"^!fail ", script, flags=re.MULTILINE)[1:]
    return {name: text.strip("\n") for name, _, text in (b.partition("\n") for b in blocks)}


def _head(verbose: bool, count: int) -> list[str]:
    if not verbose:
        return []
    return [
        " test session starts ".center(88, "="),
        "platform linux -- Python 3.12.9, pytest-8.3.5, pluggy-1.5.0",
        "rootdir: /home/dev/teahouse",
        "configfile: pyproject.toml",
        f"collected {count} items",
        "",
    ]


def _verbose(found: list[tuple[str, str]], failures: dict[str, str]) -> list[str]:
    lines = list[str]()
    for n, (path, name) in enumerate(found, 1):
        verdict = "FAILED" if name in failures else "PASSED"
        lines.append(f"{path}::{name} {verdict}".ljust(81) + f"[{n * 100 // len(found):>3}%]")
    return [*lines, ""]


def _dots(found: list[tuple[str, str]], failures: dict[str, str]) -> list[str]:
    marks = "".join("F" if name in failures else "." for _, name in found)
    lines = list[str]()
    width = 72
    for start in range(0, len(marks), width):
        done = min(start + width, len(marks)) * 100 // len(marks)
        lines.append(marks[start : start + width].ljust(width) + f" [{done:>3}%]")
    return lines


def _traces(found: list[tuple[str, str]], failures: dict[str, str]) -> list[str]:
    if not failures:
        return []
    lines, summary = [" FAILURES ".center(88, "=")], [" short test summary info ".center(88, "=")]
    for path, name in found:
        if name in failures:
            lines += [f" {name} ".center(88, "_"), "", failures[name], ""]
            reason = re.findall(r"^E +(.*)", failures[name], re.MULTILINE)
            summary.append(f"FAILED {path}::{name}" + (f" - {reason[0]}" if reason else ""))
    return lines + summary


def _durations(rng: Random, found: list[tuple[str, str]]) -> list[str]:
    slow = sorted((rng.uniform(0.02, 0.4) for _ in range(5)), reverse=True)
    tests = rng.sample(found, min(5, len(found)))
    rows = [f"{s:.2f}s call     {p}::{n}" for s, (p, n) in zip(slow, tests, strict=False)]
    return [" slowest 5 durations ".center(88, "="), *rows]


def _last(rng: Random, total: int, failed: int, verbose: bool) -> str:
    seconds = 0.2 + total * rng.uniform(0.018, 0.034)
    passed = f"{total - failed} passed" if total > failed else ""
    text = ", ".join(t for t in (f"{failed} failed" if failed else "", passed) if t)
    text = f"{text} in {seconds:.2f}s"
    return f" {text} ".center(88, "=") if verbose else text
