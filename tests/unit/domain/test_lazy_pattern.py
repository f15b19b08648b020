"""Patterns that are compiled when they are first used."""

import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from refold.domain.lazy_pattern import lazy_pattern

TEXT = "one Two three"


@pytest.mark.parametrize("flags", [0, re.IGNORECASE])
def test_its_methods_are_those_of_the_compiled_pattern(flags: int) -> None:
    lazy, compiled = (
        lazy_pattern(r"(?P<first>t)(\w+)", flags),
        re.compile(r"(?P<first>t)(\w+)", flags),
    )
    for method in ("search", "match", "fullmatch"):
        found, wanted = getattr(lazy, method)(TEXT), getattr(compiled, method)(TEXT)
        assert (found and found.span()) == (wanted and wanted.span())
    assert [m.span() for m in lazy.finditer(TEXT)] == [m.span() for m in compiled.finditer(TEXT)]
    assert lazy.findall(TEXT) == compiled.findall(TEXT)
    assert lazy.sub("x", TEXT) == compiled.sub("x", TEXT)
    assert lazy.subn("x", TEXT) == compiled.subn("x", TEXT)
    assert lazy.split(TEXT) == compiled.split(TEXT)
    assert (lazy.pattern, lazy.flags) == (compiled.pattern, compiled.flags)
    assert (lazy.groups, dict(lazy.groupindex)) == (compiled.groups, dict(compiled.groupindex))


def use(pattern: re.Pattern[str]) -> list[str]:
    return pattern.findall("aab")


def test_threads_may_use_it_first_at_once() -> None:
    for _ in range(200):
        lazy = lazy_pattern(r"(a+)+b?c*")
        with ThreadPoolExecutor(8) as threads:
            found = [*threads.map(use, [lazy] * 8)]
        assert found == [["aa"]] * 8


def test_a_wrong_source_is_refused_at_the_first_use() -> None:
    lazy = lazy_pattern("(")
    with pytest.raises(re.error):
        lazy.search("")


def test_opening_and_appending_compiles_few_patterns() -> None:
    """Counts, because times are judged by benchmarks."""
    code = """
import re, sys
count, compile = 0, re._compiler.compile
def counted(source, flags=0):
    global count
    frame = sys._getframe(2)
    while frame.f_code.co_filename.endswith("re/__init__.py"):
        frame = frame.f_back
    count += "lazy_pattern" in frame.f_code.co_filename or "/refold/" in frame.f_code.co_filename
    return compile(source, flags)
re._compiler.compile = counted
import refold
with refold.open(":memory:") as memory:
    memory.conversation("t").append({"role": "user", "content": "hello"})
print(count)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) <= MOST


MOST = 12
"""Patterns of refold that a program compiles that opens a log and appends a message. There are 340."""
