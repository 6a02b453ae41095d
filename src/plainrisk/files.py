"""Reading with a size limit, and writing that never leaves half a file."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

from plainrisk.errors import PlainriskError

__all__ = ["SIZE_LIMIT", "read_text", "replacing", "write_text"]

SIZE_LIMIT = 256 * 2**20  # bytes of the largest model or download that is read


def read_text(path: str | Path, *, limit: int, error: type[PlainriskError]) -> str:
    """Read a UTF-8 text file of at most `limit` bytes; anything wrong becomes one `error`."""
    path = Path(path)
    try:
        size = path.stat().st_size
        if size > limit:
            raise error(f"{path} is too large: {size:,} bytes, at most {limit:,} are read.")
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise error(f"{path} does not exist.") from None
    except UnicodeDecodeError:
        raise error(f"{path} is not a text file (UTF-8).") from None
    except OSError as problem:
        raise error(f"{path} cannot be read: {problem.strerror}.") from None


@contextlib.contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Give a temporary path beside `path`; rename it on success, remove it on failure.

    A reader sees the old file or the new one, never half of one.
    """
    path = Path(path)
    # The suffixes stay, since writers choose a format by them.
    temporary = path.parent / f".{path.stem}-{secrets.token_hex(8)}{''.join(path.suffixes)}"
    # Created with the mode of any new file, which the system derives from the umask. Asking for the umask would mean
    # changing it, for every thread of the process.
    os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    try:
        yield temporary
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_text(path: str | Path, text: str) -> None:
    """Write a text file in one step."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
