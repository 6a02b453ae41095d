"""Damage files and requests, and see that every reader takes them or refuses them by an error of ours.

    python scripts/fuzz.py [--only model,csv] [--runs N | --seconds S] [--seed 0] [--engine plain|atheris]

The targets stand in scripts/fuzz_targets.py, the inputs that are damaged in tests/fuzz/corpus, by target. There are two
engines: `plain` needs nothing, and the same seed gives the same inputs; an input that gets an answer nobody got before
is damaged further. `atheris` is led by coverage and finds more in hours; both damage inputs in the same ways. A finding
is another exception than ours, a wrong answer, more than a minute or more than a gigabyte; its input is kept in
build/fuzz. Ends with 1 if there is one. Without --runs and --seconds it goes on until you stop it.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import gzip
import hashlib
import itertools
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

os.environ |= {"POLARS_MAX_THREADS": "1", "RUST_BACKTRACE": "0"}
ROOT = Path(__file__).parents[1]
CORPUS, KEPT = ROOT / "tests" / "fuzz" / "corpus", ROOT / "build" / "fuzz"
MEMORY_FOLDER = Path("/dev/shm")  # where there is such a folder, nothing waits for a disk
# polars itself may end the process on a damaged page of a Parquet file; nothing that others send is one.
ON_REQUEST = {"parquet"}
LONGEST = 2**16  # bytes of an input
HANG = 60  # seconds
MEMORY = 2**20  # kilobytes that one input may add to the most that was in use
POOL = 2000  # inputs that are damaged further, beside the corpus
# What readers stumble over: numbers at the ends of types, words of formats, and what a text must not hold.
TOKENS = [
    b"0",
    b"-0.0",
    b"-1",
    b"1e308",
    b"1e999",
    b"-1e-320",
    b"nan",
    b"inf",
    b"NaN",
    b"65536",
    b"65537",
    b"4294967296",
]
TOKENS += [b"9223372036854775808", b"-9223372036854775809", b"9" * 400, b"0.1", b"true", b"null", b'""', b"[]", b"{}"]
TOKENS += [
    b'"',
    b"'''",
    b"\\",
    b"\n",
    b"\r",
    b"\0",
    b"\t",
    b",",
    b";",
    b"=",
    b"[[",
    b"]]",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\xc3\xa9",
]
TOKENS += [
    b"\\ud800",
    b"\xf0\x9f\x98\x80",
    b"1979-05-27",
    b"__proto__",
    b"missing",
    b"..",
    b"#",
    b"2",
    b"01",
    b"1.0",
    b"True",
]
VALUES = [
    None,
    True,
    -1,
    0,
    1,
    2,
    7,
    2**16,
    2**31,
    2**63,
    2**64,
    10**400,
    -0.5,
    1e300,
    1e-320,
    "",
    "a",
    "missing",
    [],
    {},
]
INTEGERS = [0, 1, 2, 7, 255, 2**15, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**62, 2**63 - 1, 2**63, 2**64 - 1]


# ---- damage


def damaged(data: bytes, pool: list[bytes], dice: random.Random) -> bytes:
    """Return an input with one to four changes."""
    for _ in range(dice.choice((1, 1, 2, 4))):
        change = dice.choice((change_bytes, change_integers, change_words, change_json, change_json))
        data = change_packed(data, pool, dice) if data.startswith(b"\x1f\x8b") else change(data, pool, dice)
    return data[:LONGEST]


def change_bytes(data: bytes, pool: list[bytes], dice: random.Random) -> bytes:
    """Flip a bit, cut or repeat a piece, put in a word, or go on as another input does."""
    a, b = sorted((dice.randint(0, len(data)), dice.randint(0, len(data))))
    way = dice.randrange(5)
    if way == 0 and a < len(data):
        return data[:a] + bytes([data[a] ^ 1 << dice.randrange(8)]) + data[a + 1 :]
    if way == 1:
        return data[:a] + data[b:]
    if way == 2:
        return data[:b] + data[a:b] * dice.choice((1, 1, 40)) + data[b:]
    if way == 3:
        return data[:a] + dice.choice(TOKENS) + data[a:]
    other = dice.choice(pool)
    return data[:a] + other[dice.randint(0, len(other)) :]


def change_integers(data: bytes, pool: list[bytes], dice: random.Random) -> bytes:
    """Write another whole number where a binary format may have one."""
    size = dice.choice((2, 4, 8))
    if len(data) < size:
        return change_bytes(data, pool, dice)
    at = dice.randrange(0, len(data) - size + 1)
    number = dice.choice([*INTEGERS, len(data), dice.randrange(256)]) % 256**size
    return data[:at] + number.to_bytes(size, "little") + data[at + size :]


def change_words(data: bytes, pool: list[bytes], dice: random.Random) -> bytes:
    """Write another word for a word or number."""
    words = [match.span() for match in re.finditer(rb"[\w.+-]+", data)]
    if not words:
        return change_bytes(data, pool, dice)
    (a, b), (c, d) = dice.choice(words), dice.choice(words)
    return data[:a] + (dice.choice(TOKENS) if dice.random() < 0.7 else data[c:d]) + data[b:]


def change_json(data: bytes, pool: list[bytes], dice: random.Random) -> bytes:
    """Change one value in a JSON document, which may stand after a line of something else."""
    begin = data.find(b"{")
    try:
        tree = json.loads(data[begin:]) if begin >= 0 else None
        places = list(inner_places(tree))
    except (ValueError, RecursionError):
        places = []
    if not places:
        return change_words(data, pool, dice)
    (box, key), (other, name) = dice.choice(places), dice.choice(places)
    way = dice.randrange(6)
    if way == 0:
        del box[key]
    elif way == 1 and isinstance(box, list):
        box.insert(key, box[key])
    elif way == 2 and isinstance(box[key], int | float) and abs(box[key]) < 2**64:
        box[key] = dice.choice((-box[key], box[key] + 1, box[key] * 0.5, box[key] - 1e-9))
    elif way == 3 and isinstance(box, dict):
        box[dice.choice((name if isinstance(name, str) else "x", "", key + " "))] = box.pop(key)
    else:
        box[key] = json.loads(json.dumps(other[name])) if way == 4 else dice.choice(VALUES)
    return data[:begin] + json.dumps(tree, ensure_ascii=dice.random() < 0.5).encode("utf-8", "replace")


def inner_places(tree: object) -> Iterator[tuple[dict | list, str | int]]:
    """Yield every place of a value in a document: its object or list, and its name or number there."""
    if isinstance(tree, dict | list):
        for key, value in list(tree.items() if isinstance(tree, dict) else enumerate(tree)):
            yield tree, key
            yield from inner_places(value)


def change_packed(data: bytes, pool: list[bytes], dice: random.Random) -> bytes:
    """Damage a gzip file, or what is in it."""
    with contextlib.suppress(OSError, EOFError, zlib.error):
        if dice.random() < 0.7:
            return gzip.compress(change_words(gzip.decompress(data), pool, dice), mtime=0)
    return change_bytes(data, pool, dice)


# ---- one input


class HangError(BaseException):
    """An input took too long."""


def one_line(error: BaseException) -> str:
    """Return what was raised, and the last line of ours that it went through."""
    own = [f for f in traceback.extract_tb(error.__traceback__) if "plainrisk" in f.filename or "fuzz_t" in f.filename]
    where = f"{Path(own[-1].filename).name}:{own[-1].lineno}" if own else "?"
    return f"{type(error).__name__} at {where}: {str(error)[:200]!r}"


class Target:
    """A reader, what came of its inputs, and what must not have."""

    def __init__(self, name: str) -> None:
        import fuzz_targets
        from plainrisk.errors import PlainriskError

        self.name, self.read, self.ours = name, fuzz_targets.TARGETS[name], PlainriskError
        self.place, self.counts = fuzz_targets.Place(), Counter()
        self.findings: set[str] = set()
        self.counted, self.input = Path(tempfile.gettempdir(), "counts.json"), Path(tempfile.gettempdir(), "input")

    def attempt(self, data: bytes) -> str:
        """Read an input; return what came of it, without names and numbers."""
        self.counts["inputs"] += 1
        self.input.write_bytes(data)
        before = peak()
        alarm(HANG)
        try:
            self.read(self.place, data)
            answer = "taken"
        except self.ours as error:
            answer = "refused"
            return re.sub(r"'[^']*'|\"[^\"]*\"|[\d.,+-]+", "", str(error))[:200]
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            answer = "finding"
            cause = error.__cause__
            self.keep(one_line(error if cause is None else cause), data)
        finally:
            alarm(0)
            self.counts[answer] += 1
            if peak() - before > MEMORY:
                self.keep(f"more than {MEMORY // 1024} MB", data)
        return answer

    def attempt_and_count(self, data: bytes) -> None:
        """Read an input; now and then write down what came of all, since libFuzzer never comes back."""
        self.attempt(data)
        if self.counts["inputs"] % 500 == 0 or self.counts["finding"]:
            self.count()

    def count(self) -> None:
        """Write down what came of all inputs."""
        self.counted.write_text(json.dumps(self.counts), encoding="utf-8")

    def keep(self, what: str, data: bytes) -> None:
        """Keep the first input of every finding."""
        known = re.sub(r": .*", "", what)
        if known not in self.findings:
            self.findings.add(known)
            keep(self.name, what, data)


def alarm(seconds: float) -> None:
    """Stop an input that hangs: where Python runs by an exception, else with the stack of all threads."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds)


