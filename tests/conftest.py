"""Chooses which tests run, and how hard Hypothesis searches.

``pytest`` leaves out the tests marked ``slow`` and draws by the profile ``dev``; ``pytest --all`` runs every test,
by the profile ``ci``. A test that is named with ``::`` runs in any case, those of ``tests/browser`` also when the
folder or a file of it is named, and ``-m`` chooses by itself.
``HYPOTHESIS_PROFILE=dev`` (or ``ci``, or ``sixth`` of that) overrides the profile. ``ci`` draws the same examples at
every run, so that a change is judged by what it changes (nearly: Hypothesis also takes constants from the modules
that its process has loaded by then); ``dev`` explores, and keeps finds in ``.hypothesis``.

``.ci/run`` runs both, one after the other, by the profile ``sixth``. What passed in the first is not repeated in the
second, unless that draws by another profile.

The folders of ``tmp_path`` are in memory where there is room for them: tests of the stores wait for the disk
otherwise. With ``--all`` they are on the disk, except in CI, whose disk may be slow.
"""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from refold.application.ports.stemmer import stem_with
from refold.infrastructure.recall.stemmer import SNOWBALL

# What bootstrap does for a program: tests use parts of it by themselves.
stem_with(SNOWBALL)

BROWSER = Path(__file__).parent / "browser"
MEMORY = Path("/dev/shm")
SHARED_SERVER = "REFOLD_X_POSTGRES_FOLDER"
"""Variable with the folder of the PostgreSQL server that all processes of a run share."""
PASSED = "REFOLD_X_PASSED"
"""Variable with a file that names tests. ``pytest`` adds those that passed, each after the number of examples of its
profile; ``pytest --all`` leaves them out if it draws as many."""
ENOUGH_MEMORY = 1 << 30

# No deadline and no "too slow": machines are shared, and a slow example is not a wrong one.
settings.register_profile(
    "dev", max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "ci", settings.get_profile("dev"), max_examples=300, derandomize=True, print_blob=True
)
settings.register_profile("sixth", settings.get_profile("ci"), max_examples=50)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--all",
        action="store_true",
        dest="every_test",
        help="run the tests marked slow as well, and draw ten times as many examples",
    )

    parser.addoption(
        "--store",
        choices=["files", "postgres"],
        default="files",
        help="where logs that a test opens by a path are",
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("store") == "postgres":
        from tests.support import on_postgres

        config.pluginmanager.register(on_postgres)
    keep_bytecode()
    if not config.getoption("every_test") or os.environ.get("CI"):
        use_memory_for_files()
    # Before the tests are imported: some take their share of the profile then.
    usual = "ci" if config.getoption("every_test") else "dev"
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or usual)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Reserve a folder for the server that all processes of this run share. The first test that needs it starts it."""
    if SHARED_SERVER not in os.environ:
        # The path of a socket must be short.
        folder = Path(tempfile.mkdtemp(prefix="pg", dir=MEMORY if MEMORY.is_dir() else None))
        os.environ[SHARED_SERVER] = str(folder)
        session.config.add_cleanup(lambda: remove_server(folder))


def remove_server(folder: Path) -> None:
    """Stop the shared server if it was started, and delete its folder."""
    if (folder / "started").exists():
        from tests.support.postgres import stop_shared_server

        stop_shared_server(folder)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def database() -> Iterator[str]:
    """The address of a new, empty database on the server that all tests share."""
    from tests.support.postgres import shared_server

    server = shared_server()
    place = server.new_database()
    yield place
    server.drop(place)


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
    if named or config.getoption("markexpr"):
        return
    every_test = config.getoption("every_test")
    places = [config.invocation_params.dir / argument for argument in config.args]
    in_browser = any(place.resolve().is_relative_to(BROWSER) for place in places)
    passed = passed_before() if every_test else frozenset[str]()
    left_out = [
        item
        for item in items
        if (item.nodeid in passed if every_test else is_slow(item))
        and not (in_browser and item.path.is_relative_to(BROWSER))
    ]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        out = set(left_out)
        items[:] = [item for item in items if item not in out]


def passed_before() -> frozenset[str]:
    """Return the names of the tests that passed earlier in the same run of ``.ci/run``, with as many examples."""
    place = os.environ.get(PASSED)
    if not place or not Path(place).is_file():
        return frozenset()
    begins = f"{settings().max_examples} "
    lines = Path(place).read_text("utf-8").splitlines()
    return frozenset(line.removeprefix(begins) for line in lines if line.startswith(begins))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Add the tests that passed to the file of those that need not be repeated."""
    place = os.environ.get(PASSED)
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if not place or session.config.getoption("every_test"):
        return
    if reporter is None or hasattr(session.config, "workerinput"):
        return  # The process that started the workers has the reports of all tests.
    passed = [report.nodeid for report in reporter.stats.get("passed", ()) if report.when == "call"]
    with Path(place).open("a", encoding="utf-8") as names:
        names.writelines(f"{settings().max_examples} {name}\n" for name in passed)


def is_slow(item: pytest.Item) -> bool:
    """Whether it has the mark, and is not the case that ``slow(but=…)`` keeps for every run."""
    mark = item.get_closest_marker("slow")
    if mark is None:
        return False
    kept: str | list[str] = mark.kwargs.get("but", [])
    case = item.name.partition("[")[2].removesuffix("]")
    return case not in ([kept] if isinstance(kept, str) else kept)
