"""The model document: from a model and a test file to a file that a person completes and signs.

`collect` makes the numbers, `profiles` orders the sections that `background`, `outcomes`, `comparisons` and `control`
write from them, and `word` and `text` write the pages. No number is made after `collect`; no sentence is made by a
language model.
"""

from plainrisk.document.evidence import Source, gather
from plainrisk.document.profiles import PROFILES
from plainrisk.document.write import WRITES, Written, check_path, write_document

__all__ = ["PROFILES", "WRITES", "Source", "Written", "check_path", "gather", "write_document"]
