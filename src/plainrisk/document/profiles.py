"""Profiles of regulators' texts: the order of a document's chapters and further requirements.

`profiles.toml` lists what each text asks for, as far as a model document can answer it. A profile makes nobody
compliant: whether a rule applies, and whether this answers it, is for people to judge.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from plainrisk.document import background, comparisons, control, method, outcomes
from plainrisk.document.background import Commands
from plainrisk.document.blocks import OWNER, VALIDATOR, Block, Gap, Heading
from plainrisk.errors import DataError, did_you_mean

__all__ = ["PROFILES", "Profile", "profile_of"]

Section = Callable[[dict[str, Any], Commands], Iterator[Block]]

# By name: the heading, and the function that writes the section.
SECTIONS: dict[str, tuple[str, Section]] = {
    "purpose": ("Purpose, owner, materiality and intended use", background.purpose),
    "data": ("Data and lineage", background.data),
    "schema": ("What the modeler required, and why", background.schema),
    "method": ("How a probability is computed", method.method),
    "performance": ("Performance", outcomes.performance),
    "calibration": ("Calibration", outcomes.calibration),
    "segments": ("Performance by segment", outcomes.segments),
    "periods": ("Performance by period", outcomes.periods),
    "stability": ("Stability of the population", outcomes.stability),
    "steadiness": ("Stability of the model", comparisons.steadiness),
    "weak_spots": ("Weak spots", outcomes.weak_spots),
    "challengers": ("Challengers", comparisons.challengers),
    "prices": ("What directions and rules cost", comparisons.prices),
    "fairness": ("Fairness", outcomes.fairness),
    "reasons": ("Reasons given to applicants", control.reasons),
    "sensitivity": ("Sensitivity and stress", control.sensitivity),
    "limitations": ("Limitations found by the program", control.limitations),
    "certificate": ("Certificate, and how to check it", control.certificate),
    "implementation": ("Implementation", control.implementation),
    "monitoring": ("Monitoring", control.monitoring),
    "levels": ("Annex: all levels", method.levels),
    "signatures": ("Signatures", control.signatures),
}
WHO = {"owner": OWNER, "validator": VALIDATOR}
LAST = {"title": "Annex and signatures", "contents": ["levels", "signatures"]}  # the last chapter of every document


@dataclass(frozen=True)
class Profile:
    """The chapters of a document.

    Attributes
    ----------
    title : of the profile
    chapters : the title of each, and its contents: names of sections, and gaps to complete as "owner: ..."
    basis : the text that the chapters follow, and what this document is not
    """

    title: str
    chapters: list[dict[str, Any]]
    basis: str = ""

    def blocks(self, n: dict[str, Any], run: Commands) -> Iterator[Block]:
        """Write the chapters."""
        for chapter in self.chapters:
            yield Heading(1, chapter["title"])
            for name in chapter["contents"]:
                who, colon, what = name.partition(": ")
                if colon:
                    yield Gap(WHO[who], what)
                    continue
                heading, write = SECTIONS[name]
                yield Heading(2, heading)
                yield from write(n, run)


TEXT = files("plainrisk.document").joinpath("profiles.toml").read_text("utf-8")
PROFILES = {
    name: Profile(profile["title"], [*profile["chapters"], LAST], profile.get("basis", ""))
    for name, profile in tomllib.loads(TEXT).items()
}


def profile_of(name: str) -> Profile:
    """Return a profile by its name."""
    if name not in PROFILES:
        raise DataError(f"document: there is no profile {name!r}.{did_you_mean(name, PROFILES)}")
    return PROFILES[name]
