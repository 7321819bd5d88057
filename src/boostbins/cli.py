"""The command line: demo, compare, report, fit, summarize, encode, show."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from boostbins import METHODS, Bins, TableSummary, __version__, fit_bins, summarize
from boostbins.features import nearest, numbers_only
from boostbins.reading import STDIN, read_files
from boostbins.screen import Screen
from boostbins.stream import Stream, open_stream
from boostbins.summary import MAX_CELLS
from boostbins.table_summary import MAGIC as SUMMARY_MAGIC
from boostbins.threads import Progress, ahead
from boostbins.trainers import TRAINERS, chosen_trainer
from boostbins.writing import check_writable, whole_file

if TYPE_CHECKING:
    from boostbins.comparison import Comparison
    from boostbins.reporting import Report

DEBUG = "BOOSTBINS_DEBUG"  # set to anything, errors come with their traceback
MEGABYTE = 10**6
SHOWN = 10  # columns of a report, in the terminal

_FILES = "CSV, Parquet or Feather files, compressed or not; a pattern; a folder; - for standard input"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return 0 if all is well, 1 if something failed, 2 for wrong input, 130 on Ctrl-C."""
    _open_streams()
    parser = _parser()
    options = parser.parse_args(arguments)
    if not hasattr(options, "command"):
        parser.print_help()
        return 2
    try:
        screen = Screen(options)
        with screen.interrupts():
            return int(options.command(options, screen))
    except KeyboardInterrupt:
        return _ended(130, "stopped")
    except BrokenPipeError:  # the reader of a pipe has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (ImportError, OSError, MemoryError) as error:
        return _ended(1, str(error) or type(error).__name__)
    except (ValueError, TypeError, KeyError) as error:
        return _ended(2, str(error.args[0] if error.args else error))


def _open_streams() -> None:
    """Let what was closed by whoever started this lead nowhere."""
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115, PTH123
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115, PTH123


def _ended(code: int, why: str) -> int:
    if os.environ.get(DEBUG):
        raise
    print(f"boostbins: {' '.join(why.split())}", file=sys.stderr)
    return code


# ---- the commands


def _demo(options: argparse.Namespace, screen: Screen) -> int:
    import pyarrow

    from boostbins.comparison import compare
    from boostbins.demo import skewed_table, skewed_target
    from boostbins.reporting import report
    from boostbins.reporting.page import page

    trainer = chosen_trainer(options.library)
    check_writable(options.html)
    write = None if options.data is None else _writer(options.data)
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
        result = compare(X, y, trainer.module, ["kmeans", "quantile"], title=title, progress=progress)
    page(comparison=result.to_dict(), report=found.to_dict(), path=options.html)
    _show_costs(found, screen)
    _show_comparison(result, screen)
    screen.machine({"comparison": result.to_dict(), "report": found.to_dict()})
    screen.note(f"page: {Path(options.html).resolve()}")
    others = [name for name, other in TRAINERS.items() if other.is_installed and name != trainer.module]
    if others and options.library is None:
        screen.note(f"likewise: boostbins demo --library {others[0]}")
    if write is not None:
        write(iter([pyarrow.table({**X, "cost": y})]), options.data)
        screen.note(f"data, whose target is 'cost': {options.data}")
    screen.note("on a file of yours: boostbins compare data.parquet --target price")
    return 0


def _compare(options: argparse.Namespace, screen: Screen) -> int:
    from boostbins.comparison import compare

    chosen_trainer(options.library)
    if options.html:
        _check_output(options.html, options.data)
    table = read_files(options.data)
    with screen.progress("training") as progress:
        result = compare(
            table,
            options.target,
            options.library,
            options.methods,
            options.max_bins,
            task=options.task,
            metric=options.metric,
            splits=options.splits,
            sample_weight=options.weight,
            params=dict(options.param),
            max_rows=options.max_rows,
            random_state=options.seed,
            title=_title(options.data),
            progress=progress,
        )
    if options.html:
        result.to_html(options.html)
    _show_comparison(result, screen)
    if options.html:
        screen.note(f"page: {Path(options.html).resolve()}")
    screen.machine(result.to_dict())
    return 0 if result.is_complete else 130


