"""Where the rows are: files that are read in batches, for data larger than memory."""

from plainrisk.rows.batches import BATCH_ROWS, Batches
from plainrisk.rows.files import csv, parquet
from plainrisk.rows.spool import Spool

__all__ = ["BATCH_ROWS", "Batches", "Spool", "csv", "parquet"]
