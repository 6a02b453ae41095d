"""Any sequence of edits, of schemas, of bins and of model files, beside a plain model of what each edit means."""

from __future__ import annotations

import tempfile
from bisect import bisect_left
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

import plainrisk as pr
from plainrisk.errors import SchemaError
from plainrisk.form import form_hash
from plainrisk.form.levels import Bins
from plainrisk.schema import Policy

QUICK = settings(max_examples=30, stateful_step_count=20, deadline=None)
SLOW = settings(max_examples=6, stateful_step_count=12, deadline=None)  # each step fits or writes a model
NAMES = ("age", "debt", "job", "rent", "ünï.code")
TEXTS = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=8).filter(lambda t: t == t.strip())


class Schemas(RuleBasedStateMachine):
    """A schema, and plain dicts that say what it must hold."""

    def __init__(self):
        super().__init__()
        edges = {"age": (20.0, 30.0, 40.0, 50.0), "debt": (0.5, 1.5, 2.5)}
        features = {name: {"edges": own} for name, own in edges.items()}
        features |= {"job": {"kind": "categorical", "categories": ["a", "b", "c", "d"]}, "rent": {"lower_bound": 0}}
        self.schema = pr.Schema(target="bad", features=features, subscales={"all": list(features)})
        self.edges, self.groups = edges, {label: {label} for label in "abcd"}
        self.labels, self.names = {}, list(features)
        self.job, self.policy = "job", {}
        self.before = []

    def change(self, schema):
        """Take a changed schema; the old one must stay as it is."""
        self.before.append((self.schema, self.schema.to_dict()))
        self.schema = schema

    @rule(data=st.data())
    def merges_bins(self, data):
        names = [name for name in self.edges if name in self.names]
        if not names:
            return
        name = data.draw(st.sampled_from(names))
        own = self.edges[name]
        first, last = sorted(data.draw(st.tuples(*[st.integers(-1, len(own) + 1)] * 2)))
        run = tuple(range(first, last + 1))
        if len(run) < 2 or first < 0 or last > len(own):
            with pytest.raises(SchemaError, match=r"merge needs runs of two or more|has the bins 0 to"):
                self.schema.edit(name, merge=[run])
            return
        self.change(self.schema.edit(name, merge=[run]))
        # Bin k ends at edge k, so a run of bins loses the edges between them.
        self.edges[name] = own[:first] + own[last:]

    @rule(data=st.data())
    def merges_categories(self, data):
        if self.job not in self.names or len(self.groups) < 2:
            return
        some = data.draw(st.lists(st.sampled_from(sorted(self.groups)), min_size=2, max_size=3, unique=True))
        self.change(self.schema.edit(self.job, merge=[some]))
        known = self.schema.features[self.job]
        held = set(some).union(*(self.groups.pop(name) for name in some))  # a group's name is a label, too
        (new,) = set(known.categories) - set(self.groups)
        self.groups[new] = held

    @rule(data=st.data(), text=TEXTS)
    def labels_a_feature(self, data, text):
        name = data.draw(st.sampled_from(self.names))
        self.change(self.schema.annotate({"features": {name: {"label": text}}}))
        self.labels[name] = text

    @rule(data=st.data())
    def renames_a_feature(self, data):
        old, new = data.draw(st.sampled_from(self.names)), data.draw(st.sampled_from(NAMES))
        if new in self.names and new != old:
            with pytest.raises(SchemaError, match=r"."):
                self.schema.rename({old: new})
            return
        self.change(self.schema.rename({old: new}))
        self.names[self.names.index(old)] = new
        self.job = new if self.job == old else self.job
        for known in (self.edges, self.labels):
            if old in known:
                known[new] = known.pop(old)

    @rule(data=st.data())
    def drops_a_feature(self, data):
        if len(self.names) < 3:
            return
        name = data.draw(st.sampled_from(self.names))
        self.change(self.schema.drop(name))
        self.names.remove(name)
        self.edges.pop(name, None)
        self.labels.pop(name, None)
        self.job = None if self.job == name else self.job

    @rule(cutoff=st.floats(0, 1), reasons=st.integers(1, 9))
    def sets_the_policy(self, cutoff, reasons):
        self.policy = {"cutoff": cutoff, "reasons": reasons}
        self.change(self.schema.annotate({"policy": self.policy}))

    @rule(field=st.sampled_from([{"edge": [1]}, {"direction": "up"}, {"edges": [2, 1]}, {"lower_bound": "x"}]))
    def asks_for_what_is_refused(self, field):
        plain = self.schema.to_dict()
        with pytest.raises(SchemaError, match=r"edge|direction|lower_bound"):
            self.schema.edit(self.names[0], **field)
        assert self.schema.to_dict() == plain

    @rule(suffix=st.sampled_from([".toml", ".json"]))
    def saves_and_loads(self, suffix):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, f"schema{suffix}")
            self.schema.save(path)
            text = path.read_bytes()
            again = pr.Schema.load(path)
            again.save(path)
            assert path.read_bytes() == text
        self.change(again)

    @invariant()
    def holds_what_was_asked_for(self):
        assert list(self.schema.features) == self.names
        assert self.schema.subscales == {"all": tuple(self.names)}
        for name, edges in self.edges.items():
            assert self.schema.features[name].edges == edges
        if self.job in self.names:
            job = self.schema.features[self.job]
            assert {label: set(job.groups.get(label, ())) | {label} for label in job.categories} == {
                label: held | {label} for label, held in self.groups.items()
            }
        for name, label in self.labels.items():
            assert self.schema.features[name].label == label
        assert self.schema.policy == Policy(**self.policy)

    @invariant()
    def comes_back_from_plain_data(self):
        assert pr.Schema.from_dict(self.schema.to_dict()) == self.schema

    def teardown(self):
        assert all(schema.to_dict() == plain for schema, plain in self.before), "an old schema was changed"


