"""Chooses which tests run, and how hard Hypothesis searches.

``pytest`` leaves out the tests marked ``slow`` and draws by the profile ``dev``; ``pytest --all`` runs every test,
by the profile ``ci``. A test that is named with ``::`` runs in any case, and ``-m`` chooses by itself.
``HYPOTHESIS_PROFILE=dev`` (or ``ci``) overrides the profile. ``ci`` draws the same examples at every run, so
that a change is judged by what it changes (nearly: Hypothesis also takes constants from the modules
that its process has loaded by then); ``dev`` explores, and keeps finds in ``.hypothesis``.

The folders of ``tmp_path`` are in memory where there is room for them: tests of the stores wait for the disk
otherwise. With ``--all`` they are on the disk.
"""

import os
import shutil
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from refold.application.recall.tokens import stem_with
from refold.infrastructure.recall.stemmer import SNOWBALL

# What bootstrap does for a program: tests use parts of it by themselves.
stem_with(SNOWBALL)

MEMORY = Path("/dev/shm")
ENOUGH_MEMORY = 1 << 30

# No deadline and no "too slow": machines are shared, and a slow example is not a wrong one.
settings.register_profile(
    "dev", max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "ci", settings.get_profile("dev"), max_examples=300, derandomize=True, print_blob=True
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--all",
        action="store_true",
        dest="every_test",
        help="run the tests marked slow as well, and draw ten times as many examples",
    )


def pytest_configure(config: pytest.Config) -> None:
    keep_bytecode()
    if not config.getoption("every_test"):
        use_memory_for_files()
    # Before the tests are imported: some take their share of the profile then.
    usual = "ci" if config.getoption("every_test") else "dev"
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or usual)


def keep_bytecode() -> None:
    """Let this process, the workers and the programs of tests keep what they compile.

    Where an environment forbids it, every process of a run compiles all tests or the whole package again.
    """
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False


def use_memory_for_files() -> None:
    """Let pytest make its temporary folders in memory, unless somebody chose another place."""
    if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > ENOUGH_MEMORY:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", f"{MEMORY}")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    named = any("::" in argument for argument in config.args)
    if named or config.getoption("every_test") or config.getoption("markexpr"):
        return
    left_out = [item for item in items if is_slow(item)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not is_slow(item)]


def is_slow(item: pytest.Item) -> bool:
    """Whether it has the mark, and is not the case that ``slow(but=…)`` keeps for every run."""
    mark = item.get_closest_marker("slow")
    if mark is None:
        return False
    kept: str | list[str] = mark.kwargs.get("but", [])
    case = item.name.partition("[")[2].removesuffix("]")
    return case not in ([kept] if isinstance(kept, str) else kept)
