"""Options of explain, reasons, what_if, drift, overview, group reports and plots."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import plainrisk as pr

NAN, INF = float("nan"), float("inf")
D = "(Data|Schema|Plainrisk)Error: "


def verb(method, *args, model="BandARM1", rows=None, **options):
    """Ask a fitted model about the first rows of the world, or about rows of the case's own."""

    def call(w):
        X = w.X.head(4) if rows is None else rows(w)
        given = {k: v(w) if callable(v) and k not in ("cost",) else v for k, v in options.items()}
        return getattr(w.model(model), method)(w.given(X), *args, **given)

    return call


def stated(method, changes, *args, rows=None, **options):
    """Ask a fitted model with another policy, or other words, about the first rows of the world."""

    def call(w):
        X = w.X.head(4) if rows is None else rows(w)
        return getattr(w.model().annotate(w.given(changes)), method)(w.given(X), *args, **options)

    return call


def adds_up(found):
    return np.abs(found.total - found.risk).max() < 1e-12


def worked(result):
    return bool(str(result))


EXPLAIN = {
    "an unknown reference": (verb("explain", reference="median"), D + "reference.*median"),
    "a reference misspelled": (verb("explain", reference="typcal"), D + "typcal"),
    "a reference of two rows": (verb("explain", reference=lambda w: w.X.head(2)), D + "one row"),
    "a reference of no rows": (verb("explain", reference=lambda w: w.X.head(0)), D + "one row"),
    "a reference without a column": (verb("explain", reference=lambda w: w.X.head(1)[["a"]]), D + "'b'"),
    "a reference that is a number": (verb("explain", reference=3), D),
    "a reference that is None": (verb("explain", reference=None), D),
    "a reference with infinity": (verb("explain", reference=lambda w: w.row(a=INF)), D + "'a'"),
    "a reference of missing values": (
        verb("explain", reference={"a": None, "b": None, "c": None}, unit="probability"),
        adds_up,
    ),
    "a reference far out": (
        verb(
            "explain",
            model="LinNNLR",
            reference={"a": 1e20, "b": -1e300},
            rows=lambda w: {"a": [1.0, 1e15], "b": [1.0, 2.0]},
        ),
        adds_up,
    ),
    "logistic lines far out": (
        verb("explain", model="NNLR", unit="probability", rows=lambda w: {"a": [1e20, -1e20], "b": [-1e20, 1e300]}),
        adds_up,
    ),
    "an unknown unit": (verb("explain", unit="percent"), D + "unit"),
    "trees without rows": (verb("explain", model="MonoXGB"), D + "portfolio"),
    "trees with no rows": (verb("explain", model="MonoXGB", portfolio=lambda w: w.X.head(0)), D + "portfolio|rows"),
    "trees in probability": (
        verb("explain", model="MonoXGB", unit="probability", portfolio=lambda w: w.X.head(5)),
        adds_up,
    ),
    "best of lines without rows": (
        verb("explain", model="LinNNLR", reference="best", rows=lambda w: {"a": [1.0], "b": [1.0]}),
        D + "portfolio",
    ),
    "a portfolio that is no table": (verb("explain", reference="typical", portfolio=3), D),
    "a portfolio without a column": (verb("explain", reference="typical", portfolio=lambda w: w.X[["a"]]), D + "'b'"),
    "an unknown adverse": (
        stated("explain", {"outcome": {"adverse": "bad"}}),
        D + "adverse outcome, 'positive', is part of the fit",
    ),
    "adverse as an option": (verb("explain", adverse="negative"), D + "no option 'adverse'"),
    "min_rows of NaN": (verb("explain", reference="best", min_rows=NAN), D + "min_rows"),
    "min_rows of -1": (verb("explain", reference="best", min_rows=-1), D + "min_rows"),
    "min_rows of text": (verb("explain", reference="best", min_rows="x"), D + "min_rows"),
    "min_rows beyond all": (verb("explain", reference="best", min_rows=1e9), worked),
    "an unknown option": (verb("explain", refrence="best"), "(Data|Plainrisk)Error: refrence.*reference"),
    "no rows": (verb("explain", rows=lambda w: w.X.head(0)), lambda e: len(e) == 0 and str(e)),
    "a row that is not there": (lambda w: w.model().explain(w.X.head(2)).to_dict(7), D + "row 7"),
    "a row that is no number": (lambda w: w.model().explain(w.X.head(2)).to_dict("x"), D + "row"),
    "a row of 10**30": (lambda w: w.model().explain(w.X.head(2)).to_dict(10**30), D + "row"),
    "a frame of another library": (lambda w: w.model().explain(w.X.head(2)).to_frame(like=3), worked),
}