def _report(options: argparse.Namespace, screen: Screen) -> int:
    from boostbins.reporting import report

    _check_output(options.html, options.data)
    table = read_files(options.data)
    with screen.progress("columns") as progress:
        found = report(
            table,
            options.target,
            options.methods,
            options.max_bins,
            sample_weight=options.weight,
            title=_title(options.data),
            progress=progress,
        )
    found.to_html(options.html)
    for note in found.notes:
        screen.note(note)
    _show_costs(found, screen)
    for facts in found.facts[:SHOWN]:
        if (said := facts.spotted(found.max_bins[0])) and not screen.quiet:
            screen.say(f"{facts.name}: {'; '.join(said)}")
    if not screen.quiet:
        screen.say()
    screen.say(found.verdict, style="bold")
    screen.note(f"page: {Path(options.html).resolve()}")
    screen.machine(found.to_dict())
    return 0


def _fit(options: argparse.Namespace, screen: Screen) -> int:
    _check_output(options.output, options.data)
    source, notes = _source(options)
    with screen.progress("MB", MEGABYTE) as progress:
        bins = fit_bins(
            source, options.method, options.max_bins, options.weight, exact=options.exact, progress=progress
        )
    bins.save(options.output)
    for note in notes:
        screen.note(note)
    _show_bins(bins, screen)
    screen.note(f"bins of {len(bins)} columns: {options.output}")
    return 0


def _summarize(options: argparse.Namespace, screen: Screen) -> int:
    _check_output(options.output, options.data)
    source, notes = _source(options)
    max_cells = None if options.exact else options.max_cells
    with screen.progress("MB", MEGABYTE) as progress:
        summary = summarize(source, options.weight, max_cells=max_cells, progress=progress)
    summary.save(options.output)
    for note in notes:
        screen.note(note)
    size = Path(options.output).stat().st_size
    screen.machine({"rows": summary.n_rows, "columns": list(summary.names), "bytes": size})
    screen.note(f"{summary.n_rows:,} rows of {len(summary)} columns in {size / MEGABYTE:.1f} MB: {options.output}")
    return 0


def _source(options: argparse.Namespace) -> tuple[Stream | TableSummary, list[str]]:
    """Return saved summaries, added up, or the numeric columns of files; and what is said of the others."""
    return (_summed(options), []) if any(map(_is_summary, options.data)) else _numbers_in(options)


def _numbers_in(options: argparse.Namespace) -> tuple[Stream, list[str]]:
    """Return the numeric columns of files as a stream, dates as seconds, and a list for what is said of the others."""
    stream = open_stream(options.data)
    assert stream is not None
    names = list(stream.names or ())
    _check_columns(names, [options.weight, *(options.columns or []), *(options.without or [])])
    left_out = {options.weight, *(options.without or [])}
    chosen = [name for name in (names if options.columns is None else options.columns) if name not in left_out]
    notes: list[str] = []

    def change(table: Any) -> Any:
        numbers, said, _ = numbers_only(table.select(chosen))
        if numbers.num_columns == 0:
            raise nothing
        notes.extend(note for note in said if note not in notes)
        if options.weight is None:
            return numbers
        return numbers.append_column(options.weight, table.column(options.weight))

    nothing = ValueError(f"{_title(options.data)} has no numeric columns: there is nothing to bin")
    if not chosen:
        raise nothing
    columns = chosen if options.weight is None else [*chosen, options.weight]
    return stream.mapped(change, columns), notes


def _is_summary(name: str) -> bool:
    path = Path(name)
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(SUMMARY_MAGIC)) == SUMMARY_MAGIC


def _summed(options: argparse.Namespace) -> TableSummary:
    if odd := [name for name in options.data if not _is_summary(name)]:
        raise ValueError(f"{odd[0]} is no summary, and the others are: summarize it first")
    if options.weight or options.without:
        raise ValueError("--weight and --without are for data: what a summary holds was settled when it was made")
    total, *others = (TableSummary.load(name) for name in options.data)
    for other in others:
        total = total + other
    return summarize(total, columns=options.columns)


