"""Every page of docs/ is in the navigation of the site, and links of the site lead where they lead on the forge."""

import re
import runpy
from collections.abc import Iterator
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from tests.architecture.rules import ROOT
from tests.architecture.test_docs import DOCS

ENTRY = re.compile(r"(?:.*<)?([^<>]+?)>?")


def pages() -> set[Path]:
    """The pages of docs/ but for README.md, which is the list of pages on the forge."""
    docs = ROOT / "docs"
    return {*DOCS, *docs.rglob("*.rst")} - {docs / "README.md"}


def entries(page: Path) -> Iterator[Path]:
    """The pages that the navigation of a page lists."""
    for token in MarkdownIt().parse(page.read_text("utf-8")):
        if token.type != "fence" or token.info != "{toctree}":
            continue
        for line in token.content.splitlines():
            if line and not line.startswith(":") and (match := ENTRY.fullmatch(line)):
                for suffix in (".md", ".rst"):
                    yield from (p.resolve() for p in page.parent.glob(match[1] + suffix))


def reached(page: Path, seen: set[Path]) -> set[Path]:
    if page not in seen:
        seen.add(page)
        for entry in entries(page):
            reached(entry, seen)
    return seen


def test_every_page_is_in_the_navigation() -> None:
    assert pages() - reached(ROOT / "docs" / "index.md", set()) == set()


def test_every_diagram_has_its_picture() -> None:
    docs = ROOT / "docs"
    found = runpy.run_path(str(docs / "_extensions" / "diagrams.py"))["diagrams"](docs)
    pictures = {name for name, _ in found}
    drawn = {path.name for path in (docs / "images").glob("diagram-*.svg")}
    assert pictures == drawn, "run docs/images/draw_diagrams.py"


def test_a_picture_with_a_dark_variant_is_shown_on_the_site() -> None:
    module = runpy.run_path(str(ROOT / "docs" / "_extensions" / "repository_pages.py"))
    readme = ROOT / "README.md"
    place = ROOT / "docs" / "_repository" / "README.md"
    turned = module["relinked"](readme.read_text("utf-8"), readme, place)
    assert readme.read_text("utf-8").count("<picture>") == 2
    assert "<picture>" not in turned
    shown = re.findall(r"!\[[^]]+\]\(([^)]+)\)", turned)
    assert shown == ["../images/timeline.svg", "../images/inspector.png"]


@pytest.mark.parametrize(
    ("original", "link", "turned"),
    [
        ("docs/faq.md", "../README.md", "_repository/README.md"),
        ("docs/faq.md", "guide.md#files", "guide.md#files"),
        ("docs/howto/index.md", "../README.md", "../index.md"),
        ("README.md", "docs/decisions/", "../decisions/index.md"),
        ("README.md", "LICENSE", "../../LICENSE"),
        ("README.md", "https://example.org/README.md", "https://example.org/README.md"),
        ("benchmarks/results/exam.md", "../../docs/faq.md", "../../../faq.md"),
    ],
)
def test_a_link_of_the_site_leads_where_it_leads_on_the_forge(
    original: str, link: str, turned: str
) -> None:
    module = runpy.run_path(str(ROOT / "docs" / "_extensions" / "repository_pages.py"))
    page = ROOT / original
    place = page if original.startswith("docs/") else ROOT / "docs" / "_repository" / original
    fence = "\n```python\nx[0](README.md)\n```\n"
    text = f"[x]({link}) {fence}  [x]({link})"
    expected = f"[x]({turned}) {fence}  [x]({turned})"
    assert module["relinked"](text, page, place) == expected
