"""The best clipped lines: their constants, against scipy's optimizer and integrals."""

import itertools

import numpy as np
import pytest
from scipy import integrate, special

import plainrisk as pr
from plainrisk.errors import DataError

CDFS = {"logistic": special.expit, "probit": special.ndtr, "cloglog": lambda s: -np.expm1(-np.exp(min(s, 700.0)))}


def cost(cdf, lower, upper):
    def gap(s):
        return (np.clip((s - lower) / (upper - lower), 0, 1) - cdf(s)) ** 2

    ends = (-60.0, lower, upper, 60.0)
    return sum(integrate.quad(gap, a, b, epsabs=1e-13, limit=200)[0] for a, b in itertools.pairwise(ends))


def test_the_constants_of_the_paper():
    assert pr.best_line().alpha == pytest.approx(pr.ALPHA_STAR, abs=1e-14)
    assert pr.best_line().squared_error == pytest.approx(0.009894011265975, abs=1e-14)
    assert pr.best_line("probit").alpha == pytest.approx(1.545481584109132, abs=1e-14)
    assert pr.best_line("probit").squared_error == pytest.approx(0.003769419666454, abs=1e-14)


@pytest.mark.parametrize("sigmoid", CDFS)
def test_no_line_near_it_is_better(sigmoid):
    line, cdf = pr.best_line(sigmoid), CDFS[sigmoid]
    least = cost(cdf, line.lower, line.upper)
    assert line.squared_error == pytest.approx(least, abs=1e-10)
    for a, b in ((1e-3, 0), (-1e-3, 0), (0, 1e-3), (0, -1e-3)):
        assert cost(cdf, line.lower + a, line.upper + b) > least
    assert line.cost(line.alpha) == pytest.approx(line.squared_error, rel=1e-12)
    assert line.cost(1.1 * line.alpha) > line.squared_error
    assert [float(line.link().value(np.array([s]))[0]) for s in (line.lower, line.upper)] == pytest.approx([0, 1])


def test_the_picture_marks_the_best_line():
    line = pr.best_line()
    left, right = line.plot()
    assert left.lines[1].get_xydata().tolist() == [[line.alpha, line.squared_error]]
    assert left.lines[0].get_ydata().min() >= line.squared_error
    assert right.lines[1].get_xdata()[1:3].tolist() == [line.lower, line.upper]
    with pytest.raises(DataError, match="sigmoid must be"):
        pr.best_line("tanh")
