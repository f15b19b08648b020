"""The house rules of CONTRIBUTING.md hold in every module, and each rule can be broken."""

from collections.abc import Callable, Iterator
from pathlib import PurePath

import pytest

from tests.architecture import rules
from tests.architecture.rules import LAYERS, Module, modules_under

Rule = Callable[[Module], Iterator[str]]

EVERYWHERE: tuple[Rule, ...] = (
    rules.without_docstring,
    rules.too_long,
    rules.vaguely_named,
    rules.with_long_functions,
    rules.with_locked_properties,
)


def name_of(value: object) -> str:
    return getattr(value, "__name__", str(value))


def none_breaks(rule: Rule, *folders: str) -> None:
    if faults := [fault for module in modules_under(*folders) for fault in rule(module)]:
        pytest.fail("\n".join(faults), pytrace=False)


@pytest.mark.parametrize("rule", EVERYWHERE, ids=name_of)
def test_no_module_of_the_package_is(rule: Rule) -> None:
    none_breaks(rule, *LAYERS, "src/refold/adapters", "src/refold/testing")


def test_the_domain_reads_no_clock_and_draws_no_chance() -> None:
    none_breaks(rules.with_clock_or_chance, "domain")


def test_what_lines_in_plain_words_show_is_decided_in_one_place() -> None:
    none_breaks(rules.with_lines_of_their_own, "application", "infrastructure")


def test_the_palette_is_the_one_source_of_colours() -> None:
    none_breaks(rules.with_colours_of_their_own, "infrastructure/cli", "infrastructure/inspector")


def test_every_value_class_says_frozen() -> None:
    assert list(rules.values_not_frozen(modules_under(*LAYERS))) == []


def test_layers_are_imported_by_their_installed_names() -> None:
    folders = (*LAYERS, "src/refold", "tests", "examples", "benchmarks")
    none_breaks(rules.with_bare_layer_names, *folders)


def test_programs_that_measure_import_names_that_exist() -> None:
    """No type checker reads them, and they run seldom."""
    none_breaks(rules.with_imports_of_missing_names, "benchmarks", "examples")


def test_tests_use_fakes_written_by_hand() -> None:
    none_breaks(rules.with_mocks, "tests")


def test_the_layers_are_there_to_be_checked() -> None:
    assert all(any(modules_under(layer)) for layer in LAYERS)


@pytest.mark.parametrize(
    ("rule", "path", "text"),
    [
        (rules.without_docstring, "domain/a.py", "x = 1"),
        (rules.too_long, "domain/a.py", "x = 1\n" * 451),
        (rules.with_imports_of_missing_names, "a.py", "from refold.domain.value import Moved"),
        (rules.vaguely_named, "domain/text_utils.py", ""),
        (rules.vaguely_named, "application/common/a.py", ""),
        (rules.with_long_functions, "domain/a.py", "def f():\n" + "    x = 1\n" * 40),
        (rules.with_locked_properties, "domain/a.py", "from functools import cached_property"),
        (rules.with_clock_or_chance, "domain/a.py", "import time"),
        (rules.with_clock_or_chance, "domain/a.py", "def f():\n    import os.path"),
        (rules.with_clock_or_chance, "domain/a.py", "from uuid import uuid4"),
        (rules.with_clock_or_chance, "domain/a.py", "at = datetime.now(UTC)"),
        (rules.with_lines_of_their_own, "application/a.py", "x = logging.getLogger(__name__)"),
        (rules.with_lines_of_their_own, "application/a.py", "logger.exception('a')"),
        (rules.with_lines_of_their_own, "application/a.py", "logger.info('a', exc_info=True)"),
        (rules.with_colours_of_their_own, "infrastructure/cli/a.py", "say('[bold red]no[/]')"),
        (rules.with_colours_of_their_own, "infrastructure/cli/a.py", "x = f'a {{ color: #dDd }}'"),
        (rules.with_bare_layer_names, "tests/a.py", "from domain.events import X"),
        (rules.with_bare_layer_names, "tests/a.py", "import application"),
        (rules.with_mocks, "tests/a.py", "from unittest import mock"),
        (rules.with_mocks, "tests/a.py", "from unittest.mock import Mock"),
    ],
    ids=name_of,
)
def test_a_rule_tells_when_it_is_broken(rule: Rule, path: str, text: str) -> None:
    assert len(list(rule(Module(PurePath(path), text)))) == 1


@pytest.mark.parametrize(
    "text",
    [
        "class A(Value): pass",
        "class A(Value, frozen=False): pass",
        "class A(value.Value): pass",
        "class A(Value, frozen=True): pass\nclass B(A): pass",
        "class A(Value, Generic[T], frozen=True): pass\nclass B(A[int]): pass",
    ],
)
def test_a_value_class_that_does_not_say_frozen_is_told(text: str) -> None:
    assert len(list(rules.values_not_frozen([Module(PurePath("domain/a.py"), text)]))) == 1
