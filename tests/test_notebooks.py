"""In a notebook: every plot is shown and returns its axes, and what is printed is short."""

from __future__ import annotations

import ast
import warnings
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import plainrisk as pr
from plainrisk.datasets.registry import schema_of
from plainrisk.errors import PlainriskWarning
from plainrisk.explain.groups import compare_groups
from plainrisk.model import RiskModel

SOURCE = Path(pr.__path__[0])
SCHEMAS = sorted(path.stem for path in (SOURCE / "datasets" / "schemas").glob("*.toml"))
LINES, LETTERS = 10, 400  # of what is printed at most
plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(scope="module")
def german():
    return pr.datasets.load("german")


@pytest.fixture(scope="module")
def fitted(german):
    """Fit a model by name, once."""
    known = {}

    def fit(name):
        if name not in known:
            if "XGB" in name:
                pytest.importorskip("xgboost")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", PlainriskWarning)
                known[name] = pr.make_classifier(name, german.schema).fit(german.frame, german.target)
        return known[name]

    return fit


# ---- what is printed


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_schema_prints_in_few_lines(name):
    schema = schema_of(name)
    assert len(repr(schema).splitlines()) == 1
    assert len(repr(schema)) <= LETTERS / 2
    lines = str(schema).splitlines()
    assert 2 <= len(lines) <= LINES
    assert max(map(len, lines)) <= 100
    assert all(f"{len(schema.features)} feature" in text for text in (repr(schema), lines[0]))


def test_a_schema_says_what_is_required_and_what_was_decided(german):
    assert repr(german.schema) == (
        "Schema(20 features: 11 categorical, 9 continuous; 2 increasing; 3 protected; 2 subscales; target 'good'; "
        "cut-off 0.6)"
    )
    text = str(german.schema)
    for words in ("target: 'good'", "negative is adverse", "increasing: 2", "protected: 3", "cut-off 0.6"):
        assert words in text


def test_a_draft_and_an_empty_schema_print_in_few_lines(german):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PlainriskWarning)
        draft = pr.Schema.infer(german.frame)
    assert "findings: " in str(draft)
    assert len(str(draft).splitlines()) <= LINES
    assert repr(pr.Schema()) == "Schema(0 features)"
    assert str(pr.Schema()) == "Schema of 0 features"


def test_names_cannot_command_the_terminal_or_add_lines():
    schema = pr.Schema(target="a\nb", features={"\x1b[2J\nx": {"protected": True}})
    assert len(str(schema).splitlines()) == 3
    assert "\x1b" not in str(schema) + repr(schema)


def test_a_notebook_shows_the_lines(german):
    class Printer:
        said = ""

        def text(self, words):
            self.said += words

    printer = Printer()
    german.schema._repr_pretty_(printer, False)
    assert printer.said == str(german.schema)


def test_features_and_policies_print_what_is_stated():
    schema = pr.Schema(features={"age": {"direction": "decreasing"}, "job": {}}, policy={"cutoff": 0.3})
    assert repr(schema.features["age"]) == "Feature(direction='decreasing')"
    assert repr(schema.features["job"]) == "Feature()"
    assert repr(schema.policy) == "Policy(cutoff=0.3)"


@pytest.mark.parametrize("name", pr.CLASSIFIERS)
def test_a_model_and_its_form_print_in_few_lines(name, fitted, german):
    model = fitted(name)
    form, record = getattr(model, "form_", None), getattr(model, "fit_record_", None)
    shown = [pr.make_classifier(name, german.schema), model, record]
    if form is not None:
        shown += [form, *form.parts, RiskModel(form, record)]
    for one in shown:
        assert len(repr(one).splitlines()) <= LINES
        assert len(repr(one)) <= LETTERS, repr(one)


# ---- plots


