"""Pages of the lab: one file each, with everything inside, readable without a network."""

from __future__ import annotations

from html import escape

from .picture import STYLE

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark }}
body {{ font: 15px/1.5 system-ui, sans-serif }}
body {{ max-width: 1060px; margin: 2rem auto; padding: 0 1rem }}
table {{ border-collapse: collapse; margin: 1rem 0 }}
th, td {{ border: 1px solid #8886; padding: .25rem .5rem; text-align: left; vertical-align: top }}
svg {{ width: 100%; height: auto }}
td a {{ text-decoration: none }}
.held {{ color: #2a9d2a }} .documented {{ color: #b8860b }}
.broken {{ color: #e45756; font-weight: bold }}
.impossible, .dim {{ opacity: .6 }}
code {{ font-family: ui-monospace, monospace }}
{style}
</style>
</head>
<body>
{body}
</body>
</html>
"""


def page(title: str, body: str) -> str:
    """Return a whole page; `body` is HTML."""
    return _PAGE.format(title=escape(title), style=STYLE, body=body)


def tag(name: str, text: str, **attributes: str) -> str:
    """Return an element around plain text."""
    return wrap(name, escape(text), **attributes)


def wrap(name: str, inside: str, **attributes: str) -> str:
    """Return an element around HTML."""
    words = "".join(f' {key.rstrip("_")}="{escape(value)}"' for key, value in attributes.items())
    return f"<{name}{words}>{inside}</{name}>"
