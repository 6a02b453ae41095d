"""Categories that count as one level: `groups` and `rare`, from the fit to the reasons."""

import runpy

import numpy as np
import pandas as pd
import pytest

import plainrisk as pr
from plainrisk.errors import DataError, SchemaError
from plainrisk.form import form_hash

GROUPS = {"office": ["clerk", "boss"], "old": ["retired"]}
JOBS = ["clerk", "boss", "farmer", "retired", "baker"]


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(3)
    job = rng.choice(JOBS, 1500, p=[0.4, 0.3, 0.2, 0.09, 0.01]).astype(object)
    job[::50] = None
    debt = rng.normal(size=1500)
    risk = 1 / (1 + np.exp(-(debt + 0.8 * (job == "clerk") - 0.5 * (job == "farmer"))))
    return pd.DataFrame({"job": job, "debt": debt}), (rng.random(1500) < risk).astype(int)


def schema(**job):
    return pr.Schema(features={"job": {"kind": "categorical", **job}, "debt": {"direction": "increasing"}})


@pytest.mark.parametrize(
    "make",
    [
        pr.AdditiveRiskModel,
        lambda s: pr.make_classifier("SmoothARM1", s),
        lambda s: pr.AdditiveRiskModel(s, shapes="smooth", pairs=[("job", "debt")]),
        pr.NonnegativeLogisticRegression,
    ],
)
def test_groups_are_the_categories_replaced_in_the_data(rows, make):
    X, y = rows
    grouped = make(schema(groups=GROUPS)).fit(X, y)
    by_label = {"clerk": "office", "boss": "office", "retired": "old"}
    replaced = X.assign(job=X["job"].replace(by_label))
    plain = make(schema()).fit(replaced, y)
    assert grouped.predict_proba(X) == pytest.approx(plain.predict_proba(replaced), abs=1e-7)
    assert np.array_equal(grouped.predict_proba(X), grouped.predict_proba(replaced)), "a group knows its own name"
    assert grouped.certify().valid


def test_rare_categories_are_one_level(rows):
    X, y = rows
    levels = pr.AdditiveRiskModel(schema(rare=0.1)).fit(X, y).form_.parts[0].shapes["job"].levels
    assert levels.categories == ("(rare)", "boss", "clerk", "farmer")
    assert levels.groups == {"(rare)": ("baker", "retired")}
    kept = pr.AdditiveRiskModel(schema(rare=0.1, groups=GROUPS)).fit(X, y).form_.parts[0].shapes["job"].levels
    assert kept.groups == {"(rare)": ("baker",), "old": ("retired",), "office": ("clerk", "boss")}


def test_rare_is_a_share_of_the_weight_and_of_all_batches(rows, tmp_path):
    X, y = rows
    weight = np.where(X["job"] == "baker", 30.0, 1.0)
    model = pr.AdditiveRiskModel(schema(rare=0.1)).fit(X, y, sample_weight=weight)
    assert model.form_.parts[0].shapes["job"].levels.groups == {"(rare)": ("retired",)}
    X.assign(bad=y).to_csv(tmp_path / "rows.csv", index=False)
    streamed = pr.AdditiveRiskModel(schema(rare=0.1)).fit(pr.rows.csv(tmp_path / "rows.csv", batch_rows=100), "bad")
    in_memory = pr.AdditiveRiskModel(schema(rare=0.1)).fit(X, y)
    assert streamed.form_.parts[0].shapes["job"] == in_memory.form_.parts[0].shapes["job"]


def test_one_row_arrays_and_numpy_kernels_agree(rows, monkeypatch):
    X, y = rows
    codes = X.assign(job=X["job"].map({label: k for k, label in enumerate(JOBS)}))
    model = pr.AdditiveRiskModel(schema(groups={"low": [0, 1], "7": [3, 4]})).fit(codes, y)
    risk = model.predict_proba(codes)[:, 1]
    assert np.array_equal(model.predict_proba(codes.astype({"job": object}))[:, 1], risk)
    alone = [model.predict_proba(row)[0, 1] for row in codes.head(60).to_dict("records")]
    assert alone == risk[:60].tolist()
    assert model.predict_proba({"job": 7, "debt": 0.0})[0, 1] == model.predict_proba({"job": 3, "debt": 0.0})[0, 1]
    terms = model.form_.parts[0].score(model.form_.align(codes), model.form_.schema)
    assert np.array_equal(terms, model.form_.score(codes)), "the kernel and the shapes agree"