@pytest.mark.parametrize(("call", "expected"), EXPLAIN.values(), ids=EXPLAIN)
def test_explain(judge, call, expected):
    judge(call, expected)


def at_most(k):
    return lambda found: all(len(row["reasons"] if isinstance(row, dict) else row) <= k for row in found.to_dict())


REASONS = {
    "k of 0": (verb("reasons", 0), D + "k "),
    "k of -1": (verb("reasons", -1), D + "k "),
    "k of 1.5": (verb("reasons", 1.5), D + "k "),
    "k of NaN": (verb("reasons", NAN), D + "k "),
    "k of text": (verb("reasons", "4"), D + "k "),
    "k of True": (verb("reasons", True), D + "k "),
    "k of None": (verb("reasons", None), lambda r: r.k == 3 and at_most(3)(r)),
    "k beyond the policy": (stated("reasons", {"policy": {"reasons": 2}}, 3), D + "k = 3.*allows 2"),
    "k of None with a policy": (stated("reasons", {"policy": {"reasons": 2}}), at_most(2)),
    "k of 10**9": (verb("reasons", 10**9), lambda r: len(r) == 4 and str(r)),
    "k of 10**30": (verb("reasons", 10**30), lambda r: len(r) == 4 and str(r)),
    "k of numpy": (verb("reasons", np.int64(2)), worked),
    "a reference of constant": (verb("reasons", reference="constant"), D + "reference"),
    "order as an option": (verb("reasons", order="subscale"), D + "no option 'order'"),
    "an order of another word": (stated("reasons", {"policy": {"order": "size"}}), D + "order"),
    "an order by subscale": (stated("reasons", {"policy": {"order": "subscale"}}), worked),
    "a protected feature that is none": (stated("reasons", {"features": {"zz": {"protected": True}}}), D + "zz"),
    "protected as a text": (stated("reasons", {"features": {"a": {"protected": "yes"}}}), D + "'a'.*protected"),
    "protected as a number": (stated("reasons", {"features": {"a": {"protected": 3}}}), D + "'a'.*protected"),
    "all features protected": (
        stated("reasons", {"features": {name: {"protected": True} for name in "abc"}}),
        lambda r: at_most(0)(r) and r.withheld.any(),
    ),
    "letters where all features are protected": (
        lambda w: [
            w.model()
            .annotate({"features": {name: {"protected": True} for name in "abc"}}, cutoff=0.0)
            .decide(w.X.head(4))
            .letter(i)
            for i in range(4)
        ],
        lambda letters: all("we will explain this decision" in letter for letter in letters),
    ),
    "inquiries that are none": (stated("reasons", {"policy": {"inquiries": ["zz"]}}), D + "zz"),
    "inquiries as a text": (stated("reasons", {"policy": {"inquiries": "a"}}), D + "inquiries"),
    "a letter without a cut-off": (lambda w: w.model().reasons(w.X.head(1)).letter(), D + "no cut-off"),
    "a letter to nobody": (lambda w: w.model().annotate(cutoff=0.5).decide(w.X.head(1)).letter(3), D + "row 3"),
    "a decision without a cut-off": (verb("decide"), D + "decide: the model has no cut-off"),
    "a decision on no rows": (
        stated("decide", {"policy": {"cutoff": 0.5}}, rows=lambda w: w.X.head(0)),
        lambda r: len(r) == 0 and str(r),
    ),
    "a cut-off of 0": (stated("decide", {"policy": {"cutoff": 0.0}}), lambda r: r.refused.all()),
    "a cut-off of 1": (stated("decide", {"policy": {"cutoff": 1}}), lambda r: not r.refused.any()),
    "a cut-off of NaN": (stated("decide", {"policy": {"cutoff": NAN}}), D + "cutoff"),
    "a cut-off of 2": (lambda w: w.model().annotate(cutoff=2.0), D + "cutoff"),
    "a cut-off of text": (lambda w: w.model().annotate(cutoff="0.2"), D + "cutoff"),
    "a change of the fit": (lambda w: w.model().annotate({"target": "other"}), D + "'target' is part of the fit"),
    "a change of a bin": (lambda w: w.model().annotate({"features": {"a": {"edges": (1.0,)}}}), D + "'edges' of.*'a'"),
    "changes that are a number": (lambda w: w.model().annotate(3), D + "annotate"),
    "changes that are a list": (lambda w: w.model().annotate([]), D + "annotate"),
    "changes that are a text": (lambda w: w.model().annotate("policy"), D + "annotate"),
    "no rows": (verb("reasons", rows=lambda w: w.X.head(0)), lambda r: len(r) == 0),
    "a row with infinity": (verb("reasons", rows=lambda w: w.row(a=INF)), D + "'a'.*row 0"),
    "min_rows of NaN": (verb("reasons", min_rows=NAN), D + "min_rows"),
    "a level without rows of training": (verb("reasons", rows=lambda w: w.row(c="never")), worked),
    "lines without a portfolio": (
        verb("reasons", model="LinNNLR", rows=lambda w: {"a": [1.0], "b": [1.0]}),
        D + "portfolio",
    ),
}


