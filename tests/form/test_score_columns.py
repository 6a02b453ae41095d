"""The compiled search and numpy give the same scores, or raise the same, from columns of every kind."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import polars as pl
import pytest

from plainrisk._native import COMPILED
from plainrisk.data.frame import as_frame
from plainrisk.errors import DataError
from plainrisk.form import Alone, Bins, Categories, Curve, Layer, Line, Linear, Logistic, Part, RiskForm, Table
from plainrisk.schema import Schema

pytestmark = pytest.mark.skipif(not COMPILED, reason="the compiled loops are not installed")

BIG = 2**53


def levels_of(n):
    return (1.0,) * n


def table(levels, seed):
    scores = tuple(np.random.default_rng(seed).normal(size=len(levels)).tolist())
    return Table(levels=levels, scores=scores, weights=levels_of(len(levels)), positives=levels_of(len(levels)))


def straight(slope, center, levels):
    n = len(levels)
    numbers = {"scores": (0.0, *(0.3 * k for k in range(1, n))), "weights": levels_of(n), "positives": levels_of(n)}
    return Line(slope=slope, center=center, levels=levels, **numbers)


def curve():
    return Curve(
        breaks=(0.0, 2.0, 5.0),
        coefficients=((0.0, 1.0, 0.1), (2.4, 0.3, -0.1)),
        levels=Bins(),
        scores=(0.0, 0.7),
        weights=(1, 1),
        positives=(1, 1),
    )


SHAPES = {
    "bins": table(Bins((0.5, 1.5, 3.5), (-9.0, 2.0), 0.0), 1),
    "many": table(Bins(tuple(np.arange(-3.0, 5.0, 0.1)), (4.0,), -2.0), 2),
    "line": straight(0.7, 0.5, Bins((), (-9.0,), 1.0)),
    "curve": curve(),
    "codes": table(Categories(("0", "1", "2.5", "a", "-9"), 0), 3),
    "digits": table(Categories(tuple(map(str, range(40))), 0), 4),
    "words": table(Categories(("low", "high"), 2), 5),
}
WORDS = np.array(["low", "high", "odd", None], dtype=object)


def form_of(parts, pool=None, **feature):
    kinds = {name: "categorical" if isinstance(s.levels, Categories) else "continuous" for name, s in SHAPES.items()}
    schema = Schema(features={name: {"kind": kind, **feature} for name, kind in kinds.items()})
    parts = tuple(
        Part(name=str(k), intercept=-1 / 3, shapes={name: SHAPES[name] for name in names}, link=Linear(slope=0.1))
        for k, names in enumerate(parts)
    )
    return RiskForm(schema=schema, columns=tuple(SHAPES), classes=(0, 1), parts=parts, pool=pool or Alone())


FORMS = {
    "one part": form_of([tuple(SHAPES)]),
    "backward": form_of([tuple(SHAPES)[::-1]]),
    "two parts": form_of(
        [("words", "line", "bins"), ("bins", "codes", "curve", "digits", "many")], Layer(-0.5, (1, 2), Logistic())
    ),
}


def columns_of(dtype, n=700):
    rng = np.random.default_rng(0)
    some = [-9.0, -1.0, 0.0, 0.5, 1.0, 2.0, 2.5, 4.0, 7.0, 39.0]
    if np.dtype(dtype).kind == "f":
        some += [np.nan, 1e4, -1e4]
    if np.dtype(dtype).kind in "ub":
        some = some[2:]
    numbers = {name: rng.choice(some, n).astype(dtype) for name in SHAPES if name != "words"}
    return {**numbers, "words": rng.choice(WORDS, n)}


def both_ways(monkeypatch, function):
    """What a function returns with the compiled search, and without it."""
    found = function()
    with monkeypatch.context() as patch:
        patch.setattr("plainrisk._native.codes.compiled", None)
        return found, function()


@pytest.mark.parametrize("which", FORMS)
@pytest.mark.parametrize("dtype", [float, "f4", "f2", "g", ">f8", "i1", "i4", "i8", "u2", "u8", bool])
def test_same_bits_for_every_type(dtype, which, monkeypatch):
    form, columns = FORMS[which], columns_of(dtype)
    tables = [columns, {name: column[::-1] for name, column in columns.items()}]
    if dtype in (float, "i4", bool):
        tables += [pd.DataFrame(columns), pl.DataFrame(columns), pd.DataFrame(columns).convert_dtypes()]
    for X in tables:
        for function in (form.probabilities, form.score, form.part_scores, form.part_risks):
            found, wanted = both_ways(monkeypatch, lambda function=function, X=X: function(X))
            np.testing.assert_array_equal(found, wanted, strict=True)


@pytest.mark.parametrize("library", [dict, pd.DataFrame, pl.DataFrame])
def test_scores_and_pieces_of_a_part(library, monkeypatch):
    form = FORMS["one part"]
    frame, part = form.align(library(columns_of(float))), form.parts[0]
    zeros = np.linspace(-1, 1, len(part.features))

    def split():
        pieces = np.empty((frame.n_rows, len(zeros)))
        return part.split(frame, form.schema, zeros, pieces), pieces, part.score(frame, form.schema)

    for found, wanted in zip(*both_ways(monkeypatch, split), strict=True):
        assert found.tobytes() == wanted.tobytes()


@pytest.mark.filterwarnings("ignore:Data. the model knows its:plainrisk.errors.PlainriskWarning")
def test_very_many_features(monkeypatch):
    shapes = {f"u{j}": table(Bins((0.5,)), j) for j in range(5000)}
    part = Part(name="all", intercept=0.0, shapes=shapes, link=Logistic())
    schema = Schema(features={name: {} for name in shapes})
    form = RiskForm(schema=schema, columns=tuple(shapes), classes=(0, 1), parts=(part,), pool=Alone())
    X = as_frame(np.random.default_rng(0).uniform(size=(3, 5000)), tuple(shapes))
    found, wanted = both_ways(monkeypatch, lambda: form.score(X))
    np.testing.assert_array_equal(found, wanted)


def test_integers_that_are_rounded_as_floats():
    """2**53 + 1 is 2**53 as a float, but not as a label."""
    shape = table(Categories((str(BIG), "1"), 0), 0)
    schema = Schema(features={"u": {"kind": "categorical"}})
    part = Part(name="all", intercept=0.0, shapes={"u": shape}, link=Logistic())
    form = RiskForm(schema=schema, columns=("u",), classes=(0, 1), parts=(part,), pool=Alone())
    score = form.score({"u": np.array([BIG, BIG + 1, 1, 2])})
    assert score.tolist() == [shape.scores[k] for k in (0, 3, 1, 3)]


@pytest.mark.parametrize("value", [math.inf, -math.inf])
@pytest.mark.parametrize("name", ["bins", "many", "line", "curve"])
def test_infinity_is_refused_with_its_row(name, value, monkeypatch):
    monkeypatch.setattr("plainrisk.form.form.PIECE_ROWS", 100)
    columns = columns_of(float)
    columns[name][333] = value
    form = FORMS["one part"]
    for function in (form.risk, lambda X: form.parts[0].score(as_frame(X), form.schema)):
        with pytest.raises(DataError, match=rf"feature '{name}' holds infinity \(row 333\)"):
            function(columns)


def test_infinity_is_an_unseen_category():
    form = FORMS["one part"]
    columns = columns_of(float)
    unseen = columns["codes"].copy()
    columns["codes"][:], unseen[:] = math.inf, 77.0
    np.testing.assert_array_equal(form.score(columns), form.score({**columns, "codes": unseen}))


@pytest.mark.parametrize(
    ("name", "level", "value"),
    [("bins", 1, 1.0), ("bins", 5, 2.0), ("bins", 6, -0.5), ("bins", 7, np.nan), ("line", 0, 7.0), ("codes", 6, 3.0)],
)
def test_a_level_without_training_rows_is_refused(name, level, value):
    """Whichever level it is: a bin, a special value, below the bound, missing, the line itself, an unseen category."""
    shape = SHAPES[name]
    weights = [1.0] * len(shape.levels)
    weights[level] = 0.0
    numbers = {"levels": shape.levels, "scores": shape.scores, "weights": tuple(weights), "positives": tuple(weights)}
    line = {"slope": 0.7, "center": 0.5} if isinstance(shape, Line) else {}
    kind = "categorical" if isinstance(shape.levels, Categories) else "continuous"
    for unseen in ("neutral", "error"):
        part = Part(name="all", intercept=0.0, shapes={name: type(shape)(**numbers, **line)}, link=Logistic())
        schema = Schema(features={name: {"kind": kind, "unseen": unseen}})
        form = RiskForm(schema=schema, columns=(name,), classes=(0, 1), parts=(part,), pool=Alone())
        column = np.full(40, -9.0)
        assert form.score({name: column}).shape == (40,)
        column[7] = value
        if unseen == "neutral":
            assert np.isfinite(form.score({name: column})).all()
            continue
        with pytest.raises(DataError, match=f"feature '{name}', row 7: level"):
            form.score({name: column})


def test_a_flat_line_far_from_its_center(monkeypatch):
    """The distance is beyond the largest number, and 0 times it is 0 all the same."""
    shapes = {"line": straight(0.0, -1e308, Bins())}
    part = Part(name="all", intercept=0.25, shapes=shapes, link=Logistic())
    schema = Schema(features={"line": {}})
    form = RiskForm(schema=schema, columns=("line",), classes=(0, 1), parts=(part,), pool=Alone())
    found, wanted = both_ways(monkeypatch, lambda: form.score({"line": np.array([1.0, 1.7e308])}))
    np.testing.assert_array_equal(found, wanted)
    assert found.tolist() == [0.25, 0.25]
    assert form.risk({"line": 1.7e308}) == form.risk({"line": 1.0})
