"""The `plainrisk` command, before anything is imported: an interrupt of the imports ends it without a traceback.

It stands beside the package, since importing any part of the package imports the package first.
"""

from __future__ import annotations

import signal

__all__ = ["main"]


def main() -> None:
    """Run the command line."""
    # Until the command itself runs, and when it is done, there is nothing to clean up.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from plainrisk.cli.main import main as run

    run()


if __name__ == "__main__":
    main()
