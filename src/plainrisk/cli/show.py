"""Output for people: results on stdout, everything else on stderr."""

from __future__ import annotations

import contextlib
import logging
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import typer
from rich import box
from rich.console import Console
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from plainrisk.text import counted, one_line, visible

if TYPE_CHECKING:
    from rich.progress import Progress

    from plainrisk.explain.overview import ShapeTable
    from plainrisk.intervals import Range

__all__ = [
    "METRICS",
    "WARNINGS",
    "Bar",
    "certificate",
    "error",
    "fail",
    "figures",
    "heading",
    "hint",
    "note",
    "out",
    "percent",
    "print_failure",
    "print_json",
    "print_table",
    "progress",
    "ratio",
    "remark",
    "result",
    "rows",
    "shape",
    "signed_bar",
    "size",
    "solver",
]

# The displayed results of cross validation, by the metric's name.
METRICS = {"auc": "AUC", "ece": "ECE", "brier": "Brier score", "log_loss": "log loss"}
# The library's warnings during this command, which a JSON result also contains.
WARNINGS: list[str] = []


class _Console(Console):
    """A console that takes no text for markup and lets the caller end when the output's reader has gone.

    No text can control the terminal: strings are made visible before they are printed, and everything else before it
    is sent.
    """

    def __init__(self, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, markup=False, highlight=False, emoji=False)

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(visible(text), **options)

    def render(self, renderable: Any, options: Any = None) -> Iterator[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=visible(segment.text))

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def out() -> Console:
    """Return the console of results."""
    return _Console()


def _err() -> Console:
    return _Console(stderr=True)


def error(message: str) -> None:
    """Print an error on stderr."""
    _err().print(Text.assemble(("error: ", "bold red"), message), soft_wrap=True)


def fail(kind: str, message: str, code: int, json: bool, advice: str = "") -> NoReturn:
    """End a command: print the error on stderr, and with --json also on stdout, in one object."""
    error(message)
    if advice:
        hint(advice)
    if json:
        print_failure(kind, message, code)
    raise typer.Exit(code) from None


def print_failure(kind: str, message: str, code: int) -> None:
    """Print as JSON why a command failed."""
    print_json({"error": {"kind": kind, "message": visible(message), "exit_code": int(code)}})


def note(message: str) -> None:
    """Print a warning on stderr."""
    _err().print(Text.assemble(("note: ", "bold yellow"), message), soft_wrap=True)


def hint(message: str) -> None:
    """Print on stderr what to do next, or what was done."""
    _err().print(message, style="dim", soft_wrap=True)


def remark(message: str) -> None:
    """Print a legend or a remark below a result."""
    out().print(message, style="dim")


def wrote(output: Path | None) -> None:
    """Report on stderr that a file was written."""
    if output is not None:
        hint(f"Wrote {output}.")


def result(result: dict[str, Any], json: bool, as_text: Callable[[dict[str, Any]], None]) -> None:
    """Print the result of a command: as JSON if requested, else for a person."""
    if json:
        print_json(result)
    else:
        as_text(result)


def print_json(result: Mapping[str, Any] | Sequence[Any]) -> None:
    """Print a result as JSON, including warnings; numbers that are not finite become null."""
    if isinstance(result, Mapping) and WARNINGS:
        result = {**result, "warnings": list(WARNINGS)}
    text = dumps(_finite(result), indent=2, ensure_ascii=not _speaks_utf8(), default=str)
    sys.stdout.write(visible(text) + "\n")


def _speaks_utf8() -> bool:
    return (sys.stdout.encoding or "").lower().startswith("utf")


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _finite(v) for key, v in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(v) for v in value]
    return value


# ---- building blocks


def heading(text: str) -> None:
    """Print a heading, set off by an empty line."""
    console = out()
    console.print()
    console.print(text, style="bold")


def print_table(
    header: Sequence[str], rows: Iterable[Sequence[object]], columns: str = "", title: str | None = None
) -> None:
    """Print a table; `columns` has a letter for each: p wraps, l and r do not. By default, p and then r."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for name, kind in zip(header, columns or "p".ljust(len(header), "r"), strict=True):
        side: Literal["left", "right"] = "right" if kind == "r" else "left"
        table.add_column(one_line(name), justify=side, no_wrap=kind != "p", overflow="fold")
    for row in rows:
        table.add_row(*map(_cell, row))
    console = out()
    console.print()
    if title is not None:
        console.print(title, style="bold")
    console.print(table)


def _cell(value: object) -> str | Text:
    if isinstance(value, Text):
        return value
    return f"{value:,}" if isinstance(value, int) else one_line(value)


def signed_bar(value: float, largest: float, width: int = 10) -> Text:
    """Draw a number as a bar to the left or to the right of a middle line."""
    block, middle = ("█", "│") if _speaks_utf8() else ("#", "|")
    length = 0 if largest == 0 else round(width * min(1.0, abs(value) / largest))
    if value < 0:
        return Text.assemble(" " * (width - length), (block * length, "magenta"), middle, " " * width)
    return Text.assemble(" " * width, middle, (block * length, "cyan"), " " * (width - length))


def percent(share: Range, sign: str = "") -> str:
    """Write a share with its interval.

    >>> from plainrisk.intervals import Range
    >>> percent(Range(0.25, 0.2, 0.31)), percent(Range(math.nan, math.nan, math.nan))
    ('25.0% (20.0%, 31.0%)', '?')
    """
    if math.isnan(share.estimate):
        return "?"
    ends = "" if math.isnan(share.low) else f" ({share.low:{sign}.1%}, {share.high:{sign}.1%})"
    return f"{share.estimate:{sign}.1%}{ends}"


def ratio(figure: Range) -> str:
    """Write a figure with its interval, three decimals each."""
    if math.isnan(figure.estimate):
        return "?"
    return f"{figure.estimate:.3f}" + ("" if math.isnan(figure.low) else f" ({figure.low:.3f}, {figure.high:.3f})")


def rows(count: int, small: bool) -> Text:
    """Write a number of rows; where they are too few for figures, say so."""
    return Text(f"{count:,}, small", "yellow") if small else Text(f"{count:,}")


def size(size: str) -> Text:
    """Write the size of a shift in words and color."""
    return Text(f"{size} shift", {"large": "bold red", "moderate": "yellow", "small": "green"}[size])


class Bar:
    """A progress bar on stderr, if that is a terminal."""

    def __init__(self, bar: Progress, task: str, total: int | None) -> None:
        self._bar, self._job = bar, bar.add_task(task, total=total)

    def advance(self, steps: int = 1) -> None:
        """Move the bar on by some steps."""
        self._bar.update(self._job, advance=steps)

    def move(self, task: str, done: int, total: int) -> None:
        """Set the progress bar to a state of this or another task."""
        self._bar.update(self._job, description=task.capitalize(), completed=done, total=total)


@contextlib.contextmanager
def progress(task: str, total: int | None = None) -> Iterator[Bar]:
    """Show a progress bar while something runs."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = _err()
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        yield Bar(bar, task, total)


