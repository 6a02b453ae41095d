"""Reading with limits, and writing that leaves the old file or the new one, never half of it."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from plainrisk.errors import OutputError, PlainriskError
from plainrisk.leftovers import hold_new_file, new_file_name

__all__ = [
    "SIZE_LIMIT",
    "output_target",
    "parse_json",
    "parse_toml",
    "read_text",
    "replacing",
    "write_text",
    "write_texts",
]

T = TypeVar("T")

SIZE_LIMIT = 256 * 2**20  # bytes of the largest model or download that is read
DEPTH_LIMIT = 64  # of nested arrays and tables, and of the dots in a key; a schema needs 4

_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)
_TOML_TOKEN = re.compile(
    r'"""(?:\\.|[^\\])*?(?:"{3,5}|\Z)|'
    r"'''.*?(?:'{3,5}|\Z)|"  # texts of several lines,
    r'"(?:\\.|[^"\\\n])*"?|'
    r"'[^'\n]*'?|"  # of one line,
    r"#[^\n]*|[\[\]{}.,=\n]",  # comments, and what is counted
    re.DOTALL,
)


# ---- reading


def read_text(
    path: str | Path,
    *,
    limit: int,
    error: type[PlainriskError],
    check: Callable[[bytes], None] | None = None,
) -> str:
    """Read a UTF-8 text file of at most `limit` bytes; anything wrong becomes one `error`.

    Bytes are counted while they are read, since a pipe or a device does not state its size. A byte order mark is
    skipped.

    Parameters
    ----------
    check : called with the bytes of the file before they are decoded; raises if they must not be used
    """
    try:
        raw = _read_bytes(Path(path), limit)
        if check is not None and len(raw) <= limit:
            check(raw)
        text = raw.decode("utf-8-sig")
    except PlainriskError:
        raise
    except FileNotFoundError:
        raise error(f"{path} does not exist.") from None
    except IsADirectoryError:
        raise error(f"{path} is a folder. Give the name of a file.") from None
    except UnicodeDecodeError:
        raise error(f"{path} is not a text file (UTF-8). Save it as UTF-8.") from None
    except OSError as problem:
        raise error(f"{path} cannot be read: {problem.strerror}.") from None
    except (TypeError, ValueError):
        raise error(f"{path!r} is not the name of a file.") from None
    if len(raw) > limit:
        raise error(f"{path} is too large: at most {limit:,} bytes are read.")
    if not raw:
        raise error(f"{path} is empty.")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _read_bytes(path: Path, limit: int) -> bytes:
    """Return the bytes of a file, or a few more than `limit` if it has more."""
    raw = bytearray()
    with path.open("rb") as file:
        while len(raw) <= limit and (piece := file.read(min(2**20, limit + 1 - len(raw)))):
            raw += piece
    return bytes(raw)


def parse_json(text: str, kind: type[T], path: str | Path, error: type[PlainriskError], noun: str) -> T:
    """Decode JSON into a type; text that is not JSON, not of this type or nested too deeply raises `error`.

    Parameters
    ----------
    noun : what the file should be, for the message: "a plainrisk model"
    """
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.ValidationError as problem:
        # Errors from a type's own check arrive wrapped.
        cause = problem.__cause__
        what = f"usable: {cause}" if isinstance(cause, PlainriskError) else f"{noun}: {problem}."
        raise error(f"{path} is not {what}") from None
    except RecursionError:
        raise error(f"{path} is damaged, or not {noun}: it is nested too deep.") from None
    except msgspec.DecodeError as problem:
        raise error(f"{path} is damaged: it is not valid JSON: {problem}.") from None


def parse_toml(text: str, path: str | Path, error: type[PlainriskError]) -> dict[str, Any]:
    """Decode TOML; text that is not TOML, nested too deeply, or with a number of too many digits raises `error`."""
    try:
        if _toml_depth(text) <= DEPTH_LIMIT:
            return tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise error(f"{path} is not valid TOML: {problem}.") from None
    except ValueError:  # Python limits the digits of a whole number
        raise error(f"{path} is not valid TOML: a whole number has too many digits.") from None
    raise error(f"{path} is nested too deep: at most {DEPTH_LIMIT} nested tables, or dots in a key, are read.")


def _toml_depth(text: str) -> int:
    """Return the depth of nested arrays and tables, or the most dots in a key if that is more.

    The time of `tomllib` grows with the square of either, so they are counted first.
    """
    deepest = depth = dots = 0
    for token in _TOML_TOKEN.finditer(text):
        mark = token[0]
        if mark == ".":
            dots += 1
        elif mark in "[{" or mark in "]}":
            depth, dots = max(0, depth + (1 if mark in "[{" else -1)), 0
        elif mark in ",=\n":
            dots = 0
        deepest = max(deepest, depth, dots)
    return deepest


# ---- writing


def write_text(path: str | Path, text: str) -> None:
    """Write a text file in one step."""
    write_texts({path: text})


def write_texts(texts: Mapping[str | Path, str | bytes]) -> None:
    """Write text or encoded files that belong together: all of them, or none."""
    with _replacing_all(tuple(texts)) as temporaries:
        for temporary, text in zip(temporaries, texts.values(), strict=True):
            temporary.write_bytes(text if isinstance(text, bytes) else text.encode())


