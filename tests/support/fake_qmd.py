"""A program named qmd that searches files by words, and can be old, broken or slow."""

import json
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import refold
from refold.application.api.conversation_memory import ConversationMemory
from refold.application.api.memory import Memory
from refold.application.runtime.memory_settings import RecallMode

PROGRAM = """#!{python}
import json, os, re, subprocess, sys, time
from pathlib import Path

here = Path({folder!r})
arguments = sys.argv[1:]
with (here / "calls.jsonl").open("a") as calls:
    calls.write(json.dumps({{"arguments": arguments, "folder": os.getcwd(), "index": os.environ["INDEX_PATH"],
        "secrets": [name for name in os.environ if name.startswith("REFOLD_")]}}) + "\\n")
command = next((a for a in arguments[2:] if not a.startswith("-")), arguments[-1])
behaviour = json.loads((here / "behaviour.json").read_text())
for when, script in behaviour.items():
    if when in (command, arguments[-1]):
        exec(script)
index = Path(os.environ["INDEX_PATH"])
if arguments[-1] == "--version":
    print("qmd 2.8.3 (fake)")
elif command in ("collection", "update"):
    config = Path(os.environ["QMD_CONFIG_DIR"]) / "refold.yml"
    if command == "collection":
        config.write_text(arguments[arguments.index("add") + 1])
    root = Path(config.read_text())
    index.write_text(json.dumps({{
        f"qmd://{{root.name}}/{{p.relative_to(root)}}?index=refold": p.read_text() for p in sorted(root.rglob("*.md"))
    }}))
elif command == "query":
    found = {{}}
    for line in arguments[-1].split("\\n"):
        words = re.findall('"([^"]*)"', line)
        for name, text in json.loads(index.read_text()).items():
            if words and all(w in (name + text).lower() for w in words):
                found[name] = found.get(name, 0) + 1
    best = sorted(found, key=lambda name: -found[name])
    print(json.dumps([{{"file": name, "score": round(1 / n, 2)}} for n, name in enumerate(best, 1)]))
elif command == "vsearch":
    print(json.dumps([{{"file": name, "score": 0}} for name in json.loads(index.read_text())]))
"""


@dataclass(frozen=True)
class FakeQmd:
    """The program, in a folder that is to be put first on PATH."""

    folder: Path

    @classmethod
    def installed(cls, folder: Path) -> "FakeQmd":
        """Make it; it behaves well until it is told otherwise."""
        folder.mkdir()
        program = folder / "qmd"
        program.write_text(PROGRAM.format(python=sys.executable, folder=str(folder)))
        program.chmod(0o755)
        made = cls(folder)
        made.behave()
        return made

    def behave(self, **scripts: str) -> None:
        """Run this Python at these commands from now on, before what it does there."""
        self._put(
            {name.replace("version", "--version"): script for name, script in scripts.items()}
        )

    def hang(self, command: str) -> Path:
        """Hang at this command, together with a process of its own; returns where that says its number."""
        child = self.folder / "child.pid"
        script = (
            "child = subprocess.Popen(['sleep', '600']); "
            f"Path({str(child)!r}).write_text(str(child.pid)); time.sleep(600)"
        )
        self._put({command: script})
        return child

    @property
    def calls(self) -> list[list[str]]:
        """The arguments of every call, without those that name the index."""
        return [call["arguments"][2:] for call in self.recorded]

    @property
    def recorded(self) -> list[dict[str, list[str]]]:
        """Everything that it noted, call by call."""
        path = self.folder / "calls.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def commands(self) -> list[str]:
        """The first argument of every call."""
        return [call[0] for call in self.calls]

    def _put(self, behaviour: dict[str, str]) -> None:
        (self.folder / "behaviour.json").write_text(json.dumps(behaviour))


def is_gone(pid: int, within: float = 5.0) -> bool:
    """Whether a process ends, or has ended."""
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except (ProcessLookupError, FileNotFoundError):
            return True
        time.sleep(0.02)
    return False


def searched_by_qmd(folder: Path, timeout: float = 10) -> Memory:
    """A memory that asks it, with two conversations, ``ports`` and ``others``."""
    memory = refold.open(folder / "agent.db", search_backend="qmd", backend_timeout=timeout)
    if not memory.conversations():
        say(memory.conversation("ports"), "Postgres listens on 5433.", "Redis is on 6379.")
        say(memory.conversation("others"), "Postgres of somebody else, on 5444.")
    return memory


def say(conversation: ConversationMemory, *texts: str) -> None:
    """Append what a user says."""
    for text in texts:
        conversation.append({"role": "user", "content": text})


def places(memory: Memory, question: str, mode: RecallMode = "keyword") -> list[int]:
    """What it finds in ``ports``, best first; nothing went wrong."""
    found = memory.conversation("ports").recall(question, mode=mode)
    assert found.notice is None
    assert all(hit.why == ("found by qmd",) for hit in found)
    return [hit.position for hit in found]
