"""Run the studies of the reproduction and write its report: python -m plainrisk_lab.paper [run | report | smooth]."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from plainrisk.errors import PlainriskError
from plainrisk_lab.paper.plans import STUDIES
from plainrisk_lab.paper.report import write_results
from plainrisk_lab.paper.smooth import write_smooth
from plainrisk_lab.study import Progress, Store, run


def main(words: list[str] | None = None) -> int:
    """Read the command line; without a command, run every study and write the report."""
    given = _parser().parse_args(words)
    try:
        if given.command == "smooth":
            with Store(given.store, create=False) as store:
                print(f"Wrote {', '.join(map(str, write_smooth(store, given.output)))}.")
            return 0
        if given.command != "report":
            for name in given.studies or STUDIES:
                summary = run(STUDIES[name], given.store, jobs=given.jobs, progress=_teller(name))
                print(f"\r{name}: {summary.fitted:,} fits, {summary.kept:,} were there, {summary.failed:,} failed.")
        if given.command != "run":
            with Store(given.store, create=False) as store:
                print(f"Wrote {', '.join(map(str, write_results(store, given.output)))}.")
    except PlainriskError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nStopped; what was fitted is kept. The same command goes on from here.", file=sys.stderr)
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m plainrisk_lab.paper", description=__doc__)
    parser.add_argument("command", nargs="?", choices=("run", "report", "smooth", "all"), default="all")
    parser.add_argument("studies", nargs="*", metavar="STUDY", choices=(*STUDIES, []), help=", ".join(STUDIES))
    parser.add_argument("--store", type=Path, default=Path("study.db"), help="the file that keeps all results")
    parser.add_argument("--jobs", type=int, default=2, help="processes of one thread each")
    parser.add_argument("--output", type=Path, default=Path("docs/results"), help="the folder of the report")
    return parser


def _teller(name: str) -> Callable[[Progress], None]:
    def tell(progress: Progress) -> None:
        print(f"\r{name}: {progress.done:,} of {progress.total:,} {progress.data:<30}", end="", flush=True)

    return tell


if __name__ == "__main__":
    sys.exit(main())
