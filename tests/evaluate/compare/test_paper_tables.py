"""The study's published tables: ranks, tests, differences and verdicts, reproduced from its raw figures.

The tables are not part of the repository. PLAINRISK_PAPER names their folder; a folder ../shared/paper beside
the repository is found by itself.
"""

from __future__ import annotations

import csv
import os
from pathlib import Path

import numpy as np
import pytest

from plainrisk.evaluate.compare import as_results, friedman, hodges_lehmann_table, wilcoxon_holm

HIGHER_IS_BETTER = {"auc": True, "ece": False, "mce": False, "certainty": False}
# The difference tables of the two calibration errors are printed as column minus row.
PRINTED_SIGN = {"auc": 1, "ece": -1, "mce": -1}


def paper_folder():
    named = os.environ.get("PLAINRISK_PAPER")
    folder = Path(named) if named else Path(__file__).resolve().parents[3] / "shared" / "paper"
    return folder if (folder / "auc.csv").is_file() else None


pytestmark = pytest.mark.skipif(paper_folder() is None, reason="the paper's tables are not here: set PLAINRISK_PAPER")


def read(name):
    with (paper_folder() / f"{name}.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    return header[1:], [row[0] for row in rows], [row[1:] for row in rows]


def results_of(metric):
    classifiers, datasets, cells = read(metric)
    return as_results(np.array(cells, dtype=float), classifiers=classifiers, datasets=datasets)


def upper_cells(name):
    """The cells above the diagonal, as text, with their places."""
    _, _, cells = read(name)
    return {(i, j): cell for i, row in enumerate(cells) for j, cell in enumerate(row) if j > i}


@pytest.mark.parametrize("metric", HIGHER_IS_BETTER)
def test_all_288_ranks(metric):
    _, _, printed = read(f"{metric}_ranks")
    test = friedman(results_of(metric), HIGHER_IS_BETTER[metric])
    assert test.rank_table.shape == (24, 12)
    assert int((test.rank_table == np.array(printed, dtype=float)).sum()) == 288


@pytest.mark.parametrize(
    ("metric", "chi2", "f"),
    [("auc", 201.1378, 73.5923), ("ece", 184.3750, 53.2575), ("mce", 89.5304, 11.8026)],
)
def test_friedman_to_four_decimals(metric, chi2, f):
    test = friedman(results_of(metric), HIGHER_IS_BETTER[metric])
    assert (round(test.statistic, 4), round(test.f_statistic, 4)) == (chi2, f)
    assert test.degrees_of_freedom == (11, 253)


# A printed cell has three decimals, the raw figures four: it may be off by half of its own last digit, and
# by half of theirs on top. Three cells need the second half.
@pytest.mark.parametrize(("metric", "by_own_digit"), [("auc", 66), ("ece", 64), ("mce", 65)])
def test_all_66_hodges_lehmann_cells(metric, by_own_digit):
    ours = PRINTED_SIGN[metric] * hodges_lehmann_table(results_of(metric), pairs="strict").differences
    printed = upper_cells(f"{metric}_hodges_lehmann")
    off = np.array([abs(ours[place] - float(cell)) for place, cell in printed.items()])
    assert int((off <= 0.00055 + 1e-12).sum()) == len(printed) == 66
    assert int((off <= 0.0005 + 1e-12).sum()) == by_own_digit


@pytest.mark.parametrize(("metric", "missed"), [("auc", 13), ("ece", 8), ("mce", 38)])
def test_the_textbook_estimator_is_not_the_printed_one(metric, missed):
    ours = PRINTED_SIGN[metric] * hodges_lehmann_table(results_of(metric), pairs="all").differences
    printed = upper_cells(f"{metric}_hodges_lehmann")
    assert sum(abs(ours[place] - float(cell)) > 0.00055 + 1e-12 for place, cell in printed.items()) == missed


@pytest.mark.parametrize(
    ("metric", "zero_method", "agree"),
    [
        ("auc", "pratt", 66),
        ("auc", "zsplit", 65),
        ("auc", "wilcox", 64),
        ("ece", "pratt", 62),
        ("mce", "pratt", 64),
    ],
)
def test_significances(metric, zero_method, agree):
    test = wilcoxon_holm(results_of(metric), zero_method, higher_is_better=HIGHER_IS_BETTER[metric])
    printed = upper_cells(f"{metric}_significant")
    assert len(printed) == 66
    assert sum(bool(test.significant[place]) == bool(int(cell)) for place, cell in printed.items()) == agree


def test_one_classifier_stands_alone_in_auc():
    test = wilcoxon_holm(results_of("auc"))
    assert test.singles == ("XGB",)
    assert ("NNLR", "LinNNLR") in test.cliques
