"""`plainrisk sign` and `plainrisk verify`: who a model file is from, years later and offline."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from plainrisk.cli import show
from plainrisk.cli.main import ExitCode
from plainrisk.cli.options import Json, refuse_data
from plainrisk.errors import DataError, SignatureError
from plainrisk.form import form_hash
from plainrisk.model import load, sign
from plainrisk.signing import key_id, new_key, read_private_key, read_public_key, signature_path

__all__ = ["sign_command", "verify"]

Key = Annotated[Path, typer.Option("--key", metavar="PUBLIC", help="The public key of whoever signed.")]


def sign_command(
    context: typer.Context,
    model: Annotated[
        Path | None, typer.Argument(metavar="[MODEL]", help="A model file, written by fit.", show_default=False)
    ] = None,
    key: Annotated[
        Path | None,
        typer.Option(
            "--key",
            metavar="KEY",
            help="The private key, on the curve P-256; the password of one that is protected stands in the environment "
            "variable PLAINRISK_KEY_PASSWORD.",
        ),
    ] = None,
    new: Annotated[
        Path | None,
        typer.Option("--new-key", metavar="KEY", help="Make a private key, its public key beside it, and sign by it."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="The signature to write; without it MODEL.sig."),
    ] = None,
    json: Json = False,
) -> None:
    """Sign a model file by a key of your own, as OpenSSF model signing does, or make such a key; offline."""
    if (key is None) == (new is None) or (model is None and new is None):
        raise DataError(
            "sign: name the model and one key: plainrisk sign MODEL --key KEY. To make a key: plainrisk sign --new-key "
            "key.pem"
        )
    if model is not None:
        load(refuse_data(context, model))  # before a key is made for nothing
    public = None if new is None else new_key(new)
    used = new if key is None else key
    assert used is not None
    written = None if model is None else sign(model, used, output=output)
    result: dict[str, Any] = {
        "model": None if model is None else str(model),
        "signature": None if written is None else str(written),
        "key": key_id(read_private_key(used).public_key()),
        "new_key": None if public is None else {"private": str(new), "public": str(public)},
    }
    show.result(result, json, _show_signed)


def _show_signed(result: dict[str, Any]) -> None:
    console = show.out()
    if (made := result["new_key"]) is not None:
        console.print(f"Wrote {made['private']}, which signs: keep it secret, and a copy of it safe.", soft_wrap=True)
        console.print(f"Wrote {made['public']}, which checks: give it to whoever must.", soft_wrap=True)
    if result["signature"] is not None:
        console.print(f"Wrote {result['signature']}, by the key {result['key'][:12]}.", soft_wrap=True)


def verify(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A model file.", show_default=False)],
    key: Key,
    signature: Annotated[
        Path | None, typer.Option("--signature", metavar="FILE", help="The signature; without it FILE.sig.")
    ] = None,
    json: Json = False,
) -> None:
    """Check offline that a model file is as the owner of a key signed it; ends with 4 if it is not."""
    public = read_public_key(key)
    result: dict[str, Any] = {"file": str(refuse_data(context, file)), "key": key_id(public), "valid": True}
    try:
        model = load(file, key=key, signature=signature)
        result |= {"signature": str(signature or signature_path(file)), "form_sha256": form_hash(model.form_)}
    except SignatureError as error:
        result |= {"valid": False, "reason": str(error)}
    show.result(result, json, _show_verified)
    if not result["valid"]:
        raise typer.Exit(ExitCode.FAILED_CERTIFICATE)


def _show_verified(result: dict[str, Any]) -> None:
    if result["valid"]:
        show.out().print(f"holds   {result['file']} is as the key {result['key'][:12]} signed it.", soft_wrap=True)
    else:
        show.out().print(f"BROKEN  {result['reason']}", soft_wrap=True)
