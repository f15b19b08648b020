"""The MCP server under the protocol's own programs: `python benchmarks/mcp_conformance.py`.

Runs the official conformance suite (the scenarios that fit a memory server) over HTTP, and the official
inspector's command line client over standard streams and HTTP, against ``refold mcp`` on a log made here.
Needs npx; the first run downloads both programs, and the Node.js that the inspector asks for.
Exit code 0: all passed; 1: something did not; 2: npx is not there.
"""

import json
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import refold

SCENARIOS = (
    "server-initialize",
    "ping",
    "tools-list",
    "tools-call-error",
    "resources-list",
    "completion-complete",
    "dns-rebinding-protection",
)
"""The others ask for tools, resources and prompts of a test server that a memory does not have."""
NODE = ("npx", "-y", "-p", "node@22")
"""Both programs ask for this one or a newer one."""
SUITE = (*NODE, "-p", "@modelcontextprotocol/conformance@latest", "conformance", "server")
INSPECTOR = (*NODE, "-p", "@modelcontextprotocol/inspector@latest", "mcp-inspector", "--cli")
PATIENCE = ("--connect-timeout", "120000")
"""Milliseconds; a program that has just been started may wait for the machine."""
ASKED: tuple[tuple[tuple[str, ...], str], ...] = (
    (("--method", "tools/list", "--strict"), '"recall_memory"'),
    (("--method", "resources/list"), '"refold-conversation://talk"'),
    (("--method", "resources/templates/list"), '"refold-conversation://{thread}/summary"'),
    (("--method", "resources/read", "--uri", "refold-conversation://talk"), "thread_id"),
    (
        (
            *("--method", "tools/call", "--tool-name", "recall_memory"),
            *("--tool-arg", "query=port of s3", "limit=2"),
        ),
        "5403",
    ),
    (
        (
            *("--method", "tools/call", "--tool-name", "query_history"),
            *("--tool-arg", "thread=talk", "start=2", "stop=4"),
        ),
        "2 messages of conversation",
    ),
)
START = (sys.executable, "-c", "from refold.infrastructure.cli.program import main; main()")


def main() -> int:
    if shutil.which("npx") is None:
        print("npx is not there: install Node.js 20 or newer")
        return 2
    with tempfile.TemporaryDirectory() as folder:
        log = make_log(Path(folder))
        with serving(log) as url:
            failed = [name for name in SCENARIOS if not passes(name, url)]
            for target in ([url], [*START, "mcp", "--db", str(log)]):
                failed += [
                    " ".join(words) for words, said in ASKED if not answers(target, words, said)
                ]
    print(f"{len(failed)} failed: {', '.join(failed)}" if failed else "all passed")
    return 1 if failed else 0


def make_log(folder: Path) -> Path:
    """A log of one conversation that was compacted."""
    with refold.open(folder / "agent.db", window=8_000) as memory:
        conversation = memory.conversation("talk")
        for n in range(30):
            conversation.append(
                {"role": "user", "content": f"The port of s{n} is {5400 + n}. " * 8}
            )
            conversation.context()
            conversation.append({"role": "assistant", "content": "Noted. " * 40})
    return folder / "agent.db"


@contextmanager
def serving(log: Path) -> Iterator[str]:
    """The server over HTTP on a free port."""
    command = [*START, "mcp", "--db", str(log), "--http", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        found = next(
            filter(None, (re.search(r"at (http://\S+)\.", line) for line in server.stderr))
        )
        try:
            yield found[1]
        finally:
            server.send_signal(signal.SIGINT)


def passes(scenario: str, url: str) -> bool:
    """Whether the suite passes a scenario."""
    done = run([*SUITE, "--url", url, "--scenario", scenario])
    told = re.search(r"Passed: (\d+)/(\d+)", done.stdout)
    fine = done.returncode == 0 and told is not None and told[1] == told[2]
    return tell(fine, f"conformance {scenario}", done)


def answers(target: list[str], words: tuple[str, ...], said: str) -> bool:
    """Whether the inspector's client is given an answer with these words in it."""
    done = run([*INSPECTOR, *target, *words, *PATIENCE])
    where = "HTTP" if target[0].startswith("http") else "streams"
    name = next((word for word in words if word in said or "_" in word), "")
    label = f"inspector, {where}: {words[1]} {name}".rstrip()
    fine = done.returncode == 0 and said in done.stdout.replace("\\", "")
    if fine and words[1] == "tools/list":
        fine = len(json.loads(done.stdout)["tools"]) == 5
    return tell(fine, label, done)


def run(command: list[str]) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def tell(fine: bool, what: str, done: "subprocess.CompletedProcess[str]") -> bool:
    print(f"{'passed' if fine else 'FAILED':7} {what}", flush=True)
    if not fine:
        print((done.stdout + done.stderr)[-800:])
    return fine


if __name__ == "__main__":
    sys.exit(main())
