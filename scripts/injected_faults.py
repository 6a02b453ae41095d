"""Let reads, writes and disks fail while commands run, and look at what they leave.

    python scripts/injected_faults.py --runs 300 --seed 0 [--kinds calls,full,vanished,read-only]

Every run starts one of the commands that write (those of scripts/killed_runs.py) and does one thing to it:

    calls      strace makes one system call on a file of the run fail: open, read, write, fsync, rename, chmod, lock ...
    full       the disk is full after some bytes: a small file system in memory where that may be mounted, else a limit
               of the size of files
    vanished   the folder of the outputs is renamed while the command runs
    read-only  the file system of the outputs becomes read-only while the command runs, or was before it began

Afterward every output must be the old file or the whole new one; a command that says that it succeeded has written the
new one, another says why in words, and leaves no other file unless it could not remove it; then the next write there
does. Kinds that this machine cannot do are left out, and said.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from killed_runs import NEVER_SAID, SECONDS, WORK, Bench, Place, is_temporary, outcome, table

# What may go wrong with each system call.
CALLS = {
    "openat": ("EACCES", "EIO", "EMFILE", "ENOSPC"),
    "read": ("EIO",),
    "pread64": ("EIO",),
    "write": ("ENOSPC", "EIO", "EDQUOT"),
    "pwrite64": ("ENOSPC", "EIO"),
    "fsync": ("EIO", "ENOSPC"),
    "rename": ("EACCES", "ENOSPC", "EIO", "EXDEV"),
    "chmod": ("EPERM", "EIO"),
    "flock": ("ENOLCK", "EINTR"),
    "fstat": ("EIO",),
    "newfstatat": ("EIO", "EACCES"),
    "getdents64": ("EIO",),
    "lseek": ("EIO",),
}
LINE = re.compile(r"(\d+) +(\w+)\((.*)")
ENOUGH = 2**25  # bytes of the file system in memory
PAGE = 4096


def may_mount() -> bool:
    """Whether this user may mount a file system in memory."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(["mount", "-t", "tmpfs", "tmpfs", folder], capture_output=True, check=False)
        if done.returncode == 0:
            subprocess.run(["umount", folder], check=True)
        return done.returncode == 0


@contextlib.contextmanager
def mounted() -> Iterator[Path]:
    """Give a small file system in memory."""
    folder = tempfile.mkdtemp()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={ENOUGH}", "tmpfs", folder], check=True)
    try:
        yield Path(folder)
    finally:
        subprocess.run(["umount", "-l", folder], check=True)
        os.rmdir(folder)


