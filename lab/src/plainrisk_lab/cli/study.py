"""`plainrisk study`: classifiers on data sets, fold by fold, kept in one file."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from plainrisk.cli import show
from plainrisk.cli.options import Json

if TYPE_CHECKING:
    from plainrisk_lab.study import Progress, Store

__all__ = ["study_app"]

study_app = typer.Typer(
    no_args_is_help=True, help="Compare classifiers over data sets; stop and restart it at any time, nothing is lost."
)

PlanFile = Annotated[Path, typer.Argument(metavar="PLAN", help="The plan, a .toml file.", show_default=False)]
StoreFile = Annotated[Path, typer.Option("--store", metavar="FILE", help="The file that keeps all results.")]
Name = Annotated[
    str | None,
    typer.Argument(
        metavar="[STUDY]", help="Which study of the store; all unless you say otherwise.", show_default=False
    ),
]
DEFAULT_STORE = Path("study.db")


@study_app.command()
def run(
    plan: PlanFile,
    store: StoreFile = DEFAULT_STORE,
    jobs: Annotated[
        int, typer.Option("--jobs", "-j", min=0, help="Worker processes of one thread each; 0 works in this process.")
    ] = 2,
    retry: Annotated[bool, typer.Option("--retry", help="Try failed fits again.")] = False,
    json: Json = False,
) -> None:
    """Run what is missing in a study; every fit is saved when it is done, so you may stop at any moment."""
    from plainrisk_lab import study as studies

    loaded = studies.load_plan(plan)
    with show.progress(loaded.name) as bar:

        def tell(progress: Progress) -> None:
            bar.move(progress.data or loaded.name, progress.done, progress.total)

        summary = studies.run(loaded, store, jobs=jobs, retry=retry, progress=tell)
    if json:
        show.print_json({"study": loaded.name, "store": str(store), **asdict(summary)})
    else:
        show.out().print(
            f"{loaded.name}: {summary.fitted:,} fits in {_duration(summary.seconds)}, {summary.kept:,} were there, "
            f"{summary.failed:,} failed, {summary.skipped:,} skipped."
        )
        show.hint(f"Next: plainrisk study report {loaded.name} --store {store}")
    if summary.failed or summary.skipped or summary.absent:
        show.note(f"Some fits have no result; why: plainrisk study status {loaded.name} --store {store}")


@study_app.command()
def status(study: Name = None, store: StoreFile = DEFAULT_STORE, json: Json = False) -> None:
    """Show how far the studies are, where the time went, and what failed or is not here."""
    from plainrisk_lab.study import Store

    with Store(store, create=False) as kept:
        states = {name: _state(kept, name) for name in ([study] if study else kept.studies)}
    if json:
        show.print_json({"store": str(store), "studies": states})
        return
    for name, state in states.items():
        _show_state(name, state)


@study_app.command()
def report(
    study: Name = None,
    store: StoreFile = DEFAULT_STORE,
    metric: Annotated[
        list[str] | None,
        typer.Option("--metric", help="Which metric, such as auc; all unless you say otherwise. Repeatable."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Write the tables to a .md file, or every fold to a .csv, .xlsx, .html or .json."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Show means over the folds, ranks and rank tests."""
    from plainrisk.cli.tables import WRITE, check_output, write_table
    from plainrisk.files import write_text
    from plainrisk_lab import study as studies

    if output is not None:
        check_output(output, WRITE)
    with studies.Store(store, create=False) as kept:
        names = [study] if study else list(kept.studies)
        reports = [studies.report(kept, name, metric) for name in names]
        if output is not None and output.suffix == ".csv":
            studies.write_folds(kept, names, output)
        elif output is not None and output.suffix != ".md":
            head, *folds = studies.folds_of(kept, names)
            write_table(dict(zip(head, zip(*folds, strict=True), strict=True)), output)
    text = "\n".join(text for _, text in reports)
    if output is not None and output.suffix == ".md":
        write_text(output, text)
    if json:
        show.print_json({"store": str(store), "studies": [data for data, _ in reports]})
    elif output is None:
        show.out().print(text, soft_wrap=True)
    if output is not None:
        show.hint(f"Wrote {output}.")


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes:,} min {rest:02d} s" if minutes else f"{rest} s"


def _state(kept: Store, study: str) -> dict[str, Any]:
    from plainrisk_lab.study.tables import gaps, timings

    return {
        "by_data_set": [asdict(t) for t in timings(kept, study, "dataset")],
        "by_classifier": [asdict(t) for t in timings(kept, study, "classifier")],
        "absent": {d.name: d.note for d in kept.sets(study) if d.fingerprint is None},
        "without_result": [asdict(gap) for gap in gaps(kept, study) if gap.status != "missing"],
    }


def _show_state(name: str, state: dict[str, Any]) -> None:
    rows = state["by_data_set"]
    done, missing, seconds = (sum(r[what] for r in rows) for what in ("done", "missing", "seconds"))
    show.heading(f"{name}: {done:,} fits done in {_duration(seconds)} of work, {missing:,} to do")
    counts = ("done", "failed", "skipped", "missing")
    for title, key in (("data set", "by_data_set"), ("classifier", "by_classifier")):
        body = [[row["name"], *(f"{row[k]:,}" for k in counts), f"{row['seconds']:,.1f}"] for row in state[key]]
        show.print_table((title, *counts, "seconds"), body, "l" + "r" * (len(counts) + 1))
    for data, note in state["absent"].items():
        show.out().print(f"{data}: {note}", soft_wrap=True)
    for gap in state["without_result"]:
        folds = ", ".join(map(str, gap["folds"]))
        why = f"{gap['status']} on {gap['dataset']} (fold {folds}): {gap['reason']}"
        show.out().print(f"{gap['classifier']} {why}", soft_wrap=True)
