"""What the commands print, and where."""

from __future__ import annotations

import argparse
import json
import re
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from boostbins._atomic import is_standard_output
from boostbins._threads import Progress
from boostbins.methods.choice import Choice

PIPE_WIDTH = 120  # of tables that go elsewhere than to a terminal

# Control characters, what changes the direction or begins a line, and halves of pairs: the bytes of a file's name that
# is not UTF-8, among others.
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def describe(choice: Choice) -> str:
    """Return a choice and its reason in a line."""
    return f"{choice.chosen}, which {choice.why}" if choice.explained else f"{choice.chosen}: {choice.why}"


def visible(text: str) -> str:
    """Return text of which a terminal obeys nothing: names come from anywhere."""
    return _UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


class Screen:
    """Where results, notes and progress go: results to standard output, all else to the standard error.

    Where the file that a command writes is standard output, it has it for itself.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        try:
            from rich.console import Console
        except ImportError:
            raise ImportError("the command line needs rich: pip install 'boostbins[cli]'") from None

        class PipedConsole(Console):
            def on_broken_pipe(self) -> None:
                raise BrokenPipeError  # rich itself would end with an error

        self.is_interrupted = False
        self.quiet: bool = options.quiet
        self.json: bool = options.json
        for stream in (sys.stdout, sys.stderr):
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]  # a terminal may not know every sign
        is_taken = any(isinstance(value, str) and is_standard_output(value) for value in vars(options).values())
        if is_taken and self.json:
            raise ValueError("the result as JSON and the file that is written cannot both be standard output")
        width = None if (sys.stderr if is_taken else sys.stdout).isatty() else PIPE_WIDTH
        self.out = PipedConsole(stderr=is_taken, width=width, highlight=False, markup=False, emoji=False)
        self.err = Console(stderr=True, highlight=False, markup=False, emoji=False, soft_wrap=True)

    @contextmanager
    def interrupts(self) -> Iterator[None]:
        """End by an exception where a signal asks for it; a library's code may swallow it: `progress` raises again."""

        def interrupted(*_: Any) -> NoReturn:
            self.is_interrupted = True
            raise KeyboardInterrupt

        def ended(number: int, _: Any) -> NoReturn:
            self.is_interrupted = True
            raise SystemExit(128 + number)  # so that what is half written goes

        before: dict[signal.Signals, Any] = {}
        if threading.current_thread() is threading.main_thread():
            ways = {signal.SIGINT: interrupted, signal.SIGTERM: ended}
            ways |= {signal.SIGHUP: ended} if hasattr(signal, "SIGHUP") else {}
            before = {number: signal.getsignal(number) for number in ways}
            before = {number: known for number, known in before.items() if known not in (signal.SIG_IGN, None)}
        try:
            for number in before:
                signal.signal(number, ways[number])
            yield
        finally:
            for number, known in before.items():
                signal.signal(number, known)

    def say(self, text: str = "", style: str | None = None) -> None:
        """Print a line of the result; not with --json."""
        if not self.json:
            self.out.print(visible(text), style=style, soft_wrap=not self.out.is_terminal)

    def note(self, text: str) -> None:
        """Print what is good to know besides the result; not with --quiet."""
        if not self.quiet:
            self.err.print(visible(text), style="dim")

    def table(self, head: Sequence[str], rows: Sequence[Sequence[str]], styles: Sequence[str | None] = ()) -> None:
        """Print a table, the first column to the left and the others to the right; not with --json or --quiet."""
        if self.json or self.quiet:
            return
        from rich import box
        from rich.table import Table
        from rich.text import Text

        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for i, name in enumerate(head):
            table.add_column(Text(visible(name)), justify="left" if i == 0 else "right", overflow="fold")
        for row, style in zip(rows, [*styles, *[None] * len(rows)], strict=False):
            table.add_row(*[Text(visible(cell)) for cell in row], style=style)
        self.out.print(table)

    def print_json(self, value: Any) -> None:
        """Print a value as JSON, with --json."""
        if self.json:
            print(json.dumps(value, allow_nan=False, default=float))

    @contextmanager
    def progress(self, what: str, unit: int = 1) -> Iterator[Progress]:
        """Give a function that shows how far the work is and when it will be done, on a terminal; counted in units."""
        from rich import progress as rich_progress

        shown = rich_progress.Progress(
            rich_progress.TextColumn("{task.description}"),
            rich_progress.BarColumn(),
            rich_progress.MofNCompleteColumn(),
            rich_progress.TimeElapsedColumn(),
            rich_progress.TextColumn("left:"),
            rich_progress.TimeRemainingColumn(elapsed_when_finished=False),
            rich_progress.TextColumn("{task.fields[now]}", markup=False),
            console=self.err,
            transient=True,
            disable=self.quiet or not self.err.is_terminal,
        )
        with shown:
            task = shown.add_task(what, total=None, now="")

            def tell(done: int, total: int, now: str) -> None:
                if self.is_interrupted:
                    raise KeyboardInterrupt
                where = visible(now[-40:] if unit > 1 else now[:40])
                shown.update(task, completed=done // unit, total=-(-total // unit), now=where)

            yield tell
