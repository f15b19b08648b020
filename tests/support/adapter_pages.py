"""Pages about adapters: their code runs against a local server, and prints what the page shows."""

from collections.abc import Mapping
from pathlib import Path

from tests.architecture.rules import ROOT

from .page_code import faults_of, run
from .strict_server import Json, Reply, StrictServer


def _says_the_name(body: Json, number: int) -> list[Json]:
    del body, number
    return [{"type": "text", "text": "Your name is Ann."}]


def assert_page_runs(name: str, folder: Path, reply: Reply = _says_the_name) -> None:
    """Run the code of a page in a folder, and compare what it prints. The server answers with ``reply``."""
    with StrictServer(reply) as running:
        server = {"ANTHROPIC_BASE_URL": running.base_url, "ANTHROPIC_API_KEY": "key"}
        assert_page_prints(name, folder, server)


def assert_page_prints(name: str, folder: Path, server: Mapping[str, str]) -> None:
    """Do the same with the server of these environment variables."""
    page = (ROOT / "docs" / "adapters" / name).read_text("utf-8")
    assert list(faults_of(page, run(page, folder, server))) == []