def peak() -> int:
    """Return the most memory that this process had, in kilobytes."""
    try:
        import resource
    except ImportError:  # Windows
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // (1024 if sys.platform == "darwin" else 1)


# ---- engines


def run_plain(name: str, corpus: Path, runs: int | None, seconds: float | None, seed: int) -> None:
    """Read the corpus, then damage it by seeded dice."""
    target, dice = Target(name), random.Random(f"{seed} {name}")
    pool = [path.read_bytes() for path in sorted(corpus.iterdir())]
    answers = {target.attempt(data) for data in pool}
    own, end = len(pool), time.monotonic() + (seconds or 0.0)
    for n in itertools.count(len(pool)):
        if (runs is not None and n >= runs) or (seconds is not None and time.monotonic() >= end):
            break
        # Half of the time one of the corpus, since most of what joins it is refused.
        data = damaged(pool[dice.randrange(own if dice.random() < 0.5 else len(pool))], pool, dice)
        answer = target.attempt(data)
        if answer not in answers and len(pool) < own + POOL:
            answers.add(answer)
            pool.append(data)
    target.count()


def run_atheris(name: str, corpus: Path, runs: int | None, seconds: float | None, seed: int) -> None:
    """Hand the target to libFuzzer, which never comes back."""
    import atheris

    with atheris.instrument_imports(include=["plainrisk", "plainrisk_lab"]):
        target = Target(name)
    pool = [path.read_bytes() for path in sorted(corpus.iterdir())]

    def change(data: bytes, most: int, seed: int) -> bytes:
        dice = random.Random(seed)
        found = damaged(data, pool, dice) if dice.random() < 0.7 else atheris.Mutate(data, most)
        return bytes(found[:most])

    grown = KEPT / "corpus" / name
    grown.mkdir(parents=True, exist_ok=True)
    words = [
        f"-max_len={LONGEST}",
        "-rss_limit_mb=4096",
        f"-timeout={HANG}",
        f"-artifact_prefix={KEPT}/",
        f"-seed={seed + 1}",
    ]
    words += [] if runs is None else [f"-runs={runs}"]
    words += [] if seconds is None else [f"-max_total_time={max(1, int(seconds))}"]
    atheris.Setup([sys.argv[0], *words, str(grown), str(corpus)], target.attempt_and_count, custom_mutator=change)
    atheris.Fuzz()


