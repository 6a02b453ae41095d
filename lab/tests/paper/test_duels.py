"""Ours against rivals, and the order of rows: each against figures worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from plainrisk.measure.metrics import reliability
from plainrisk_lab.paper.head_to_head import best_grid, duel_summary, duels
from plainrisk_lab.paper.pairing import Spread, shuffled
from plainrisk_lab.study import StudyTable


def test_the_recipe_in_another_order() -> None:
    """Each order gives the figures of the recipe on rows so ordered."""
    rng = np.random.default_rng(3)
    outcome, risk = (rng.random(40) < 0.4).astype(np.uint8), rng.random(40)
    found = shuffled(outcome, risk, 4, np.random.default_rng(8))
    again = np.random.default_rng(8)
    for line in found:
        order = again.permutation(40)
        pairs = [(p, int(outcome[order][(2 * i + k) % 40])) for i, r in enumerate(risk[order]) for k, p in
                 enumerate((1 - r, r))]  # fmt: skip
        table = reliability([o for _, o in pairs], [p for p, _ in pairs])
        assert line == pytest.approx([table.expected_error / 2, table.maximum_error], abs=1e-12)
    assert len({tuple(line) for line in found}) == 4
    assert Spread(0.1, 0.2, 0.20004).inside
    assert not Spread(0.1, 0.2, 0.2002).inside


def table_of(mean: np.ndarray, classifiers: tuple[str, ...], metric: str = "auc") -> StudyTable:
    names = tuple(f"d{k}" for k in range(len(mean)))
    return StudyTable(metric, names, classifiers, mean, np.zeros_like(mean))


def test_a_duel_counts_and_adjusts() -> None:
    rival = np.linspace(0.6, 0.8, 8)
    mean = np.column_stack([rival + 0.01, rival, rival + np.tile([0.02, -0.02], 4)])
    found = duels(table_of(mean, ("ours", "weak", "even")), ["ours", "absent"], ["weak", "even"])
    first, second = found
    assert (first.rival, first.won, first.lost, first.better) == ("weak", 8, 0, True)
    assert first.difference == pytest.approx(0.01)
    assert first.p_value == pytest.approx(2 * 2 / 2**8)
    assert first.significant
    assert (second.won, second.lost) == (4, 4)
    assert not second.significant
    assert "ahead of weak by 0.0100 (8 won, 0 lost)" in duel_summary(found)
    assert duel_summary(found).endswith("significant against weak")


def test_lower_is_better_turns_a_duel() -> None:
    rival = np.linspace(0.2, 0.3, 5)
    (duel,) = duels(table_of(np.column_stack([rival - 0.01, rival]), ("ours", "r"), "ece"), ["ours"], ["r"])
    assert (duel.won, duel.lost, duel.better) == (5, 0, True)
    assert duel.difference == pytest.approx(-0.01)


def test_the_best_of_each_kind() -> None:
    mean = np.array([[0.7, 0.8, 0.75], [0.7, np.nan, 0.65]])
    grid = best_grid(table_of(mean, ("a", "b", "c")), {"one": ("a", "b"), "two": ("c",)})
    shown = [[(cell.text, cell.below, cell.bold) for cell in row[1:]] for row in grid.rows]
    assert shown == [
        [("0.8000", "b", True), ("0.7500", "c", False)],
        [("0.7000", "a", True), ("0.6500", "c", False)],
    ]