@pytest.mark.parametrize(("call", "expected"), REASONS.values(), ids=REASONS)
def test_reasons(judge, call, expected):
    judge(call, expected)


def one(w):
    return w.X.head(1)


def what_if(*args, rows=one, **options):
    return verb("what_if", *args, rows=rows, **options)


WHAT_IF = {
    "a target of 2": (what_if(2.0), D + "target"),
    "a target of -1": (what_if(-1.0), D + "target"),
    "a target of NaN": (what_if(NAN), D + "target"),
    "a target of text": (what_if("0.1"), D + "target"),
    "a target of None without a cut-off": (what_if(None), D + "what_if: the model has no cut-off"),
    "a target of None with a cut-off": (
        lambda w: (w.model().annotate(cutoff=0.1).what_if(one(w), None), w.model().what_if(one(w), 0.1)),
        lambda two: two[0] == two[1],
    ),
    "all features protected": (
        stated("what_if", {"features": {name: {"protected": True} for name in "abc"}}, 0.01, rows=one),
        lambda r: not r.reached,
    ),
    "a target of True": (what_if(True), D + "target"),
    "a target of 0": (what_if(0.0), worked),
    "two rows": (what_if(0.1, rows=lambda w: w.X.head(2)), D + "one row"),
    "no rows": (what_if(0.1, rows=lambda w: w.X.head(0)), D + "one row"),
    "many of no rows": (verb("what_ifs", 0.1, rows=lambda w: w.X.head(0)), lambda r: len(r) == 0),
    "a frozen feature that is none": (what_if(0.1, frozen=["zz"]), D + "zz"),
    "frozen as a text": (what_if(0.1, frozen="abc"), D + "frozen"),
    "all frozen": (what_if(0.01, frozen=["a", "b", "c"]), worked),
    "an unknown cost": (what_if(0.1, cost="cheap"), D + "cost"),
    "a cost by feature": (what_if(0.1, cost={"a": 1.0}), D + "cost"),
    "a cost that is a number": (what_if(0.1, cost=3), D + "cost"),
    "answers of 0": (what_if(0.1, answers=0), D + "answers"),
    "answers of 1.5": (what_if(0.1, answers=1.5), D + "answers"),
    "answers of NaN": (what_if(0.1, answers=NAN), D + "answers"),
    "answers of 10**9": (what_if(0.1, answers=10**9), worked),
    "values of another feature": (what_if(0.1, values={"zz": [1.0]}), D + "zz"),
    "values of text for a number": (what_if(0.01, values={"a": ["many"]}), D + "'a'"),
    "values of NaN": (what_if(0.01, values={"a": [NAN]}), D + "'a'"),
    "values of infinity": (what_if(0.01, values={"a": [INF]}), D + "'a'"),
    "values that are a number": (what_if(0.01, values={"a": 3.0}), D + "values"),
    "values that are a text": (what_if(0.01, values={"c": "xyz"}), D + "values"),
    "values as a list": (what_if(0.01, values=["a"]), D + "values"),
    "no values": (what_if(0.01, values={"a": []}), worked),
    "min_rows of 20": (
        lambda w: (
            w.model().what_if(w.X.head(1), 0.0, min_rows=20),
            w.model().what_ifs(w.X.head(1), 0.0, answers=3, min_rows=20)[0],
        ),
        lambda two: two[0] == two[1],
    ),
    "min_rows of NaN": (what_if(0.1, min_rows=NAN), D + "min_rows"),
    "adverse as an option": (what_if(0.1, adverse="negative"), D + "no option 'adverse'"),
    "a row far out": (what_if(0.1, rows=lambda w: w.row(a=1e308)), worked),
    "a row of missing values": (what_if(0.1, rows=lambda w: w.row(a=NAN, b=NAN, c=None)), worked),
    "a line without values": (what_if(0.01, model="LinNNLR", rows=lambda w: {"a": [1e20], "b": [1.0]}), worked),
    "a line with values far out": (
        what_if(0.01, model="LinNNLR", rows=lambda w: {"a": [1e20], "b": [1.0]}, values={"a": [-1e300]}),
        lambda r: r.reached and r.answers[0].risk <= 0.01,
    ),
}


