"""The pages keep their word: every link leads somewhere, and every promise to a test that exists."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
from markdown_it import MarkdownIt

from tests.architecture.rules import ROOT

DOCS = sorted(p for p in (ROOT / "docs").rglob("*.md") if "_repository" not in p.parts)
"""The pages of docs/, without copies that a build of the site leaves there."""
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "examples").glob("*.md"), *DOCS])
PROMISES = ROOT / "docs" / "promises.md"
ELSEWHERE = re.compile(r"[a-z]+:")
FAULTS = re.compile(r"<!-- fault matrix: begin -->.*<!-- fault matrix: end -->", re.DOTALL)


class Link(NamedTuple):
    page: Path
    text: str
    path: str
    anchor: str

    @property
    def target(self) -> Path:
        return (self.page.parent / self.path) if self.path else self.page


def links_of(page: Path, text: str | None = None) -> Iterator[Link]:
    """The links of a page to files of this repository."""
    tokens = MarkdownIt().enable("table").parse(page.read_text("utf-8") if text is None else text)
    for token in tokens:
        said, open_link = "", ""
        for child in token.children or ():
            match child.type:
                case "link_open":
                    said, open_link = "", str(child.attrGet("href") or "")
                case "link_close":
                    if not ELSEWHERE.match(open_link):
                        path, _, anchor = open_link.partition("#")
                        yield Link(page, said, path, anchor)
                case _:
                    said += child.content


@cache
def names_in(path: Path) -> frozenset[str]:
    """The tests and classes of a module, those that are made by an assignment as well."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        match node:
            case (
                ast.FunctionDef(name=name)
                | ast.AsyncFunctionDef(name=name)
                | ast.ClassDef(name=name)
            ):
                found.add(name)
            case ast.Assign(targets=[ast.Name(id=name)]):
                found.add(name)
            case _:
                pass
    return frozenset(found)


@cache
def anchors_of(page: Path) -> frozenset[str]:
    """The anchors that the headings of a page get."""
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    kept = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return frozenset(heading.replace(" ", "-") for heading in kept)


def faults_of(link: Link) -> Iterator[str]:
    where = f"{link.page.relative_to(ROOT)}: [{link.text}]"
    if not link.target.exists():
        yield f"{where} leads to {link.path}, which does not exist"
    elif link.anchor and link.anchor not in anchors_of(link.target.resolve()):
        yield f"{where} leads to a heading that {link.path} does not have: {link.anchor}"
    elif is_of_tests(link.target) and link.text not in (
        link.target.name,
        *names_in(link.target.resolve()),
    ):
        yield f"{where}: {link.target.name} has no such test"


def is_of_tests(path: Path) -> bool:
    return path.suffix == ".py" and "tests" in path.resolve().relative_to(ROOT).parts


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_to_what_it_names(page: Path) -> None:
    if faults := [fault for link in links_of(page) for fault in faults_of(link)]:
        pytest.fail("\n".join(faults), pytrace=False)


def promises() -> list[str]:
    """The rows of the tables whose second column is headed "checked by"."""
    found: list[str] = []
    inside = False
    for line in FAULTS.sub("", PROMISES.read_text("utf-8")).splitlines():
        inside = line.startswith("|") and (inside or "checked by" in line)
        if inside and "checked by" not in line and not line.startswith("|--"):
            found.append(line)
    return found


def test_every_promise_links_to_a_test() -> None:
    assert len(promises()) > 30
    for promise in promises():
        linked = [link.path for link in links_of(PROMISES, promise)]
        assert any("/tests/" in path for path in linked), f"no test is named for: {promise}"


def test_the_pages_are_in_the_index() -> None:
    index = ROOT / "docs" / "README.md"
    listed = {link.target.resolve() for link in links_of(index)}
    for page in DOCS:
        # The site has pages of its own that list others.
        is_list = page == index or "```{toctree}" in page.read_text("utf-8")
        assert is_list or page in listed, f"{page.name} is not listed"


@pytest.mark.parametrize(
    ("link", "told"),
    [
        ("[x](none.md)", "does not exist"),
        ("[x](guide.md#no-such-heading)", "heading"),
        ("[test_no_such](../tests/architecture/test_docs.py)", "no such test"),
    ],
)
def test_a_link_that_leads_nowhere_is_told(link: str, told: str) -> None:
    (only,) = links_of(PROMISES, link)
    (fault,) = faults_of(only)
    assert told in fault
