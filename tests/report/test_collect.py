"""The numbers of the page: from the form, and from rows if given."""

from __future__ import annotations

import re
import warnings

import msgspec
import numpy as np
import pytest

import plainrisk as pr
from plainrisk.errors import DataError, PlainriskWarning
from plainrisk.report import Subject, collect, described

NAMES = ["SmoothARM1", "LinARM2", "MixLinARM1", "NNLR"]


@pytest.fixture(scope="module")
def german():
    return pr.datasets.load("german", backend="pandas")


@pytest.fixture(scope="module")
def models(german):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pr.errors.PlainriskWarning)
        return {n: pr.make_classifier(n, german.schema).fit(german.frame, german.target) for n in NAMES}


@pytest.fixture
def sample(german):
    return german.frame.assign(**{german.schema.target: german.target})


def subject(model):
    return Subject("model", model.form_, model.fit_record_)


def of(model, *args, **options):
    """The payload as the page reads it."""
    return msgspec.json.decode(msgspec.json.encode(collect([subject(model)], *args, **options)))


@pytest.mark.parametrize("name", NAMES)
def test_row_to_start_from_is_a_usable_applicant(models, name):
    form = models[name].form_
    found = of(models[name])["models"][0]
    assert list(found["typical"]) == list(form.features)
    assert 0 <= form.risk(found["typical"])[0] <= 1


@pytest.mark.parametrize("name", NAMES)
def test_sliders_hold_the_edges_and_the_row_to_start_from(models, name):
    found = of(models[name])["models"][0]
    form = models[name].form_
    assert [i["feature"] for i in found["inputs"]] == [f for f in form.schema.features if f in form.features]
    for entry in found["inputs"]:
        value = found["typical"][entry["feature"]]
        if entry["kind"] == "categorical":
            assert value in entry["categories"]
        elif value is not None and value not in entry["special_values"]:
            assert entry["low"] <= min([value, *entry["edges"]])
            assert max([value, *entry["edges"]]) <= entry["high"]
            assert entry["step"] > 0


def test_the_best_reference_has_the_best_risk(models, german):
    found = of(models["SmoothARM1"])["models"][0]
    form = models["SmoothARM1"].form_
    reference = found["references"]["best"]["points"][0]["score"]
    best = form.parts[0].link.value(np.array([reference]))[0]
    assert best == pytest.approx(models["SmoothARM1"].explain(german.frame, reference="best").constant[0])
    assert best >= form.risk(german.frame).max()


def test_models_of_one_name_are_told_apart(models):
    one, other = models["SmoothARM1"], models["NNLR"]
    names = lambda *subjects: [m["name"] for m in collect(subjects)["models"]]  # noqa: E731
    assert names(subject(one), subject(other)) == ["model (1)", "model (2)"]
    assert names(subject(one), Subject("another", other.form_)) == ["model", "another"]
    assert collect([subject(one), subject(other)])["title"] == "model"


def test_drift_has_the_limits_of_the_policy(models, sample):
    found = of(models["SmoothARM1"], sample)["models"][0]["data"]["drift"]
    assert (found["moderate"], found["large"]) == (0.1, 0.25)
    strict = models["SmoothARM1"].annotate({"policy": {"drift": {"moderate": 0.05, "large": 0.2}}})
    found = of(strict, sample)["models"][0]["data"]["drift"]
    assert (found["moderate"], found["large"]) == (0.05, 0.2)


def test_shapes_are_those_of_the_overview(models):
    model = models["SmoothARM1"]
    found = of(model)["models"][0]
    for table, plain in zip(model.overview().shapes, found["shapes"], strict=True):
        assert plain["feature"] == table.feature
        assert plain["effect"] == table.effect.tolist()
        assert plain["rows"] == table.rows.tolist()
    assert [i["feature"] for i in found["importance"]] == [i.feature for i in model.overview().importance]
    assert found["certificate"]["valid"]
    assert found["fit"]["features_left"] == list(model.fit_record_.features_left)


def test_a_line_is_drawn_by_points(models, german):
    found = of(models["NNLR"], german.frame)["models"][0]
    lines = [shape for shape in found["shapes"] if shape["kind"] == "line"]
    assert lines
    for shape in lines:
        effects = [point["effect"] for point in shape["curve"]]
        assert effects == sorted(effects) or effects == sorted(effects, reverse=True)


def test_a_line_says_what_one_unit_adds(german):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PlainriskWarning)
        model = pr.make_classifier("LinNNLR", german.schema).fit(german.frame, german.target)
    shapes = {shape["feature"]: shape for shape in of(model)["models"][0]["shapes"]}
    assert shapes["Duration in month"]["sentence"] == "-0.54 points per month, for everybody inside the linear range"
    assert shapes["Duration in month"]["effect"][0] is None
    purpose = shapes["Purpose"]
    assert purpose["sentence"] is None
    usual = purpose["labels"].index("A43")
    assert purpose["steps"][usual] is None
    rows = {row.level: [row.points] for row in model.effects().of("Purpose")}
    assert [rows.get(level) for level in range(len(purpose["labels"]))] == purpose["steps"]


def test_steps_of_a_model_with_bands_are_told_by_band(models):
    model = models["SmoothARM1"]
    shape = next(s for s in of(model)["models"][0]["shapes"] if s["feature"] == "Duration in month")
    second = model.effects().of("Duration in month")[0]
    assert len(shape["bands"]) == len(second.by_band) > 1
    assert all(band in model.effects().sentence(second) for band in shape["bands"])
    assert ", ".join(shape["steps"][second.level]) == second.points


