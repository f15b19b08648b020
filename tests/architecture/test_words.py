"""Docstrings, comments and names are in plain English: words and openings that strangers had to read twice are gone."""

import ast
import io
import re
import tokenize
from collections.abc import Callable, Iterator
from pathlib import PurePath

import pytest

from tests.architecture.rules import LAYERS, Module, modules_under

Rule = Callable[[Module], Iterator[str]]

FOLDERS = (*LAYERS, "src/refold")
WORDS = re.compile(
    r"\b([Aa]new|[Bb]eside|[Tt]old|[Ww]hatever|[Nn]obody|[Ss]omebody|is none|[Ss]tands? for|"
    r"(?:requirement|invariant) [A-Z]\d+)\b"
)
OPENINGS = re.compile(r"(What|Whose|Whom|Who|Whether it|Whatever|Of|See)\b")


def docstrings(module: Module) -> Iterator[tuple[int, str]]:
    """Yield docstrings of modules, classes, functions and attributes, with their lines."""
    for node in ast.walk(module.tree):
        if not isinstance(
            node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef | ast.If
        ):
            continue
        for child in node.body:
            value = child.value if isinstance(child, ast.Expr) else None
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                yield value.lineno, value.value


def comments(module: Module) -> Iterator[tuple[int, str]]:
    for token in tokenize.generate_tokens(io.StringIO(module.text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def odd_words(module: Module) -> Iterator[str]:
    for line, text in (*docstrings(module), *comments(module)):
        for found in WORDS.findall(text):
            yield f"{module.path}:{line}: {found!r}"


def odd_openings(module: Module) -> Iterator[str]:
    for line, text in docstrings(module):
        if found := OPENINGS.match(text.strip()):
            yield f"{module.path}:{line}: begins with {found[1]!r}: {text.strip().splitlines()[0]}"


def odd_names(module: Module) -> Iterator[str]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = node.name
        elif isinstance(node, ast.arg):
            name = node.arg
        else:
            continue
        if WORDS.search(name.replace("_", " ")):
            yield f"{module.path}:{node.lineno}: {name}"


@pytest.mark.parametrize("rule", [odd_words, odd_openings, odd_names])
def test_texts_of_the_code_are_plain(rule: Rule) -> None:
    faults = [fault for module in modules_under(*FOLDERS) for fault in rule(module)]
    if faults:
        pytest.fail(f"{len(faults)} places:\n" + "\n".join(faults), pytrace=False)


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (odd_words, '"""Written anew."""'),
        (odd_words, "x = 1  # nobody knows"),
        (odd_words, 'x = 1\n"""It stands for y (requirement D7)."""'),
        (odd_openings, 'def f():\n    """Whose it is."""'),
        (odd_openings, 'class A:\n    x = 1\n    """See B."""'),
        (odd_names, "def tell_nobody(): ..."),
        (odd_names, "class A:\n    def _told(self): ..."),
    ],
)
def test_an_odd_text_is_found(rule: Rule, text: str) -> None:
    assert list(rule(Module(PurePath("domain/a.py"), text)))
