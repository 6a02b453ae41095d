"""The published tables: statistics recomputed from the raw figures, and the printed ones reproduced.

The raw figures are in published.csv. The printed ranks, differences and significances are no part of the repository:
PLAINRISK_PAPER names their folder.
"""

from __future__ import annotations

import csv

import numpy as np
import pytest
from scipy.stats import wilcoxon

from plainrisk.errors import DataError
from plainrisk_lab.compare import friedman, hodges_lehmann_table, holm, wilcoxon_holm
from plainrisk_lab.paper.published import paper_table

HIGHER_IS_BETTER = {"auc": True, "ece": False, "mce": False, "certainty": False}
# The difference tables of the two calibration errors are printed as column minus row.
PRINTED_SIGN = {"auc": 1, "ece": -1, "mce": -1}


def results_of(metric):
    return paper_table(metric).results()


def read(folder, name):
    """The printed rows, in the order of published.csv."""
    header, *rows = csv.reader((folder / f"{name}.csv").read_text(encoding="utf-8").splitlines())
    return header[1:], [row[0] for row in rows], [row[1:] for row in rows]


def upper_cells(folder, name):
    """The cells above the diagonal, as text, with their places."""
    _, _, cells = read(folder, name)
    return {(i, j): cell for i, row in enumerate(cells) for j, cell in enumerate(row) if j > i}


# ---- from the raw figures alone


@pytest.mark.parametrize("metric", HIGHER_IS_BETTER)
def test_the_tables_are_whole(metric):
    table = paper_table(metric)
    assert table.mean.shape == (24, 12)
    assert ((table.mean >= 0) & (table.mean <= 1)).all()
    assert table.higher_is_better == HIGHER_IS_BETTER[metric]


def test_one_figure_and_an_unknown_table():
    assert paper_table("ece").value("gmsc", "NNLR") == 0.2166
    with pytest.raises(DataError, match="no table of 'ks'"):
        paper_table("ks")


@pytest.mark.parametrize(
    ("metric", "chi2", "f"),
    [("auc", 201.1378, 73.5923), ("ece", 184.3750, 53.2575), ("mce", 89.5304, 11.8026)],
)
def test_friedman_to_four_decimals(metric, chi2, f):
    test = friedman(results_of(metric), HIGHER_IS_BETTER[metric])
    assert (round(test.statistic, 4), round(test.f_statistic, 4)) == (chi2, f)
    assert test.degrees_of_freedom == (11, 253)


def test_one_classifier_stands_alone_in_auc():
    test = wilcoxon_holm(results_of("auc"))
    assert test.singles == ("XGB",)
    assert ("NNLR", "LinNNLR") in test.cliques


# ---- against the printed tables


@pytest.mark.parametrize("metric", HIGHER_IS_BETTER)
def test_the_raw_figures_are_the_printed_ones(paper_folder, metric):
    classifiers, datasets, cells = read(paper_folder, metric)
    assert results_of(metric).classifiers == tuple(classifiers)
    assert results_of(metric).datasets == tuple(name.lower() for name in datasets)
    np.testing.assert_array_equal(results_of(metric).values, np.array(cells, dtype=float))


@pytest.mark.parametrize("metric", HIGHER_IS_BETTER)
def test_all_288_ranks(paper_folder, metric):
    _, _, printed = read(paper_folder, f"{metric}_ranks")
    test = friedman(results_of(metric), HIGHER_IS_BETTER[metric])
    assert int((test.rank_table == np.array(printed, dtype=float)).sum()) == 288


# A printed cell has three decimals, the raw figures four: it may be off by half of its own last digit, and
# by half of theirs on top. Three cells need the second half.
@pytest.mark.parametrize(("metric", "by_own_digit"), [("auc", 66), ("ece", 64), ("mce", 65)])
def test_all_66_hodges_lehmann_cells(paper_folder, metric, by_own_digit):
    ours = PRINTED_SIGN[metric] * hodges_lehmann_table(results_of(metric), pairs="strict").differences
    printed = upper_cells(paper_folder, f"{metric}_hodges_lehmann")
    off = np.array([abs(ours[place] - float(cell)) for place, cell in printed.items()])
    assert int((off <= 0.00055 + 1e-12).sum()) == len(printed) == 66
    assert int((off <= 0.0005 + 1e-12).sum()) == by_own_digit


@pytest.mark.parametrize(("metric", "missed"), [("auc", 13), ("ece", 8), ("mce", 38)])
def test_the_textbook_estimator_is_not_the_printed_one(paper_folder, metric, missed):
    ours = PRINTED_SIGN[metric] * hodges_lehmann_table(results_of(metric), pairs="all").differences
    printed = upper_cells(paper_folder, f"{metric}_hodges_lehmann")
    assert sum(abs(ours[place] - float(cell)) > 0.00055 + 1e-12 for place, cell in printed.items()) == missed


def test_one_significance_of_the_mce_misses_by_the_normal_approximation(paper_folder):
    values, printed = results_of("mce").values, upper_cells(paper_folder, "mce_significant")
    p = [wilcoxon(values[:, i], values[:, j], zero_method="pratt", method="approx").pvalue for i, j in printed]
    found = holm(p) <= 0.05
    assert sum(bool(int(cell)) == bool(own) for cell, own in zip(printed.values(), found, strict=True)) == 65


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
def test_significances(paper_folder, metric, zero_method, agree):
    test = wilcoxon_holm(results_of(metric), zero_method, higher_is_better=HIGHER_IS_BETTER[metric])
    printed = upper_cells(paper_folder, f"{metric}_significant")
    assert len(printed) == 66
    assert sum(bool(test.significant[place]) == bool(int(cell)) for place, cell in printed.items()) == agree
