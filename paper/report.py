"""Everything on one page: claims, tables and figures, and as files beside it."""

from __future__ import annotations

import base64
import re
from html import escape
from pathlib import Path

import jinja2
from tqdm import tqdm

from paper import auto, budget, claims, figures
from paper.evidence import Evidence
from paper.figures import Picture
from paper.store import Store, read_environments
from paper.tables import Table, all_tables

TEMPLATE = Path(__file__).with_name("report.html.jinja")
SECTIONS = (
    ("Claims", ("claims",), (), True),
    ("Over all datasets", ("summary", "mrr"), (), True),
    ("What is asked of auto", ("auto-",), ("auto-",), True),
    ("What is asked of a total of bins", ("budget-",), (), True),
    ("Gain per dataset", (), ("gains-",), True),
    ("Ours beside the paper's", ("beside-",), (), True),
    ("Synthetic grids", ("agreement", "grid-"), ("grid-",), True),
    ("Other ways to bin", ("alternatives",), (), True),
    ("Time", ("timing",), ("timing",), True),
    ("Where the cuts are", (), ("cuts",), True),
    ("Critical differences", (), ("ranks-",), False),
    ("Scores, in the paper's form", ("scores-",), (), False),
    ("k-means against the base, per dataset", ("pair-",), (), False),
    ("Datasets", ("datasets",), (), False),
    ("Failed jobs", ("failures",), (), True),
)
"""(title, tables, figures, whether it is open), by the beginning of their names."""


def write(store: Store, folder: Path, older: bool = False) -> Path:
    """Write tables, figures and the page; return the page's path. `older` is as for `Store.frame`."""
    evidence = Evidence(store.frame(older), store.before())
    tables = [claims.table(evidence), *auto.all_tables(evidence), *budget.all_tables(evidence)]
    tables += tqdm(all_tables(evidence), desc="tables", leave=False, disable=None)
    pictures = [figures.frontier(table.numbers) for table in tables if table.name == auto.FRONTIER]
    for table in tables:
        table.write(folder / "tables")
    pictures += tqdm(figures.all_pictures(evidence), desc="figures", leave=False, disable=None)
    for picture in pictures:
        picture.write(folder / "figures")
    text = jinja2.Template(
        TEMPLATE.read_text(encoding="utf-8"), autoescape=True, undefined=jinja2.StrictUndefined
    ).render(
        sections=list(_sections(tables, pictures, folder / "figures")),
        jobs=len(evidence.rows),
        failed=len(evidence.failures),
        broken=store.broken,
        mixed=evidence.mixed,
        environments=list(read_environments(store.folder).values()),
        results=str(store.folder),
    )
    page = folder / "report.html"
    temporary = page.with_suffix(".tmp")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(page)
    return page


def _sections(tables: list[Table], pictures: list[Picture], folder: Path):  # type: ignore[no-untyped-def]
    for title, table_names, picture_names, is_open in SECTIONS:
        shown = [table for table in tables if table_names and table.name.startswith(table_names)]
        drawn = [picture for picture in pictures if picture_names and picture.name.startswith(picture_names)]
        if shown or drawn:
            yield {
                "title": title,
                "id": re.sub(r"\W+", "-", title.lower()),
                "open": is_open,
                "tables": [{"title": table.title, "html": _html(table), "notes": table.notes} for table in shown],
                "pictures": [{"caption": p.caption, "source": _embedded(folder / f"{p.name}.svg")} for p in drawn],
            }


def _html(table: Table) -> jinja2.utils.markupsafe.Markup:
    text = table.shown.map(lambda cell: _cell(str(cell))).to_html(index=False, escape=False, border=0, na_rep="")
    return jinja2.utils.markupsafe.Markup(text)


def _cell(text: str) -> str:
    marked = re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", escape(text))
    marked = re.sub(r"10\^(-?\d+)", r"10<sup>\1</sup>", marked)
    return re.sub(r"<b>(PASS|FAIL)</b>", lambda m: f'<b class="{m[1].lower()}">{m[1]}</b>', marked)


def _embedded(path: Path) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(path.read_bytes()).decode()