def test_reasons_what_if_drift_and_the_file_know_groups(rows, tmp_path):
    X, y = rows
    words = schema(groups=GROUPS, reasons={"office": "Work in an office"})
    model = pr.AdditiveRiskModel(words).fit(X, y)
    clerks = X[X["job"].isin(["clerk", "boss"]) & (X["debt"] < -1)].head(5)
    assert "Work in an office" in model.reasons(clerks).texts
    found = model.what_if(clerks.head(1), target=0.01, frozen=["debt"])
    assert [c.value for c in found.reachable.changes] == [clerks["job"].iloc[0]]
    assert found.reachable.changes[0].level == "office"
    assert model.drift(X).features[0].psi == pytest.approx(0.0, abs=1e-12)
    model.save(tmp_path / "model.json")
    loaded = pr.load(tmp_path / "model.json")
    assert form_hash(loaded.form_) == form_hash(model.form_)
    assert np.array_equal(loaded.predict_proba(X), model.predict_proba(X))


def test_exported_scores_know_groups(rows, tmp_path):
    X, y = rows
    model = pr.AdditiveRiskModel(schema(rare=0.1, groups=GROUPS)).fit(X, y)
    model.export(tmp_path / "scorer.py", target="python")
    scorer = runpy.run_path(str(tmp_path / "scorer.py"))
    found = [scorer["score"](row)["risk"] for row in X.head(200).to_dict("records")]
    assert found == pytest.approx(model.predict_proba(X.head(200))[:, 1], abs=1e-12)


def test_a_form_without_groups_does_not_mention_them(rows, tmp_path):
    X, y = rows
    pr.AdditiveRiskModel(schema()).fit(X, y).save(tmp_path / "model.json")
    assert "groups" not in (tmp_path / "model.json").read_text()


def test_ordered_groups_keep_the_direction(rows):
    X, y = rows
    order = ["farmer", "baker", "boss", "clerk", "retired"]
    model = pr.AdditiveRiskModel(
        schema(direction="increasing", categories=order, groups={"fields": ["farmer", "baker"]})
    ).fit(X, y)
    table = model.form_.parts[0].shapes["job"]
    assert table.levels.categories == ("fields", "boss", "clerk", "retired")
    assert list(table.scores[:4]) == sorted(table.scores[:4])
    assert model.certify().valid


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"groups": {"a": ["x"], "b": ["x"]}}, "category 'x' is in two groups"),
        ({"groups": {"a": []}}, "group 'a' is empty"),
        ({"groups": {"a": ["b"], "b": ["c"]}}, "group 'b' has the name of a category of another group"),
        ({"groups": {"a": ["x"]}, "special_values": ["x"]}, "both a special value and in a group"),
        ({"groups": {"a": ["x"]}, "direction": "increasing"}, "list the categories in order"),
        (
            {"groups": {"a": ["x", "z"]}, "direction": "increasing", "categories": ["x", "y", "z"]},
            "group 'a' are not neighbors",
        ),
        ({"rare": 1.5}, "rare must be a share between 0 and 1"),
        ({"rare": 0.1, "direction": "increasing"}, "rare categories have no place in an order"),
        ({"groups": {"a": ["x"]}, "categories": ["x", "y"], "reasons": {"x": "X"}}, "words for 'x', which is no level"),
    ],
)
def test_groups_that_contradict_themselves(fields, message):
    with pytest.raises(SchemaError, match=message):
        schema(**fields)


def test_groups_are_for_categories():
    with pytest.raises(SchemaError, match="groups and rare are for categorical features"):
        pr.Schema(features={"x": {"rare": 0.1}})


def test_trees_refuse_groups(rows):
    pytest.importorskip("xgboost")
    with pytest.raises(SchemaError, match="trees read categories one by one"):
        pr.BoostedRiskModel(schema(groups=GROUPS)).fit(*rows)


def test_too_many_levels_after_grouping(rows, monkeypatch):
    monkeypatch.setattr("plainrisk.bins.learn.MOST_CATEGORIES", 3)
    with pytest.raises(DataError, match="has 5 categories after grouping, at most 3"):
        pr.AdditiveRiskModel(schema(rare=0.05)).fit(*rows)