def plots(model, mixture, german):
    """Every way to draw, by class and method."""
    risk = model.predict_proba(german.frame)[:, 1]
    sex = german.frame["foreign worker"]
    found = model.explain(german.frame)
    calibration = pr.metrics.reliability(german.target, risk)
    chosen = pr.cutoffs(risk, None, german.target)
    months = [f"2026-{1 + row % 6:02d}" for row in range(len(german.target))]
    return {
        "BestLine.plot": pr.best_line().plot,
        "Monitoring.plot": pr.monitor(model, german.frame, german.target, cutoff=0.5).plot,
        "Periods.plot": pr.periods(model, german.frame, german.target, time=months, cutoff=0.5).plot,
        "Explanation.plot": lambda **to: found.plot(0, **to),
        "Drift.plot": model.drift(german.frame, german.frame).plot,
        "GroupReport.plot": compare_groups(german.target, risk, sex, cutoff=0.5).plot,
        "Overview.plot": lambda: model.overview().plot("Duration in month"),
        "Overview.plot_importance": model.overview().plot_importance,
        "Overview.plot_weights": mixture.overview().plot_weights,
        "SubscaleMixture.plot_weights": lambda **to: mixture.plot_weights(german.frame, german.target, **to),
        "Evaluation.plot": pr.evaluate(model, german.frame, german.target).plot,
        "Reliability.plot": calibration.plot,
        "Cutoffs.plot": chosen.plot,
    }


def drawn():
    """The methods of the package that draw."""
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                yield from (f"{node.name}.{f.name}" for f in node.body if getattr(f, "name", "").startswith("plot"))


@pytest.fixture(scope="module")
def every(fitted, german):
    return plots(fitted("SmoothARM1"), fitted("MixARM1"), german)


def test_every_plot_is_tested(every):
    assert set(drawn()) == set(every)


@pytest.mark.parametrize("name", sorted(set(drawn())))
def test_a_plot_is_shown_once_and_returns_its_axes(name, every):
    """pyplot holds the one new figure, open: that is what the backend of notebooks shows at the end of a cell."""
    assert plt.get_fignums() == []
    axes = every[name]()
    own = list(getattr(axes, "flat", [axes]))
    assert own
    figure = own[0].figure
    assert [plt.figure(number) for number in plt.get_fignums()] == [figure]
    assert figure.axes[: len(own)] == own


# Of several panels.
PANELS = ("BestLine.plot", "Monitoring.plot", "Periods.plot")


@pytest.mark.parametrize("name", PANELS)
def test_panels_into_given_axes_make_no_figure(name, every):
    from matplotlib.figure import Figure

    shape = np.shape(every[name]())
    plt.close("all")
    given = Figure(figsize=(9, 6), layout="constrained").subplots(*((1, *shape) if len(shape) == 1 else shape))
    assert np.shape(every[name](axes=given)) == shape
    assert plt.get_fignums() == []


@pytest.mark.parametrize("name", sorted(set(drawn()) - {"Overview.plot", *PANELS}))
def test_a_plot_into_given_axes_makes_no_figure(name, every):
    from matplotlib.figure import Figure

    given = Figure(figsize=(7, 5), layout="constrained").subplots()
    assert every[name](ax=given) is given
    assert plt.get_fignums() == []


NEEDED = ("nbclient", "nbformat", "ipykernel", "matplotlib_inline")


@pytest.mark.skipif(
    any(find_spec(name) is None for name in NEEDED), reason=f"runs a notebook, which needs {', '.join(NEEDED)}"
)
def test_a_notebook_shows_every_plot_once(tmp_path):
    import nbclient
    import nbformat

    cells = [
        "%matplotlib inline",
        "import plainrisk as pr\ngerman = pr.datasets.load('german')",
        "model = pr.make_classifier('ARM1', german.schema).fit(german.frame, german.target)",
        "model.explain(german.frame).plot(0)",
        "pr.evaluate(model, german.frame, german.target).plot();",
        "german.schema",
    ]
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in cells])
    nbclient.NotebookClient(book, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    pictures = [sum("image/png" in out.get("data", {}) for out in cell.outputs) for cell in book.cells]
    assert pictures == [0, 0, 0, 1, 1, 0]
    assert len(book.cells[-1].outputs[0]["data"]["text/plain"].splitlines()) <= LINES
