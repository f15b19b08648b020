"""Sphinx settings of the documentation site: ``sphinx-build -W -b html docs OUT``, without a network."""

import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

project = "refold"
# The metadata of an installation in place are those of the day on which it was installed.
settings = (Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8")
version = release = tomllib.loads(settings)["project"]["version"]
copyright = "The refold developers"

extensions = ["myst_parser", "sphinx.ext.autodoc", "api_pages", "diagrams", "repository_pages"]
# README.md is the list of pages on the forge; on the site it is index.md.
exclude_patterns = ["README.md", "_extensions", "_static"]
myst_heading_anchors = 4

autodoc_default_options = {"members": True, "undoc-members": True, "member-order": "bysource"}
autodoc_typehints_format = "short"
# It is under terms of its own, so no extra installs it. Its adapter can be described without it.
autodoc_mock_imports = [] if find_spec("claude_agent_sdk") else ["claude_agent_sdk"]
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 80
# Types of Python and of frameworks have no pages here.
nitpick_ignore_regex = [("py:.*", ".*")]
# A word in an annotation may also be a field of several classes.
suppress_warnings = ["ref.python"]

smartquotes = False  # It would write options with one dash.

html_theme = "furo"
pygments_dark_style = "monokai"
html_title = f"refold {release}"
html_static_path = ["_static"]
html_css_files = ["refold.css"]
html_copy_source = False
