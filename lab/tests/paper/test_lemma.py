"""The paper's lemma: clipping the linear form is the clipped link of the score; and its example of two applicants."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import plainrisk as pr
from plainrisk.form import Alone, Bins, Line, Linear, Logistic, Part, RiskForm, Table

finite = {"allow_nan": False, "allow_infinity": False}
scores = st.floats(-4, 4, **finite)


def table(edges, level_scores):
    counts = (1.0,) * len(level_scores)
    return Table(levels=Bins(edges=edges), scores=level_scores, weights=counts, positives=counts)


def logistic_form(intercept, shapes):
    return RiskForm(
        schema=pr.Schema(features={name: {} for name in shapes}),
        columns=tuple(shapes),
        classes=(0, 1),
        parts=(Part(name="all", intercept=intercept, shapes=shapes, link=Logistic()),),
        pool=Alone(),
    )


@settings(deadline=None, max_examples=150)
@given(
    intercept=scores,
    effects=st.lists(st.tuples(scores, scores, scores, scores), min_size=1, max_size=5),
    slope=st.floats(-2, 2, **finite),
    alpha=st.floats(0.05, 40, **finite),
    epsilon=st.floats(0, 0.49, **finite),
)
def test_clip_of_the_linear_form_is_the_clipped_link_of_the_score(intercept, effects, slope, alpha, epsilon):
    """sum of the shapes over 2 alpha, with 1/2 + intercept / (2 alpha), then clipped, is link(score)."""
    shapes = {f"u{j}": table((0.0, 1.0), effect) for j, effect in enumerate(effects)}
    shapes["v"] = Line(slope=slope, center=0.5, levels=Bins(), scores=(0.0, 0.25), weights=(1.0, 1.0), positives=(0, 0))
    rng = np.random.default_rng(len(effects))
    X = pd.DataFrame(rng.choice([-1.0, 0.5, 2.0, np.nan], (30, len(shapes))), columns=list(shapes))
    form = logistic_form(intercept, shapes)
    line = pr.linearise(form, alpha=alpha, epsilon=epsilon).form_

    own = {name: np.array([effect_of(shape, x) for x in X[name]]) / (2 * alpha) for name, shape in shapes.items()}
    linear_form = 0.5 + intercept / (2 * alpha) + sum(own.values())
    expected = np.clip(linear_form, epsilon, 1 - epsilon)
    np.testing.assert_allclose(line.risk(X), expected, rtol=0, atol=1e-12)
    link = Linear.from_alpha(alpha, epsilon)
    np.testing.assert_array_equal(line.risk(X), link.value(form.score(X)))

    inside = np.flatnonzero((linear_form >= epsilon) & (linear_form <= 1 - epsilon))
    first = inside[0] if len(inside) else 0
    explained = pr.RiskModel(line).explain(X, reference=X.iloc[[first]])
    assert explained.unit == "probability"
    np.testing.assert_allclose(explained.total, line.risk(X), rtol=0, atol=1e-12)
    by_name = dict(zip(explained.features, explained.contributions.T, strict=True))
    for name, contribution in own.items():
        np.testing.assert_allclose(by_name[name][inside], (contribution - contribution[first])[inside], atol=1e-12)


def effect_of(shape, x):
    """What a shape adds at one value, read off its definition."""
    if math.isnan(x):
        return shape.scores[-1]
    if isinstance(shape, Line):
        return shape.slope * (x - shape.center)
    return shape.scores[sum(x > edge for edge in shape.levels.edges)]


# ---- the illustrative example


def applicants():
    """Two applicants, A at 10% and B at 25%; the step in `delays` multiplies the odds of both by 5."""
    base = {"A": math.log(0.1 / 0.9), "B": math.log(0.25 / 0.75)}
    shapes = {"history": table((0.5,), (base["A"], base["B"], 0.0)), "delays": table((0.5,), (0.0, math.log(5), 0.0))}
    before = pd.DataFrame({"history": [0.0, 1.0], "delays": 0.0})
    return logistic_form(0.0, shapes), before, before.assign(delays=1.0)


def test_the_same_step_in_odds_moves_two_people_differently():
    form, before, after = applicants()
    np.testing.assert_allclose(form.risk(before), [0.1, 0.25], atol=1e-12)
    np.testing.assert_allclose(form.risk(after), [5 / 14, 5 / 8], atol=1e-12)
    np.testing.assert_allclose(form.risk(after).round(3), [0.357, 0.625])


def test_the_linear_model_moves_everybody_by_the_same_amount():
    form, before, after = applicants()
    line = pr.linearise(form)
    step = line.form_.risk(after) - line.form_.risk(before)
    assert math.log(5) == pytest.approx(1.61, abs=0.001)
    np.testing.assert_allclose(step, math.log(5) / (2 * pr.ALPHA_STAR), atol=1e-14)
    np.testing.assert_allclose(step.round(3), [0.310, 0.310])
    said = line.explain(after).contributions - line.explain(before).contributions
    np.testing.assert_allclose(said, [[0.0, step[0]], [0.0, step[1]]], atol=1e-14)


def test_in_bands_the_step_has_the_mean_rate_of_the_way():
    form, before, after = applicants()
    bands = pr.linearise(form, pieces=3)
    link = bands.form_.parts[0].link
    for row in range(2):
        explained = bands.explain(after.iloc[[row]], reference=before.iloc[[row]])
        scores = form.score(before.iloc[[row]]), form.score(after.iloc[[row]])
        delays = explained.contributions[0, explained.features.index("delays")]
        np.testing.assert_allclose(delays, link.value(scores[1]) - link.value(scores[0]), atol=1e-14)
        assert explained.bends[0] == (link.band(scores[0]) != link.band(scores[1]))
        np.testing.assert_allclose(explained.total, bands.form_.risk(after.iloc[[row]]), atol=1e-14)
