"""The scoring service: risks, contributions, reasons and what-if over HTTP, for models that were certified again."""

from plainrisk.serve.app import make_app
from plainrisk.serve.served import Served, Shelf
from plainrisk.serve.settings import Settings

__all__ = ["Served", "Settings", "Shelf", "make_app"]
