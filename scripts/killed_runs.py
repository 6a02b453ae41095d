"""Kill commands by signals at random moments and look at what they leave.

    python scripts/killed_runs.py --runs 100 --seed 0

Every run starts fit, score, reasons or a study in a folder of its own, with or without an old output there, and sends
it SIGINT, SIGTERM, SIGHUP or SIGKILL at a random moment of its time. Afterwards the output must be the old file or the
whole new one, and the exit code must say which signal it was. But for SIGKILL, which nobody can catch, no other file
may be left and nothing like a traceback may have been written. The last column counts the runs that broke a rule.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

# It says on stderr when the interpreter is there: before that, an interrupt is Python's own affair.
COMMAND = [sys.executable, "-c", "import os, plainrisk_command as c; os.write(2, b'started\\n'); c.main()"]
STUDY = 'name = "s"\ndatasets = ["german"]\nclassifiers = ["ARM1", "LinARM1"]\ncv = 5\n'
ON_ROWS = ("model.json", "rows.parquet", "-o")
# The output of each command, and its words.
WORK = {
    "fit": ("new.json", ("fit", "rows.csv", "--schema", "schema.toml", "--cv", "3", "-o", "new.json")),
    "score csv": ("out.csv", ("score", *ON_ROWS, "out.csv")),
    "score csv.gz": ("out.csv.gz", ("score", *ON_ROWS, "out.csv.gz")),
    "score parquet": ("out.parquet", ("score", *ON_ROWS, "out.parquet")),
    "reasons jsonl": ("out.jsonl", ("reasons", *ON_ROWS, "out.jsonl")),
    "reasons parquet": ("out.parquet", ("reasons", *ON_ROWS, "out.parquet")),
    "study": ("s.db", ("study", "run", "study.toml", "--store", "s.db", "--jobs", "2")),
}
SIGNALS = (*(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) * 3, signal.SIGKILL)
NEVER_SAID = ("Traceback", "KeyboardInterrupt", "bug in plainrisk")
COLUMNS = ("work", "signal", "runs", "done before", "stopped", "old file", "no file", "new file", "broken")


def make_inputs(folder: Path, rows: int) -> None:
    """Write data, schema, model and plan, once for all runs."""
    import polars as pl

    import plainrisk as pr

    made = pr.datasets.make_credit(rows, 7, backend="polars")
    frame = made.frame.with_columns(pl.Series("bad", made.target))
    frame.head(2000).write_csv(folder / "rows.csv")
    frame.write_parquet(folder / "rows.parquet")
    made.schema.save(folder / "schema.toml")
    pr.AdditiveRiskModel(made.schema).fit(made.frame.head(2000), made.target[:2000]).save(folder / "model.json")
    (folder / "study.toml").write_text(STUDY, encoding="utf-8")


def start(words: tuple[str, ...], folder: Path) -> subprocess.Popen:
    """Start a command in a group of its own, as a terminal does, and wait for its first sign."""
    streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    job = subprocess.Popen([*COMMAND, *words], cwd=folder, start_new_session=True, **streams)
    assert job.stderr.readline() == b"started\n"
    return job


def is_whole(path: Path, whole: Path) -> bool:
    """Return whether an output is complete: a store that can be read, or the file of the run that nobody killed."""
    if path.suffix != ".db":
        return path.read_bytes() == whole.read_bytes()
    db = sqlite3.connect(path)
    try:
        return db.execute("pragma integrity_check").fetchone() == ("ok",)
    finally:
        db.close()


def kill_one(inputs: Path, whole: Path, work: str, dice: random.Random, seconds: float) -> dict:
    """Run one command, kill it at a random moment and return what came of it."""
    output, words = WORK[work]
    number, old = dice.choice(SIGNALS), dice.random() < 0.5 and work != "study"
    to_group, moment = dice.random() < 0.5, dice.uniform(0.0, 1.1 * seconds)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for path in inputs.iterdir():
            (folder / path.name).symlink_to(path)
        if old:
            (folder / output).write_text("old", encoding="utf-8")
        job = start(words, folder)
        time.sleep(moment)
        if job.poll() is None:
            (os.killpg if to_group else os.kill)(job.pid, number)
        said = job.communicate(timeout=600)[1].decode(errors="replace")
        path = folder / output
        state = "no file" if not path.exists() else "old file" if old and path.read_bytes() == b"old" else "new file"
        left = {p.name for p in folder.iterdir()} - {p.name for p in inputs.iterdir()} - {output}
        broken = []
        if state == "new file" and not is_whole(path, whole / work):
            broken.append("half an output")
        if old and state == "no file":
            broken.append("the old output is gone")
        if job.returncode not in (0, 128 + number, -number):
            broken.append(f"exit code {job.returncode}")
        if number != signal.SIGKILL:
            broken += [f"left {name}" for name in sorted(left)]
            broken += [
                f"said {word!r}" for word in ("Traceback", "KeyboardInterrupt", "bug in plainrisk") if word in said
            ]
    return {"work": work, "signal": number.name, "code": job.returncode, "state": state, "broken": broken, "said": said}


def run(runs: int, seed: int, rows: int = 100_000, works: tuple[str, ...] = tuple(WORK)) -> list[dict]:
    """Run every command once in peace, then kill as many as are asked for, each in turn."""
    dice, seconds = random.Random(seed), {}
    with tempfile.TemporaryDirectory() as temporary:
        inputs, whole = Path(temporary) / "inputs", Path(temporary) / "whole"
        inputs.mkdir()
        whole.mkdir()
        make_inputs(inputs, rows)
        for work in works:
            output, words = WORK[work]
            folder = Path(temporary) / "calm"
            shutil.copytree(inputs, folder)
            job, begin = start(words, folder), time.monotonic()
            said = job.communicate(timeout=600)[1]
            assert job.returncode == 0, said.decode()
            seconds[work] = time.monotonic() - begin
            shutil.copy(folder / output, whole / work)
            shutil.rmtree(folder)
        in_turn = itertools.islice(itertools.cycle(works), runs)
        return [kill_one(inputs, whole, work, dice, seconds[work]) for work in in_turn]


def table(found: list[dict]) -> str:
    """Return the outcomes by command and signal as Markdown."""
    lines = ["| " + " | ".join(COLUMNS) + " |", "|" + " --- |" * len(COLUMNS)]
    groups = sorted({(f["work"], f["signal"]) for f in found})
    for group in [*groups, ("all", "")]:
        own = [f for f in found if group[0] == "all" or group == (f["work"], f["signal"])]
        states = Counter(f["state"] for f in own)
        done = sum(f["code"] == 0 for f in own)
        cells = [*group, len(own), done, len(own) - done]
        cells += [states["old file"], states["no file"], states["new file"], sum(bool(f["broken"]) for f in own)]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    faults = [f"{f['work']}, {f['signal']}: {'; '.join(f['broken'])}\n{f['said']}" for f in found if f["broken"]]
    return "\n".join([*lines, *faults])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    outcomes = run(asked.runs, asked.seed)
    print(table(outcomes))
    sys.exit(any(outcome["broken"] for outcome in outcomes))
