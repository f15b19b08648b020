"""The lock files that CI installs from fit what pyproject.toml asks for, and pin everything."""

import re
import tomllib
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.architecture.rules import ROOT

LOCK = ROOT / "requirements.lock"
LOWEST = ROOT / "requirements-lowest.lock"
AGAIN = "make the lock anew: see Requirements in CONTRIBUTING.md"
ADAPTERS = ("anthropic", "langchain", "openai-agents", "pydantic-ai", "google-adk")
"""Extras of adapters. Their frameworks may have to be newer than what the library itself needs."""
HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}")


def locked(lock: Path = LOCK) -> dict[str, list[Requirement]]:
    """The pinned packages; one may have several versions, for different platforms."""
    found: dict[str, list[Requirement]] = {}
    for entry in entries(lock):
        requirement = Requirement(entry.partition(" --hash")[0].strip())
        found.setdefault(canonicalize_name(requirement.name), []).append(requirement)
    return found


def entries(lock: Path) -> Iterator[str]:
    lines = lock.read_text("utf-8").replace("\\\n", " ").splitlines()
    return (line for line in lines if line and not line.startswith("#"))


def wanted(*, tools: bool = True) -> Iterator[Requirement]:
    """The direct requirements; ``tools``: also those of the checks and of building."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    extras = dict(project["project"]["optional-dependencies"])
    building = project["build-system"]["requires"]
    if not tools:
        del extras["dev"], extras["docs"], building[:]
        for name in ADAPTERS:
            del extras[name]
    direct = chain(project["project"]["dependencies"], *extras.values(), building)
    own = project["project"]["name"]
    return (r for r in map(Requirement, direct) if r.name != own)


def test_the_lock_has_every_requirement_in_a_version_that_fits() -> None:
    pinned = locked()
    for requirement in wanted():
        versions = pinned.get(canonicalize_name(requirement.name), [])
        assert versions, f"{requirement} is not in the lock: {AGAIN}"
        for version in versions:
            (exact,) = version.specifier
            assert exact.operator == "=="
            assert exact.version in requirement.specifier, f"{version} for {requirement}: {AGAIN}"


def test_the_lowest_versions_that_are_tested_are_those_that_are_promised() -> None:
    pinned = locked(LOWEST)
    for requirement in wanted(tools=False):
        (lowest,) = (
            each.version for each in requirement.specifier if each.operator in (">=", "~=", "==")
        )
        versions = [
            Version(next(iter(v.specifier)).version)
            for v in pinned[canonicalize_name(requirement.name)]
        ]
        assert min(versions) == Version(lowest), (
            f"{requirement}, and {min(versions)} is tested: {AGAIN}"
        )


@pytest.mark.parametrize("lock", [LOCK, LOWEST], ids=lambda lock: lock.name)
def test_every_file_that_is_installed_has_its_hash_and_nothing_says_from_where(lock: Path) -> None:
    for entry in entries(lock):
        assert HASH.search(entry), entry
        assert HASH.sub("", entry).count("--") == 0, entry
        assert "://" not in entry


def test_ci_installs_by_the_lock_and_runs_the_commands_of_the_readme() -> None:
    script = (ROOT / ".ci" / "run").read_text("utf-8")
    assert "--require-hashes" in script
    command = "python -m pip install -e '.[test]' && pytest"
    assert command in script
    assert command in (ROOT / "README.md").read_text("utf-8")
    assert re.search(r"^step .* \./check --all$", script, re.MULTILINE)
