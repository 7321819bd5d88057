"""The commands that tell whether a change is worth it: demo, compare, report."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from boostbins._atomic import check_writable, table_writer
from boostbins.cli.console import Screen, describe
from boostbins.comparison.trainers import TRAINERS, chosen_trainer
from boostbins.sources.reading import check_output, read_files, title_of
from boostbins.sources.request import check_column

if TYPE_CHECKING:
    from boostbins.comparison.result import Comparison
    from boostbins.reporting import Report

SHOWN = 10  # columns of a report, in the terminal


def run_demo(options: argparse.Namespace, screen: Screen) -> int:
    """Do the main job on built-in data."""
    import pyarrow

    from boostbins.cli.demo import skewed_table, skewed_target
    from boostbins.comparison.measure import compare
    from boostbins.reporting import report
    from boostbins.reporting.page import page

    trainer = chosen_trainer(options.library)
    check_writable(options.html)
    write = None if options.data is None else table_writer(options.data)
    if options.data is not None:
        check_writable(options.data)
    X = skewed_table()
    y = skewed_target(X)
    title = "boostbins' demo: a skewed table"
    screen.note(
        f"{len(y):,} rows of made-up data: skewed columns (incomes, claims, a sensor) whose tails matter. "
        f"{trainer.title} is trained with its own bins, which count rows, and with others."
    )
    found = report(X, y, target="cost", title=title)
    with screen.progress("training") as progress:
        methods = ["auto", "kmeans", "quantile", "shared", "auto-bins"]
        result = compare(X, y, trainer.module, methods, title=title, progress=progress)
    page(comparison=result.to_dict(), report=found.to_dict(), path=options.html)
    _show_costs(found, screen)
    _show_comparison(result, screen)
    screen.print_json({"comparison": result.to_dict(), "report": found.to_dict()})
    screen.note(f"page: {Path(options.html).absolute()}")
    others = [name for name, other in TRAINERS.items() if other.is_installed and name != trainer.module]
    if others and options.library is None:
        screen.note(f"likewise: boostbins demo --library {others[0]}")
    if write is not None:
        write(iter([pyarrow.table({**X, "cost": y})]), options.data)
        screen.note(f"data, whose target is 'cost': {options.data}")
    screen.note("on a file of yours: boostbins compare data.parquet --target price")
    return 0


def run_compare(options: argparse.Namespace, screen: Screen) -> int:
    """Train a library with each method's bins, and tell which is worth it."""
    from boostbins.comparison.measure import COMPARED, compare

    chosen_trainer(options.library)
    if options.html:
        check_output(options.html, options.data)
    table = _read(options)
    with screen.progress("training") as progress:
        result = compare(
            table,
            options.target,
            options.library,
            COMPARED if options.methods is None else options.methods,
            options.max_bins,
            task=options.task,
            metric=options.metric,
            splits=options.splits,
            sample_weight=options.weight,
            params=dict(options.param),
            max_rows=options.max_rows,
            random_state=options.seed,
            title=title_of(options.data),
            progress=progress,
        )
    if options.html:
        result.to_html(options.html)
    _show_comparison(result, screen)
    if options.html:
        screen.note(f"page: {Path(options.html).absolute()}")
    screen.print_json(result.to_dict())
    return 0 if result.is_complete else 130


def run_report(options: argparse.Namespace, screen: Screen) -> int:
    """Tell what binning does to each column."""
    from boostbins.reporting import report

    check_output(options.html, options.data)
    table = _read(options)
    with screen.progress("columns") as progress:
        found = report(
            table,
            options.target,
            options.methods,
            options.max_bins,
            sample_weight=options.weight,
            title=title_of(options.data),
            progress=progress,
        )
    found.to_html(options.html)
    for note in found.notes:
        screen.note(note)
    _show_costs(found, screen)
    for facts in found.facts[:SHOWN]:
        if (odd := facts.spotted(found.max_bins[0])) and not screen.quiet:
            screen.say(f"{facts.name}: {'; '.join(odd)}")
    if not screen.quiet:
        _show_choices(found, screen)
        screen.say()
    for line in found.verdict.split("\n"):
        screen.say(line, style="bold")
    screen.note(f"page: {Path(options.html).absolute()}")
    screen.print_json(found.to_dict())
    return 0


def _read(options: argparse.Namespace) -> Any:
    """Return the table in the files; the columns that options name must be there."""
    table = read_files(options.data)
    for option, name in {"--target": options.target, "--weight": options.weight}.items():
        if name is not None:
            check_column(name, table.column_names, option)
    return table


# ---- what they print


def _show_comparison(result: Comparison, screen: Screen) -> None:
    from boostbins.comparison.result import NATIVE

    for note in result.notes:
        screen.note(note)
    better = "less is better" if result.less_is_better else "more is better"
    screen.note(
        f"{TRAINERS[result.library].title}, {result.task}, {result.n_rows:,} rows, {result.n_columns} columns, "
        f"{result.n_splits} splits; {result.metric_title}: {better}"
    )
    colors = {"better": "green", "worse": "red"}
    rows, styles = [], []
    for row in result.table.to_dict("records"):
        is_native = row["method"] == NATIVE
        rows.append(
            [
                f"{TRAINERS[result.library].title}'s own" if is_native else row["method"],
                str(row["max_bins"]),
                f"{row['score']:.4g} ± {row['score_high'] - row['score']:.2g}",
                "" if is_native else f"{row['change']:+.1f} %",
                "" if is_native or row["change_low"] != row["change_low"] else _reach(row),
                row["meaning"],
                f"{row['seconds']:.2f} s",
                f"{row['time_ratio']:.2f}",
            ]
        )
        styles.append(colors.get(row["meaning"]))
    head = ["method", "bins", result.metric_title, "change", "95 % interval", "", "fit", "time"]
    screen.table(head, rows, styles)
    for line in result.verdict.split("\n"):
        screen.say(line, style="bold")
    if result.snippet and not screen.quiet:
        screen.say()
        for line in result.snippet.split("\n"):
            screen.say(f"    {line}")


def _reach(row: dict[str, Any]) -> str:
    return f"{row['change_low']:+.1f} to {row['change_high']:+.1f}"


def _show_choices(found: Report, screen: Screen) -> None:
    """Print what auto chose for the first columns, at the first number of bins."""
    max_bins = found.max_bins[0]
    for facts in found.facts[:SHOWN]:
        binned = facts.binned.get(("auto", max_bins))
        if binned is not None and binned.choice is not None:
            screen.say(f"{facts.name}: at {max_bins} bins auto chose {describe(binned.choice)}")


def _show_costs(found: Report, screen: Screen) -> None:
    from boostbins.reporting.facts import percent

    more = f"; the first {SHOWN} are shown, all are on the page" if len(found.facts) > SHOWN else ""
    screen.note(f"{found.n_rows:,} rows, {len(found.facts)} numeric columns{more}")
    pairs = [(max_bins, method) for max_bins in found.max_bins for method in ("quantile", "kmeans")]
    rows = [
        [
            facts.name if len(facts.name) <= 40 else facts.name[:39] + "…",
            f"{'' if facts.is_exact else 'over '}{facts.distinct:,}",
            f"{facts.skew:.3g}",
            *[percent(facts.binned[method, max_bins].lost) for max_bins, method in pairs],
        ]
        for facts in found.facts[:SHOWN]
    ]
    head = ["variance lost within bins", "values", "skew", *[f"{method} {max_bins}" for max_bins, method in pairs]]
    screen.table(head, rows)
