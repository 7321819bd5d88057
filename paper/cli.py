"""The command line of the reproduction."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from paper import datasets
from paper.jobs import ALL, EXPERIMENTS, PROTOCOLS, Job, plan
from paper.learners import LEARNERS
from paper.run import run, to_do
from paper.store import Store, StoreError

if TYPE_CHECKING:
    from paper.evidence import Evidence
    from paper.tables import Table

RESULTS = Path(__file__).parent / "results"
SMOKE_RESULTS = RESULTS.with_name("results-smoke")  # apart from what is kept


def main(arguments: list[str] | None = None) -> int:
    """Run a command; return 0 if all is well, 1 if something is missing or failed, 2 for wrong input, 130 on Ctrl-C."""
    sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]  # a terminal may not know every sign
    options = _parser().parse_args(arguments)
    try:
        return options.command(options)
    except (ValueError, StoreError, datasets.DatasetError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader of a pipe has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m paper", description="The paper, reproduced.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    data = commands.add_parser(
        "datasets",
        help="the 35 tasks and what of them is here",
        epilog="example: python -m paper datasets fetch abalone",
    )
    data.add_argument("action", nargs="?", choices=["list", "fetch"], default="list", help="default: list")
    data.add_argument("names", nargs="*", metavar="NAME", help="fetch these (default: all that the paper uses)")
    data.set_defaults(command=_datasets)

    running = commands.add_parser(
        "run",
        help="run experiments; a second run goes on where the first was stopped",
        epilog="example: python -m paper run real-255 real-63 --protocol fixed --only regression --max-rows 10000",
    )
    running.add_argument(
        "experiments", nargs="+", metavar="EXPERIMENT", help=f"{ALL} (of the paper), or {', '.join(EXPERIMENTS)}"
    )
    running.add_argument("--protocol", default="smoke", help=f"{', '.join(PROTOCOLS)} (default: smoke)")
    running.add_argument("--learner", default="sklearn", help=f"{', '.join(LEARNERS)} (default: sklearn)")
    running.add_argument("--only", nargs="+", default=[], metavar="NAME", help="datasets, tracks, methods or learners")
    running.add_argument("--seeds", type=_seeds, help="N for the first N, or A-B; the protocol's, if not given")
    running.add_argument("--max-rows", type=int, help="a random sample of so many rows per seed")
    running.add_argument("--hours", type=float, help="begin nothing after that time")
    running.add_argument("--jobs", type=int, default=-1, help="processes (default: one per core)")
    running.add_argument("--retry", action="store_true", help="run failed jobs again")
    running.add_argument("--anew", action="store_true", help="run what is done too: the newest result counts")
    running.add_argument("--out", type=Path, help="folder for a report when all is done")
    running.add_argument("--dry-run", action="store_true", help="show what would be run")
    running.set_defaults(command=_run)

    status = commands.add_parser("status", help="what has been run, and what failed")
    status.set_defaults(command=_status)

    claiming = commands.add_parser("claims", help="the paper's claims: what it states, what we measured")
    claiming.add_argument("--markdown", action="store_true", help="as the table of paper/README.md")
    claiming.set_defaults(command=_claims)

    asking = commands.add_parser(
        "auto",
        help="what is asked of boostbins' auto, what was measured, and whether it holds",
        epilog="example: python -m paper auto --out /tmp/auto, then look at /tmp/auto/figures/auto-frontier.png",
    )
    asking.add_argument("--markdown", action="store_true", help="as the tables of paper/README.md")
    asking.add_argument("--out", type=Path, help="folder for the tables and the figure")
    asking.set_defaults(command=_auto)

    sharing = commands.add_parser(
        "budget",
        help="what is asked of a total of bins for all columns, what was measured, and whether it holds",
        epilog="example: python -m paper run budget --protocol strong --hours 8; python -m paper budget",
    )
    sharing.add_argument("--markdown", action="store_true", help="with all tables")
    sharing.add_argument("--out", type=Path, help="folder for the tables")
    sharing.set_defaults(command=_budget)

    reporting = commands.add_parser(
        "report",
        help="tables, figures and one page of all",
        epilog="example: python -m paper report --out /tmp/paper, then open /tmp/paper/report.html",
    )
    reporting.add_argument("--out", type=Path, default=Path("paper-report"), help="folder (default: paper-report)")
    reporting.set_defaults(command=_report)

    running.add_argument(
        "--results", type=Path, help=f"folder (default: {RESULTS}, or {SMOKE_RESULTS.name} beside it for smoke)"
    )
    for command in (status, claiming, asking, sharing, reporting):
        command.add_argument("--results", type=Path, help=f"folder (default: {RESULTS})")
    for command in (claiming, asking, sharing, reporting):
        command.add_argument(
            "--older", action="store_true", help="results of cuts that have changed since, where there are no others"
        )
    return parser


def _seeds(text: str) -> range:
    found = re.fullmatch(r"(?:(\d+)-)?(\d+)", text)
    seeds = range(0)
    if found:
        seeds = range(int(found[2])) if found[1] is None else range(int(found[1]), int(found[2]) + 1)
    if not seeds:
        raise argparse.ArgumentTypeError(f"must be N (the first N) or A-B, got {text!r}")
    return seeds


def _datasets(options: argparse.Namespace) -> int:
    return _fetch(options.names) if options.action == "fetch" else _list()


def _fetch(names: list[str]) -> int:
    """Load everything once: what is not in the folder comes from OpenML, whose client keeps it."""
    tasks = [task for name in names for task in datasets.tasks_named(name)] or [t for t in datasets.TASKS if t.used]
    missing = 0
    for task in tasks:
        try:
            data = datasets.load(task.key)
            print(f"{task.key}: {len(data.y):,} of {task.rows:,} rows, {data.source}, checksum {data.checksum}")
        except datasets.DatasetError as error:
            missing += 1
            print(error, file=sys.stderr)
    return int(missing > 0)


def _list() -> int:
    rows = []
    for task in datasets.TASKS:
        path = datasets.local_path(task)
        here = "" if path is None else _rows_here(path, task)
        rows.append(
            {
                "task": task.openml_task,
                "dataset": task.key,
                "rows": f"{task.rows:,}",
                "features": task.features,
                "mean skew": "" if task.skew is None else f"{task.skew:.2f}",
                "here": here if task.used else "not used by the paper",
            }
        )
    print(pd.DataFrame(rows).to_markdown(index=False, disable_numparse=True))
    print(f"\nLocal folder ({datasets.FOLDER_VARIABLE}): {datasets.folder() or 'not set'}.")
    print("What is not there is fetched from OpenML.")
    return 0


def _rows_here(path: Path, task: datasets.Task) -> str:
    import pyarrow.parquet

    try:
        rows = pyarrow.parquet.read_metadata(path).num_rows
    except (OSError, ValueError):
        return "unreadable"
    return "all rows" if rows >= task.rows else f"{rows:,} rows only"


def _run(options: argparse.Namespace) -> int:
    if options.hours is not None and not options.hours > 0:
        raise ValueError(f"hours must be more than 0, got {options.hours:g}")
    if options.jobs == 0:
        raise ValueError("jobs must not be 0: -1 is one per core")
    jobs = plan(options.experiments, options.protocol, options.learner, options.only, options.seeds, options.max_rows)
    store = Store(options.results or (SMOKE_RESULTS if options.protocol == "smoke" else RESULTS))
    missing = to_do(jobs, store, options.retry, options.anew)
    print(f"{len(jobs):,} jobs, {len(jobs) - len(missing):,} done before; results in {store.folder}")
    if options.dry_run:
        _show(missing)
        return 0
    tally = run(jobs, store, options.jobs, options.hours, options.retry, options.anew)
    left, failed = to_do(jobs, store, False), {job.key for job in jobs} & set(store.failed())
    without = f" ({tally.missing:,} of them without data)" if tally.missing else ""
    print(f"{tally.done:,} done, {len(failed):,} failed, {len(left):,} left{without}")
    if failed and not tally.failed:
        print("`status` shows the failed ones; --retry runs them again", file=sys.stderr)
    if tally.stopped:
        print(f"stopped: {tally.stopped}. The same command goes on from here.", file=sys.stderr)
    if tally.stopped == "interrupted":
        return 130
    if options.out and not tally.stopped:
        _write_report(store, options.out)
    return 1 if left or failed else 0


def _existing(options: argparse.Namespace) -> Store:
    folder = options.results or RESULTS
    if not folder.is_dir():
        raise ValueError(f"--results: there is no folder {folder}")
    return Store(folder)


def _status(options: argparse.Namespace) -> int:
    from paper.evidence import Evidence

    store = _existing(options)
    frame = store.frame()
    if frame.empty:
        print(f"{store.folder} has no results yet: `python -m paper run --help`")
        return 1
    frame["failed"] = frame["error"] != ""
    table = frame.groupby(["kind", "protocol", "learner", "max_rows"], sort=False).agg(
        datasets=("data", "nunique"), seeds=("seed", "nunique"), jobs=("data", "size"), failed=("failed", "sum")
    )
    print(table.reset_index().to_markdown(index=False))
    if mixed := Evidence(frame).mixed:
        print(f"results on different data are mixed (see the checksums): {', '.join(mixed)}")
    if store.n_older:
        print(f"{store.n_older:,} results are of cuts that have changed since: their jobs count as not done")
    if store.broken:
        print(f"{store.broken} unreadable rows: their jobs count as not done")
    for row in frame[frame["failed"]].itertuples():
        print(f"failed: {row.data} {row.learner} {row.method} seed {row.seed}: {row.error}")
    return int(frame["failed"].any())


def _claims(options: argparse.Namespace) -> int:
    from paper import claims
    from paper.evidence import Evidence

    evidence = Evidence(_existing(options).frame(options.older))
    if options.markdown:
        print(claims.table(evidence).shown.to_markdown(index=False, disable_numparse=True))
        return 0
    for verdict in claims.verdicts(evidence):
        if verdict.run == claims.RUNS[0]:
            print(f"\n{verdict.claim.text} The paper: {verdict.claim.stated}.")
        measured = verdict.finding.measured if verdict.finding else ""
        print(f"  {verdict.word:<8} {verdict.run.title:<24} {measured}")
    return 0


def _auto(options: argparse.Namespace) -> int:
    from paper import auto, figures

    def write_figures(tables: list[Table], folder: Path) -> None:
        for table in tables:
            if table.name == auto.FRONTIER:
                figures.frontier(table.numbers).write(folder)

    return _asked(options, auto.all_tables, "auto", "auto-255 auto-63 auto-synthetic", write_figures)


def _budget(options: argparse.Namespace) -> int:
    from paper import budget, figures

    def write_figures(tables: list[Table], folder: Path) -> None:
        if (found := budget.frontier(tables)) is not None:
            figures.shared(*found).write(folder)

    return _asked(options, budget.all_tables, "totals of bins", "budget budget-synthetic budget-speed", write_figures)


def _asked(
    options: argparse.Namespace,
    tables_of: Callable[[Evidence], Iterable[Table]],
    what: str,
    experiments: str,
    write_figures: Callable[[list[Table], Path], None] = lambda tables, folder: None,
) -> int:
    """Show what is asked, the first table, or all that it is read from."""
    from paper.evidence import Evidence

    store = _existing(options)
    tables = list(tables_of(Evidence(store.frame(options.older), store.before())))
    if not tables:
        older = f" with today's cuts ({store.n_older:,} are of older ones: see --older)" if store.n_older else ""
        print(f"{store.folder} has no results of {what}{older} yet: `python -m paper run {experiments}`")
        return 1
    if options.markdown:
        print("\n".join(table.markdown() for table in tables).rstrip())
    else:
        for asked, where, word, measured in tables[0].shown.itertuples(index=False):
            print(f"{word.strip('*'):<8} {asked} ({where}): {measured or 'too few results'}")
    if options.out:
        for table in tables:
            table.write(options.out / "tables")
        write_figures(tables, options.out / "figures")
        print(options.out)
    return 0


def _report(options: argparse.Namespace) -> int:
    _write_report(_existing(options), options.out, options.older)
    return 0


def _write_report(store: Store, folder: Path, older: bool = False) -> None:
    from paper import report  # which loads the drawing library

    print(report.write(store, folder, older))


def _show(jobs: list[Job]) -> None:
    if not jobs:
        print("nothing to do")
        return
    frame = pd.DataFrame([vars(job) for job in jobs])
    table = frame.groupby(["kind", "learner", "method", "max_bins"], sort=False).agg(
        datasets=("data", "nunique"), seeds=("seed", "nunique"), jobs=("data", "size")
    )
    print(table.reset_index().to_markdown(index=False))