def test_intervals_where_the_model_has_them(german):
    model = pr.make_classifier("SmoothARM1", german.schema, intervals=True).fit(german.frame, german.target)
    found = of(model)["models"][0]
    shape = next(s for s in found["shapes"] if s["feature"] == "Duration in month")
    assert all(low <= high for low, high in zip(shape["low"], shape["high"], strict=True))
    assert "covariance" not in found["fit"]


def test_no_row_of_the_data_unless_asked_for(models, sample):
    assert of(models["SmoothARM1"], sample)["applicants"] == []
    rows = of(models["SmoothARM1"], sample, applicants=5)["applicants"]
    risks = [models["SmoothARM1"].form_.risk(entry["row"])[0] for entry in rows]
    assert len(rows) == 5
    assert risks == sorted(risks)


def test_summaries_of_data(models, sample, german):
    found = of(models["SmoothARM1"], sample, by="Purpose")["models"][0]["data"]
    assert found["rows"] == 1000
    assert found["bad"] == int(np.sum(np.asarray(german.target)))
    assert sum(found["histogram"]["rows"]) == 1000
    measured = pr.evaluate(models["SmoothARM1"], german.frame, german.target)
    auc = found["metrics"][0]
    assert (auc["name"], auc["value"], auc["low"]) == ("auc", measured["auc"].estimate, measured["auc"].low)
    assert sum(line["rows"] for line in found["calibration"]) == 1000
    assert all(line["observed_low"] <= line["observed"] <= line["observed_high"] for line in found["calibration"])
    approvals = [line["approval_rate"] for line in found["cutoffs"]]
    assert len(approvals) > 10
    assert approvals in (sorted(approvals), sorted(approvals, reverse=True))
    assert sum(found["histogram"]["bad"]) == found["bad"]
    assert sum(group["rows"] for group in found["groups"]["groups"]) == 1000
    assert all(f["psi"] >= 0 for f in found["drift"]["features"])


def test_training_rows_are_told_as_such(models, sample):
    def notes(rows):
        return of(models["SmoothARM1"], rows)["models"][0]["data"]["notes"]

    assert any("fitted to" in note for note in notes(sample))
    assert any("fitted to" in note for note in notes(sample.iloc[::-1]))
    assert not any("fitted to" in note for note in notes(sample.iloc[:999]))


def test_data_without_outcomes_have_no_figures_that_need_them(models, german):
    found = of(models["SmoothARM1"], german.frame)["models"][0]["data"]
    assert found["bad"] is None
    assert found["histogram"]["bad"] is None
    assert found["metrics"] == found["calibration"] == found["cutoffs"] == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"by": "Porpose"}, "no column 'Porpose'.*Did you mean 'Purpose'"),
        ({"target": "god"}, "no column 'god'"),
        ({"target": "Purpose"}, "outcome 'Purpose': Data: row 0 .* an outcome that the model does not know"),
        ({"applicants": -1}, "applicants"),
        ({"cutoff": 2}, "cutoff"),
    ],
)
def test_bad_requests(models, sample, options, message):
    with pytest.raises(DataError, match=message):
        collect([subject(models["SmoothARM1"])], sample, **options)


def test_what_is_about_data_needs_data(models):
    with pytest.raises(DataError, match="Pass data, too"):
        collect([subject(models["SmoothARM1"])], applicants=3)


def test_cut_off_and_texts_of_the_model_file(models, tmp_path):
    models["SmoothARM1"].annotate(cutoff=0.25, about={"owner": "Retail"}).save(tmp_path / "model.json")
    loaded = pr.load(tmp_path / "model.json")
    loaded.report(tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    found = msgspec.json.decode(re.search(r'id="payload">(.*?)</script>', text, re.DOTALL)[1])
    assert found["cutoff"] == found["models"][0]["ranking"]["cutoff"] == 0.25
    assert found["models"][0]["about"] == {"owner": "Retail"}
    form = models["SmoothARM1"].form_
    undecided = msgspec.structs.replace(form, schema=form.schema.replace(policy={}))
    assert collect([Subject("model", undecided, models["SmoothARM1"].fit_record_)])["cutoff"] == 0.7  # the base rate


def test_empty_data(models, german):
    with pytest.raises(DataError, match="no rows"):
        collect([subject(models["SmoothARM1"])], german.frame.head(0))


def test_heloc_is_small(tmp_path):
    try:
        heloc = pr.datasets.load("heloc")
    except DataError:
        pytest.skip("heloc is not on this machine: set PLAINRISK_DATA to the folder that holds it")
    model = pr.make_classifier("SmoothARM1", heloc.schema, pairs="auto").fit(heloc.frame, heloc.target)
    model.report(tmp_path / "page.html", heloc.frame)
    assert (tmp_path / "page.html").stat().st_size < 500_000


def test_which_outcome_is_bad_is_what_the_schema_says(models):
    assert of(models["SmoothARM1"])["adverse"] == "negative"
    form = models["SmoothARM1"].form_
    turned = msgspec.structs.replace(form, schema=form.schema.replace(adverse="positive"))
    found = collect([Subject("model", turned)])
    assert (found["adverse"], found["models"][0]["ranking"]["sign"]) == ("positive", 1)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("SmoothARM1", "Additive model, smooth shapes, 5 bands"),
        ("DirectARM1", "Additive model, steps, linear"),
        ("ARM2", "Two-layer model, steps, logistic"),
        ("MixLinARM1", "Mixture of subscales"),
        ("NNLR", "Additive model, lines, logistic"),
    ],
)
def test_a_model_is_described_in_words(german, name, words):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pr.errors.PlainriskWarning)
        model = pr.make_classifier(name, german.schema).fit(german.frame, german.target)
    assert described(model.form_, model.fit_record_) == words
    assert described(model.form_) == words.replace(", smooth shapes", "").replace(", steps", "")
