"""Where the rows are: files that are read in batches, for data larger than memory."""

from plainrisk.data.rows.batches import BATCH_ROWS, Batches
from plainrisk.data.rows.files import csv, parquet
from plainrisk.data.rows.spool import Spool

__all__ = ["BATCH_ROWS", "Batches", "Spool", "csv", "parquet"]
