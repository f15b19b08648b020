"""No statement is built from text: what is put into one is a name or a number of our own code."""

import ast
import re
from collections.abc import Iterator
from pathlib import PurePath

import pytest

from tests.architecture.rules import Module, modules_under

SQL = re.compile(
    r"\s*(SELECT|INSERT|UPDATE|DELETE|REPLACE|PRAGMA|BEGIN|ATTACH|DETACH|VACUUM|WITH|CREATE|DROP|ALTER)\b"
)
RUNNERS = {"execute", "executemany", "executescript"}
CONNECTION = ("sqlite_connection.py", "connections.py")
"""Make the connections, and hand on to the library what others run on them."""
CONSTANT = re.compile(r"_?[A-Z][A-Z0-9_]*")
OUR_NAMES = {
    # Tables and columns: the fields of our own row classes.
    "table.name",
    "self.table.name",
    "table.selected",
    "self.table.selected",
    "MESSAGES.selected",
    "', '.join(table.columns)",
    "', '.join(table.key)",
    # A condition that is written out where the table is.
    "table.where",
    "self.table.where",
    # Made of columns and question marks only, in the function where they are used.
    "marks",
    "columns",
    "to",
    "where",
    # Written out at each call, in the same module.
    "condition",
    "kind",
    "journal",
    # A number.
    "newest",
    # Names of tables and columns, which the seam of the folds gets from our own constants.
    "table",
    "name",
    "selected",
    # Made of names of columns and of our own words only, in the function where they are used.
    "lists",
    "key",
    "body",
    "how",
    "also",
    "column",
    "source",
    "target",
    # Statements of the library, with the names of its tables in them.
    "self.select_events_statement",
    "self.events_table_name",
}
"""What may be put into a statement, besides constants; each line with its reason."""
OUR_STATEMENTS = {
    "statement",
    "self._recorder.insert_events_statement",
    # With the names of our own tables put into them.
    "_named(statement)",
    "statement.encode()",
    "text.encode()",
    "self._names.statement(statement).encode()",
    # Of two tuples of constants.
    "read",
    "write",
}
"""Statements that come from the library or from our own constants."""


def statements_built_from_text(module: Module) -> Iterator[str]:
    tree = module.tree
    made = dict(assigned(tree))
    known = OUR_NAMES | set(looped(tree)) | set(numbers(tree))
    for node in ast.walk(tree):
        match node:
            case ast.JoinedStr() if SQL.match(beginning(node)):
                yield from interpolated(module, node, known)
            case ast.BinOp(left=ast.Constant(value=str(text))) if SQL.match(text):
                yield f"{module.path}:{node.lineno}: a statement put together from parts"
            case ast.Call(func=ast.Attribute(value=ast.Constant(value=str(text)), attr="format")):
                if SQL.match(text):
                    yield f"{module.path}:{node.lineno}: a statement made with format()"
            case ast.Call(func=ast.Attribute(attr=name), args=[first, *_]) if name in RUNNERS:
                if not is_known(first, made) and module.path.name not in CONNECTION:
                    yield f"{module.path}:{node.lineno}: runs {ast.unparse(first)}"
            case _:
                pass


