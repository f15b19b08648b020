"""Mermaid blocks: forges draw them, and the site shows the pictures that ``docs/images/draw_diagrams.py`` drew."""

import hashlib
import re
from collections.abc import Iterator
from os.path import relpath
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

_BLOCK = re.compile(r"^```mermaid\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def picture_of(diagram: str) -> str:
    """Return the name of the picture of a block."""
    return f"diagram-{hashlib.sha256(diagram.encode()).hexdigest()[:12]}.svg"


def diagrams(docs: Path) -> Iterator[tuple[str, str]]:
    """Yield each block of the pages, after the name of its picture."""
    for page in sorted(docs.rglob("*.md")):
        if "_repository" in page.parts:
            continue
        for block in _BLOCK.findall(page.read_text("utf-8")):
            yield picture_of(block), block


def show_pictures(app: "Sphinx", docname: str, source: list[str]) -> None:
    """Put pictures in place of the blocks of a page."""
    page = Path(app.env.doc2path(docname)).parent

    def picture(block: re.Match[str]) -> str:
        path = Path(app.srcdir) / "images" / picture_of(block[1])
        # As many lines as before, so that warnings name the lines of the page.
        return f"![Diagram of the steps above]({relpath(path, page)})" + "\n" * block[0].count("\n")

    source[0] = _BLOCK.sub(picture, source[0])


def setup(app: "Sphinx") -> dict[str, bool]:
    """Connect to Sphinx."""
    app.connect("source-read", show_pictures)
    return {"parallel_read_safe": True}
