"""`plainrisk sign` and `plainrisk verify`: who a model file or a decision is from, years later and offline."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from plainrisk.cli import show
from plainrisk.cli.main import ExitCode
from plainrisk.cli.options import Json, option, refuse_data
from plainrisk.errors import DataError, SignatureError
from plainrisk.files import parse_json, read_text
from plainrisk.form import form_hash
from plainrisk.model import load, sign
from plainrisk.receipts import is_receipt, verify_receipt
from plainrisk.signing import (
    SIGNATURE_LIMIT,
    key_id,
    new_key,
    read_private_key,
    read_public_key,
    signature_path,
)

__all__ = ["sign_command", "verify"]

Key = Annotated[Path, typer.Option("--key", metavar="PUBLIC", help="The public key of the signer.")]


def sign_command(
    context: typer.Context,
    model: Annotated[
        Path | None, typer.Argument(metavar="[MODEL]", help="A model file, written by fit.", show_default=False)
    ] = None,
    key: Path | None = option(
        "The private key, on the curve P-256; if it is encrypted, give the password in the environment "
        "variable PLAINRISK_KEY_PASSWORD.",
        metavar="KEY",
    ),
    new: Path | None = option(
        "Make a private key, with its public key next to it, and sign with it.", None, "--new-key", metavar="KEY"
    ),
    output: Path | None = option(
        "The signature to write; by default MODEL.sig.", None, "--output", "-o", metavar="FILE"
    ),
    json: Json = False,
) -> None:
    """Sign a model file with your own key, in the format of OpenSSF model signing, or make such a key; offline."""
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
        console.print(
            f"Wrote {made['private']}, the private key: keep it secret, and keep a safe copy.", soft_wrap=True
        )
        console.print(
            f"Wrote {made['public']}, the public key: give it to everybody who must check signatures.", soft_wrap=True
        )
    if result["signature"] is not None:
        console.print(f"Wrote {result['signature']}, by the key {result['key'][:12]}.", soft_wrap=True)


def verify(
    context: typer.Context,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A model file, or the receipt of a decision.", show_default=False)
    ],
    key: Key,
    signature: Path | None = option("For a model file: its signature; by default FILE.sig.", metavar="FILE"),
    model: Path | None = option("For a receipt: the model that decided.", metavar="MODEL"),
    inputs: Path | None = option("For a receipt: the applicant as JSON, or some of the inputs.", metavar="FILE"),
    json: Json = False,
) -> None:
    """Check offline that a model file or a receipt is unchanged since a key signed it; exits with code 4 if it is not.

    With the model and all inputs, the model decides again: probability, decision, reasons and changes must match
    the receipt.
    """
    public = read_public_key(key)
    result: dict[str, Any] = {"file": str(refuse_data(context, file)), "key": key_id(public)}
    if is_receipt(file):
        if signature is not None:
            raise DataError("verify: a receipt contains its signature. Leave out --signature.")
        given = None if inputs is None else _applicant(inputs)
        receipt_check = verify_receipt(file, public, model=None if model is None else load(model), inputs=given)
        result |= {"valid": receipt_check.valid, **msgspec.to_builtins(receipt_check)}
    else:
        if model is not None or inputs is not None:
            raise DataError(f"verify: --model and --inputs are for receipts, and {file} is none.")
        result |= _verified_model(file, key, signature)
    show.result(result, json, _show_verified)
    if not result["valid"]:
        raise typer.Exit(ExitCode.FAILED_CERTIFICATE)


def _applicant(path: Path) -> dict[str, Any]:
    text = read_text(path, limit=SIGNATURE_LIMIT, error=DataError)
    return parse_json(text, dict[str, Any], path, DataError, "an applicant: an object with a value for each feature")


def _verified_model(file: Path, key: Path, signature: Path | None) -> dict[str, Any]:
    place = str(signature or signature_path(file))
    try:
        form = load(file, key=key, signature=signature).form_
    except SignatureError as error:
        return {"valid": False, "checks": [{"name": "signature", "holds": False, "detail": str(error)}]}
    checks = [{"name": "signature", "holds": True, "detail": f"{file} is as the owner of the key signed it"}]
    return {"valid": True, "checks": checks, "signature": place, "form_sha256": form_hash(form)}


def _show_verified(result: dict[str, Any]) -> None:
    console = show.out()
    for check in result["checks"]:
        state = "holds " if check["holds"] else "BROKEN"
        console.print(f"{state}  {check['name']}: {check['detail']}", soft_wrap=True)
    for what in result.get("unchecked", ()):
        console.print(f"        not checked: {what}", soft_wrap=True)
    if result["valid"] and (record := result.get("record")) is not None:
        odds = f"probability that {record['outcome']}: {record['probability']:.1%}"
        console.print(f"{record['time']}: {record['decision']}; {odds}", style="bold", soft_wrap=True)
        for i, reason in enumerate(record["reasons"], 1):
            console.print(f"  {i}. {reason['words']}", soft_wrap=True)