def run_inside(asked: argparse.Namespace, name: str) -> None:
    """Run one target in this process."""
    prepare()
    engine = run_atheris if asked.engine == "atheris" else run_plain
    engine(name, CORPUS / name, asked.runs, asked.seconds, asked.seed)


def run_apart(asked: argparse.Namespace, name: str) -> Counter:
    """Run one target in a process of its own, which an input may end, and return what came of it."""
    with tempfile.TemporaryDirectory(prefix="fuzz-", dir=MEMORY_FOLDER if MEMORY_FOLDER.is_dir() else None) as place:
        words = [
            sys.executable,
            __file__,
            "--inside",
            "--only",
            name,
            "--engine",
            asked.engine,
            "--seed",
            str(asked.seed),
        ]
        for option in ("runs", "seconds"):
            words += [] if getattr(asked, option) is None else [f"--{option}", str(getattr(asked, option))]
        done = subprocess.run(
            words, env={**os.environ, "TMPDIR": place}, stderr=subprocess.PIPE, text=True, check=False
        )
        found = Path(place, "counts.json")
        counts = Counter(json.loads(found.read_text()) if found.exists() else {})
        if said := re.search(r"Done (\d+) runs", done.stderr):
            counts["inputs"] = int(said[1])
        if done.returncode:
            counts["finding"] += 1
            last = Path(place, "input")
            data = last.read_bytes() if last.exists() else b""
            told = f"the process ended with {done.returncode}: {done.stderr.strip()[-1500:]}"
            keep(name, told, data)
    return counts


