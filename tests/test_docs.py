"""The site: its snippets run as they stand, its links lead somewhere, and it builds without a warning."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.md"))
SNIPPETS = [
    pytest.param(code, id=f"{page.name}:{number}")
    for page in PAGES
    for number, code in enumerate(re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL), 1)
]
# On few cores, threads of several libraries wait for each other for seconds.
QUICK = {"OMP_THREAD_LIMIT": "1"}


def run(arguments, folder, **environment):
    environment = {**os.environ, "MPLCONFIGDIR": str(folder), **QUICK, **environment}
    return subprocess.run([sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True)


@pytest.mark.slow
@pytest.mark.parametrize("code", SNIPPETS)
def test_snippets_run(code, tmp_path):
    pytest.importorskip("sklearn")
    done = run(["-c", code], tmp_path, PYTHONWARNINGS="error")
    assert done.returncode == 0, done.stderr


def commands_of(page):
    blocks = re.findall(r"```console\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    lines = [line.removeprefix("$ ") for block in blocks for line in block.splitlines() if line.startswith("$ ")]
    return [line for line in lines if re.search(r"\bboostbins (?!\[)", line)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "page", [page for page in [*PAGES, ROOT / "README.md"] if commands_of(page)], ids=lambda p: p.name
)
def test_commands_run_one_after_the_other_from_an_empty_folder(page, tmp_path):
    environment = {**os.environ, **QUICK, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    for command in commands_of(page):
        done = subprocess.run(["bash", "-c", command], cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, f"{command}\n{done.stderr}"


def test_every_page_is_in_the_navigation():
    yaml = pytest.importorskip("yaml")
    entries = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    pages = [page for entry in entries for page in entry.values()]
    assert sorted(pages) == [page.name for page in PAGES]


def links_of(page):
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    return [link for link in re.findall(r"\]\(([^)\s]+)", text) if not re.match(r"[a-z]+:", link)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_and_pictures_are_there(page):
    for link in links_of(page):
        path = (page.parent / link.partition("#")[0]).resolve()
        assert path.is_file(), link
        assert path.is_relative_to(DOCS), f"{link} is not on the site"


def test_every_promise_names_tests_that_are_there():
    named = set(re.findall(r"`(test_\w+)`", (DOCS / "promises.md").read_text(encoding="utf-8")))
    tests = "\n".join(path.read_text(encoding="utf-8") for path in Path(__file__).parent.rglob("test_*.py"))
    assert named
    assert not {name for name in named if f"def {name}(" not in tests}


def test_pictures_are_small_and_used():
    shown = {(DOCS / link).resolve() for page in PAGES for link in links_of(page)}
    for picture in (DOCS / "pictures").iterdir():
        assert picture in shown, picture.name
        assert picture.stat().st_size < 100_000, picture.name


@pytest.mark.slow
def test_pictures_can_be_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    done = run([str(DOCS / "pictures.py"), "drawn"], tmp_path, PYTHONWARNINGS="error")
    assert done.returncode == 0, done.stderr
    drawn = {picture.name for picture in (tmp_path / "drawn").iterdir()}
    assert drawn == {picture.name for picture in (DOCS / "pictures").iterdir()}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    for name in ("mkdocs", "material", "mkdocstrings_handlers.python"):
        pytest.importorskip(name)
    folder = tmp_path_factory.mktemp("site")
    command = ["-m", "mkdocs", "build", "--strict", "-f", str(ROOT / "mkdocs.yml"), "-d", str(folder / "built")]
    done = run(command, folder, NO_MKDOCS_2_WARNING="1")
    assert done.returncode == 0, done.stderr
    return folder / "built"


@pytest.mark.slow
def test_it_builds_with_the_signatures(site):
    page = (site / "api" / "index.html").read_text(encoding="utf-8")
    text = re.sub(r"<[^>]*>", "", page).replace("&#39;", "'").replace("&quot;", '"')
    assert "boostbins.fit_bins" in text
    assert 'method: str | Method = "kmeans"' in text
    assert not list(site.rglob("*.py"))


class Loaded(HTMLParser):
    """What a page makes the browser load."""

    def __init__(self):
        super().__init__()
        self.addresses = []

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        if tag in ("script", "img", "iframe", "source"):
            self.addresses.append(found.get("src") or "")
        if tag == "link" and found.get("rel") not in ("canonical", "next", "prev"):
            self.addresses.append(found.get("href") or "")


@pytest.mark.slow
def test_it_loads_nothing_from_another_host(site):
    for page in site.rglob("*.html"):
        loaded = Loaded()
        loaded.feed(page.read_text(encoding="utf-8"))
        assert any(address.endswith(".css") for address in loaded.addresses), page
        assert not [address for address in loaded.addresses if "//" in address], page
    for sheet in site.rglob("*.css"):
        assert not re.search(r"url\([\"']?(https?:)?//|@import", sheet.read_text(encoding="utf-8")), sheet
