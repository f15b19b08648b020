"""Pages of the repository outside of ``docs/``, and links between all pages.

Markdown files outside of ``docs/`` become pages of the site, as copies in ``docs/_repository``. Links have the
form that works on the forge. They are turned to the pages of the site when Sphinx reads a page. A link to any
other file of the repository lets readers download the file. Pictures with a dark variant become pictures of Markdown,
because Sphinx copies the files of those alone.
"""

import re
from collections.abc import Iterator
from os.path import relpath
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

DOCS = Path(__file__).resolve().parents[1]
ROOT = DOCS.parent
COPIES = DOCS / "_repository"
OUTSIDE = ("*.md", "examples/*.md", "tests/*.md", "tests/faults/*.md", "benchmarks/results/*.md")

_TARGET = re.compile(r"(?<=\]\()(?![a-z]+:|#)[^)\s#]+")
_PICTURE = re.compile(
    r'<picture>(?:(?!</picture>).)*<img alt="([^"]*)" src="([^"]*)">\s*</picture>', re.DOTALL
)
_FENCE = re.compile(r"^( *(?:```+|~~~+))", re.MULTILINE)


def outside_pages() -> Iterator[Path]:
    """Return the Markdown files outside of ``docs/`` that are pages of the site."""
    for pattern in OUTSIDE:
        yield from sorted(ROOT.glob(pattern))


def page_of(target: Path) -> Path:
    """Return the source of the site's page for a file or folder of the repository, or the file itself."""
    if target.is_dir():
        inner = (target / name for name in ("README.md", "index.md"))
        target = next((page for page in inner if page.exists()), target)
    if target == DOCS / "README.md":
        return DOCS / "index.md"
    if target in set(outside_pages()):
        return COPIES / target.relative_to(ROOT)
    return target


def relinked(text: str, original: Path, page: Path) -> str:
    """Return the text of ``original`` with the links that it needs at the place of ``page``.

    Code between fences stays as it is.
    """

    def target(found: re.Match[str]) -> str:
        linked = (original.parent / found[0]).resolve()
        return relpath(page_of(linked), page.parent) if linked.exists() else found[0]

    parts = _FENCE.split(text)
    # A split by a group gives text and fences in turn: text, fence, code, fence, text, …
    prose = (_PICTURE.sub(r"![\1](\2)", part) for part in parts[::4])
    parts[::4] = [_TARGET.sub(target, part) for part in prose]
    return "".join(parts)


def write_copies(app: "Sphinx") -> None:
    """Write a copy of each page outside of ``docs/``, so that Sphinx finds it. Unchanged ones are left alone."""
    del app
    for original in outside_pages():
        copy = COPIES / original.relative_to(ROOT)
        text = original.read_text("utf-8")
        if not copy.exists() or copy.read_text("utf-8") != text:
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(text, "utf-8")


def turn_links(app: "Sphinx", docname: str, source: list[str]) -> None:
    """Turn the links of a page that Sphinx reads."""
    page = Path(app.env.doc2path(docname))
    if page.suffix != ".md":
        return
    is_copy = page.is_relative_to(COPIES)
    original = ROOT / page.relative_to(COPIES) if is_copy else page
    source[0] = relinked(source[0], original, page)


def setup(app: "Sphinx") -> dict[str, bool]:
    """Connect to Sphinx."""
    app.connect("builder-inited", write_copies)
    app.connect("source-read", turn_links)
    return {"parallel_read_safe": True}