def keep(name: str, what: str, data: bytes) -> None:
    """Keep the input of a finding, and say so."""
    KEPT.mkdir(parents=True, exist_ok=True)
    path = KEPT / f"{name}-{hashlib.sha256(data).hexdigest()[:12]}"
    path.write_bytes(data)
    print(f"FINDING {name}: {what}; {path}", flush=True)


def parsed() -> argparse.Namespace:
    """Return what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="names of targets with commas between them")
    parser.add_argument("--runs", type=int, help="inputs of each target")
    parser.add_argument("--seconds", type=float, help="for each target")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--engine", choices=("plain", "atheris"), default="plain")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def hang(*_: object) -> None:
    """Raise in whatever runs too long."""
    raise HangError(f"more than {HANG} seconds")


def prepare() -> None:
    """Make findings of warnings of others, and of what hangs."""
    import plainrisk as pr

    warnings.simplefilter("error")
    warnings.simplefilter("ignore", pr.errors.PlainriskWarning)
    warnings.simplefilter("ignore", ResourceWarning)  # at the end of the process
    faulthandler.enable()
    if hasattr(signal, "SIGALRM"):
        signal.signal(signal.SIGALRM, hang)


def main() -> None:
    """Run the targets one after the other, again and again if nothing bounds them."""
    asked = parsed()
    known = sorted({path.name for path in CORPUS.iterdir()} - ON_REQUEST)
    names = asked.only.split(",") if asked.only else known
    if asked.inside:
        run_inside(asked, names[0])
        return
    bounded, findings = asked.runs is not None or asked.seconds is not None, 0
    for turn in itertools.count():
        if not bounded:
            asked.runs = 20_000
        for name in names:
            begin = time.monotonic()
            counts = run_apart(asked, name)
            findings += counts["finding"]
            told = ", ".join(f"{counts[key]:,} {key}" for key in ("inputs", "taken", "refused", "finding"))
            print(f"{name}: {told}; {time.monotonic() - begin:.0f} s, seed {asked.seed}", flush=True)
        if bounded:
            sys.exit(bool(findings))
        asked.seed += 1 + turn


if __name__ == "__main__":
    main()
