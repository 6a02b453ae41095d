"""Receipts of decisions: signed records that can be checked offline, years later, without showing the inputs."""

from plainrisk.receipts.check import ReceiptCheck, verify_receipt
from plainrisk.receipts.make import ReceiptMaker
from plainrisk.receipts.record import Move, Named, Receipt, Record, is_receipt

__all__ = ["Move", "Named", "Receipt", "ReceiptCheck", "ReceiptMaker", "Record", "is_receipt", "verify_receipt"]
