"""The house rules that a machine can check: each takes a module and tells what breaks it."""

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path, PurePath

ROOT = Path(__file__).resolve().parents[2]
LAYERS = ("domain", "application", "infrastructure")

MOST_LINES = 450
MOST_LINES_OF_A_FUNCTION = 40
VAGUE = frozenset({"util", "utils", "helper", "helpers", "common", "base", "manager", "managers"})
IMPURE_MODULES = frozenset({"io", "os", "pathlib", "random", "secrets", "socket", "sys", "time"})
CLOCK_AND_CHANCE = frozenset({"now", "utcnow", "today", "uuid1", "uuid4"})


@dataclass(frozen=True)
class Module:
    """A source file, parsed; ``path`` is relative to the repository."""

    path: PurePath
    text: str

    @property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)


def modules_under(*folders: str) -> Iterator[Module]:
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield Module(path.relative_to(ROOT), path.read_text("utf-8"))


def without_docstring(module: Module) -> Iterator[str]:
    if not ast.get_docstring(module.tree):
        yield f"{module.path}: begin with one sentence on what the file is for"


def too_long(module: Module) -> Iterator[str]:
    if (lines := len(module.text.splitlines())) > MOST_LINES:
        yield f"{module.path}: {lines} lines, {MOST_LINES} at most: split it by concept"


def vaguely_named(module: Module) -> Iterator[str]:
    for part in module.path.with_suffix("").parts:
        if part.rpartition("_")[2] in VAGUE:
            yield f"{module.path}: {part!r} names no concept"


def with_long_functions(module: Module) -> Iterator[str]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1 - _docstring_lines(node)
            if lines > MOST_LINES_OF_A_FUNCTION:
                yield (
                    f"{module.path}:{node.lineno}: {node.name} has {lines} lines, "
                    f"{MOST_LINES_OF_A_FUNCTION} at most"
                )


def _docstring_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    if ast.get_docstring(node) is None:
        return 0
    first = node.body[0]
    return (first.end_lineno or first.lineno) - first.lineno + 1


def imported_names(module: Module) -> Iterator[tuple[int, str, str]]:
    """Each import as line, module and, of ``from x import y``, the name."""
    for node in ast.walk(module.tree):
        match node:
            case ast.Import(names=names):
                yield from ((node.lineno, alias.name, "") for alias in names)
            case ast.ImportFrom(module=str(source), names=names, level=0):
                yield from ((node.lineno, source, alias.name) for alias in names)
            case _:
                pass


def with_clock_or_chance(module: Module) -> Iterator[str]:
    for line, source, name in imported_names(module):
        if source.partition(".")[0] in IMPURE_MODULES or name in CLOCK_AND_CHANCE:
            yield f"{module.path}:{line}: imports {source} {name}: pass it in as an argument"
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Attribute) and node.attr in CLOCK_AND_CHANCE:
            yield f"{module.path}:{node.lineno}: uses .{node.attr}: pass it in as an argument"


def with_locked_properties(module: Module) -> Iterator[str]:
    """In Python 3.11 ``cached_property`` holds a lock, which a forked process may inherit."""
    for line, source, name in imported_names(module):
        if (source, name) == ("functools", "cached_property"):
            yield f"{module.path}:{line}: use lazy_property"


def with_lines_of_their_own(module: Module) -> Iterator[str]:
    """What a line in plain words shows is decided in one place: see application/runtime/plain_lines.py."""
    if module.path.stem == "plain_lines":
        return
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        called = ast.unparse(node.func)
        if called == "logging.getLogger" and ast.unparse(node.args[0]) == "__name__":
            yield f"{module.path}:{node.lineno}: use plain_logger(__name__)"
        if called == "logger.exception" or any(word.arg == "exc_info" for word in node.keywords):
            yield f"{module.path}:{node.lineno}: log raised(error), a traceback shows its words"


COLOURS = re.compile(
    r"#[0-9a-f]{3,8}\b|\b(?:bright_)?(?:black|red|green|yellow|blue|magenta|cyan|white(?!-space)|gr[ae]y\d*)\b",
    re.IGNORECASE,
)


def with_colours_of_their_own(module: Module) -> Iterator[str]:
    """A colour means the same in the terminal, the charts and the pages: infrastructure/palette.py says what."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            for found in COLOURS.finditer(node.value):
                yield f"{module.path}:{node.lineno}: {found[0]!r}: take it from the palette"


def with_bare_layer_names(module: Module) -> Iterator[str]:
    """``domain`` is importable from the repository's root only: once installed it does not exist."""
    for line, source, _ in imported_names(module):
        if source.partition(".")[0] in LAYERS:
            yield f"{module.path}:{line}: import refold.{source}"


def with_imports_of_missing_names(module: Module) -> Iterator[str]:
    for line, source, name in imported_names(module):
        if source.partition(".")[0] == "refold" and name and not _exists(source, name):
            yield f"{module.path}:{line}: {source} has no {name}"


def _exists(source: str, name: str) -> bool:
    if find_spec(source) is None:
        return False
    try:
        module = import_module(source)
    except ImportError:  # A package that it needs is not installed, so its names are not known.
        return True
    return hasattr(module, name) or (
        hasattr(module, "__path__") and find_spec(f"{source}.{name}") is not None
    )


def with_mocks(module: Module) -> Iterator[str]:
    if "mock" not in module.text:
        return
    for line, source, name in imported_names(module):
        if "mock" in (source, name) or source.startswith("unittest.mock"):
            yield f"{module.path}:{line}: write the fake by hand, in tests/support"


def classes_in(modules: Iterable[Module]) -> list[tuple[Module, ast.ClassDef]]:
    return [(m, n) for m in modules for n in ast.walk(m.tree) if isinstance(n, ast.ClassDef)]


def bases_of(node: ast.ClassDef) -> set[str]:
    bare = (base.value if isinstance(base, ast.Subscript) else base for base in node.bases)
    return {ast.unparse(base).rpartition(".")[2] for base in bare}


def values_not_frozen(modules: Iterable[Module]) -> Iterator[str]:
    """Every class that is a ``Value``, directly or through another, must say ``frozen=True``."""
    classes = classes_in(modules)
    values = {"Value"}
    while more := {n.name for _, n in classes if bases_of(n) & values} - values:
        values |= more
    for module, node in classes:
        said = any(
            k.arg == "frozen" and isinstance(k.value, ast.Constant) and k.value.value is True
            for k in node.keywords
        )
        if bases_of(node) & values and not said:
            yield f"{module.path}:{node.lineno}: class {node.name} needs frozen=True"
