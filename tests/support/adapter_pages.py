"""Pages about adapters: their code runs against a local server, and prints what the page shows."""

import os
import subprocess
import sys
from pathlib import Path

from tests.architecture.rules import ROOT
from tests.architecture.test_readme import as_script, shown_output

from .strict_server import Json, Reply, StrictServer


def _says_the_name(body: Json, number: int) -> list[Json]:
    del body, number
    return [{"type": "text", "text": "Your name is Ann."}]


def assert_page_runs(name: str, folder: Path, reply: Reply = _says_the_name) -> None:
    """Run the code of a page in a folder, and compare what it prints. The server answers with ``reply``."""
    page = (ROOT / "docs" / "adapters" / name).read_text("utf-8")
    (folder / "page.py").write_text(as_script(page), "utf-8")
    with StrictServer(reply) as running:
        done = subprocess.run(
            [sys.executable, "page.py"],
            cwd=folder,
            env={**os.environ, "ANTHROPIC_BASE_URL": running.base_url, "ANTHROPIC_API_KEY": "key"},
            capture_output=True,
            encoding="utf-8",
            check=False,
            timeout=120,
        )
    assert done.returncode == 0, done.stderr[-2_000:]
    assert done.stdout == shown_output(page)
