"""`plainrisk study`: classifiers on data sets, fold by fold, kept in one file."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from plainrisk.cli import show
from plainrisk.cli.options import Json
from plainrisk.errors import DataError, did_you_mean

if TYPE_CHECKING:
    from plainrisk.study import Plan, Progress, StudyTable

__all__ = ["study_app"]

study_app = typer.Typer(
    no_args_is_help=True, help="Compare classifiers over data sets; kill it, start it, nothing is lost."
)

Name = Annotated[
    str,
    typer.Argument(metavar="STUDY", help="paper, balanced, product, or a .toml file.", show_default=False),
]
StoreFile = Annotated[Path, typer.Option("--store", metavar="FILE", help="The file that keeps all results.")]
DEFAULT_STORE = Path("study.db")
DEFAULT_REPORT = Path("report.html")


@study_app.command()
def run(
    study: Name,
    store: StoreFile = DEFAULT_STORE,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=0, help="Processes of one thread each; 0: this one.")] = 2,
    data: Annotated[
        list[str] | None, typer.Option("--data", metavar="NAME", help="Only these data sets. Repeatable.")
    ] = None,
    classifier: Annotated[
        list[str] | None, typer.Option("--classifier", metavar="NAME", help="Only these classifiers. Repeatable.")
    ] = None,
    folds: Annotated[int | None, typer.Option("--folds", min=2, help="Folds, if not the study's own.")] = None,
    retry: Annotated[bool, typer.Option("--retry", help="Fit once more what failed.")] = False,
    json: Json = False,
) -> None:
    """Run what is missing of a study; every fit is kept as it comes, so it may be stopped at any moment."""
    from plainrisk import study as studies

    plan = _chosen(studies.load_plan(study), data, classifier, folds)
    with _telling(plan) as tell:
        summary = studies.run(plan, store, jobs=jobs, retry=retry, progress=tell)
    if json:
        show.print_json({"study": plan.name, "store": str(store), **asdict(summary)})
    else:
        console = show.out()
        console.print(
            f"{plan.name}: {summary.fitted:,} fits in {_duration(summary.seconds)}, {summary.kept:,} were there, "
            f"{summary.failed:,} failed, {summary.skipped:,} skipped."
        )
        if summary.absent:
            console.print(f"Not on this machine, or not readable: {', '.join(summary.absent)}.", style="dim")
        show.hint(f"Next: plainrisk study tables {plan.name} --store {store}")
    if summary.failed:
        show.note(f"{summary.failed:,} fits failed; why: plainrisk study status {plan.name} --store {store}")


@study_app.command()
def status(
    study: Annotated[str | None, typer.Argument(metavar="[STUDY]", show_default=False)] = None,
    store: StoreFile = DEFAULT_STORE,
    json: Json = False,
) -> None:
    """Show how far the studies are, where the time went, and what failed or is not here."""
    from plainrisk.study.store import Store

    with Store(store, create=False) as kept:
        names = kept.studies if study is None else (study,)
        found = {name: _state(kept, name) for name in names}
    if json:
        show.print_json({"store": str(store), "studies": found})
        return
    if not found:
        show.hint(f"{store} holds no study yet.")
    for name, state in found.items():
        _show_state(name, state)


@study_app.command()
def tables(
    study: Annotated[str, typer.Argument(metavar="STUDY", show_default=False)],
    store: StoreFile = DEFAULT_STORE,
    metric: Annotated[list[str] | None, typer.Option("--metric", help="Which; AUC and ECE unless told.")] = None,
    paper: Annotated[
        bool, typer.Option("--paper", help="Show ours less the published figure instead of ranks.")
    ] = False,
    pairs: Annotated[
        bool, typer.Option("--pairs", help="Show the differences of all pairs of classifiers too.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write all metrics, means and spreads, to a .csv.")
    ] = None,
    json: Json = False,
) -> None:
    """Show the means over the folds with their ranks; write them all with --output."""
    from plainrisk.cli.tables import check_output
    from plainrisk.study import study_table, write_csv
    from plainrisk.study.run import fill_metrics
    from plainrisk.study.store import Store

    if output is not None:
        check_output(output, (".csv",))
    with Store(store, create=False) as kept:
        fill_metrics(kept, kept.plan(study))
        found = [study_table(kept, study, name) for name in metric or ("auc", "ece")]
        if output is not None:
            write_csv(kept, [study], output)
    if json:
        show.print_json({"study": study, "tables": [_plain(table) for table in found]})
    else:
        for table in found:
            _show_table(table, paper)
            if pairs:
                _show_pairs(table)
    if output is not None:
        show.hint(f"Wrote {output}.")


@study_app.command()
def report(
    studies: Annotated[
        list[str] | None, typer.Argument(metavar="[STUDY]...", help="Which; all in the store unless told.")
    ] = None,
    store: StoreFile = DEFAULT_STORE,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="A .html or .md file, or a folder for both, a CSV and a README.")
    ] = DEFAULT_REPORT,
) -> None:
    """Write a report as one HTML file, or as Markdown; into a folder, all there is to publish."""
    from plainrisk.cli.tables import check_output
    from plainrisk.study import write_report, write_results
    from plainrisk.study.store import Store

    if output.is_dir():
        with Store(store, create=False) as kept:
            written = write_results(kept, output, studies or None)
        show.hint(f"Wrote {', '.join(map(str, written))}.")
        return
    check_output(output, (".html", ".md"))
    with Store(store, create=False) as kept:
        write_report(kept, output, studies or None)
    show.hint(f"Wrote {output}.")


# ---- inside


def _chosen(plan: Plan, data: list[str] | None, classifier: list[str] | None, folds: int | None) -> Plan:
    import msgspec

    def pick(what: str, items: tuple[Any, ...], names: list[str] | None) -> tuple[Any, ...]:
        known = {item.name: item for item in items}
        for name in names or ():
            if name not in known:
                raise DataError(f"Study {plan.name!r} has no {what} {name!r}.{did_you_mean(name, known)}")
        return items if not names else tuple(known[name] for name in names)

    changes: dict[str, Any] = {
        "datasets": pick("data set", plan.data, data),
        "classifiers": pick("classifier", plan.lineup, classifier),
    }
    return msgspec.structs.replace(plan, **changes, **({} if folds is None else {"folds": folds}))


@contextlib.contextmanager
def _telling(plan: Plan) -> Iterator[Callable[[Progress], None]]:
    """Show a bar with the time left on stderr, if that is a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    last = TextColumn("{task.fields[left]}")
    with Bar(*columns, last, console=console, transient=True, disable=not console.is_terminal) as bar:
        job = bar.add_task(plan.name, total=None, left="")

        def tell(progress: Progress) -> None:
            left = "" if progress.seconds_left is None else f"about {_duration(progress.seconds_left)} left"
            what = plan.name if not progress.data else f"{plan.name}: {progress.data}"
            bar.update(job, completed=progress.done, total=progress.total, description=what, left=left)

        yield tell


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


