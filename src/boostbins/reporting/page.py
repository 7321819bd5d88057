"""The page: one HTML file that needs nothing else."""

from __future__ import annotations

import base64
import gzip
import html
import json
import os
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from typing import Any

from boostbins._atomic import atomic_write

SCRIPTS = ("vendor/d3.min.js", "vendor/plot.umd.min.js", "page.js")
"""d3 and Observable Plot, of which vendor/README.md tells, and ours."""


def page(
    *,
    comparison: dict[str, Any] | None = None,
    report: dict[str, Any] | None = None,
    path: str | os.PathLike[str] | None = None,
) -> str:
    """Return the page of a comparison, of a report, or of both; and write it to a file if one is named."""
    title = str((comparison or report or {}).get("title", "")).encode(errors="backslashreplace").decode()
    text: str = _template().render(
        title=title,
        version=version("boostbins"),
        style=_asset("page.css"),
        # What ends a script would end it inside of a string too.
        scripts=[_asset(name).replace("</script", "<\\/script") for name in SCRIPTS],
        data=_packed({"comparison": comparison, "report": report}),
    )
    if path is not None:
        with atomic_write(path) as file:
            file.write_text(text, encoding="utf-8")
    return text


def framed(text: str, height: int = 640) -> str:
    """Return a page as a part of another, e.g. of a notebook."""
    return f'<iframe srcdoc="{html.escape(text)}" style="width:100%;height:{height}px;border:0"></iframe>'


def _packed(data: dict[str, Any]) -> str:
    """Return data as the page unpacks it: a table of 400 columns has megabytes of cuts."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":")).encode()
    return base64.b64encode(gzip.compress(text, mtime=0)).decode()


@cache
def _template() -> Any:
    try:
        import jinja2
    except ImportError:
        raise ImportError("the page needs jinja2: pip install 'boostbins[cli]'") from None
    return jinja2.Environment(autoescape=True).from_string(_asset("page.html.jinja"))


@cache
def _asset(name: str) -> str:
    return files("boostbins.reporting").joinpath(name).read_text(encoding="utf-8")
