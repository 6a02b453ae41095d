"""Compare the models of two checkouts: the risks of all rows, for every classifier on every available data set.

    python scripts/same_models.py --reference ../plainrisk-before --cache /tmp/risks

Each checkout fits with its own code and, if it has a .venv, with its own interpreter; only public names are used.
The reference's risks are kept in the cache folder, so only the first run fits them. The exit status is 1 if risks
differ by more than 1e-9 where the reference's fit has an optimum, or if one of the two checkouts cannot fit at all.
Fits without an optimum (perfectly separated rows and no ridge) are listed separately: their result is where the solver
stops.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
ALLOWED = 1e-9
SYNTHETIC = {"credit_1000": (1_000, 8), "credit_20000": (20_000, 12), "credit_200000": (200_000, 12)}


# ---- in either checkout: fit and write risks


def fit_all(folder: Path, only: list[str], wanted: list[str]) -> None:
    """Fit what the folder does not hold yet; write risks as .npy and how the fit ended as .json."""
    import plainrisk as pr

    print(f"fitting with {Path(pr.__file__).parent}", file=sys.stderr)
    for data in wanted or [*pr.datasets.names(), *SYNTHETIC]:
        todo = [name for name in only or pr.CLASSIFIERS if not (folder / f"{data}-{name}.json").exists()]
        loaded = load(pr, data) if todo else None
        for name in todo if loaded is not None else []:
            begin = time.perf_counter()
            risks, ending = fit_one(pr, name, loaded)
            np.save(folder / f"{data}-{name}.npy", risks)
            (folder / f"{data}-{name}.json").write_text(json.dumps(ending))
            print(f"{data:20s} {name:14s} {time.perf_counter() - begin:7.2f} s  {ending['error']}", file=sys.stderr)


def load(pr, data: str):
    """Return a data set, or None if its file is not at hand."""
    if data in SYNTHETIC:
        rows, features = SYNTHETIC[data]
        return pr.datasets.make_credit(rows, seed=7, n_features=features)
    try:
        return pr.datasets.load(data)
    except Exception as error:
        print(f"{data:20s} skipped: {error}", file=sys.stderr)
        return None


def fit_one(pr, name: str, data):
    """Return the risks of the training rows, and how the fit ended."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = pr.make_classifier(name, data.schema).fit(data.frame, data.target)
        return model.predict_proba(data.frame)[:, 1], {"converged": bool(model.fit_record_.converged), "error": ""}
    except Exception as error:  # a refusal is a result, too: both checkouts must refuse
        return np.empty(0), {"converged": True, "error": f"{type(error).__name__}: {error}"}


# ---- in this checkout: run both and compare


def run(checkout: Path, folder: Path, only: list[str], data: list[str]) -> None:
    own = checkout / ".venv" / "bin" / "python"
    python = str(own) if own.exists() else sys.executable
    options = [*(["--only", *only] if only else []), *(["--data", *data] if data else [])]
    command = [python, str(Path(__file__).resolve()), "--fit-into", str(folder.resolve()), *options]
    subprocess.run(command, check=True, cwd=checkout, env={**os.environ, "PYTHONPATH": str(checkout / "src")})


def compare(reference: Path, folder: Path, only: list[str], wanted: list[str]) -> list[dict]:
    """Return a row per fit of the reference; classifiers that only this checkout has are left out."""
    found = []
    for path in sorted(reference.glob("*.json")):
        data, _, name = path.stem.rpartition("-")
        if (only and name not in only) or (wanted and data not in wanted):
            continue
        before, old = read(path)
        after, new = read(folder / path.name) if (folder / path.name).exists() else ({"error": "not fitted"}, None)
        same_kind = bool(before["error"]) == bool(after["error"]) and old.shape == new.shape
        gap = float(np.abs(old - new).max(initial=0.0)) if same_kind else np.inf
        found.append({"data": data, "name": name, "gap": gap, "optimum": before["converged"], "note": after["error"]})
    return found


def read(path: Path) -> tuple[dict, np.ndarray]:
    return json.loads(path.read_text()), np.load(path.with_suffix(".npy"))


def table(found: list[dict]) -> str:
    """Tell the largest difference of each classifier, and every fit that differs more than allowed."""

    def largest(rows: list[dict]) -> str:
        if not rows:
            return f"{'-':>31s}"
        worst = max(rows, key=lambda row: row["gap"])
        return f"{worst['gap']:10.1e} on {worst['data']:17s}" if worst["gap"] else f"{'0':>10s}{'':21s}"

    lines = [f"{'classifier':14s} {'fits':>4s} {'largest difference':>31s}   {'without an optimum':>4s}"]
    for name in dict.fromkeys(row["name"] for row in found):
        rows = [row for row in found if row["name"] == name]
        with_optimum, without = ([r for r in rows if r["optimum"] is is_one] for is_one in (True, False))
        lines.append(f"{name:14s} {len(rows):4d} {largest(with_optimum)}   {len(without):4d} {largest(without)}")
    for row in sorted(found, key=lambda row: -row["gap"]):
        if row["gap"] > ALLOWED:
            verdict = "DIFFERS" if row["optimum"] else "differs, but has no optimum"
            lines.append(f"{verdict}: {row['name']} on {row['data']} by {row['gap']:.1e} {row['note']}".rstrip())
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reference", type=Path, help="the checkout to compare with")
    parser.add_argument("--cache", type=Path, help="the folder that keeps the reference's risks")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="classifiers; all by default")
    parser.add_argument("--data", nargs="+", default=[], metavar="NAME", help="data sets; all at hand by default")
    parser.add_argument("--fit-into", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.fit_into:
        return fit_all(given.fit_into, given.only, given.data)
    if not (given.reference and given.cache):
        parser.error("give --reference and --cache")
    given.cache.mkdir(parents=True, exist_ok=True)
    run(given.reference, given.cache, given.only, given.data)
    with tempfile.TemporaryDirectory() as folder:
        run(ROOT, Path(folder), given.only, given.data)
        found = compare(given.cache, Path(folder), given.only, given.data)
    print(table(found))
    if not found:
        sys.exit("nothing was compared")
    sys.exit(any(row["optimum"] and row["gap"] > ALLOWED for row in found))


if __name__ == "__main__":
    main()