# ---- what several commands show


def figures(results: Mapping[str, Mapping[str, Any] | None]) -> None:
    """Print cross validation figures, one row per model: mean and standard deviation over the folds; ECE pooled.

    A model without figures was not fitted.
    """

    def figure(cv: Mapping[str, Any] | None, metric: str) -> str:
        if cv is None:
            return "not fitted" if metric == next(iter(METRICS)) else ""
        # The mean over folds grows as folds shrink, so the calibration error is that of all held-out risks.
        if metric == "ece":
            return _mean_and_sd(cv["pooled_ece"], math.nan)
        return _mean_and_sd(cv[metric]["mean"], cv[metric]["sd"])

    rows = [[model, *(figure(cv, metric) for metric in METRICS)] for model, cv in results.items()]
    print_table(("model", *METRICS.values()), rows)


def _mean_and_sd(mean: float, sd: float) -> str:
    """Format a mean with its standard deviation if it exists: not for one fold, nor for an infinite loss.

    >>> _mean_and_sd(0.71234, 0.0214), _mean_and_sd(math.inf, math.nan)
    ('0.7123 ± 0.021', 'infinite')
    """
    if not math.isfinite(mean):
        return "infinite" if math.isinf(mean) else "?"
    return f"{mean:.4f} ± {sd:.3f}" if math.isfinite(sd) else f"{mean:.4f}"


def shape(title: str, levels: Sequence[str], table: ShapeTable, outcome: str) -> None:
    """Print what each level does to the probability of the typical applicant, next to the training rows' figures."""
    effects = [0.0] * len(levels) if table.effect is None else table.effect.tolist()
    seen = [j for j, rows in enumerate(table.rows) if rows > 0]
    largest = max((abs(effects[j]) for j in seen), default=0.0)
    rows = [
        [
            levels[j],
            f"{table.rows[j]:,.0f}",
            f"{table.bad_rate[j]:.1%}",
            f"{effects[j]:+.1%}",
            signed_bar(effects[j], largest),
        ]
        for j in seen
    ]
    print_table(("level", "rows", f"{outcome} rate", "points", "effect"), rows, "prrrp", title)


def solver(record: Mapping[str, Any]) -> None:
    """Print how the solver ended and, with --verbose, what it certifies; nothing for trees, which have no solver."""
    problems = len(record["kkt"])
    if not problems:
        return
    console = out()
    stopped = f"Stopped before the optimum: {record['reason']}."
    console.print("Solved to the optimum." if record["converged"] else stopped)
    if record["clipped"]:
        console.print(f"{record['clipped']:.1%} of the rows are clipped to a probability of 0% or 100%.")
    if record["regret"]:
        from plainrisk.form.file import Regret

        console.print(f"Regret of the subscales' weights: {Regret(**record['regret'])}.")
    if logging.getLogger("plainrisk").isEnabledFor(logging.INFO):  # --verbose
        last = "each an expert" if record["regret"] else "the last one weighs the others"
        rows = [
            ["problems", "1" if problems == 1 else f"{problems}, {last}"],
            ["objective", f"{record['objective'][-1]:.10g}"],
            ["largest KKT residual", f"{max(record['kkt']):.1e}"],
            ["iterations", f"{sum(record['iterations']):,}"],
            ["stopped because", record["reason"]],
        ]
        print_table(("solver", ""), rows, "pp")


def certificate(result: Mapping[str, Any]) -> None:
    """Print a certificate: the monotone checks in one line, the failed ones one by one."""
    checks = result["checks"]
    monotone = [c for c in checks if c["name"].startswith("monotone in ")]
    kept = sum(c["holds"] for c in monotone)
    rows: list[list[object]]
    if monotone:
        detail = f"in {kept} of {len(monotone)} features with a direction"
        rows = [[_verdict(kept == len(monotone)), "monotone", detail]]
    else:
        rows = [[Text("-"), "monotone", "the schema states no direction"]]
    shown = [c for c in checks if c not in monotone] + [c for c in monotone if not c["holds"]]
    rows += [[_verdict(c["holds"]), c["name"], c["detail"]] for c in shown]
    print_table(("certificate", "property", "evidence"), rows, "ppp")
    notes = result["notes"][:4]
    for text in notes:
        remark(text)
    if more := len(result["notes"]) - len(notes):
        remark(f"... and {counted(more, 'more such remark')} (--json has all)")


def _verdict(holds: bool) -> Text:
    return Text("holds", style="green") if holds else Text("BROKEN", style="bold red")
