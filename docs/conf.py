"""Settings of the documentation's site (`sphinx-build -W docs site`).

Sphinx makes the page of Python names from their docstrings, without a second tool.
"""

import logging
from importlib.metadata import version as version_of

# Beam logs which of its extras are not installed.
logging.getLogger().addFilter(lambda record: "apitools" not in record.getMessage())
logging.getLogger("apache_beam").setLevel(logging.WARNING)

project = "bpe-beam"
version = release = version_of("bpe-beam")
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
html_theme = "furo"
html_title = "bpe-beam"
html_show_sourcelink = False
html_show_copyright = False

myst_heading_anchors = 4  # links to headings as on code hosts
autodoc_member_order = "bysource"
napoleon_numpy_docstring = False
default_role = "code"  # single backticks in docstrings
