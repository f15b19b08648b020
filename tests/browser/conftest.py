"""Chromium on pages of the inspector. A page that logs, loads or runs anything unexpected fails its test.

Where there is no Chromium, these tests are skipped; with ``REFOLD_X_BROWSER`` in the environment they fail.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.inspected import (
    Served,
    assistant,
    fill_badges,
    fill_hostile,
    fill_owners,
    open_quiet,
    served,
    user,
)

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Dialog, Page, Request

NAMES = ("chromium", "chromium-browser", "google-chrome")
REQUIRED = "REFOLD_X_BROWSER"
OPTIONS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--no-first-run",
    "--disable-sync",
    "--disable-component-update",
)
VIOLATIONS = (
    "document.addEventListener('securitypolicyviolation', "
    "e => console.error('CSP: ' + e.violatedDirective + ' ' + e.blockedURI))"
)
OpenPage = Callable[..., "Page"]


# One browser for each module: Playwright keeps an event loop, and other tests of the process run their own.
@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    """Chromium of this machine."""
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None or find_spec("playwright") is None:
        missing = f"no Playwright, or no Chromium: none of {', '.join(NAMES)} is on the PATH"
        if os.environ.get(REQUIRED):
            pytest.fail(missing)
        pytest.skip(missing)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=program, args=list(OPTIONS))
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log with every badge, hostile texts, owners, a long conversation and one to append to."""
    path: Path = tmp_path_factory.mktemp("shown") / "agent.db"
    fill_badges(path)
    with open_quiet(path) as memory:
        fill_hostile(memory)
        fill_owners(memory)
        words = "Some words of a message that is neither short nor long. " * 25
        pairs = ([user(f"{n} {words}"), assistant(f"{n} {words}")] for n in range(150))
        memory.conversation("long").append([one for pair in pairs for one in pair])
        rounds = ([user(f"{n} {words}"), assistant(f"{n} {words * 4}")] for n in range(20))
        memory.conversation("live").append([one for pair in rounds for one in pair])
    return path


@pytest.fixture(scope="module")
def inspector(log: Path) -> Iterator[Served]:
    """``refold inspect`` of that log."""
    with served(log) as serving:
        yield serving


class Problems(list[str]):
    """Things that a page must not do."""

    def watch(self, context: "BrowserContext", origin: str) -> None:
        """Record what any page of a context does."""

        def heard(message: "ConsoleMessage") -> None:
            self.append(f"console {message.type}: {message.text}")

        def asked(request: "Request") -> None:
            if not request.url.startswith((f"{origin}/", "data:,")):
                self.append(f"request to {request.url[:200]}")

        def opened(dialog: "Dialog") -> None:
            self.append("a dialog")
            dialog.dismiss()

        context.add_init_script(VIOLATIONS)
        context.on("console", heard)
        context.on("weberror", lambda error: self.append(f"error: {error.error}"))
        context.on("request", asked)
        context.on("dialog", opened)


@pytest.fixture
def problems() -> Problems:
    """What went wrong in the pages of this test; a test removes what it expects."""
    return Problems()


@pytest.fixture
def open_page(browser: "Browser", inspector: Served, problems: Problems) -> Iterator[OpenPage]:
    """A function that opens an address of a server in a window of its own: ``open_page(path, **options)``."""
    contexts: list[BrowserContext] = []

    def opened(path: str = "/", serving: Served = inspector, **options: Any) -> "Page":
        given: dict[str, Any] = {"viewport": {"width": 1280, "height": 900}, **options}
        context = browser.new_context(**given)
        contexts.append(context)
        problems.watch(context, serving.origin)
        context.set_default_timeout(15_000)
        page = context.new_page()
        page.goto(serving.url)
        if path != "/":
            page.goto(serving.origin + path)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert problems == []


@pytest.fixture
def page(open_page: OpenPage) -> "Page":
    """The list of conversations in a window."""
    return open_page()
