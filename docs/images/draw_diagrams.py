"""Draw the Mermaid blocks of the pages as pictures, for the documentation site.

    npm install mermaid
    python docs/images/draw_diagrams.py node_modules/mermaid/dist/mermaid.min.js

It needs playwright and Chromium. Forges draw the blocks themselves. The site has no script that does, so it shows
these pictures. Each is named by a digest of its block: a block that was changed has none until this is run.
"""

import runpy
import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

FOLDER = Path(__file__).parent
SETTINGS = {
    "startOnLoad": False,
    "theme": "neutral",
    "htmlLabels": False,
    "flowchart": {"htmlLabels": False, "useMaxWidth": False},
    "sequence": {"useMaxWidth": False},
    "fontFamily": "sans-serif",
}
DRAW = """async ([settings, text]) => {
    mermaid.initialize(settings);
    return (await mermaid.render("diagram", text)).svg;
}"""


def main(mermaid: str) -> None:
    """Draw all blocks, and delete pictures of earlier ones."""
    diagrams = runpy.run_path(str(FOLDER.parent / "_extensions" / "diagrams.py"))
    wanted = dict(diagrams["diagrams"](FOLDER.parent))
    for old in set(FOLDER.glob("diagram-*.svg")) - {FOLDER / name for name in wanted}:
        old.unlink()
    with sync_playwright() as play:
        path = shutil.which("chromium")
        browser = play.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = browser.new_page()
        page.add_script_tag(path=mermaid)
        for name, text in wanted.items():
            (FOLDER / name).write_text(page.evaluate(DRAW, [SETTINGS, text]) + "\n", "utf-8")
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1])
