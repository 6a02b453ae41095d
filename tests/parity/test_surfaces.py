"""Every surface says the same of every applicant, and nothing that it must not say; see scripts/surfaces.py."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

import pytest

from plainrisk.errors import MissingExtraError

FILE = Path(__file__).parents[2] / "scripts" / "surfaces.py"
SPEC = importlib.util.spec_from_file_location("surfaces", FILE)
surfaces = importlib.util.module_from_spec(SPEC)
sys.modules["surfaces"] = surfaces  # where dataclasses look for their annotations
SPEC.loader.exec_module(surfaces)

# Where an applicant takes long; the script asks about all.
ROWS = {"page in Chromium": 200, "CLI letter": 200, "CLI what-if": 200}


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    made = {}

    def make(rows):
        if rows not in made:
            made[rows] = surfaces.Bench(tmp_path_factory.mktemp("surfaces"), rows)
        return made[rows]

    return make


@pytest.mark.parametrize("surface", surfaces.SURFACES)
def test_a_surface(bench, surface):
    asked = bench(ROWS.get(surface, 1000))
    try:
        said = surfaces.SURFACES[surface](asked)
    except (MissingExtraError, ImportError, StopIteration) as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(f"its runtime is not here: {error}")
    line = asked.judge(surface, said)
    assert line.wrong == 0, line
    assert line.rows >= 20
    assert line.refused > 0
    assert line.reasons + line.answers + sum(one.letter is not None for one in said.values()) > 0


def test_protected_features_count_so_that_a_surface_could_go_wrong(bench):
    asked = bench(1000)
    assert int((asked.found.withheld > 0).sum()) > 200


def test_what_is_wrong_is_seen(bench):
    """The judge itself: a surface that names a protected feature, writes to the approved or changes the forbidden."""
    asked = bench(1000)
    refused = asked.refused[0]
    approved = next(i for i in range(1000) if i not in set(asked.refused))
    said = surfaces.Said
    wrong = {
        "other_decisions": {approved: said(decision="refused")},
        "other_reasons": {refused: said(reasons=("Nothing",))},
        "protected_named": {refused: said(reasons=("Age in years",))},
        "refusals_to_approved": {approved: said(letter=asked.found.letter(refused))},
        "protected_changed": {refused: said(answers=({"Age in years": 50.0},))},
        "still_refused": {refused: said(answers=({"Telephone": "A192"},))},
    }
    for field, surface in wrong.items():
        assert getattr(asked.judge("wrong", surface), field) == 1, field