@contextlib.contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Give a temporary path next to a file; rename it on success, remove it on failure.

    A reader sees the old file or the new one, never half of one. The new file has the mode and, where permitted, the
    owner of the old one; a link remains a link, and its target is replaced. Every error names the file as the user
    did.
    """
    with _replacing_all((path,)) as (temporary,):
        yield temporary


@contextlib.contextmanager
def _replacing_all(paths: Sequence[str | Path]) -> Iterator[list[Path]]:
    """Provide temporary paths next to files; rename all of them when all are complete, remove them on failure."""
    targets = [output_target(path) for path in paths]
    olds = [target.stat() if target.exists() else None for target in targets]
    temporaries, held = [new_file_name(target) for target in targets], list[int]()
    try:
        for temporary, old in zip(temporaries, olds, strict=True):
            # A new file gets the mode that the umask leaves; one that replaces another is private until it is complete.
            held.append(hold_new_file(temporary, 0o666 if old is None else 0o600))
        yield temporaries
        for temporary, old in zip(temporaries, olds, strict=True):
            _sync(temporary, os.O_RDWR)
            if old is not None:
                _keep_rights(temporary, old)
        if sys.platform == "win32":
            _close(held)  # Windows renames no open file
        _rename(temporaries, targets)
    except BaseException as error:
        number, message = _system_error(error), f"{error} {getattr(error, 'filename', '')}"
        named = [n for n, temporary in enumerate(temporaries) if temporary.name in message]
        # xlsxwriter's errors name no file; it writes files and reads none.
        if not named and number not in _DISK and type(error).__name__ != "FileCreateError":
            raise
        n = named[0] if named else 0
        message = str(error).replace(str(temporaries[n]), str(paths[n]))
        raise _unwritable(paths[n], targets[n].parent, number, message) from None
    finally:
        _close(held)  # first, since Windows removes no open file
        for temporary in temporaries:
            temporary.unlink(missing_ok=True)
    for folder in {target.parent for target in targets}:
        with contextlib.suppress(OSError):  # some systems cannot sync a folder
            _sync(folder, os.O_RDONLY)


def _rename(temporaries: Sequence[Path], targets: Sequence[Path]) -> None:
    """Rename files one after the other; an interrupt after the first takes effect after the last."""
    pairs = list(zip(temporaries, targets, strict=True))
    try:
        for temporary, target in pairs:
            temporary.replace(target)
    except KeyboardInterrupt:
        if not temporaries[0].exists():
            for temporary, target in pairs:
                if temporary.exists():
                    temporary.replace(target)
        raise


def _close(descriptors: list[int]) -> None:
    while descriptors:
        os.close(descriptors.pop())


def output_target(path: str | Path) -> Path:
    """Return the file that writing to `path` creates or replaces; raise an `OutputError` if it cannot be written."""
    try:
        target = Path(os.path.realpath(path))
        folder = target.parent if os.path.islink(path) else Path(path).parent
        if not folder.is_dir():
            raise _unwritable(path, folder, errno.ENOTDIR if folder.exists() else errno.ENOENT)
        if target.is_dir():
            raise OutputError(f"{path} cannot be written: it is a folder. Give the name of a file.")
        if os.path.lexists(target) and not stat.S_ISREG(target.stat().st_mode):
            raise OutputError(
                f"{path} cannot be written: it is a device or a pipe, not a file. Write to a file, then copy it there."
            )
        if not os.access(folder, os.W_OK):
            raise _unwritable(path, folder, errno.EACCES)
        if target.exists() and not os.access(target, os.W_OK):
            raise OutputError(f"{path} cannot be written: it is read-only. Make it writable, or give another name.")
    except OutputError:
        raise
    except OSError as error:
        raise _unwritable(path, folder, error.errno, str(error)) from None
    except (TypeError, ValueError):
        raise OutputError(f"{path!r} is not the name of a file.") from None
    return target


def _unwritable(path: str | Path, folder: Path, number: int | None, message: str = "") -> OutputError:
    """Return an error that says in words why a file cannot be written."""
    reasons = {
        errno.ENOENT: f"the folder {folder} does not exist. Make it first",
        errno.ENOTDIR: f"the folder {folder} is not a folder. Make it first",
        errno.EACCES: f"the folder {folder} may not be written to",
        errno.EPERM: f"the folder {folder} may not be written to",
        errno.EROFS: "the disk is read-only",
        errno.ENOSPC: "the disk is full. Make space on it, or write to another",
        errno.EDQUOT: "the quota of the disk is used up. Make space on it, or write to another",
    }
    reason = reasons.get(number or 0) or (os.strerror(number) if number else message.partition("\n")[0].rstrip("."))
    return OutputError(f"{path} cannot be written: {reason}.")


def _system_error(error: BaseException) -> int | None:
    """Return the system's number of an error; polars and xlsxwriter give it only in the message."""
    if isinstance(error, OSError) and error.errno:
        return error.errno
    match = re.search(r"(?:\(os error |\[Errno )(\d+)[)\]]", str(error))
    return int(match[1]) if match and isinstance(error, Exception) else None


def _keep_rights(temporary: Path, old: os.stat_result) -> None:
    """Give a file the owner, if permitted, and the mode of the one that it replaces."""
    mode = stat.S_IMODE(old.st_mode)
    made = temporary.stat()
    if (made.st_uid, made.st_gid) != (old.st_uid, old.st_gid):
        try:
            os.chown(temporary, old.st_uid, old.st_gid)
        except PermissionError:
            try:
                os.chown(temporary, -1, old.st_gid)
            except PermissionError:
                mode &= ~stat.S_IRWXG  # the old file's mode was for another group
    temporary.chmod(mode)


def _sync(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
