"""Sphinx settings of the documentation site: ``sphinx-build -W -b html docs OUT``, without a network."""

import sys
from importlib.metadata import version as installed
from pathlib import Path

from pygments.lexers.special import TextLexer
from sphinx.highlighting import lexers

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

project = "refold"
version = release = installed("refold")
copyright = "The refold developers"

extensions = ["myst_parser", "repository_pages"]
# README.md is the list of pages on the forge; on the site it is index.md.
exclude_patterns = ["README.md", "_extensions", "_static"]
myst_heading_anchors = 4

lexers["mermaid"] = TextLexer()  # Forges draw these blocks; the site shows their text.

html_theme = "furo"
html_title = f"refold {release}"
html_static_path = ["_static"]
html_css_files = ["refold.css"]
html_copy_source = False
