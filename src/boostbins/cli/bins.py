"""The commands on bins and summaries, and files of any size: fit, summarize, encode, show."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Any

from boostbins._atomic import atomic_write, table_writer
from boostbins._threads import Progress, prefetch
from boostbins.bins import Bins
from boostbins.cli.console import Screen, describe
from boostbins.fit import fit_bins, summarize
from boostbins.methods import needs_target
from boostbins.methods.budget import BinShare, Total
from boostbins.methods.choice import Choice
from boostbins.sources.features import notes_on
from boostbins.sources.files import as_table
from boostbins.sources.reading import check_output, read_files, title_of
from boostbins.sources.request import Request, check_column
from boostbins.sources.stream import Stream, open_stream
from boostbins.sources.table import TEXT, read_table
from boostbins.summary.table import MAGIC, TableSummary

MEGABYTE = 10**6


def run_fit(options: argparse.Namespace, screen: Screen) -> int:
    """Find bins, and write them to a file."""
    check_output(options.output, options.data)
    source, columns = _source(options)
    y = options.target if needs_target(options.method, Total(options.total_bins, options.average_bins)) else None
    notes = []
    asked = (options.total_bins, options.average_bins)
    if asked == ("auto", None) and options.target is None and not _has_target(source):
        raise ValueError(f"--total-bins auto needs a target, for which bins are enough: {_how(source)} --target COLUMN")
    if options.method == "auto" and y is None and not _has_target(source):
        notes.append(f"auto looks at the target, and there is none: it does as hybrid ({_how(source)} --target COLUMN)")
    if y is not None and isinstance(source, Stream) and _has_classes(source, y):
        source = read_files(options.data)  # which classes there are is known at the end
    with screen.progress("MB", MEGABYTE) as progress:
        bins = fit_bins(
            source,
            options.method,
            options.max_bins,
            options.weight,
            y=y,
            columns=columns,
            total_bins=options.total_bins,
            average_bins=options.average_bins,
            exact=options.exact,
            non_numeric="skip",
            dates_as_numbers=True,
            progress=progress,
        )
    bins.save(options.output)
    for note in [*notes, *_notes(source, columns, bins)]:
        screen.note(note)
    _show_bins(bins, screen)
    screen.note(f"bins of {len(bins)} columns: {options.output}")
    return 0


def run_summarize(options: argparse.Namespace, screen: Screen) -> int:
    """Write the summary of files, or the sum of summaries."""
    check_output(options.output, options.data)
    source, columns = _source(options)
    if options.target is not None and isinstance(source, Stream) and _has_classes(source, options.target):
        raise ValueError(
            f"--target: column {options.target!r} must hold numbers, for parts that are added up may have other "
            f"classes: fit the data itself, or write the classes as numbers"
        )
    with screen.progress("MB", MEGABYTE) as progress:
        summary = summarize(
            source,
            options.weight,
            y=options.target,
            columns=columns,
            max_cells=None if options.exact else options.max_cells,
            non_numeric="skip",
            dates_as_numbers=True,
            progress=progress,
        )
    data = summary.to_bytes()
    with atomic_write(options.output) as file:
        file.write_bytes(data)
    for note in _notes(source, columns, summary):
        screen.note(note)
    screen.print_json({"rows": summary.n_rows, "columns": list(summary.names), "bytes": len(data)})
    screen.note(f"{summary.n_rows:,} rows of {len(summary)} columns in {len(data) / MEGABYTE:.1f} MB: {options.output}")
    return 0


def _source(options: argparse.Namespace) -> tuple[Any, list[str] | None]:
    """Return files as a stream, or saved summaries, added up; and the columns that are asked for."""
    if any(map(_is_summary, options.data)):
        return _summed(options), options.columns
    stream = open_stream(options.data)
    assert stream is not None
    names = list(stream.names or ())
    per_row = {"--weight": options.weight, "--target": options.target}
    for option, named in {"--without": options.without, "--columns": options.columns}.items():
        for name in named or ():
            check_column(name, names, option)
    without = set(options.without or ())
    chosen = [name for name in Request(options.columns, per_row).chosen(names) if name not in without]
    if not chosen:
        raise ValueError(f"{title_of(options.data)} has no numeric columns: there is nothing to bin")
    return stream, chosen


def _notes(source: Any, asked: Sequence[str] | None, found: Bins | TableSummary) -> list[str]:
    """Return notes on the columns that hold dates, and of those that were left out."""
    left_out = [name for name in asked or () if name not in found.names]
    held: Mapping[str, str] = {}
    if left_out and isinstance(source, Stream):
        first = next(source.chunks(left_out))
        held = read_table(as_table(first.data), Request(non_numeric="skip", dates_as_numbers=True)).left_out
    return notes_on(found.units, {name: held.get(name, TEXT) for name in left_out})


def _has_classes(stream: Stream, target: str) -> bool:
    """Return whether a target is no numbers, by the first chunk."""
    import narwhals as nw

    for chunk in stream.chunks([target]):
        kind = nw.from_native(as_table(chunk.data)).schema[target]
        return not (kind.is_numeric() or kind == nw.Boolean)
    return False


def _has_target(source: Stream | TableSummary) -> bool:
    return isinstance(source, TableSummary) and any(column.has_target for column in source)


def _how(source: Stream | TableSummary) -> str:
    return "summarize with" if isinstance(source, TableSummary) else "give"


@contextmanager
def _readable(name: str) -> Iterator[None]:
    """Say of a file that it cannot be read."""
    try:
        yield
    except OSError as error:
        raise ValueError(f"cannot read {name}: {error.strerror or error}") from None


def _is_summary(name: str) -> bool:
    with _readable(name):
        if not Path(name).is_file():
            return False
        with Path(name).open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC


def _loaded_summary(name: str) -> TableSummary:
    with _readable(name):
        return TableSummary.load(name)


def _summed(options: argparse.Namespace) -> TableSummary:
    if odd := [name for name in options.data if not _is_summary(name)]:
        raise ValueError(f"{odd[0]} is no summary, and the others are: summarize it first")
    if options.weight or options.target or options.without:
        raise ValueError(
            "--weight, --target and --without are for data: what a summary holds was decided when it was made"
        )
    total, *others = map(_loaded_summary, options.data)
    for other in others:
        total = total + other
    return summarize(total, columns=options.columns)


def run_encode(options: argparse.Namespace, screen: Screen) -> int:
    """Write the number of the bin of every value."""
    import pyarrow

    write = table_writer(options.output)
    check_output(options.output, [*options.data, options.bins])
    bins = _loaded(options.bins)
    stream = open_stream(options.data)
    assert stream is not None
    for name in bins.names:
        check_column(name, stream.names or (), "the bins")
    n_rows = 0

    def coded(progress: Progress) -> Iterator[Any]:
        nonlocal n_rows
        done = 0
        for chunk in prefetch(stream.chunks(bins.names)):
            done += chunk.size
            if chunk.data.num_rows == 0:
                continue
            codes = bins.encode(as_table(chunk.data), order="F", non_numeric="skip")
            n_rows += len(codes)
            progress(done, max(done, stream.size), chunk.where)
            yield pyarrow.table({name: codes[:, i] for i, name in enumerate(bins.names)})

    with screen.progress("MB", MEGABYTE) as progress:
        write(coded(progress), options.output)
    screen.print_json({"rows": n_rows, "columns": len(bins), "missing_code": bins.missing_code})
    screen.note(f"{n_rows:,} rows of {len(bins)} columns: {options.output} ({bins.missing_code} is missing)")
    return 0


def run_show(options: argparse.Namespace, screen: Screen) -> int:
    """Print what is in a file of bins."""
    bins = _loaded(options.bins)
    if options.column is None:
        _show_bins(bins, screen)
        return 0
    check_column(options.column, bins.names, "--column")
    if (share := bins.shares.get(options.column)) is not None and not screen.quiet:
        screen.say(f"{len(bins[options.column]) + 1:,} bins: {share.why}")
    if (choice := bins.choices.get(options.column)) is not None and not screen.quiet:
        _show_choice(choice, screen)
    if bins.stats is None:
        ends = ["-inf", *[f"{cut:.6g}" for cut in bins[options.column]], "inf"]
        rows = [[str(i), low, high] for i, (low, high) in enumerate(pairwise(ends))]
        screen.table(["bin", "above", "up to"], rows)
        screen.print_json([{"bin": i, "cut": cut} for i, cut in enumerate(bins[options.column].tolist())])
        return 0
    import narwhals as nw

    table = nw.from_native(bins.table(options.column))
    found = [dict(zip(table.columns, row, strict=True)) for row in table.iter_rows()]
    head = ["bin", "above", "up to", "rows", "share", "mean"]
    screen.table(
        head,
        [
            [
                "missing" if row["bin"] == bins.missing_code and row["low"] != row["low"] else str(row["bin"]),
                *[f"{row[key]:.6g}" for key in ("low", "high")],
                f"{row['weight']:,.6g}",
                f"{row['share']:.2%}",
                f"{row['mean']:.6g}",
            ]
            for row in found
        ],
    )
    plain = [{key: value if abs(value) < float("inf") else None for key, value in _numbers(row)} for row in found]
    screen.print_json(plain)
    return 0


def _numbers(row: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    yield from ((key, value) for key, value in row.items() if not isinstance(value, str))


def _show_bins(bins: Bins, screen: Screen) -> None:
    if bins.stats is None:
        rows = [[name, str(n)] for name, n in zip(bins.names, bins.n_bins, strict=True)]
        screen.table(["column", "bins"], rows)
        screen.print_json([{"column": name, "bins": int(n)} for name, n in rows])
        return
    import narwhals as nw

    table = nw.from_native(bins.costs())
    found = [dict(zip(table.columns, row, strict=True)) for row in table.iter_rows()]
    choices, shares = bins.choices, bins.shares
    head = ["column", "bins", "variance lost", "largest bin", "values in it"]
    rows = [
        [row["column"], str(row["bins"]), f"{row['lost']:.3%}", f"{row['largest_bin']:.2%}", f"{row['hidden']:,}"]
        for row in found
    ]
    if shares:
        head.append("value of its bins")
        rows = [[*row, f"{shares[row[0]].value:.1%}" if row[0] in shares else "–"] for row in rows]
    if choices:
        head.append("auto chose")
        rows = [[*row, choices[row[0]].chosen if row[0] in choices else "–"] for row in rows]
    screen.table(head, rows)
    if not screen.quiet:
        for name, choice in choices.items():
            screen.say(f"{name}: {describe(choice)}")
    screen.print_json(
        [{**row, **_share_dict(shares.get(row["column"])), **_choice_dict(choices.get(row["column"]))} for row in found]
    )


def _choice_dict(choice: Choice | None) -> dict[str, Any]:
    """Return a choice for machines, if there was one."""
    return {} if choice is None else {"choice": {**asdict(choice), "usual": choice.usual, "why": choice.why}}


def _share_dict(share: BinShare | None) -> dict[str, Any]:
    """Return for machines how a column shares a total, if it does."""
    return {} if share is None else {"share": {**asdict(share), "why": share.why}}


def _show_choice(choice: Choice, screen: Screen) -> None:
    """Print what each candidate explains of the target, the best first."""
    rows = [
        [name, f"{share:.3%}", "usual" if name == choice.usual else f"± {choice.noise[name]:.3%}"]
        for name, share in sorted(choice.explained.items(), key=lambda item: -item[1])
    ]
    if rows:
        screen.table(["candidate", "explains of the target", "by chance"], rows)
    screen.say(f"auto chose {describe(choice)}")


def _loaded(path: str) -> Bins:
    with _readable(path):
        return Bins.load(path)
