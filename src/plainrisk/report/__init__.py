"""The decision page: one HTML file that shows a model, explains and answers what-if, without a server.

`collect` makes the numbers, `render` puts them into the page, which is built from `page/` in TypeScript.
"""

from plainrisk.report.collect import Subject, collect, described
from plainrisk.report.render import frame, page

__all__ = ["Subject", "collect", "described", "frame", "page"]
