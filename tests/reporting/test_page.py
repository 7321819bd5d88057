"""The page as a browser shows it."""

from __future__ import annotations

import os
import re
import shutil

import numpy as np
import pytest

from boostbins.comparison.result import Comparison
from boostbins.reporting import report
from boostbins.reporting.page import framed, page

pytest.importorskip("playwright")
pytest.importorskip("jinja2")
pd = pytest.importorskip("pandas")

from playwright.sync_api import expect, sync_playwright  # noqa: E402

pytestmark = pytest.mark.browser

HACK = "<script>window.hacked=1</script>"
METHODS = ["quantile", "kmeans", "auto", "hybrid", "optimal", "uniform"]


# ---- what is shown


@pytest.fixture(scope="module")
def found():
    rng = np.random.default_rng(0)
    n = 3000
    columns = {
        "income": rng.lognormal(10, 1, n),
        "Rooms": rng.poisson(4, n).astype(float),
        "sensor": np.where(rng.random(n) < 0.01, 100, 1) * rng.standard_normal(n),
        HACK: np.where(rng.random(n) < 0.3, np.nan, rng.pareto(1.5, n)),
        "größe_列": rng.random(n),
        "constant": np.full(n, 3.0),
        "empty": np.full(n, np.nan),
    }
    return report(columns, np.log(columns["income"]), target="price", title="<b>houses</b>", max_bins=(255, 31))


@pytest.fixture(scope="module")
def compared():
    rng = np.random.default_rng(0)
    error = {"native": 2.0, "kmeans": 1.5, "optimal": 2.0, "quantile": 2.4}
    scores = pd.DataFrame(
        [
            {
                "split": split,
                "max_bins": max_bins,
                "method": method,
                "score": (score := middle + 0.002 * rng.standard_normal()),
                "error": score,
                "seconds": 0.1 + 0.01 * split,
            }
            for split in range(5)
            for max_bins in (255, 31)
            for method, middle in error.items()
        ]
    )
    notes = ("'city' is text, taken as categories",)
    return Comparison("sklearn", "regression", "neg_root_mean_squared_error", scores, 3000, 7, notes, "<b>houses</b>")


