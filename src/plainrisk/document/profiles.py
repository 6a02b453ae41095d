"""The order of a document's chapters, and what else a rule asks for: profiles of supervisors' texts.

A profile lists what a text asks for, as far as a model document can answer it. It makes nobody compliant: whether a
rule applies, and whether this answers it, is for people to judge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from plainrisk.document import background, comparisons, control, method, outcomes
from plainrisk.document.background import OWNER, VALIDATOR, Commands
from plainrisk.document.blocks import Block, Gap, Heading
from plainrisk.errors import DataError, did_you_mean

__all__ = ["PROFILES", "Profile", "profile_of"]

Section = Callable[[dict[str, Any], Commands], Iterator[Block]]

# By name: the heading, and what writes it.
SECTIONS: dict[str, tuple[str, Section]] = {
    "purpose": ("Purpose, owner, materiality and intended use", background.purpose),
    "data": ("Data and lineage", background.data),
    "schema": ("What the modeller required, and why", background.schema),
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
Asked = str | tuple[str, str]  # a section, or whose gap it is and what is to be stated


@dataclass(frozen=True)
class Profile:
    """The chapters of a document.

    Attributes
    ----------
    title : of the profile
    basis : what the text is, and what this document is not
    chapters : the heading of each, with its sections and the gaps that the text asks for
    """

    title: str
    basis: str
    chapters: tuple[tuple[str, tuple[Asked, ...]], ...]

    def blocks(self, n: dict[str, Any], run: Commands) -> Iterator[Block]:
        """Write the chapters."""
        for title, parts in self.chapters:
            yield Heading(1, title)
            for part in parts:
                if isinstance(part, tuple):
                    yield Gap(*part)
                    continue
                heading, write = SECTIONS[part]
                yield Heading(2, heading)
                yield from write(n, run)


def profile_of(name: str) -> Profile:
    """Return a profile by its name."""
    if name not in PROFILES:
        raise DataError(f"document: there is no profile {name!r}.{did_you_mean(name, PROFILES)}")
    return PROFILES[name]


_END = ("Annex and signatures", ("levels", "signatures"))
_RESULTS = ("performance", "calibration", "segments", "weak_spots", "periods")

PROFILES: dict[str, Profile] = {
    "plain": Profile(
        "Model document",
        "",
        (
            ("Purpose and use", ("purpose",)),
            ("Data and assumptions", ("data", "schema")),
            ("Method", ("method",)),
            ("Results", (*_RESULTS, "stability", "steadiness", "challengers", "prices")),
            ("Fairness and explanations", ("fairness", "reasons", "sensitivity")),
            ("Limitations", ("limitations",)),
            ("Assurance", ("certificate", "implementation", "monitoring")),
            _END,
        ),
    ),
    "sr-26-2": Profile(
        "Model document, ordered by SR 26-2 / OCC 2026-13",
        "The chapters follow what the agencies' guidance on model risk management of April 2026 speaks of: "
        "materiality, conceptual "
        "soundness, outcomes analysis and ongoing monitoring. The guidance is not enforceable by itself. Whether "
        "it applies, and "
        "whether this document answers it, is for the institution to judge.",
        (
            (
                "Purpose, use and materiality",
                ("purpose", (OWNER, "the model's place in the inventory, and models that it feeds or reads")),
            ),
            (
                "Conceptual soundness",
                (
                    "data",
                    "schema",
                    "method",
                    "prices",
                    "challengers",
                    "certificate",
                    (VALIDATOR, "judgement of the design, of the assumptions and of the data for the intended use"),
                ),
            ),
            ("Outcomes analysis", (*_RESULTS, "stability", "steadiness", "fairness", "sensitivity")),
            ("Explanations to applicants", ("reasons",)),
            ("Limitations and their mitigation", ("limitations",)),
            ("Ongoing monitoring", ("monitoring", "implementation")),
            (
                "Governance",
                (
                    (OWNER, "policies that apply, independence of the validation, and how findings are tracked"),
                    (OWNER, "vendor products in use, and how they were assessed"),
                ),
            ),
            _END,
        ),
    ),
    "ss1-23": Profile(
        "Model document, ordered by PRA SS1/23",
        "The chapters follow the five principles of the Prudential Regulation Authority's supervisory statement "
        "SS1/23. Whether it "
        "applies, and whether this document answers it, is for the firm to judge.",
        (
            (
                "Model identification and risk classification (principle 1)",
                (
                    "purpose",
                    (OWNER, "the model tier, with materiality and complexity as assessed by the firm"),
                ),
            ),
            (
                "Governance (principle 2)",
                (
                    (
                        OWNER,
                        "accountable senior management function, roles, and where the model stands in the inventory",
                    ),
                    (OWNER, "use of third-party models and software, and how they were assessed"),
                ),
            ),
            (
                "Development, implementation and use (principle 3)",
                (
                    "data",
                    "schema",
                    "method",
                    "prices",
                    "implementation",
                    "reasons",
                    "monitoring",
                    (OWNER, "adjustments outside the model, and how they are controlled"),
                ),
            ),
            (
                "Independent validation (principle 4)",
                (
                    *_RESULTS,
                    "stability",
                    "steadiness",
                    "challengers",
                    "fairness",
                    "sensitivity",
                    "certificate",
                    (VALIDATOR, "who validated, their independence, and the date of the next revalidation"),
                ),
            ),
            (
                "Model risk mitigants (principle 5)",
                (
                    "limitations",
                    (OWNER, "post-model adjustments, restrictions of use and exceptions, with their expiry"),
                ),
            ),
            _END,
        ),
    ),
    "ai-act": Profile(
        "Technical documentation, ordered by Annex IV of the EU AI Act",
        "The chapters follow the points of Annex IV of Regulation (EU) 2024/1689. Credit scoring of natural "
        "persons is high-risk by "
        "Annex III, point 5(b), from 2 December 2027. Whether the system falls under it, and whether this document "
        "answers it, is for "
        "the provider to judge.",
        (
            (
                "General description of the system",
                (
                    "purpose",
                    (OWNER, "the provider, the version and how it relates to earlier ones"),
                    (
                        OWNER,
                        (
                            "how the system interacts with hardware and software that is not part of it, and in which "
                            "forms it is put into service"
                        ),
                    ),
                    (
                        OWNER,
                        "hardware on which it runs, the user interface for the deployer, and the instructions for use",
                    ),
                ),
            ),
            (
                "Elements of the system and its development",
                (
                    "method",
                    "schema",
                    "data",
                    "prices",
                    "challengers",
                    (OWNER, "how data were obtained, selected, labelled and cleaned, and which persons they represent"),
                    (
                        OWNER,
                        "human oversight measures, and what helps the deployer to interpret the output (Article 14)",
                    ),
                    (OWNER, "changes that are planned and determined in advance"),
                    (OWNER, "cybersecurity measures"),
                    *_RESULTS,
                    "stability",
                    "steadiness",
                    "fairness",
                ),
            ),
            (
                "Monitoring, functioning and control",
                (
                    "sensitivity",
                    "limitations",
                    "reasons",
                    (
                        OWNER,
                        "foreseeable unintended outcomes and sources of risk to health, safety and fundamental rights",
                    ),
                ),
            ),
            (
                "Appropriateness of the performance metrics",
                ((VALIDATOR, "why these metrics are appropriate for this system"),),
            ),
            ("Risk management system (Article 9)", ((OWNER, "description of the risk management system"),)),
            (
                "Changes through the lifecycle",
                ("implementation", "certificate", (OWNER, "relevant changes made by the provider so far")),
            ),
            (
                "Standards applied",
                ((OWNER, "harmonised standards applied in full or in part, or other solutions adopted"),),
            ),
            ("EU declaration of conformity", ((OWNER, "a copy of the declaration (Article 47)"),)),
            ("Monitoring after placing on the market (Article 72)", ("monitoring",)),
            _END,
        ),
    ),
}