def _state(kept: Any, study: str) -> dict[str, Any]:
    from plainrisk.study.tables import study_table, timings

    plan = kept.plan(study)
    gaps = study_table(kept, study, plan.metrics[0]).gaps
    return {
        "by_data_set": [asdict(t) for t in timings(kept, study, "dataset")],
        "by_classifier": [asdict(t) for t in timings(kept, study, "classifier")],
        "absent": [d.name for d in kept.sets(study) if d.status == "absent"],
        "unreadable": {d.name: d.note for d in kept.sets(study) if d.status == "unreadable"},
        "without_result": [asdict(gap) for gap in gaps if gap.status != "missing"],
    }


def _show_state(name: str, state: dict[str, Any]) -> None:
    rows = state["by_data_set"]
    done, seconds = sum(r["done"] for r in rows), sum(r["seconds"] for r in rows)
    missing = sum(r["missing"] for r in rows)
    show.heading(f"{name}: {done:,} fits done in {_duration(seconds)} of work, {missing:,} to do")
    numbers = ("done", "failed", "skipped", "to do", "seconds", "share", "peak MB")
    for title, key in (("data set", "by_data_set"), ("classifier", "by_classifier")):
        body = [
            [
                row["name"],
                *(f"{row[k]:,}" for k in ("done", "failed", "skipped", "missing")),
                f"{row['seconds']:,.1f}",
                f"{row['seconds'] / seconds:.0%}" if seconds else "",
                "" if row["peak_mb"] is None else f"{row['peak_mb']:,.0f}",
            ]
            for row in state[key]
        ]
        show.print_table((title, *numbers), body, numbers=numbers, whole=(title,))
    console = show.out()
    if state["absent"]:
        console.print(
            f"\nNot on this machine: {', '.join(state['absent'])}. See: plainrisk data show NAME", style="dim"
        )
    for data, note in state["unreadable"].items():
        console.print(f"{data} cannot be read: {note}", soft_wrap=True)
    reasons: dict[tuple[str, str, str], list[str]] = {}
    for gap in state["without_result"]:
        reasons.setdefault((gap["classifier"], gap["status"], gap["reason"]), []).append(gap["dataset"])
    for (classifier, what, reason), names in reasons.items():
        console.print(f"{classifier} {what} on {', '.join(names)}: {reason}", soft_wrap=True)


def _plain(table: StudyTable) -> dict[str, Any]:
    rows = [
        {"dataset": d, "classifier": c, "mean": float(table.mean[i, j]), "sd": float(table.sd[i, j])}
        for i, d in enumerate(table.datasets)
        for j, c in enumerate(table.classifiers)
    ]
    return {"metric": table.metric, "values": rows, "without_result": [asdict(gap) for gap in table.gaps]}


def _show_table(table: StudyTable, paper: bool) -> None:
    from plainrisk.study import METRICS, paper_table

    ranks = table.ranks()
    published = paper_table(table.metric.removesuffix("_as_printed")) if paper else None
    rows = []
    for j, name in enumerate(table.classifiers):
        cells = []
        for i, data in enumerate(table.datasets):
            gap = ranks[i, j] if published is None else table.mean[i, j] - published.value(data, name)
            aside = f"{gap:g}" if published is None else f"{gap:+.4f}"
            cells.append("" if math.isnan(table.mean[i, j]) else f"{table.mean[i, j]:.4f} ({aside})")
        known = [rank for rank in ranks[:, j] if not math.isnan(rank)]
        rows.append([name, *cells, f"{sum(known) / len(known):.2f}" if known else ""])
    header = ("classifier", *table.datasets, "mean rank")
    what = "rank" if published is None else "ours less the published figure"
    show.print_table(header, rows, numbers=header[1:], title=f"{METRICS[table.metric].title} ({what})")


def _show_pairs(table: StudyTable) -> None:
    """Print Hodges-Lehmann differences; a star marks what is significant."""
    from plainrisk.evaluate.compare import hodges_lehmann_table

    found = hodges_lehmann_table(table.results())
    rows = [
        [name, *("" if i == j else f"{d:+.3f}{'*' if s else ''}" for j, (d, s) in enumerate(zip(*line, strict=True)))]
        for i, (name, *line) in enumerate(zip(found.classifiers, found.differences, found.significant, strict=True))
    ]
    title = "Typical difference, row less column (Hodges-Lehmann); *: significant at 0.05 after Holm's adjustment"
    show.print_table(("", *found.classifiers), rows, numbers=found.classifiers, title=title)
