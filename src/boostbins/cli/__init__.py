"""The command line: what the commands take, and how they end."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from boostbins import METHODS, __version__
from boostbins.cli.bins import run_encode, run_fit, run_show, run_summarize
from boostbins.cli.compare import run_compare, run_demo, run_report
from boostbins.cli.console import Screen, visible
from boostbins.comparison.trainers import SHARED, TRAINERS
from boostbins.sources.request import meant
from boostbins.summary.column import MAX_CELLS

DEBUG = "BOOSTBINS_DEBUG"  # set to anything, errors come with their traceback

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
    except UnicodeEncodeError as error:  # Arrow opens no file of such a name
        return _ended(2, f"{error.object!r} is not UTF-8: rename it")
    except (ValueError, TypeError) as error:
        return _ended(2, str(error))
    except KeyError as error:  # whose text is in quotes
        return _ended(2, str(error.args[0] if error.args else error))


def _open_streams() -> None:
    """Let what was closed by whoever started this lead nowhere."""
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115, PTH123
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115, PTH123


def _ended(code: int, why: str) -> int:
    if os.environ.get(DEBUG):
        raise
    print(f"boostbins: {visible(' '.join(why.split()))}", file=sys.stderr)
    return code


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _total(text: str) -> int | str:
    try:
        return text if text == "auto" else int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"a whole number or auto, got {text!r}") from None


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

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Refuse what is not among the choices, with the nearest one."""
        choices = [] if action.choices is None else list(action.choices)
        if choices and value not in choices:
            listed = ", ".join(map(repr, choices))
            raise argparse.ArgumentError(action, f"must be one of {listed}, got {value!r}{meant(value, choices)}")

    def error(self, message: str) -> NoReturn:
        """End with the message, and where to read on."""
        self.exit(2, f"boostbins: {visible(message)} ({self.prog} --help tells more)\n")


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

    def command(name: str, run: Callable[..., int], what: str, *examples: str) -> argparse.ArgumentParser:
        added = commands.add_parser(
            name,
            parents=[always],
            help=what,
            description=what[0].upper() + what[1:] + ".",
            epilog="\n  ".join(["example:" if len(examples) == 1 else "examples:", *examples]),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        added.set_defaults(command=run)
        return added

    methods = ", ".join(METHODS)
    libraries = list(TRAINERS)

    demo = command("demo", run_demo, "the main job on built-in data: a table, a verdict and a page", "boostbins demo")
    demo.add_argument("--library", choices=libraries, help="default: the first that is installed")
    demo.add_argument("--data", metavar="FILE", help="write the data there too, to try the other commands on")
    demo.add_argument("--html", default="boostbins-demo.html", metavar="PAGE", help="default: %(default)s")

    comparing = command(
        "compare", run_compare,
        "train a library with each method's bins on the same splits, and tell which is worth it",
        "boostbins compare data.parquet --target price --library lightgbm --max-bins 255,63 --html page.html",
    )  # fmt: skip
    comparing.add_argument("data", nargs="+", metavar="DATA", help=_FILES)
    comparing.add_argument("--target", required=True, metavar="COLUMN", help="what is to be predicted")
    comparing.add_argument("--library", choices=libraries, help="default: the first that is installed")
    comparing.add_argument(
        "--methods", type=_names, metavar="A,B", help=f"of {methods}, {', '.join(SHARED)}; default: all but hybrid"
    )
    comparing.add_argument("--max-bins", type=_budgets, default=[255, 63], metavar="N,N", help="default: 255,63")
    comparing.add_argument("--task", choices=["auto", "regression", "classification"], default="auto")
    comparing.add_argument("--metric", metavar="NAME", help="by scikit-learn's names, e.g. neg_mean_absolute_error")
    comparing.add_argument("--splits", type=int, default=5, metavar="N", help="default: 5; more tell more")
    comparing.add_argument("--weight", metavar="COLUMN", help="weights of the rows")
    comparing.add_argument(
        "--param", type=_parameter, action="append", default=[], metavar="NAME=VALUE",
        help="a parameter of the library, e.g. n_estimators=500; can be repeated",
    )  # fmt: skip
    comparing.add_argument("--max-rows", type=int, metavar="N", help="a random sample of N rows")
    comparing.add_argument("--seed", type=int, default=0, metavar="N", help="of the splits; default: 0")
    comparing.add_argument("--html", metavar="PAGE", help="write a page")

    reporting = command(
        "report", run_report, "tell what binning does to each column, without training",
        "boostbins report data.parquet --target price --html report.html",
    )  # fmt: skip
    reporting.add_argument("data", nargs="+", metavar="DATA", help=_FILES)
    reporting.add_argument("--target", metavar="COLUMN", help="tell how it varies inside bins, and what auto chose")
    reporting.add_argument("--methods", type=_names, default=list(METHODS), metavar="A,B", help=f"of {methods}")
    reporting.add_argument("--max-bins", type=_budgets, default=[255, 63], metavar="N,N", help="default: 255,63")
    reporting.add_argument("--weight", metavar="COLUMN", help="weights of the rows")
    reporting.add_argument("--html", default="boostbins-report.html", metavar="PAGE", help="default: %(default)s")

    fitting = command(
        "fit", run_fit, "find bins and write them to a file",
        "boostbins fit data.parquet --method kmeans --without price -o bins.json",
        "boostbins fit data.parquet --target price --average-bins 63 -o bins.json",
    )  # fmt: skip
    fitting.add_argument("data", nargs="+", metavar="DATA", help=f"{_FILES}; or what summarize wrote")
    fitting.add_argument("--method", choices=list(METHODS), default="kmeans", help="default: kmeans")
    fitting.add_argument(
        "--target", metavar="COLUMN", help="what auto, --total-bins and --average-bins look at; it gets no bins"
    )
    fitting.add_argument(
        "--max-bins", type=int, metavar="N", help="of a column; default: 255, or 4095 where columns share a total"
    )
    fitting.add_argument(
        "--total-bins",
        type=_total,
        metavar="N",
        help="in all columns together: many for those that the target needs finely; auto: as many as are enough",
    )
    fitting.add_argument("--average-bins", type=float, metavar="N", help="--total-bins as an average per column")
    fitting.add_argument("--weight", metavar="COLUMN", help="weights of the rows")
    fitting.add_argument("--columns", type=_names, metavar="A,B", help="these only")
    fitting.add_argument("--without", type=_names, metavar="A,B", help="not these")
    fitting.add_argument("--exact", action="store_true", help="hold every distinct value")
    fitting.add_argument("-o", "--output", required=True, metavar="BINS", help="the file to write (JSON)")

    summarizing = command(
        "summarize", run_summarize, "write summaries of columns, which fit takes instead of data, and which add up",
        "boostbins summarize part-*.parquet --without price -o summary.bin",
        "boostbins summarize part-*.parquet --target price -o summary.bin",
    )  # fmt: skip
    summarizing.add_argument("data", nargs="+", metavar="DATA", help=f"{_FILES}; or what summarize wrote, to add it up")
    summarizing.add_argument("--target", metavar="COLUMN", help="sum it up too, for fit --method auto")
    summarizing.add_argument("--weight", metavar="COLUMN", help="weights of the rows")
    summarizing.add_argument("--columns", type=_names, metavar="A,B", help="these only")
    summarizing.add_argument("--without", type=_names, metavar="A,B", help="not these")
    summarizing.add_argument(
        "--max-cells", type=int, default=MAX_CELLS, metavar="N", help="per column, 4 for each bin; default: %(default)s"
    )
    summarizing.add_argument("--exact", action="store_true", help="hold every distinct value")
    summarizing.add_argument("-o", "--output", required=True, metavar="SUMMARY", help="the file to write")

    encoding = command(
        "encode", run_encode, "write the number of the bin of every value",
        "boostbins encode data.parquet bins.json -o codes.parquet",
    )  # fmt: skip
    encoding.add_argument("data", nargs="+", metavar="DATA", help=_FILES)
    encoding.add_argument("bins", metavar="BINS", help="what fit wrote")
    encoding.add_argument("-o", "--output", required=True, metavar="CODES", help=".parquet, .feather or .csv")

    showing = command("show", run_show, "print what is in a file of bins", "boostbins show bins.json --column income")
    showing.add_argument("bins", metavar="BINS", help="what fit wrote")
    showing.add_argument("--column", metavar="COLUMN", help="the bins of one column")
    return parser
