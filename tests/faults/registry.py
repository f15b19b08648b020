"""The tools of this folder: to add one, add its line.

A tool is a program, ``python -m MODULE OPTIONS``: it ends with 0 where it finds nothing, with 1 where it finds
something, and prints what replays each find. Whatever it takes to find things stays in its module.
"""

from typing import NamedTuple


class Tool(NamedTuple):
    """A tool, how much of it is run for every change, and how much in a long run."""

    name: str
    aim: str
    module: str
    short: str
    """Its options for every change: always the same cases, together within five minutes."""
    long: str
    """Its options in a long run; ``{seconds}`` is its share of the time and ``{seed}`` a new number."""
    strace: bool = False
    """Whether it needs ``strace``."""


TOOLS = (
    Tool(
        "file table",
        "one fault in a zone of a file, one command, one more command",
        "tests.faults.file_table",
        "--rounds 40 --seed 11",
        "--rounds 1000000 --seconds {seconds} --seed {seed}",
    ),
    Tool(
        "schedules",
        "fork, exec, close and exit of processes at every point",
        "tests.faults.schedules",
        "--rounds 40 --seed 11",
        "--rounds 1000000 --seconds {seconds} --seed {seed}",
    ),
    Tool(
        "forked_lives",
        "fork, close and end of processes at work, in every way of forking",
        "tests.faults.forked_lives",
        "--rounds 2 --seed 5",
        "--rounds 1000000 --seconds {seconds} --seed {seed}",
    ),
    Tool(
        "interleavings",
        "threads of one process that append, compact, erase and close, one at a time in every order",
        "tests.faults.interleavings",
        "--rounds 68 --seed 11",
        "--rounds 1000000 --seconds {seconds} --seed {seed}",
    ),
    Tool(
        "answers",
        "contexts, lists and recall are what the events alone give",
        "tests.faults.answers",
        "--rounds 20 --seed 11",
        "--rounds 1000000 --seconds {seconds} --seed {seed} --every 1",
    ),
    Tool(
        "no memory",
        "MemoryError at the n-th allocation",
        "tests.faults.no_memory",
        "--rounds 40 --seed 11",
        "--rounds 1000000 --seconds {seconds} --seed {seed}",
    ),
    Tool(
        "storage",
        "losses of power, also while recovering from one, and disks that fail or lie, in one process",
        "tests.faults.storage",
        "--crashes 700 --seed 11",
        "--crashes 100000000 --seconds {seconds} --seed {seed}",
    ),
    Tool(
        "write ahead",
        "bits in the write-ahead log, and disks as a loss of power leaves them",
        "tests.faults.write_ahead",
        "--step 25 --messages 20 --images 120",
        "--images 10000 --seed {seed}",
        strace=True,
    ),
    Tool(
        "derived bits",
        "every bit of the files that are made from the log",
        "tests.faults.derived_bits",
        "--every 4999",
        "--every 97 --jobs 2",
    ),
    Tool(
        "odd cells",
        "values that cannot be, in every column of every table",
        "tests.faults.odd_cells",
        "--every 61",
        "--every 9",
    ),
    Tool(
        "writes",
        "no write goes outside of the folder, none carries text of an encrypted log",
        "tests.faults.outside_writes",
        "--short",
        "--megabytes 20",
        strace=True,
    ),
    Tool(
        "matrix",
        "kills and errors at every call that writes or syncs",
        "tests.faults.matrix",
        "",  # Its short form is test_matrix.py.
        "--every 4",
        strace=True,
    ),
)