def _encode(options: argparse.Namespace, screen: Screen) -> int:
    import pyarrow

    write = _writer(options.output)
    _check_output(options.output, [*options.data, options.bins])
    bins = _loaded(options.bins)
    stream = open_stream(options.data)
    assert stream is not None
    _check_columns(list(stream.names or ()), bins.names)
    n_rows = 0

    def coded(progress: Progress) -> Iterator[Any]:
        nonlocal n_rows
        done = 0
        for chunk in ahead(stream.chunks(bins.names)):
            numbers = numbers_only(chunk.data).table
            if odd := [name for name in bins.names if name not in numbers.column_names]:
                raise ValueError(f"column {odd[0]!r} holds no numbers here, but did when the bins were fitted")
            done += chunk.size
            if numbers.num_rows == 0:
                continue
            n_rows += numbers.num_rows
            codes = bins.encode(numbers, order="F")
            progress(done, max(done, stream.size), chunk.where)
            yield pyarrow.table({name: codes[:, i] for i, name in enumerate(bins.names)})

    with screen.progress("MB", MEGABYTE) as progress:
        write(coded(progress), options.output)
    screen.machine({"rows": n_rows, "columns": len(bins), "missing_code": bins.missing_code})
    screen.note(f"{n_rows:,} rows of {len(bins)} columns: {options.output} ({bins.missing_code} is missing)")
    return 0


def _show(options: argparse.Namespace, screen: Screen) -> int:
    bins = _loaded(options.bins)
    if options.column is None:
        _show_bins(bins, screen)
        return 0
    if options.column not in bins.names:
        raise ValueError(f"there is no column {options.column!r}{nearest(options.column, bins.names)}")
    if bins.stats is None:
        ends = ["-inf", *[f"{cut:.6g}" for cut in bins[options.column]], "inf"]
        rows = [[str(i), low, high] for i, (low, high) in enumerate(pairwise(ends))]
        screen.table(["bin", "above", "up to"], rows)
        screen.machine([{"bin": i, "cut": cut} for i, cut in enumerate(bins[options.column].tolist())])
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
    screen.machine(plain)
    return 0


