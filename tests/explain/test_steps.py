"""Effects of one step: against probabilities computed again from the model with one thing changed."""

import math

import numpy as np
import polars as pl
import pytest
from scipy.special import expit

import plainrisk as pr
from plainrisk.errors import DataError

pytestmark = pytest.mark.filterwarnings("ignore::plainrisk.errors.PlainriskWarning")


@pytest.fixture(scope="module")
def german():
    return pr.datasets.load("german")


@pytest.fixture(scope="module")
def fitted(german):
    models = {}

    def fit(name, **options):
        key = (name, *sorted(options.items()))
        if key not in models:
            models[key] = pr.make_classifier(name, german.schema, **options).fit(german.frame, german.target)
        return models[key]

    return fit


def risk_of(model, frame):
    return model.form_.risk(frame)


def test_the_sentence_of_the_paper(fitted, german):
    model = fitted("LinNNLR")
    found = model.effects()
    (row,) = found.of("Duration in month")
    wanted = "Duration of the loan: -0.54 points per month, for everybody inside the linear range"
    assert found.sentence(row) == wanted
    assert wanted in map(found.sentence, found.rows)
    assert repr(found).endswith(f"; {model.fit_record_.clipped:.1%} of the training rows are outside.")
    assert "the same for everybody inside the linear range, with a probability above 0 and below 1" in repr(found)
    # One more month, for everybody who is inside before and after.
    longer = german.frame.with_columns(pl.col("Duration in month") + 1)
    before, after = risk_of(model, german.frame), risk_of(model, longer)
    inside = (before > 0) & (before < 1) & (after > 0) & (after < 1)
    assert inside.sum() > 700
    np.testing.assert_allclose((after - before)[inside], row.least, rtol=0, atol=1e-12)
    assert row.least == row.most == pytest.approx(model.estimator_.coef_[0][1] / (2 * pr.ALPHA_STAR), rel=1e-12)


@pytest.mark.parametrize("name", ["LinARM1", "MixLinARM1", "LinARM2"])
def test_categories_are_against_the_most_frequent(fitted, german, name):
    model = fitted(name)
    rows = {row.change: row for row in model.effects().of("Purpose")}
    assert len(rows) == 9
    usual = german.frame["Purpose"].mode()[0]
    assert usual == "A43"
    words = german.schema.features["Purpose"].labels
    before = german.frame.with_columns(Purpose=pl.lit(usual))
    for category in ("A40", "A41"):
        row = rows[f"{words[category]} instead of {words[usual]}"]
        assert row.kind == "category"
        steps = risk_of(model, german.frame.with_columns(Purpose=pl.lit(category))) - risk_of(model, before)
        assert row.least == row.most
        # Whoever is cut off before or after moves less.
        assert np.mean(np.abs(steps - row.least) < 1e-12) > 0.6
        assert np.abs(steps).max() <= abs(row.least) + 1e-12


def test_bands_have_one_column_each(fitted, german):
    model = fitted("BandARM1")
    found = model.effects()
    link = model.form_.last_link
    table = found.columns()
    score = model.form_.score(german.frame)
    for row in found.of("Duration in month"):
        np.testing.assert_allclose(row.by_band, np.array(link.rates) * row.score, rtol=1e-12)
        assert (row.least, row.most) == pytest.approx((min(row.by_band), max(row.by_band)), rel=1e-12)
    assert set(table) >= {"band_1", "band_2", "band_3"}
    assert "band_4" not in table
    # Whoever stays in a band moves at its rate.
    row = found.of("Housing")[0]
    moved = link.value(score + row.score) - link.value(score)
    for b in range(3):
        stays = (link.band(score) == b) & (link.band(score + row.score) == b)
        np.testing.assert_allclose(moved[stays], row.by_band[b], rtol=0, atol=1e-12)
    heads = [f"{100 * low:.3g} to {100 * high:.3g}%" for low, high in found.bands["all"]]
    assert list(found.table()) == ["feature", "step", *heads]
    assert found.sentence(row).count("points from") == 3
    ends = found.bands["all"]
    assert (ends[0][0], ends[-1][1]) == (0.0, 1.0)
    assert [e for _, e in ends[:-1]] == list(link.values[1:-1])


def test_a_sigmoid_has_a_range_over_the_rows(fitted, german):
    model = fitted("NNLR")
    score = model.form_.score(german.frame)
    low, high = np.quantile(score, [0.05, 0.95])
    grid = np.linspace(low, high, 20001)
    (row,) = model.effects(german.frame).of("Duration in month")
    steps = expit(grid + row.score) - expit(grid)
    assert (row.least, row.most) == pytest.approx((steps.min(), steps.max()), abs=1e-9)
    # The model file counts the probabilities of the training rows, in cells.
    (kept,) = model.effects().of("Duration in month")
    assert (kept.least, kept.most) == pytest.approx((row.least, row.most), rel=0.02)
    assert 9 < row.least / row.most < 13
    sentence = model.effects().sentence(kept)
    assert sentence == "Duration of the loan: -0.70 to -0.059 points per month, depending on the applicant"


