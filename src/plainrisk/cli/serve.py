"""`plainrisk serve`: models as a service over HTTP."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from plainrisk.checks import NOTHING, check_parameters, whole
from plainrisk.cli.options import names_data, option, switch
from plainrisk.errors import DataError, missing_extra
from plainrisk.signing import read_private_key

__all__ = ["serve"]


def serve(
    models: Annotated[list[Path], typer.Argument(metavar="MODEL...", help="Model files; the first answers at /score.")],
    host: str = option(
        "The address to listen on; any but this machine's own needs an API key.", "127.0.0.1", metavar="ADDRESS"
    ),
    port: int = option("The port; 0 takes a free one.", 8000, metavar="PORT"),
    workers: int = option("The number of worker processes.", 1, metavar="N"),
    max_rows: int = option("The largest number of rows in a request.", 10_000, metavar="N"),
    max_megabytes: int = option("The largest request, in megabytes.", 8, metavar="N"),
    seconds: int = option("Abandon a request after this many seconds.", 30, metavar="N"),
    signed_by: str | None = option(
        "Serve only models that this key signed, also after a reload.", None, "--require-signature", metavar="PUBLIC"
    ),
    receipt_key: str | None = option("The private key that signs receipts of decisions.", metavar="KEY"),
    keys: str | None = option("API keys by name and hash; see the documentation.", metavar="FILE"),
    rate: int | None = option("The largest number of requests per key and second.", metavar="N"),
    audit: str | None = option(
        "Log every decision in this folder, in a file that reveals any later change.", metavar="FOLDER"
    ),
    audit_values: bool = switch("--audit-values", "Put the applicants' values into the audit log, too."),
    tls_certificate: str | None = option("Serve HTTPS with this certificate, in PEM.", metavar="FILE"),
    tls_key: str | None = option("Its private key, in PEM.", metavar="FILE"),
) -> None:
    """Serve risks, contributions, reasons, what-if and the decision page over HTTP.

    By default the service listens only on this machine. For any other address, put an API key into the environment
    variable PLAINRISK_API_KEY, or several into a file; requests send one as "Authorization: Bearer KEY". A model file
    that is replaced by renaming is read again, and so is the file of keys.
    """
    for path in models:
        if names_data(path):
            raise DataError(f"{path} is not a model file. serve takes model files alone; the rows come with requests.")
    for package in ("starlette", "uvicorn", "prometheus_client"):
        if find_spec(package) is None:
            raise missing_extra(package, "serve")
    from plainrisk.serve.process import run
    from plainrisk.serve.settings import Settings

    given = {"--port": port, "--workers": workers, "--max-rows": max_rows, "--seconds": seconds}
    given["--max-megabytes"] = max_megabytes
    allowed = dict.fromkeys(given, whole(1)) | {"--port": whole(0, 65_535)}
    check_parameters("serve", given, allowed)
    check_parameters("serve", {"--rate": rate}, {"--rate": NOTHING | whole(1)})
    if audit_values and audit is None:
        raise DataError("serve: --audit-values is for an audit log. Add --audit FOLDER.")
    settings = Settings(
        models=tuple(str(path) for path in models),
        host=host,
        port=port,
        key=os.environ.get("PLAINRISK_API_KEY") or None,
        keys=keys,
        certificate=tls_certificate,
        certificate_key=tls_key,
        rate=rate,
        audit=audit,
        audit_values=audit_values,
        max_rows=max_rows,
        max_bytes=max_megabytes * 2**20,
        seconds=float(seconds),
        signed_by=signed_by,
        receipt_key=receipt_key,
    )
    if receipt_key is not None:
        read_private_key(Path(receipt_key))  # what is wrong with it is said here, not by every worker
    run(settings, workers)
