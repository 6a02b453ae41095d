"""The model document: from a model and a test file to a file that a person completes and signs.

`collect` computes the numbers; `background`, `method`, `outcomes`, `comparisons` and `control` write sections from
them, which `profiles` orders, and `word` and `text` write the pages. No number is computed after `collect`, and no
sentence comes from a language model.
"""

from plainrisk.document.evidence import Source, gather
from plainrisk.document.profiles import PROFILES
from plainrisk.document.write import WRITES, Written, check_path, write_document

__all__ = ["PROFILES", "WRITES", "Source", "Written", "check_path", "gather", "write_document"]