def assigned(tree: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                yield name, value
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                yield name, value
            case _:
                pass


def numbers(tree: ast.AST) -> Iterator[str]:
    """The parameters that are declared to be numbers."""
    for node in ast.walk(tree):
        match node:
            case ast.arg(arg=name, annotation=ast.Name(id="int")):
                yield name
            case _:
                pass


def looped(tree: ast.AST) -> Iterator[str]:
    """The names that go through texts that are written out."""
    for node in ast.walk(tree):
        match node:
            case ast.For(target=ast.Name(id=name), iter=ast.Tuple(elts=texts)):
                if all(isinstance(text, ast.Constant) for text in texts):
                    yield name
            case _:
                pass


def is_known(first: ast.expr, made: dict[str, ast.expr]) -> bool:
    match first:
        case ast.Constant() | ast.JoinedStr():
            return True  # What is in an f-string is looked at by itself.
        case ast.Name(id=name) if name in made:
            return isinstance(made[name], ast.Constant | ast.JoinedStr)
        case _:
            return ast.unparse(first) in OUR_STATEMENTS


def beginning(node: ast.JoinedStr) -> str:
    """The text up to the first thing put in; what is put in first may be a statement itself."""
    match node.values:
        case [ast.Constant(value=str(text)), *_]:
            return text
        case [ast.FormattedValue(value=value), *_] if "statement" in ast.unparse(value):
            return "SELECT"
        case _:
            return ""


def interpolated(module: Module, node: ast.JoinedStr, known: set[str]) -> Iterator[str]:
    for part in node.values:
        if isinstance(part, ast.FormattedValue):
            name = ast.unparse(part.value)
            if not (name in known or CONSTANT.fullmatch(name) or is_choice(part.value)):
                yield f"{module.path}:{node.lineno}: {name} stands in a statement"


def is_choice(value: ast.expr) -> bool:
    """Whether it is one of two texts that are written out."""
    match value:
        case ast.IfExp(body=ast.Constant(), orelse=ast.Constant()):
            return True
        case _:
            return False


def connections_elsewhere(module: Module) -> Iterator[str]:
    """Connections that could write temporary files: see ``open_sqlite``."""
    for node in ast.walk(module.tree):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="sqlite3"), attr="connect")):
                if module.path.name not in CONNECTION:
                    yield f"{module.path}:{node.lineno}: connects by itself"
            case ast.Call(func=ast.Name(id="open_sqlite"), args=[ast.Constant(value=""), *_]):
                yield f"{module.path}:{node.lineno}: a database without a name lies on disk"
            case _:
                pass


def test_every_connection_keeps_what_is_temporary_in_memory() -> None:
    faults = [f for m in modules_under("infrastructure") for f in connections_elsewhere(m)]
    if faults:
        pytest.fail("\n".join(faults), pytrace=False)


@pytest.mark.parametrize("text", ["sqlite3.connect(path)", "open_sqlite('')"])
def test_a_connection_that_could_write_temporary_files_is_told(text: str) -> None:
    assert list(connections_elsewhere(Module(PurePath("infrastructure/a.py"), text)))


def test_no_statement_is_built_from_text() -> None:
    faults = [f for m in modules_under("infrastructure") for f in statements_built_from_text(m)]
    if faults:
        pytest.fail("\n".join(faults), pytrace=False)


def test_no_other_layer_speaks_sql() -> None:
    for module in modules_under("domain", "application"):
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                assert node.func.attr not in RUNNERS, f"{module.path}:{node.lineno}"


@pytest.mark.parametrize(
    "text",
    [
        "c.execute(f'SELECT * FROM messages WHERE text = {text}')",
        "c.execute('SELECT * FROM messages WHERE text = ' + text)",
        "c.execute('SELECT %s' % text)",
        "c.execute('DELETE FROM {}'.format(text))",
        "query = f'SELECT {wanted}'\nc.execute(query)",
        "c.execute(text)",
        "c.executescript(made(text))",
    ],
)
def test_a_statement_with_text_in_it_is_told(text: str) -> None:
    assert list(statements_built_from_text(Module(PurePath("infrastructure/a.py"), text)))


@pytest.mark.parametrize(
    "text",
    [
        "c.execute('SELECT ?', (text,))",
        "c.execute(f'PRAGMA user_version={FORMAT_VERSION}')",
        "query = f'SELECT * FROM {table.name}'\nc.execute(query)",
        "print(f'Select {text} from the list')",
    ],
)
def test_values_and_names_of_our_own_are_fine(text: str) -> None:
    assert not list(statements_built_from_text(Module(PurePath("infrastructure/a.py"), text)))