def made_rows(seed=0, n=160):
    rng = np.random.default_rng(seed)
    age, job = rng.integers(18, 70, n).astype(float), rng.choice(["a", "b", "c", "d"], n)
    bad = (rng.random(n) < 0.2 + 0.4 * (age < 35) + 0.1 * (job == "b")).astype(int)
    return {"age": age, "job": job}, bad


class FittedBins(RuleBasedStateMachine):
    """Bins that are moved and merged by hand between fits of a model."""

    ROWS, BAD = made_rows()

    def __init__(self):
        super().__init__()
        features = {"age": {"edges": [25, 35, 45, 55]}, "job": {"kind": "categorical"}}
        self.schema = pr.Schema(target="bad", features=features)
        self.fit()

    def fit(self):
        self.model = pr.AdditiveRiskModel(self.schema, ridge=0.1, min_bin_rows=1).fit(self.ROWS, self.BAD)

    @rule(data=st.data())
    def merges(self, data):
        bins = len(self.schema.features["age"].edges)
        if bins:
            first = data.draw(st.integers(0, bins - 1))
            self.schema = self.model.schema_with_bins().edit("age", merge=[(first, first + 1)])
            self.fit()

    @rule(edges=st.lists(st.integers(20, 65), unique=True, max_size=5).map(sorted))
    def moves(self, edges):
        self.schema = self.model.schema_with_bins().edit("age", edges=edges)
        self.fit()

    @rule(data=st.data())
    def groups(self, data):
        known = self.model.schema_with_bins().features["job"].categories
        if known is not None and len(known) > 2:
            some = data.draw(st.lists(st.sampled_from(known), min_size=2, max_size=2, unique=True))
            self.schema = self.model.schema_with_bins().edit("job", merge=[some])
            self.fit()

    @invariant()
    def the_model_has_the_bins_that_were_asked_for(self):
        levels = self.model.form_.parts[0].shapes["age"].levels
        assert isinstance(levels, Bins)
        assert levels.edges == self.schema.features["age"].edges
        assert self.model.schema_with_bins().features["age"].edges == levels.edges
        assert self.model.certify().valid

    @invariant()
    def rows_of_one_bin_have_one_risk(self):
        edges, risk = self.schema.features["age"].edges, self.model.predict_proba(self.ROWS)[:, 1]
        job = self.model.form_.parts[0].shapes["job"].levels
        found = {}
        for age, label, one in zip(self.ROWS["age"], self.ROWS["job"], risk, strict=True):
            assert found.setdefault((bisect_left(edges, age), job.level_of(str(label))), one) == one