def test_without_counts_the_range_is_over_all_there_could_be(fitted):
    model = pr.RiskModel(fitted("NNLR").form_)
    found = model.effects()
    (row,) = found.of("Duration in month")
    assert row.most == 0.0
    assert row.least == pytest.approx(-math.tanh(abs(row.score) / 4), rel=1e-9)
    assert "over all applicants there could be" in found.notes[0]


def test_two_curved_layers_are_bounded(fitted, german):
    model = fitted("ARM2")
    rows = {row.change: row for row in model.effects(german.frame).of("Credit history")}
    words = german.schema.features["Credit history"].labels
    row = rows[f"{words['A34']} instead of {words['A32']}"]
    before = german.frame.with_columns(pl.lit("A32").alias("Credit history"))
    after = german.frame.with_columns(pl.lit("A34").alias("Credit history"))
    steps = risk_of(model, after) - risk_of(model, before)
    assert row.least <= np.quantile(steps, 0.1) < np.quantile(steps, 0.9) <= row.most


def test_intervals_come_from_the_covariance_and_from_refits(fitted, german):
    model = fitted("SmoothARM1", intervals=True, link="logistic")
    draws = model.posterior(200, 0)
    found, again = model.effects(), model.effects(refits=draws)
    assert found == again
    rows = found.of("Duration in month")
    for j, row in enumerate(rows):
        spread = [np.diff(form.parts[0].shapes["Duration in month"].scores[: len(rows) + 1])[j] for form in draws.forms]
        low, high = np.quantile(spread, [0.05, 0.95])
        assert low < row.score < high
        assert row.low < row.least <= row.most < row.high
    assert list(found.table())[-1] == "90% interval"
    assert all(row.low is None for row in fitted("ARM1").effects().rows)


def test_pairs_trees_and_empty_fields():
    credit = pr.datasets.make_credit(900, seed=5)
    model = pr.AdditiveRiskModel(credit.schema, shapes="smooth", pairs=[("income", "debt_ratio")]).fit(
        credit.frame, credit.target
    )
    found = model.effects()
    part = model.form_.parts[0]
    pair = found.of("income × debt_ratio")
    assert {row.kind for row in pair} == {"pair"}
    scores, weights = np.ravel(part.pairs[0].scores), np.ravel(part.pairs[0].weights)
    assert {row.score for row in pair} == {scores[weights > 0].min(), scores[weights > 0].max()}
    special = [row for row in found.rows if row.kind == "special"]
    for row in special:
        shape = part.shapes[row.feature]
        usual = int(np.argmax(shape.weights[: shape.levels.n_ordered]))
        assert any(row.score == s - shape.scores[usual] for s in shape.scores[shape.levels.n_ordered :])
    assert special
    with pytest.raises(DataError, match="effects: X has no rows"):
        model.effects(credit.frame[:0])


def test_trees_have_no_steps(fitted):
    found = fitted("MixXGB").effects()
    assert not found.rows
    assert "have no effect of a single feature" in repr(found)
    assert len(found.notes) == 1


def test_what_holds_for_several_parts_is_said_once(fitted, german):
    found = fitted("MixARM1").effects()
    assert len(found.scopes) == 2
    assert [note.split(".")[0] for note in found.notes] == [
        "Effects depend on the applicant",
        "Each row is about its own part, with the weight of the part counted in",
    ]
    assert "nine in ten of the rows given" in repr(fitted("MixARM1").effects(german.frame))
    assert "whom no line cuts off" in repr(fitted("MixLinARM1").effects())


def test_lines_step_by_powers_of_ten():
    n = 400
    rng = np.random.default_rng(0)
    frame = pl.DataFrame({"amount": rng.uniform(0, 50_000, n), "share": rng.uniform(0, 0.4, n)})
    bad = rng.uniform(size=n) < expit(frame["share"].to_numpy() * 4 - 1)
    schema = pr.Schema(features={"amount": pr.Feature(unit="EUR"), "share": pr.Feature(label="Share of debt")})
    found = pr.make_classifier("LinNNLR", schema).fit(frame, bad.astype(int)).effects()
    assert [(row.label, row.change) for row in found.rows] == [
        ("amount", "per 1,000 EUR"),
        ("Share of debt", "per 0.1"),
    ]


def test_the_table_is_a_frame_and_a_text(fitted, german):
    found = fitted("LinNNLR").effects()
    frame = found.to_frame(german.frame)
    assert isinstance(frame, pl.DataFrame)
    assert frame.height == len(found.rows)
    assert repr(found).splitlines()[0].startswith("What one step adds to the probability that the applicant repays")
    plain = found.to_dict()
    assert plain["rows"][1]["sentence"].startswith("Duration of the loan: -0.54 points per month")
