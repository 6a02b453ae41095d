"""The decision page: one HTML file that shows and explains a model and answers what-if questions without a server.

`collect` computes the numbers, and `render` puts them into the page, which is built from `page/` in TypeScript.
"""

from plainrisk.report.collect import Subject, collect, described
from plainrisk.report.render import frame, page
from plainrisk.report.sample import LABELS

__all__ = ["LABELS", "Subject", "collect", "described", "frame", "page"]