@pytest.fixture(scope="module")
def both(found, compared, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "both.html"
    page(comparison=compared.to_dict(), report=found.to_dict(), path=path)
    return path


@pytest.fixture(scope="module")
def only_report(found, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "report.html"
    found.to_html(path)
    return path


@pytest.fixture(scope="module")
def many(found, tmp_path_factory):
    """400 columns; they are copies of a few, under names that are long and odd."""
    content = found.to_dict()
    drawn = [column for column in content["columns"] if column["histograms"]]
    names = ["column {}", "größe {} 列", "a name of many words " * 12 + "{}", HACK + " {}", "x" * 300 + "{}"]
    content["columns"] = [{**drawn[i % len(drawn)], "name": names[i % 5].format(i)} for i in range(400)]
    path = tmp_path_factory.mktemp("page") / "many.html"
    page(report=content, path=path)
    return path


# ---- the browser


@pytest.fixture(scope="module")
def browser():
    executable = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if executable is None:
        if os.environ.get("CI"):
            pytest.fail("the page is tested in Chromium, and there is none: apt-get install chromium")
        pytest.skip("needs Chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def show(browser):
    """Open a file; at the end, nothing may have been said on the console nor asked of the network."""
    contexts, said, asked = [], [], set()

    def opened(path, width=1200, height=900, **options):
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        contexts.append(context)
        shown = context.new_page()
        shown.on("console", lambda message: said.append(message.text))
        shown.on("pageerror", lambda error: said.append(str(error)))
        shown.on("request", lambda request: asked.add(request.url))
        shown.goto(path.as_uri())
        expect(shown.locator("h1")).to_be_visible()
        opened.address = path.as_uri()
        return shown

    yield opened
    for context in contexts:
        context.close()
    assert said == []
    assert asked == {opened.address}


def names(shown):
    return shown.locator(".card h3").all_text_contents()


def charts(shown):
    return shown.locator(".distribution svg").count()


def choose(shown, label):
    shown.get_by_label(label, exact=True).check(force=True)  # the radio is under its label


def card_of(shown, name):
    shown.get_by_label("Search").fill(name)
    card = shown.locator(".card")
    expect(card).to_have_count(1)
    expect(card.locator(".distribution svg")).to_be_visible()
    return card


def column_of(found, name):
    return next(column for column in found.to_dict()["columns"] if column["name"] == name)


def numbers(text):
    return [float(part.replace(",", "").replace("−", "-")) for part in re.findall(r"−?[\d,]+(?:\.\d+)?", text)]


def has_no_sideways_scroll(shown):
    return shown.evaluate("document.documentElement.scrollWidth <= innerWidth")


# ---- the parts


def test_both_parts(show, both, found, compared):
    shown = show(both)
    assert shown.title() == "<b>houses</b> · boostbins"
    assert shown.locator("h1").inner_text() == "<b>houses</b>"
    head = shown.locator(".head").inner_text()
    for said in (compared.verdict + "\n" + found.verdict).split("\n"):
        assert said in head
    for fact in ("3,000", "scikit-learn", "root mean squared error", "price", "'city' is text"):
        assert fact in head
    assert shown.locator("footer").inner_text().startswith("Made by boostbins 0.")
    assert "simultaneous" in shown.locator("main").inner_text()
    assert "Left is better" in shown.locator("main").inner_text()
    assert names(shown) == [column["name"] for column in found.to_dict()["columns"]]


def test_the_comparison(show, tmp_path, compared):
    path = tmp_path / "comparison.html"
    assert compared.to_html(path) == path.read_text(encoding="utf-8")
    shown = show(path)
    expect(shown.locator("figure svg")).to_be_visible()
    assert shown.locator(".toolbar").count() == 0
    rows = shown.locator(".panel tbody tr")
    assert rows.count() == 8
    by_kmeans = compared.table.query("method == 'kmeans' and max_bins == 255").iloc[0]
    text = rows.nth(1).inner_text()
    assert "kmeans" in text
    assert "better" in text
    assert f"{by_kmeans['score']:.4g}" in text
    assert f"−{-by_kmeans['change']:.1f} %" in text
    chart = shown.locator("figure svg")
    dots = chart.locator("g[aria-label=dot] circle").count()
    assert dots == 2 * 3 + 2 * 3 * 5  # a method and its splits
    assert [chart.get_by_text(word, exact=True).count() for word in ("better", "same", "worse")] == [2, 2, 2]
    big = chart.locator("g[aria-label=dot] circle[r='5']").first.bounding_box()
    shown.mouse.move(big["x"] + 5, big["y"] + 5)
    expect(chart.locator("g[aria-label=tip]")).to_contain_text("kmeans, 255 bins: better")


def test_the_code_can_be_copied(show, tmp_path, compared):
    path = tmp_path / "comparison.html"
    compared.to_html(path)
    shown = show(path, permissions=["clipboard-read", "clipboard-write"])
    shown.get_by_role("button", name="Copy").click()
    expect(shown.get_by_role("status")).to_have_text("Copied")
    assert shown.evaluate("navigator.clipboard.readText()") == compared.snippet
    page(comparison=compared.to_dict() | {"snippet": ""}, path=path)
    shown.reload()
    expect(shown.locator("figure svg")).to_be_visible()
    assert shown.get_by_role("button").count() == 0


def test_an_error_that_cannot_be_compared_is_in_the_table_only(show, tmp_path, compared):
    content = compared.to_dict()
    nothing = dict.fromkeys(("change", "change_low", "change_high"))
    content["table"] = [row if row["method"] == "native" else row | nothing for row in content["table"]]
    path = tmp_path / "comparison.html"
    page(comparison=content, path=path)
    shown = show(path)
    assert shown.locator("figure").count() == 0
    assert "—" in shown.locator(".panel tbody tr").nth(1).inner_text()


def test_the_report(show, tmp_path, found):
    path = tmp_path / "report.html"
    assert found.to_html(path) == path.read_text(encoding="utf-8") == found.to_html()
    shown = show(path)
    expect(shown.locator(".distribution svg").first).to_be_visible()
    assert shown.locator("pre").count() == 0
    expect(shown.locator(".count")).to_have_text("7 columns")
    assert shown.locator(".count").get_attribute("aria-live") == "polite"
    first = found.to_dict()["columns"][0]
    card = shown.locator(".card").first
    assert card.locator(".spotted li").all_text_contents() == first["spotted"]["255"]
    assert [cell.split()[0] for cell in card.locator(".costs tbody th").all_text_contents()] == METHODS
    label = card.locator(".distribution[role=img]").get_attribute("aria-label")
    assert first["name"] in label
    assert "kmeans" in label


def test_what_auto_chose_and_why(show, only_report, found):
    shown = show(only_report)
    card = card_of(shown, "income")
    for budget in ("255", "31"):
        choose(shown, f"{budget} bins")
        choice = column_of(found, "income")["binned"][budget]["auto"]["choice"]
        auto = card.locator(".auto")
        expect(auto.locator("p")).to_have_text(f"auto chose {choice['chosen']}, which {choice['why']}.")
        names = auto.locator("svg g[aria-label=text]").first.locator("text").all_text_contents()
        assert names == sorted(choice["explained"], key=lambda name: -choice["explained"][name])
        assert auto.locator("svg circle").count() == len(names)
        label = f"What each candidate explains of the target, compared with {choice['usual']}, and by chance"
        expect(auto.locator("figure")).to_have_attribute("aria-label", label)
    assert card_of(shown, "Rooms").locator(".auto").count() == 0  # each value has a bin


def test_without_a_target_auto_is_hybrid(show, tmp_path):
    path = tmp_path / "report.html"
    report({"x": np.random.default_rng(0).lognormal(0, 2, 1000)}).to_html(path)
    shown = show(path)
    expect(shown.locator(".notes li")).to_have_text("there is no target, without which auto is hybrid")
    expect(shown.locator(".card")).to_have_count(1)
    names = [cell.split()[0] for cell in shown.locator(".costs tbody th").all_text_contents()]
    assert names == [name for name in METHODS if name != "auto"]
    assert shown.locator(".auto").count() == 0


def test_a_constant_target_leaves_nothing_to_choose(show, tmp_path):
    path = tmp_path / "report.html"
    report({"x": np.random.default_rng(0).lognormal(0, 2, 1000)}, np.ones(1000)).to_html(path)
    expect(show(path).locator(".auto")).to_have_text(re.compile("auto chose hybrid: the target is constant"))


def test_controls_of_no_use_are_hidden(show, tmp_path):
    path = tmp_path / "one.html"
    report({"constant": np.ones(100)}, methods=["quantile", "kmeans"], max_bins=31).to_html(path)
    shown = show(path)
    expect(shown.locator(".card")).to_contain_text("Every value is 1: there is nothing to bin.")
    assert shown.locator("legend").all_text_contents() == ["Bins of"]
    assert shown.get_by_label("Search").count() == 0


def test_a_frame_shows_it_too(show, tmp_path, found, only_report):
    path = tmp_path / "notebook.html"
    path.write_text(
        f"<!doctype html><link rel=icon href='data:,'><h1>a notebook</h1>{framed(found.to_html())}", "utf-8"
    )
    shown = show(path)
    expect(shown.frame_locator("iframe").locator(".distribution svg").first).to_be_attached()


# ---- finding columns


def test_search_filters_by_name(show, only_report):
    shown = show(only_report)
    search = shown.get_by_label("Search")
    search.fill("room")
    assert names(shown) == ["Rooms"]
    expect(shown.locator(".count")).to_have_text("1 of 7 columns")
    expect(shown.locator(".distribution svg")).to_be_visible()
    search.fill("列")
    assert names(shown) == ["größe_列"]
    search.fill("<i>")
    assert names(shown) == []
    expect(shown.locator(".card")).to_have_text("No column has “<i>” in its name.")
    search.fill("")
    assert len(names(shown)) == 7


def test_sorts(show, only_report, found):
    shown = show(only_report)
    columns = found.to_dict()["columns"]

    def by(key):
        return [column["name"] for column in sorted(columns, key=key)]

    def gain(column, budget="255"):
        return column["binned"][budget]["quantile"]["lost"] - column["binned"][budget]["kmeans"]["lost"]

    assert names(shown) == by(lambda column: -gain(column))
    choose(shown, "31 bins")
    assert names(shown) == by(lambda column: -gain(column, "31"))
    for label, key in {
        "skew": lambda column: -abs(column["skew"]),
        "missing": lambda column: -column["missing"],
        "distinct values": lambda column: -column["distinct"],
        "lost by the chosen method": lambda column: -column["binned"]["31"]["kmeans"]["lost"],
    }.items():
        shown.get_by_label("Sort by").select_option(label=label)
        assert names(shown) == by(key), label
    choose(shown, "uniform")
    assert names(shown) == by(lambda column: -column["binned"]["31"]["uniform"]["lost"])
    shown.get_by_label("Sort by").select_option(label="name")
    assert names(shown) == [HACK, "constant", "empty", "größe_列", "income", "Rooms", "sensor"]


def test_names_stay_text(show, both):
    shown = show(both)
    card = card_of(shown, HACK)
    assert HACK in card.locator("h3").inner_text()
    assert shown.evaluate("window.hacked") is None
    assert shown.locator("main script, h1 b").count() == 0


# ---- the chart of a column


def test_switches_change_the_chart(show, only_report, found):
    shown = show(only_report)
    card = card_of(shown, "income")
    seen = {card.locator(".distribution svg").inner_html()}
    for label, now in {
        "quantile": "quantile, at most 255",
        "31 bins": "quantile, at most 31",
        "log": "quantile, at most 31",
        "optimal": "optimal, at most 31",
        "linear": "optimal, at most 31",
    }.items():
        choose(shown, label)
        expect(card.locator(".distribution")).to_have_attribute(
            "aria-label", f"Distribution of income, and its bins by {now}"
        )
        drawn = card.locator(".distribution svg").inner_html()
        assert drawn not in seen, label
        seen.add(drawn)
    assert card.locator(".costs tr.chosen").inner_text().split()[:2] == ["optimal", "31"]
    assert card.locator(".spotted li").all_text_contents() == column_of(found, "income")["spotted"]["31"]
    weights = {
        name: card.locator(".distribution svg")
        .get_by_text(name, exact=True)
        .evaluate("node => node.closest('g').getAttribute('font-weight')")
        for name in METHODS
    }
    assert weights == dict.fromkeys(METHODS, "400") | {"optimal": "700"}


def test_the_keyboard_reaches_the_switches(show, only_report):
    shown = show(only_report)
    shown.get_by_label("Search").focus()
    reached = []
    for _ in range(4):
        shown.keyboard.press("Tab")
        reached.append(shown.evaluate("document.activeElement.name || document.activeElement.localName"))
    assert reached == ["select", "method", "budget", "axis"]
    shown.keyboard.press("ArrowRight")
    expect(shown.get_by_label("log", exact=True)).to_be_checked()


@pytest.mark.parametrize(("width", "part"), [(1200, 0.02), (1200, 0.5), (1200, 0.98), (360, 0.1), (360, 0.9)])
def test_hovering_a_bin_tells_its_numbers(show, only_report, found, part, width):
    shown = show(only_report, width=width)
    choose(shown, "31 bins")
    card = card_of(shown, "income")
    expect(card.locator("summary")).to_have_text("31 bins of kmeans, as a table")
    card.locator(".distribution svg").scroll_into_view_if_needed()
    column = column_of(found, "income")
    bins = column["binned"]["31"]["kmeans"]
    cuts, low, high = bins["cuts"], column["low"], column["high"]
    wide = int(np.argmax(np.diff(cuts))) + 1  # its neighbours' middles are nearer to its ends than its own
    value = cuts[wide - 1] + part * (cuts[wide] - cuts[wide - 1])
    bands = card.locator(".distribution svg > g[aria-label=rect]").nth(1).bounding_box()
    x = bands["x"] + bands["width"] * (value - low) / (high - low)
    shown.mouse.move(x, bands["y"] + 30)
    tip = card.locator(".distribution svg g[aria-label=tip] text")
    expect(tip).to_contain_text("distinct")
    lines = tip.evaluate("node => [...node.children].map((line) => line.textContent.replace('\\u200b', '').trim())")
    assert "< x ≤" in lines[0]
    assert numbers(lines[0]) == [cuts[wide - 1], cuts[wide]]
    share = bins["weight"][wide] / sum(bins["weight"])
    assert numbers(lines[1]) == [bins["weight"][wide], pytest.approx(100 * share, rel=0.01)]
    assert numbers(lines[2]) == [bins["distinct"][wide]]
    assert lines[3].startswith("mean of price: ")
    assert numbers(lines[3]) == [pytest.approx(bins["target"][wide], rel=1e-4)]
    assert has_no_sideways_scroll(shown)


def test_the_bins_as_a_table(show, only_report, found):
    shown = show(only_report)
    card = card_of(shown, "Rooms")
    card.locator("summary").click()
    rows = card.locator(".every-bin tbody tr")
    bins = column_of(found, "Rooms")["binned"]["255"]["kmeans"]
    expect(rows).to_have_count(len(bins["weight"]))
    cells = [row.split("\t") for row in rows.all_inner_texts()]
    assert [numbers(row[1])[0] for row in cells] == bins["weight"]
    assert cells[0][0] == "x ≤ 0.5"
    choose(shown, "quantile")
    expect(rows).to_have_count(len(bins["weight"]))  # it stays open


def test_dates_are_written_as_dates(show, tmp_path):
    days = np.datetime64("2020-01-01") + np.arange(1500)
    path = tmp_path / "dates.html"
    report({"sold": days, "once": np.full(1500, np.datetime64("2021-05-05")), "far": 1e15 + np.arange(1500)}).to_html(
        path
    )
    shown = show(path)
    card, once = (shown.locator(".card", has_text=name) for name in ("sold", "once"))
    expect(card).to_contain_text("2020-01-01 to 2024-02-08")
    card.scroll_into_view_if_needed()
    expect(card.locator(".distribution svg").first).to_contain_text("2022")
    once.scroll_into_view_if_needed()
    expect(once).to_contain_text("Every value is 2021-05-05")
    card.locator("summary").click()
    expect(card.locator("details table")).to_contain_text(re.compile(r"x ≤ 2020-01-0\d"))


def test_without_a_target_nothing_is_said_of_it(show, tmp_path):
    path = tmp_path / "report.html"
    report({"a": np.random.default_rng(0).lognormal(0, 1, 500)}, max_bins=15).to_html(path)
    shown = show(path)
    expect(shown.locator(".distribution svg")).to_be_visible()
    assert "mean of" not in shown.locator(".card").inner_text()


# ---- large, small, dark, on paper


def test_of_400_columns_a_few_are_drawn_at_once(show, many):
    shown = show(many)
    expect(shown.locator(".distribution svg").first).to_be_visible()
    expect(shown.locator(".card")).to_have_count(400)
    first = charts(shown)
    assert 1 <= first <= 10
    shown.locator(".card").nth(200).scroll_into_view_if_needed()
    expect(shown.locator(".card").nth(200).locator(".distribution svg")).to_be_visible()
    assert first < charts(shown) < 30
    assert has_no_sideways_scroll(shown)
    drawn = shown.evaluate(
        """() => {
            const search = document.getElementById("search");
            for (search.value of ["c", "column 2", "", "zz", ""]) search.dispatchEvent(new Event("input"));
            return document.querySelectorAll(".distribution svg").length;
        }"""
    )
    assert drawn < 30  # while it is typed in, nothing is drawn but what is in view
    expect(shown.locator(".distribution svg").first).to_be_in_viewport()  # a new list is shown from its start


@pytest.mark.parametrize("name", ["both", "many"])
def test_a_phone_does_not_scroll_sideways(show, name, request):
    shown = show(request.getfixturevalue(name), width=360, height=700)
    for _ in range(8):
        shown.mouse.wheel(0, 500)
        shown.wait_for_timeout(30)
    assert charts(shown) > 0
    assert has_no_sideways_scroll(shown)
    assert shown.locator(".toolbar").bounding_box()["y"] == pytest.approx(0, abs=1)  # it stays
    for svg in shown.locator("svg").all():
        box = svg.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 360


def test_charts_follow_the_width(show, only_report):
    shown = show(only_report)
    svg = shown.locator(".distribution svg").first
    expect(svg).to_be_visible()
    for width in (1080, 500):
        before = svg.get_attribute("width")
        shown.set_viewport_size({"width": width, "height": 900})
        expect(svg).not_to_have_attribute("width", before)
    assert int(svg.get_attribute("width")) < 500
    assert has_no_sideways_scroll(shown)


def luminance(shown, selector, property_):
    color = shown.locator(selector).first.evaluate(f"node => getComputedStyle(node).{property_}")
    red, green, blue = (
        part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4
        for part in (float(part) / 255 for part in re.findall(r"[\d.]+", color)[:3])
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_and_dark_have_contrast(show, both, scheme):
    shown = show(both, color_scheme=scheme)
    ground = luminance(shown, "body", "backgroundColor")
    assert ground < 0.05 if scheme == "dark" else ground > 0.8
    surface = luminance(shown, ".panel", "backgroundColor")
    for selector in (".verdicts p", ".panel td", ".interval", ".better", ".worse", ".same"):
        ink = luminance(shown, selector, "color")
        ratio = (max(ink, surface) + 0.05) / (min(ink, surface) + 0.05)
        assert ratio >= 4.5, selector


def test_print_draws_all_and_hides_the_toolbar(show, both, found):
    shown = show(both, color_scheme="dark")
    assert charts(shown) < 5
    assert shown.pdf(format="A4").startswith(b"%PDF")
    assert charts(shown) == 5  # of 7 columns two have nothing to draw
    shown.emulate_media(media="print")
    assert not shown.locator(".toolbar").is_visible()
    assert not shown.locator(".auto figure").first.is_visible()
    assert shown.locator(".auto p").first.is_visible()
    assert luminance(shown, "body", "color") < 0.1
    assert shown.locator(".card").first.evaluate("node => getComputedStyle(node).breakInside") == "avoid"


def test_print_draws_what_was_searched_for(show, many):
    shown = show(many)
    shown.get_by_label("Search").fill("column 10")
    shown.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert charts(shown) == shown.locator(".card").count() == 3


def test_without_scripts_it_says_what_it_needs(browser, both):
    context = browser.new_context(java_script_enabled=False)
    shown = context.new_page()
    shown.goto(both.as_uri())
    assert "allow JavaScript" in shown.locator("noscript").inner_text()
    context.close()
