"""All fault tools, one after another or two at a time.

python -m tests.faults              a short run of each, always the same cases
python -m tests.faults --minutes N  a long run of N minutes, with new cases each time (--long: 60 minutes)
python -m tests.faults --only NAME  only tools with this in their name
"""

import argparse
import random
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

from .registry import TOOLS, Tool
from .striking import ROOT, missing

AT_ONCE = 2
"""Tools that run at a time: most of them wait for disks and for each other's processes."""
GRACE = 900
"""Seconds after its share of the time in which a tool must have ended."""


class Ran(NamedTuple):
    """A tool that ran."""

    tool: Tool
    command: str
    found: bool
    seconds: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--long", action="store_true", help="a long run of 60 minutes")
    parser.add_argument("--minutes", type=float, default=0.0, help="a long run of so many minutes")
    parser.add_argument("--seed", type=int, help="draws the cases of a long run; else a new one")
    parser.add_argument("--only", default="", help="only tools with this in their name")
    parser.add_argument("--list", action="store_true", help="name the tools and what they aim at")
    options = parser.parse_args()
    minutes = options.minutes or (60.0 if options.long else 0.0)
    tools = [t for t in TOOLS if options.only in t.name and (minutes or t.short)]
    if options.list:
        print(*(f"{t.name:12} {t.aim}" for t in tools), sep="\n")
        return
    if any(t.strace for t in tools) and (reason := missing()):
        sys.exit(reason)
    seed = random.randrange(1_000_000) if options.seed is None else options.seed
    sys.exit(run(tools, minutes, seed))


def run(tools: Sequence[Tool], minutes: float, seed: int) -> bool:
    """Run the tools and print what they say; whether anything was found."""
    share = AT_ONCE * minutes * 60 / len(tools)
    with ThreadPoolExecutor(AT_ONCE) as several:
        ran = list(several.map(partial(run_one, share=share, seed=seed), tools))
    print("\ntool          seconds  found something")
    for one in ran:
        print(
            f"{one.tool.name:12} {one.seconds:8.0f}  {'YES: ' + one.command if one.found else 'no'}"
        )
    return any(one.found for one in ran)


def run_one(tool: Tool, share: float, seed: int) -> Ran:
    """Run a tool in a process of its own, and show its output when it has ended."""
    words = (tool.long.format(seconds=int(share), seed=seed) if share else tool.short).split()
    command = [sys.executable, "-m", tool.module, *words]
    began = time.monotonic()
    try:
        ended = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=share + GRACE
        )
        status, said = ended.returncode, ended.stdout + ended.stderr
    except subprocess.TimeoutExpired as late:
        status, said = 1, f"{tool.name} does not end; {str(late.stdout or '')[-2000:]}"
    print(f"-- {tool.name}: {tool.aim}\n{said.strip()}", flush=True)
    return Ran(tool, shlex.join(["python", *command[1:]]), status != 0, time.monotonic() - began)


if __name__ == "__main__":
    main()