def _numbers(row: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    yield from ((key, value) for key, value in row.items() if not isinstance(value, str))


# ---- what they print


def _show_comparison(result: Comparison, screen: Screen) -> None:
    from boostbins.comparison import NATIVE

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
    screen.say(result.verdict, style="bold")
    if result.snippet and not screen.quiet:
        screen.say()
        for line in result.snippet.split("\n"):
            screen.say(f"    {line}")


def _reach(row: dict[str, Any]) -> str:
    return f"{row['change_low']:+.1f} to {row['change_high']:+.1f}"


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


def _show_bins(bins: Bins, screen: Screen) -> None:
    if bins.stats is None:
        rows = [[name, str(n)] for name, n in zip(bins.names, bins.n_bins, strict=True)]
        screen.table(["column", "bins"], rows)
        screen.machine([{"column": name, "bins": int(n)} for name, n in rows])
        return
    import narwhals as nw

    table = nw.from_native(bins.explained())
    found = [dict(zip(table.columns, row, strict=True)) for row in table.iter_rows()]
    head = ["column", "bins", "variance lost", "largest bin", "values in it"]
    screen.table(
        head,
        [
            [row["column"], str(row["bins"]), f"{row['lost']:.3%}", f"{row['largest_bin']:.2%}", f"{row['hidden']:,}"]
            for row in found
        ],
    )
    screen.machine(found)


# ---- what they take


def _loaded(path: str) -> Bins:
    try:
        return Bins.load(path)
    except OSError as error:
        raise ValueError(f"cannot read {path}: {error.strerror or error}") from None


def _check_output(path: str, inputs: Sequence[str]) -> None:
    """Refuse an output that cannot be written, or that would replace an input."""
    check_writable(path)
    for name in inputs:
        if Path(name).exists() and Path(path).exists() and Path(name).samefile(path) and Path(path).is_file():
            raise ValueError(f"{path} would replace the data that is read from it: name another file")


def _check_columns(known: Sequence[str], names: Sequence[str | None]) -> None:
    for name in names:
        if name is not None and name not in known:
            raise ValueError(f"there is no column {name!r}{nearest(name, known)}")


def _writer(path: str) -> Callable[[Iterator[Any], str], None]:
    """Return the function that writes Arrow tables, below each other, of the kind that a file's name asks for."""
    import pyarrow
    from pyarrow import csv, parquet

    compressed = pyarrow.ipc.IpcWriteOptions(compression="lz4")  # as Feather is
    kinds: dict[str, Callable[[str, Any], Any]] = {
        ".parquet": parquet.ParquetWriter,
        ".feather": lambda file, schema: pyarrow.ipc.new_file(file, schema, options=compressed),
        ".arrow": lambda file, schema: pyarrow.ipc.new_file(file, schema, options=compressed),
        ".csv": csv.CSVWriter,
    }
    kind = Path(path).suffix.lower()
    if kind not in kinds:
        raise ValueError(f"a file's name must end in {', '.join(kinds)}, got {path}")

    def write(tables: Iterator[Any], path: str) -> None:
        first = next(tables)
        with whole_file(path) as file, kinds[kind](str(file), first.schema) as writer:
            for table in chain([first], tables):
                writer.write_table(table)

    return write


def _title(data: Sequence[str]) -> str:
    if data == [STDIN]:
        return "standard input"
    return Path(data[0]).name if len(data) == 1 else f"{Path(data[0]).name} and {len(data) - 1} more"


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _budgets(text: str) -> list[int]:
    try:
        return [int(part) for part in _names(text)]
    except ValueError:
        raise argparse.ArgumentTypeError(f"whole numbers with commas between them, got {text!r}") from None


def _parameter(text: str) -> tuple[str, Any]:
    name, sign, value = text.partition("=")
    if not sign or not name:
        raise argparse.ArgumentTypeError(f"NAME=VALUE, e.g. n_estimators=500, got {text!r}")
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value


class _Parser(argparse.ArgumentParser):
    """A parser that says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        """End with the message, and where to read on."""
        self.exit(2, f"boostbins: {message} ({self.prog} --help tells more)\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        "boostbins",
        description="Bin edges for gradient-boosted trees: what yours cost, and better ones.",
        epilog="examples:\n  boostbins demo\n  boostbins report data.parquet --target price\n"
        "  boostbins compare data.parquet --target price --html page.html\n\nboostbins COMMAND --help tells more.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"boostbins {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND")
    always = _Parser(add_help=False)
    always.add_argument("-q", "--quiet", action="store_true", help="only the result in a line, or nothing")
    always.add_argument("--json", action="store_true", help="the result as JSON, for machines")

    def command(name: str, run: Callable[..., int], what: str, example: str) -> argparse.ArgumentParser:
        added = commands.add_parser(
            name,
            parents=[always],
            help=what,
            description=what[0].upper() + what[1:] + ".",
            epilog=f"example:\n  {example}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        added.set_defaults(command=run)
        return added

    methods = ", ".join(METHODS)
    libraries = list(TRAINERS)

    demo = command("demo", _demo, "the main job on built-in data: a table, a verdict and a page", "boostbins demo")
    demo.add_argument("--library", choices=libraries, help="default: the first that is installed")
    demo.add_argument("--data", metavar="FILE", help="write the data there too, to try the other commands on")
    demo.add_argument("--html", default="boostbins-demo.html", metavar="PAGE", help="default: %(default)s")

    comparing = command(
        "compare", _compare, "train a library with each method's bins on the same splits, and tell which is worth it",
        "boostbins compare data.parquet --target price --library lightgbm --max-bins 255,63 --html page.html",
    )  # fmt: skip
    comparing.add_argument("data", nargs="+", metavar="DATA", help=_FILES)
    comparing.add_argument("--target", required=True, metavar="COLUMN", help="what is to be predicted")
    comparing.add_argument("--library", choices=libraries, help="default: the first that is installed")
    comparing.add_argument("--methods", type=_names, default=list(METHODS), metavar="A,B", help=f"of {methods}")
    comparing.add_argument("--max-bins", type=_budgets, default=[255, 63], metavar="N,N", help="default: 255,63")
    comparing.add_argument("--task", choices=["auto", "regression", "classification"], default="auto")
    comparing.add_argument("--metric", metavar="NAME", help="by scikit-learn's names, e.g. neg_mean_absolute_error")
    comparing.add_argument("--splits", type=int, default=5, metavar="N", help="default: 5; more tell more")
    comparing.add_argument("--weight", metavar="COLUMN", help="weights of the rows")
    comparing.add_argument(
        "--param", type=_parameter, action="append", default=[], metavar="NAME=VALUE",
        help="a parameter of the library, e.g. n_estimators=500; can be repeated",
    )  # fmt: skip
    comparing.add_argument("--max-rows", type=int, metavar="N", help="a random sample of so many rows")
    comparing.add_argument("--seed", type=int, default=0, metavar="N", help="of the splits; default: 0")
    comparing.add_argument("--html", metavar="PAGE", help="write a page")

    reporting = command(
        "report", _report, "tell what binning does to each column, without training",
        "boostbins report data.parquet --target price --html report.html",
    )  # fmt: skip
    reporting.add_argument("data", nargs="+", metavar="DATA", help=_FILES)
    reporting.add_argument("--target", metavar="COLUMN", help="tell how it varies inside bins")
    reporting.add_argument("--methods", type=_names, default=list(METHODS), metavar="A,B", help=f"of {methods}")
    reporting.add_argument("--max-bins", type=_budgets, default=[255, 63], metavar="N,N", help="default: 255,63")
    reporting.add_argument("--weight", metavar="COLUMN", help="weights of the rows")
    reporting.add_argument("--html", default="boostbins-report.html", metavar="PAGE", help="default: %(default)s")

    fitting = command(
        "fit", _fit, "find bins and write them to a file",
        "boostbins fit data.parquet --method kmeans --without price -o bins.json",
    )  # fmt: skip
    fitting.add_argument("data", nargs="+", metavar="DATA", help=f"{_FILES}; or what summarize wrote")
    fitting.add_argument("--method", choices=list(METHODS), default="kmeans", help="default: kmeans")
    fitting.add_argument("--max-bins", type=int, default=255, metavar="N", help="default: 255")
    fitting.add_argument("--weight", metavar="COLUMN", help="weights of the rows")
    fitting.add_argument("--columns", type=_names, metavar="A,B", help="these only")
    fitting.add_argument("--without", type=_names, metavar="A,B", help="not these, e.g. the target")
    fitting.add_argument("--exact", action="store_true", help="hold every distinct value")
    fitting.add_argument("-o", "--output", required=True, metavar="BINS", help="the file to write (JSON)")

    summarizing = command(
        "summarize", _summarize, "write summaries of columns, which fit takes instead of data, and which add up",
        "boostbins summarize part-*.parquet --without price -o summary.bin",
    )  # fmt: skip
    summarizing.add_argument("data", nargs="+", metavar="DATA", help=f"{_FILES}; or what summarize wrote, to add it up")
    summarizing.add_argument("--weight", metavar="COLUMN", help="weights of the rows")
    summarizing.add_argument("--columns", type=_names, metavar="A,B", help="these only")
    summarizing.add_argument("--without", type=_names, metavar="A,B", help="not these, e.g. the target")
    summarizing.add_argument(
        "--max-cells", type=int, default=MAX_CELLS, metavar="N", help="per column, 4 for each bin; default: %(default)s"
    )
    summarizing.add_argument("--exact", action="store_true", help="hold every distinct value")
    summarizing.add_argument("-o", "--output", required=True, metavar="SUMMARY", help="the file to write")

    encoding = command(
        "encode", _encode, "write the number of the bin of every value",
        "boostbins encode data.parquet bins.json -o codes.parquet",
    )  # fmt: skip
    encoding.add_argument("data", nargs="+", metavar="DATA", help=_FILES)
    encoding.add_argument("bins", metavar="BINS", help="what fit wrote")
    encoding.add_argument("-o", "--output", required=True, metavar="CODES", help=".parquet, .feather or .csv")

    showing = command("show", _show, "print what is in a file of bins", "boostbins show bins.json --column income")
    showing.add_argument("bins", metavar="BINS", help="what fit wrote")
    showing.add_argument("--column", metavar="COLUMN", help="the bins of one column")
    return parser