@pytest.mark.parametrize(("call", "expected"), WHAT_IF.values(), ids=WHAT_IF)
def test_what_if(judge, call, expected):
    judge(call, expected)


RISK = np.linspace(0.01, 0.99, 120)
GROUPS = np.array(["m", "f", "f"] * 40, dtype=object)


def report(risk=RISK, groups=GROUPS, **options):
    return lambda w: pr.fairness(w.given(risk), None, w.y, by=w.given(groups), **{"cutoff": 0.5, **options})


MONITOR = {
    "an overview of no rows": (verb("overview", rows=lambda w: w.X.head(0)), "(Data|Plainrisk)Error: rows"),
    "an overview of a number": (lambda w: w.model().overview(3), D),
    "an overview without a column": (lambda w: w.model().overview(w.X[["a"]]), D + "'b'"),
    "an overview of lines without rows": (lambda w: w.model("LinNNLR").overview(), worked),
    "drift of no rows": (verb("drift", rows=lambda w: w.X.head(0)), D + "rows"),
    "drift from no rows": (lambda w: w.model().drift(w.X, w.X.head(0)), D + "rows"),
    "drift of one row": (lambda w: w.model().drift(w.X.head(1)), worked),
    "drift without a column": (lambda w: w.model().drift(w.X[["a"]]), D + "'b'"),
    "drift of text": (lambda w: w.model().drift(w.X.assign(a="SECRET-7")), D + "'a'"),
    "drift of lines without old rows": (lambda w: w.model("LinNNLR").drift(w.X[["a", "b"]].fillna(1)), worked),
    "certify with NaN": (lambda w: w.model().certify(thin=NAN), D + "thin"),
    "certify with text": (lambda w: w.model().certify(thin="x"), D + "thin"),
    "certify with -1": (lambda w: w.model().certify(thin=-1), D + "thin"),
    "groups too few": (report(groups=GROUPS[:3]), D + "groups"),
    "groups missing": (
        report(groups=np.where(np.arange(120) < 9, None, GROUPS)),
        lambda r: "120" in str(r) or worked(r),
    ),
    "groups all missing": (report(groups=np.full(120, None, dtype=object)), worked),
    "one group": (report(groups=np.full(120, "m", dtype=object)), worked),
    "a group per row": (report(groups=np.arange(120)), worked),
    "an unknown reference group": (report(reference="x"), D + "'x'"),
    "a cut-off of NaN": (report(cutoff=NAN), D + "cutoff"),
    "a cut-off of 2": (report(cutoff=2.0), D + "cutoff"),
    "a cut-off of text": (report(cutoff="x"), D + "cutoff"),
    "a level of 1.5": (report(level=1.5), D + "level"),
    "risks beyond 1": (report(risk=RISK * 3), D),
    "risks of NaN": (report(risk=np.full(120, NAN)), D),
    "unseen refused by a table": (
        lambda w: w.fit(schema=pr.Schema(features={"c": {"kind": "categorical", "unseen": "error"}})).predict(
            w.row(c="SECRET-7")
        ),
        D + "'c'.*row 0",
    ),
    "unseen refused by trees": (
        lambda w: w.fit(
            name="XGB", schema=pr.Schema(features={"a": {}, "c": {"kind": "categorical", "unseen": "error"}})
        ).predict(w.row(c="SECRET-7")),
        D + "'c'.*row 0",
    ),
}


