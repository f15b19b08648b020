"""Draw the pictures of the inspector: the conversation of ``refold demo`` in light and dark.

    python docs/images/draw_inspector.py

It needs Chromium, Playwright and the extra ``inspect``.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Literal

from playwright.sync_api import sync_playwright

HERE = Path(__file__).parent
SIZE = (1280, 860)
PICTURES: dict[Literal["light", "dark"], str] = {
    "light": "inspector.png",
    "dark": "inspector-dark.png",
}
WINDOW = "48000"
"""The window of ``refold demo``."""


def main() -> None:
    """Play the demo, serve its log, and write one picture for each theme."""
    with tempfile.TemporaryDirectory() as folder:
        refold = [sys.executable, "-m", "refold"]
        subprocess.run([*refold, "demo", "--json"], cwd=folder, check=True, stdout=subprocess.PIPE)
        served = [*refold, "inspect", "--db", "demo.db", "--window", WINDOW, "--json"]
        with subprocess.Popen(served, cwd=folder, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            draw(json.loads(server.stdout.readline())["url"])
            server.terminate()


def draw(url: str) -> None:
    """Write the pictures of the only conversation that the server has."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        for theme, name in PICTURES.items():
            page = browser.new_page(
                viewport={"width": SIZE[0], "height": SIZE[1]}, color_scheme=theme
            )
            page.goto(url)
            page.click("#listed tbody a >> nth=0")
            page.wait_for_selector(".message")
            page.screenshot(path=HERE / name)
            page.close()
        browser.close()


if __name__ == "__main__":
    main()
