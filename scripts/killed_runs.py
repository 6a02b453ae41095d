"""Kill commands by signals at random moments and look at what they leave.

    python scripts/killed_runs.py --runs 300 --seed 0

Every run starts one of the commands that write in a folder of its own, with or without old outputs there, and sends it
SIGINT, SIGTERM, SIGHUP or SIGKILL at a random moment of its time. Afterward every output must be the old file or the
whole new one, and the exit code must say which signal it was. But for SIGKILL, which nobody can catch, no other file
may be left, in the folder or in that of temporary files, and nothing like a traceback may have been written; what a
SIGKILL left must be gone after the next write there. The last column counts the runs that broke a rule.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

# It says on stderr when the interpreter is there: before that, an interrupt is Python's own affair.
COMMAND = [sys.executable, "-P", "-B", "-c", "import os, plainrisk_command as c; os.write(2, b'started\\n'); c.main()"]
STUDY = 'name = "s"\ndatasets = ["german"]\nclassifiers = ["ARM1", "LinARM1"]\ncv = 5\n'
ON_ROWS = ("model.json", "rows.parquet", "-o")
# The outputs of each command, and its words. Those of one command are written together, but for `demo`.
WORK: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "fit": (("new.json",), ("fit", "rows.csv", "--schema", "schema.toml", "--cv", "3", "-o", "new.json")),
    "score csv": (("out.csv",), ("score", *ON_ROWS, "out.csv")),
    "score csv.gz": (("out.csv.gz",), ("score", *ON_ROWS, "out.csv.gz")),
    "score parquet": (("out.parquet",), ("score", *ON_ROWS, "out.parquet")),
    "score xlsx": (("out.xlsx",), ("score", "model.json", "rows.csv", "-o", "out.xlsx")),
    "reasons jsonl": (("out.jsonl",), ("reasons", *ON_ROWS, "out.jsonl")),
    "reasons parquet": (("out.parquet",), ("reasons", *ON_ROWS, "out.parquet")),
    "explain csv": (("out.csv",), ("explain", *ON_ROWS, "out.csv")),
    "what-if csv": (("out.csv",), ("what-if", "model.json", "rows.csv", "--cutoff", "0.1", "-o", "out.csv")),
    "bins": (("bins.toml",), ("bins", "model.json", "-o", "bins.toml")),
    "annotate": (("own.json",), ("annotate", "own.json", "--set", "policy.reasons = 2")),
    "scorecard": (("card.xlsx",), ("scorecard", "model.json", "-o", "card.xlsx")),
    "report": (("page.html",), ("report", "model.json", "-o", "page.html")),
    "export sql": (("s.sql", "s.test.sql"), ("export", "model.json", "--dialect", "duckdb", "-o", "s.sql")),
    "export onnx": (("s.onnx",), ("export", "model.json", "-o", "s.onnx")),
    "export xlsx": (("s.xlsx",), ("export", "model.json", "-o", "s.xlsx")),
    "document": (("d.md", "d.md.json"), ("document", "model.json", "rows.csv", "-o", "d.md")),
    "schema infer": (("s.toml",), ("schema", "infer", "rows.csv", "--column", "bad", "-o", "s.toml")),
    "certify": (("m.smt2",), ("certify", "model.json", "--smt", "m.smt2")),
    "sign": (("model.json.sig",), ("sign", "model.json", "--key", "key.pem", "-o", "model.json.sig")),
    "study": (("s.db",), ("study", "run", "study.toml", "--store", "s.db", "--jobs", "2")),
}
CHANGED = {"annotate": "own.json"}  # what a command changes in place is the model, copied
SIGNALS = (*(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) * 3, signal.SIGKILL)
NEVER_SAID = ("Traceback", "KeyboardInterrupt", "bug in plainrisk")
COLUMNS = ("work", "cause", "runs", "done before", "stopped", "old file", "no file", "new file", "broken")
SECONDS = 600  # for one command, on a machine that is busy


def make_inputs(folder: Path, rows: int) -> None:
    """Write data, schema, model, plan and key, once for all runs."""
    import polars as pl

    import plainrisk as pr
    from plainrisk.signing.keys import new_key

    made = pr.datasets.make_credit(rows, 7, backend="polars")
    frame = made.frame.with_columns(pl.Series("bad", made.target))
    frame.head(2000).write_csv(folder / "rows.csv")
    frame.write_parquet(folder / "rows.parquet")
    made.schema.save(folder / "schema.toml")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pr.errors.PlainriskWarning)
        pr.AdditiveRiskModel(made.schema).fit(made.frame.head(2000), made.target[:2000]).save(folder / "model.json")
    (folder / "study.toml").write_text(STUDY, encoding="utf-8")
    new_key(folder / "key.pem")


@dataclass
class Bench:
    """The inputs, what every command writes if nobody disturbs it, and how long that takes."""

    folder: Path
    rows: int
    works: Sequence[str] = tuple(WORK)
    seconds: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.inputs, self.whole = self.folder / "inputs", self.folder / "whole"
        self.inputs.mkdir()
        make_inputs(self.inputs, self.rows)
        for work in self.works:
            place = Place(self, work, self.folder)
            begin = time.monotonic()
            job = place.start()
            said = job.communicate(timeout=SECONDS)[1]
            assert job.returncode == 0, said.decode()
            self.seconds[work] = time.monotonic() - begin
            for name in WORK[work][0]:
                (self.whole / work).mkdir(parents=True, exist_ok=True)
                shutil.copy(place.folder / name, self.whole / work / name)
            shutil.rmtree(place.folder)
            shutil.rmtree(place.temporary)


class Place:
    """A folder for one run of a command: its inputs as links, perhaps old outputs, and a folder of temporary files."""

    def __init__(self, bench: Bench, work: str, parent: Path, *, old: bool = False) -> None:
        self.bench, self.work, self.old = bench, work, old
        self.outputs, self.words = WORK[work]
        self.folder = Path(tempfile.mkdtemp(dir=parent, prefix="run-"))
        self.temporary = Path(tempfile.mkdtemp(dir=parent, prefix="tmp-"))
        for path in bench.inputs.iterdir():
            (self.folder / path.name).symlink_to(path)
        self.olds = dict.fromkeys(self.outputs, b"old") if old and work not in ("study", "annotate") else {}
        if work in CHANGED:
            self.olds = {CHANGED[work]: (bench.inputs / "model.json").read_bytes()}
        for name, content in self.olds.items():
            (self.folder / name).write_bytes(content)

    def start(self, before: Sequence[str] = (), *, surely: bool = True) -> subprocess.Popen:
        """Start the command in a group of its own, as a terminal does, and wait for its first sign."""
        job = subprocess.Popen(
            [*before, *COMMAND, *self.words],
            cwd=self.folder,
            env={**os.environ, "TMPDIR": str(self.temporary), "RUST_BACKTRACE": "0"},
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        began = job.stderr.readline() == b"started\n"
        assert began or not surely
        return job

    def state(self) -> str:
        """Return what there is: the old output, none, a new one, or some of each."""
        return " and ".join(sorted({self._state_of(name) for name in self.outputs}))

    def _state_of(self, name: str) -> str:
        path = self.folder / name
        if not path.exists():
            return "no file"
        return "old file" if name in self.olds and path.read_bytes() == self.olds[name] else "new file"

    def broken(self) -> list[str]:
        """Return what is wrong with the outputs: one that is half, or an old one that is gone."""
        found = []
        for name in self.outputs:
            state = self._state_of(name)
            if state == "new file" and not is_whole(self.folder / name, self.bench.whole / self.work / name):
                found.append(f"half of {name}")
            if name in self.olds and state == "no file":
                found.append(f"the old {name} is gone")
        return found

    def left(self) -> list[str]:
        """Return what is there that nobody asked for."""
        known = {path.name for path in self.bench.inputs.iterdir()} | {*self.outputs}
        return sorted({p.name for p in self.folder.iterdir()} - known) + sorted(
            p.name for p in self.temporary.iterdir()
        )

    def left_after_next(self) -> list[str]:
        """Write once more, and return what is still there of ours."""
        from plainrisk.files import write_text
        from plainrisk.leftovers import temporary_folder

        write_text(self.folder / "next.json", "{}")
        tempfile.tempdir = str(self.temporary)
        try:
            with temporary_folder():
                pass
        finally:
            tempfile.tempdir = None
        return list(filter(is_temporary, self.left()))

    def remove(self) -> None:
        """Remove both folders."""
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.rmtree(self.temporary, ignore_errors=True)


def is_temporary(name: str) -> bool:
    """Whether a name is one of ours for a file or folder that is not complete."""
    return re.match(r"\.?plainrisk-", name) is not None


def is_whole(path: Path, whole: Path) -> bool:
    """Return whether an output is complete: the same as that of the run that nobody disturbed, or else readable."""
    if path.suffix == ".sig":  # a signature has a random number in it
        return set(json.loads(path.read_bytes())) == set(json.loads(whole.read_bytes()))
    if path.name in ("d.md", "d.md.json") and b"not run" in path.with_name("d.md").read_bytes():
        return path.read_bytes()[-20:] == whole.read_bytes()[-20:]  # it says which of its checks could not be made
    if path.suffix != ".db":
        return path.read_bytes() == whole.read_bytes()
    db = sqlite3.connect(path)
    try:
        return db.execute("pragma integrity_check").fetchone() == ("ok",)
    finally:
        db.close()


def kill_one(bench: Bench, work: str, dice: random.Random) -> dict:
    """Run one command, kill it at a random moment and return what came of it."""
    number, old, to_group = dice.choice(SIGNALS), dice.random() < 0.5, dice.random() < 0.5
    moment = dice.uniform(0.0, 1.1 * bench.seconds[work])
    place = Place(bench, work, bench.folder, old=old)
    try:
        job = place.start()
        time.sleep(moment)
        if job.poll() is None:
            (os.killpg if to_group else os.kill)(job.pid, number)
        said = job.communicate(timeout=SECONDS)[1].decode(errors="replace")
        broken = place.broken()
        if job.returncode not in (0, 128 + number, -number):
            broken.append(f"exit code {job.returncode}")
        if number != signal.SIGKILL:
            broken += [f"left {name}" for name in place.left()]
            broken += [f"said {word!r}" for word in NEVER_SAID if word in said]
            state = place.state()
        else:
            state = place.state()
            broken += [f"{name} is left after the next run" for name in place.left_after_next()]
        return outcome(work, number.name, job.returncode, state, broken, said)
    finally:
        place.remove()


def outcome(work: str, cause: str, code: int, state: str, broken: list[str], said: str) -> dict:
    """Return what came of one run."""
    return {"work": work, "cause": cause, "code": code, "state": state, "broken": broken, "said": said}


def run(runs: int, seed: int, rows: int = 100_000, works: Sequence[str] = tuple(WORK)) -> list[dict]:
    """Run every command once in peace, then kill as many as are asked for, each in turn."""
    dice = random.Random(seed)
    with tempfile.TemporaryDirectory() as temporary:
        bench = Bench(Path(temporary), rows, works)
        return [kill_one(bench, work, dice) for work in itertools.islice(itertools.cycle(works), runs)]


def table(found: Sequence[Mapping]) -> str:
    """Return the outcomes by command and cause as Markdown."""
    lines = ["| " + " | ".join(COLUMNS) + " |", "|" + " --- |" * len(COLUMNS)]
    groups = sorted({(f["work"], f["cause"]) for f in found})
    for group in [*groups, ("all", "")]:
        own = [f for f in found if group[0] == "all" or group == (f["work"], f["cause"])]
        states = Counter(f["state"] for f in own)
        done = sum(f["code"] == 0 for f in own)
        cells = [*group, len(own), done, len(own) - done]
        cells += [states["old file"], states["no file"], states["new file"], sum(bool(f["broken"]) for f in own)]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    faults = [f"{f['work']}, {f['cause']}: {'; '.join(f['broken'])}\n{f['said']}" for f in found if f["broken"]]
    return "\n".join([*lines, *faults])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rows", type=int, default=100_000, help="of the data that are scored")
    asked = parser.parse_args()
    outcomes = run(asked.runs, asked.seed, asked.rows)
    print(table(outcomes))
    sys.exit(any(one["broken"] for one in outcomes))