@pytest.mark.parametrize(("call", "expected"), MONITOR.values(), ids=MONITOR)
def test_overview_drift_and_groups(judge, call, expected):
    judge(call, expected)


NAMES = {
    "mathematics": "$x^{2$",
    "a command": "\\frac{",
    "an underscore": "_a",
    "500 characters": "n" * 500,
    "right to left": "\u202eabc",
    "empty": "",
    "a line break": "a\nb",
}


@pytest.mark.filterwarnings("ignore:Glyph")
@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_plots_draw_any_name(world, name, tmp_path):
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    frame = world.X.rename(columns={"a": name})
    schema = pr.Schema(
        features={name: {"direction": "increasing"}, "c": {"kind": "categorical"}}, subscales={name: [name], "s": ["c"]}
    )
    model = pr.AdditiveRiskModel(schema).fit(frame, world.y)
    try:
        found = model.explain(frame.head(2), unit="probability", reference="typical")
        for axes in (found.plot(0), found.plot(1, kind="bars")):
            axes.figure.savefig(tmp_path / "plot.png", dpi=30)
    finally:
        plt.close("all")


PLOTS = {
    "a row that is not there": (lambda w: w.model().explain(w.X.head(2)).plot(9), D + "row 9"),
    "an unknown kind": (lambda w: w.model().explain(w.X.head(2)).plot(kind="pie"), D + "kind"),
    "most of -1": (lambda w: w.model().explain(w.X.head(2)).plot(most=-1), D + "most"),
    "most of text": (lambda w: w.model().explain(w.X.head(2)).plot(most="x"), D + "most"),
    "axes that are none": (lambda w: w.model().explain(w.X.head(2)).plot(ax=3), D + "ax"),
    "no rows": (lambda w: w.model().explain(w.X.head(0)).plot(), D + "row"),
    "a row that is text": (lambda w: w.model().explain(w.X.head(2)).plot("x"), D + "row"),
    "an interval of other rows": (
        lambda w: w.model().explain(w.X.head(2)).plot(interval=pd.DataFrame()),
        D + "interval",
    ),
}


@pytest.mark.parametrize(("call", "expected"), PLOTS.values(), ids=PLOTS)
def test_plots(judge, call, expected):
    judge(call, expected)