class ModelFiles(RuleBasedStateMachine):
    """A model that is saved, loaded and annotated: the probabilities never change, the hash only with the words."""

    ROWS, BAD = made_rows(1)

    def __init__(self):
        super().__init__()
        schema = pr.Schema(target="bad", features={"age": {"direction": "decreasing"}, "job": {"kind": "categorical"}})
        fitted = pr.AdditiveRiskModel(schema).fit(self.ROWS, self.BAD)
        self.risk = fitted.predict_proba(self.ROWS)
        self.model, self.about = pr.RiskModel(fitted.form_, fitted.fit_record_), {}
        self.cutoff, self.hash = None, form_hash(fitted.form_)
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name, "model.json")

    @rule()
    def saves_and_loads(self):
        self.model.save(self.path)
        raw = self.path.read_bytes()
        self.model = pr.load(self.path)
        self.model.save(self.path)
        assert self.path.read_bytes() == raw, "the same model gives the same bytes"

    @rule(cutoff=st.none() | st.floats(0, 1))
    def sets_the_cutoff(self, cutoff):
        self.model = self.model.annotate({"policy": {"cutoff": cutoff}})
        assert (form_hash(self.model.form_) == self.hash) == (self.cutoff == cutoff)
        self.cutoff, self.hash = cutoff, form_hash(self.model.form_)

    @rule(name=st.sampled_from(["owner", "name", "purpose"]), text=TEXTS | st.just(""))
    def sets_a_text(self, name, text):
        self.model = self.model.annotate(about={name: text})
        self.about = {k: v for k, v in {**self.about, name: text}.items() if v}

    @rule(feature=st.sampled_from(["age", "job"]), text=TEXTS)
    def sets_a_label(self, feature, text):
        self.model = self.model.annotate({"features": {feature: {"label": text}}})
        self.hash = form_hash(self.model.form_)
        assert self.model.form_.schema.title(feature) == text

    @rule(data=st.data())
    def is_damaged_on_disk(self, data):
        self.model.save(self.path)
        raw = self.path.read_bytes()
        at = data.draw(st.integers(0, len(raw) - 1))
        self.path.write_bytes(raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :])
        try:
            read = pr.load(self.path)
        except pr.errors.ModelFileError:
            return
        assert form_hash(read.form_) == self.hash, "white space alone may differ"

    @invariant()
    def says_what_it_said(self):
        assert np.array_equal(self.model.predict_proba(self.ROWS), self.risk)
        assert form_hash(self.model.form_) == self.hash
        assert self.model.cutoff == self.cutoff
        assert dict(self.model.about) == self.about

    def teardown(self):
        self.folder.cleanup()


TestSchemas = pytest.mark.filterwarnings("ignore")(Schemas.TestCase)
TestFittedBins = pytest.mark.filterwarnings("ignore::plainrisk.errors.PlainriskWarning")(FittedBins.TestCase)
TestModelFiles = pytest.mark.filterwarnings("ignore::plainrisk.errors.PlainriskWarning")(ModelFiles.TestCase)
TestSchemas.settings, TestFittedBins.settings, TestModelFiles.settings = QUICK, SLOW, SLOW
