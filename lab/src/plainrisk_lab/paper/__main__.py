"""Run the studies of the reproduction and write its report.

python -m plainrisk_lab.paper table german            the twelve classifiers on German credit beside the paper's
python -m plainrisk_lab.paper table paper --datasets heloc --classifiers ARM1 LinARM1 --metric ece
python -m plainrisk_lab.paper run paper balanced      fit what the store lacks
python -m plainrisk_lab.paper report                  write the report of what the store holds
python -m plainrisk_lab.paper restore results.csv     read the figures of earlier runs into the store
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from plainrisk.errors import DataError, PlainriskError
from plainrisk_lab.paper.document import to_markdown
from plainrisk_lab.paper.grids import beside
from plainrisk_lab.paper.plans import STUDIES, narrowed
from plainrisk_lab.paper.published import paper_table
from plainrisk_lab.paper.report import write_results
from plainrisk_lab.paper.restore import restore
from plainrisk_lab.paper.smooth import write_smooth
from plainrisk_lab.study import Plan, Progress, Store, run, study_table

_PUBLISHED = ("auc", "ece", "mce", "certainty")
LINARM2 = {
    "replaced": "both links of a fitted ARM2 replaced",
    "refitted": "the second layer fitted to lines",
}


def main(words: list[str] | None = None) -> int:
    """Read the command line; without a command, run every study and write the report."""
    given = _parser().parse_args(words)
    try:
        _COMMANDS[given.command](given)
    except PlainriskError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nStopped; what was fitted is kept. The same command goes on from here.", file=sys.stderr)
        return 130
    return 0


def _run(given: argparse.Namespace) -> None:
    for plan in _plans(given, given.names or STUDIES):
        summary = run(plan, given.store, jobs=given.jobs, progress=_teller(plan.name))
        counts = f"{summary.fitted:,} fits, {summary.kept:,} were there, {summary.failed:,} failed."
        print(f"\r{plan.name}: {counts}", file=sys.stderr)


def _report(given: argparse.Namespace) -> None:
    with Store(given.store, create=False) as store:
        print(f"Wrote {', '.join(map(str, write_results(store, given.output)))}.")


def _smooth(given: argparse.Namespace) -> None:
    with Store(given.store, create=False) as store:
        print(f"Wrote {', '.join(map(str, write_smooth(store, given.output)))}.")


def _all(given: argparse.Namespace) -> None:
    _run(given)
    _report(given)


def _table(given: argparse.Namespace) -> None:
    """Run what is missing and print it next to the published figures, in Markdown."""
    given.names = given.names or ["german"]
    _run(given)
    with Store(given.store, create=False) as store:
        for plan in _plans(given, given.names):
            for metric in given.metric:
                ours, note = study_table(store, plan.name, metric), _note(plan, metric, given.linarm2)
                print(to_markdown([beside(ours, paper_table(metric), f"{plan.name}: {metric}", note)]), end="\n\n")


def _restore(given: argparse.Namespace) -> None:
    for path in given.names or ["docs/results/results.csv"]:
        print(f"{path}: {restore(path, given.store):,} fits read into {given.store}.")


_COMMANDS: dict[str, Callable[[argparse.Namespace], None]] = {
    "all": _all,
    "run": _run,
    "report": _report,
    "smooth": _smooth,
    "table": _table,
    "restore": _restore,
}


def _plans(given: argparse.Namespace, names: Iterable[str]) -> list[Plan]:
    unknown = [name for name in names if name not in STUDIES]
    if unknown:
        raise DataError(f"There is no study {unknown[0]!r}. There is: {', '.join(STUDIES)}.")
    return [narrowed(STUDIES[name], given.datasets, given.classifiers, given.folds, given.linarm2) for name in names]


def _note(plan: Plan, metric: str, linarm2: str) -> str:
    note = f"Each place: ours / published (difference). {plan.cv} stratified folds, seed {plan.seed}; the paper has 10."
    if any(spec.name == "LinARM2" for spec in plan.lineup):
        note += f" LinARM2: {LINARM2[linarm2]}."
    if metric in ("ece", "mce"):
        note += " Ours is by the paper's definition; its tables are not (docs/results/report.md, 1.4)."
    return note


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m plainrisk_lab.paper", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", nargs="?", choices=tuple(_COMMANDS), default="all")
    parser.add_argument("names", nargs="*", metavar="STUDY", help=f"{', '.join(STUDIES)}; for restore, .csv files")
    parser.add_argument("--datasets", nargs="+", metavar="NAME", help="only these data sets")
    parser.add_argument("--classifiers", nargs="+", metavar="NAME", help="only these classifiers")
    parser.add_argument("--folds", type=int, metavar="N", help="instead of the ten of the paper")
    parser.add_argument(
        "--linarm2",
        choices=tuple(LINARM2),
        default="replaced",
        help=", or ".join(LINARM2.values()),
    )
    parser.add_argument("--metric", nargs="+", choices=_PUBLISHED, default=["auc"], help="of `table`")
    parser.add_argument("--store", type=Path, default=Path("study.db"), help="the file that keeps all results")
    parser.add_argument("--jobs", type=int, default=2, help="processes of one thread each")
    parser.add_argument("--output", type=Path, default=Path("docs/results"), help="the folder of the report")
    return parser


def _teller(name: str) -> Callable[[Progress], None]:
    def tell(progress: Progress) -> None:
        if not sys.stderr.isatty():
            return
        text = f"\r{name}: {progress.done:,} of {progress.total:,} {progress.data:<30}"
        print(text, end="", flush=True, file=sys.stderr)

    return tell


if __name__ == "__main__":
    sys.exit(main())