class Faults:
    """The kinds of faults, each a function of a work and the dice that returns what came of one run."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.candidates = functools.cache(self._candidates)

    # ---- system calls

    def calls(self, work: str, dice: random.Random) -> dict:
        """Make one system call on a file of the run fail."""
        candidates = self.candidates(work)
        name = dice.choice(sorted({name for name, _ in candidates}))
        count = dice.choice([count for own, count in candidates if own == name])
        error = dice.choice(CALLS[name])
        place = Place(self.bench, work, self.bench.folder, old=dice.random() < 0.5)
        log = self.bench.folder / "strace.log"
        before = ["strace", "-f", "-y", "-o", str(log), "-e", f"trace={name}"]
        job = place.start([*before, "-e", f"inject={name}:error={error}:when={count}"], surely=False)
        return self._finish(place, job, f"{name} {error}", elsewhere=functools.partial(self._elsewhere, place, log))

    def _elsewhere(self, place: Place, log: Path) -> str:
        """Return why a fault met no file of the run, or nothing if it did: threads do not make the same calls twice."""
        met = [line for line in log.read_text(errors="replace").splitlines() if "(INJECTED)" in line]
        if not met:
            return "no fault"
        return "" if any(self._is_own(place, line) for line in met) else "a fault elsewhere"

    def _is_own(self, place: Place, line: str) -> bool:
        """Whether a system call names a file of the run, by a path or as an open file."""
        if re.search(r'AT_FDCWD<[^>]*>, "[^/"]', line):
            return True
        line = re.sub(r"AT_FDCWD<[^>]*>", "", line)
        return any(str(folder) in line for folder in (place.folder, place.temporary, self.bench.inputs))

    def _candidates(self, work: str) -> list[tuple[str, int]]:
        """Run a command in peace; return its calls on files of the run, by name and number within their thread."""
        place, log = Place(self.bench, work, self.bench.folder, old=True), self.bench.folder / "strace.log"
        job = place.start(["strace", "-f", "-y", "-o", str(log), "-e", f"trace={','.join(CALLS)}"])
        job.communicate(timeout=SECONDS)
        counts: dict[tuple[str, str], int] = {}
        found: set[tuple[str, int]] = set()
        for line in log.read_text(errors="replace").splitlines():
            if (said := LINE.match(line)) is None or said[2] not in CALLS:
                continue
            key = (said[1], said[2])
            counts[key] = counts.get(key, 0) + 1
            if self._is_own(place, said[3]):
                found.add((said[2], counts[key]))
        place.remove()
        return sorted(found)

    # ---- disks

    def full(self, work: str, dice: random.Random) -> dict:
        """Leave so little space that the outputs may not fit."""
        need = 2 * sum((self.bench.whole / work / name).stat().st_size for name in WORK[work][0]) + 2 * PAGE
        space = dice.randrange(need)
        if not may_mount_here():
            place = Place(self.bench, work, self.bench.folder, old=dice.random() < 0.5)
            return self._finish(place, place.start(["prlimit", f"--fsize={space}"]), "size limit")
        with mounted() as folder:
            place = Place(self.bench, work, folder, old=dice.random() < 0.5)
            free = os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize
            with open(folder / "filler", "wb") as file:
                file.write(b"\0" * max(0, free - space // PAGE * PAGE))
            return self._finish(place, place.start(), "full disk", after=(folder / "filler").unlink)

    def vanished(self, work: str, dice: random.Random) -> dict:
        """Rename the folder of the outputs while the command runs, and back when it has ended."""
        place = Place(self.bench, work, self.bench.folder, old=dice.random() < 0.5)
        job, away = place.start(), place.folder.with_name(place.folder.name + "-away")
        time.sleep(dice.uniform(0.0, self.bench.seconds[work]))
        place.folder.rename(away)

        def back() -> None:
            # A command may have made its own folder again.
            shutil.rmtree(place.folder, ignore_errors=True)
            away.rename(place.folder)

        return self._finish(place, job, "vanished folder", after=back, may_leave=True)

    def read_only(self, work: str, dice: random.Random) -> dict:
        """Make the file system read-only, at once or while the command runs."""
        with mounted() as folder:
            place = Place(self.bench, work, folder, old=dice.random() < 0.5)
            at_once = dice.random() < 0.5
            change = ["mount", "-o", "remount,ro", str(folder)]
            if at_once:
                subprocess.run(change, check=True)
            job = place.start()
            if not at_once:
                time.sleep(dice.uniform(0.0, self.bench.seconds[work]))
                subprocess.run(change, check=False, capture_output=True)  # refused while a file is written
            again = ["mount", "-o", "remount,rw", str(folder)]
            return self._finish(place, job, "read-only", after=functools.partial(subprocess.run, again, check=True))

    # ---- afterward

    def _finish(
        self,
        place: Place,
        job: subprocess.Popen,
        cause: str,
        *,
        after: Callable[[], object] = lambda: None,
        elsewhere: Callable[[], str] = str,
        may_leave: bool = False,
    ) -> dict:
        """Wait for the end of a command, and look at what there is."""
        hangs = False
        try:
            raw = job.communicate(timeout=SECONDS)[1]
        except subprocess.TimeoutExpired:
            os.killpg(job.pid, signal.SIGKILL)
            hangs, raw = True, job.communicate()[1]
        said = raw.decode(errors="replace")
        after()
        broken = place.broken()
        if job.returncode == 0 and place.state() != "new file" and place.work != "annotate":
            broken.append("it says that it succeeded, and there is no new file")
        cause = elsewhere() or cause
        if cause != "a fault elsewhere":  # which may meet Python as it imports, or the threads of polars
            broken += ["it hangs"] * hangs
            broken += [f"exit code {job.returncode}"] * (not 0 <= job.returncode <= 5)
            broken += ["it does not say why"] * bool(job.returncode and "rror" not in said)
            broken += [f"said {word!r}" for word in NEVER_SAID if word in said]
        state, left = place.state(), place.left()
        if not may_leave:
            broken += [f"left {name}" for name in left if not is_temporary(name)]
        # What could not be removed goes with the next write.
        broken += [f"{name} is left after the next run" for name in place.left_after_next()]
        place.remove()
        return outcome(place.work, cause, job.returncode, state, broken, said)


@functools.cache
def may_mount_here() -> bool:
    """Ask once."""
    return may_mount()


def kinds_here(asked: Sequence[str], tell: Callable[[str], None]) -> list[str]:
    """Return the kinds of faults that this machine can do."""
    cannot = {
        "calls": shutil.which("strace") is None and "strace is not installed",
        "read-only": not may_mount_here() and "this user may not mount",
        "full": not may_mount_here() and shutil.which("prlimit") is None and "neither mount nor prlimit is here",
    }
    for kind in asked:
        if cannot.get(kind):
            tell(f"{kind} is left out: {cannot[kind]}")
    return [kind for kind in asked if not cannot.get(kind)]


def run(
    runs: int,
    seed: int,
    rows: int = 20_000,
    works: Sequence[str] = tuple(WORK),
    kinds: Sequence[str] = ("calls", "full", "vanished", "read-only"),
    tell: Callable[[str], None] = print,
) -> list[dict]:
    """Run every command once in peace, then as many with a fault as are asked for, each in turn."""
    dice, here = random.Random(seed), kinds_here(kinds, tell)
    with tempfile.TemporaryDirectory() as temporary:
        faults = Faults(Bench(Path(temporary), rows, works))
        found: list[dict] = []
        for n in range(runs if here else 0):
            # Half of the faults are calls, of which there are most.
            kind = "calls" if "calls" in here and n % 2 else dice.choice(here)
            one = getattr(faults, kind.replace("-", "_"))(works[n % len(works)], dice)
            found.append(one)
            print(f"{n + 1} of {runs}: {one['work']}, {one['cause']}, {one['state']}", file=sys.stderr, flush=True)
            if one["broken"]:
                tell(f"{one['work']}, {one['cause']}: {one['broken']}\n{one['said'][-1500:]}")
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rows", type=int, default=20_000, help="of the data that are scored")
    parser.add_argument("--kinds", default="calls,full,vanished,read-only")
    asked = parser.parse_args()
    outcomes = run(asked.runs, asked.seed, asked.rows, kinds=asked.kinds.split(","))
    print(table(outcomes))
    sys.exit(any(one["broken"] for one in outcomes))
