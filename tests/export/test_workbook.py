"""What a loan officer sees in a workbook, and that every cell holds the value of its formula."""

from __future__ import annotations

import csv
import math
import os
import re
import shutil
import zipfile
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

import plainrisk as pr
from plainrisk.errors import DataError, MissingExtraError
from plainrisk.explain.options import ReasonOptions
from plainrisk.export import spreadsheet
from plainrisk.export.engines import write_csv
from plainrisk.exports import prepare
from plainrisk.form import Alone, Bins, Logistic, Part, RiskForm, Table

SHEETS = ("Applicant", "Rows", "Scorecard", "Certificate", "Tables")
TAG = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
FEATURES = {
    "age": {"label": "Age", "unit": "years"},
    "debt": {"label": "Debt", "unit": "EUR", "special_values": (-9,), "labels": {"-9": "no record"}},
    "job": {"kind": "categorical", "label": "Occupation", "labels": {"c": "Cook", "k": "Clerk", "s": "Smith"}},
    "sex": {"kind": "categorical", "protected": True, "actionable": "fixed"},
    "stage": {"labels": {"1": "first", "2": "second", "3": "last", "missing": "not asked"}},
    "home": {"kind": "categorical", "protected": True, "actionable": "fixed"},
}


def made(**policy):
    rng = np.random.default_rng(3)
    n = 400
    X = pd.DataFrame({
        "age": rng.integers(18, 80, n).astype(float),
        "debt": np.where(rng.random(n) < 0.1, -9.0, (rng.normal(5, 2, n) * 1000).round(1)),
        "job": rng.choice(["c", "k", "s"], n),
        "sex": rng.choice(["m", "f"], n),
        "stage": rng.choice([1.0, 2.0, 3.0], n),
        "home": rng.choice(["here", "there"], n),
    })  # fmt: skip
    bad = (
        X["debt"] / 4000 + (X["job"] == "c") + 2 * (X["sex"] == "f") + 2 * (X["home"] == "here") + rng.normal(size=n)
        > 3.5
    )
    schema = pr.Schema(features=FEATURES, outcome={"positive": "does not repay"}, policy={"reasons": 2, **policy})
    return pr.make_classifier("BandARM1", schema).fit(X, bad.astype(int))


@pytest.fixture(scope="module")
def model():
    return made()


@pytest.fixture(scope="module")
def book(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("book") / "score.xlsx"
    model.export(path)
    return path


def read(path, sheet):
    """Return what the cells of a sheet hold, and their formulas."""
    with zipfile.ZipFile(path) as file:
        texts = ["".join(t.itertext()) for t in ElementTree.fromstring(file.read("xl/sharedStrings.xml"))]
        root = ElementTree.fromstring(file.read(f"xl/worksheets/sheet{SHEETS.index(sheet) + 1}.xml"))
    kinds = {"s": lambda v: texts[int(v)], "str": str, "b": lambda v: v == "1", None: float}
    found, formulas = {}, {}
    for cell in root.iter(f"{TAG}c"):
        value = cell.findtext(f"{TAG}v")
        found[cell.get("r")] = kinds[cell.get("t")](value) if value else None
        if cell.find(f"{TAG}f") is not None:
            formulas[cell.get("r")] = cell.findtext(f"{TAG}f")
    return found, formulas


def lines(path):
    """Return the right side of the sheet Applicant, (title, value) by line."""
    cells, _ = read(path, "Applicant")
    rows = sorted(int(name[1:]) for name in cells if name.startswith("D"))
    return [(cells[f"D{n}"], cells.get(f"E{n}")) for n in rows]


def shown(path):
    """Return the applicant whose values stand in the sheet Rows."""
    cells, _ = read(path, "Rows")
    return {cells[f"{c}1"]: cells[f"{c}3"] for c in "ABCDEF"}


def computed_by_office(*arguments):
    """Run LibreOffice; in CI, where it is installed, it must be there."""
    try:
        return write_csv(*arguments)
    except MissingExtraError as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(error))


# ---- stored values


def test_the_sheet_shows_a_real_applicant(model, book):
    row = pd.DataFrame([shown(book)])
    answers = dict(lines(book))
    assert answers["Probability that the applicant does not repay"] == model.predict_proba(row)[0, 1]
    assert answers["This applicant"] == pytest.approx(model.predict_proba(row)[0, 1], abs=1e-12)
    assert answers["Typical applicant"] == model.explain(row).constant[0]
    assert answers["What counted most"] == model.reasons(row).words(0)[0]
    cells, _ = read(book, "Certificate")
    assert 20.0 in cells.values()


def test_libreoffice_computes_what_is_stored(book, tmp_path):
    """In every cell, from a copy without stored values, so that none can be taken over."""
    copy = tmp_path / "copy.xlsx"
    with zipfile.ZipFile(book) as old, zipfile.ZipFile(copy, "w") as new:
        for name in old.namelist():
            text = re.sub(rb"(<c [^>]*?)( t=\"\w+\")?(><f>[^<]*</f>)<v>[^<]*</v>", rb"\1\3<v>0</v>", old.read(name))
            new.writestr(name, text)
    computed_by_office([copy], tmp_path, -1)
    for sheet in ("Applicant", "Rows", "Certificate"):
        with (tmp_path / f"copy-{sheet}.csv").open(encoding="utf-8", newline="") as file:
            computed = {
                f"{spreadsheet.column_name(j)}{n}": text
                for n, line in enumerate(csv.reader(file), 1)
                for j, text in enumerate(line)
            }
        cells, formulas = read(book, sheet)
        assert formulas
        assert [name for name in formulas if not same(cells[name], computed.get(name, ""))] == []


def same(stored, text):
    if isinstance(stored, float):
        number = float(text.rstrip("%")) / (100 if text.endswith("%") else 1)
        return number == pytest.approx(stored, rel=1e-9, abs=1e-12)
    return text == (str(stored).upper() if isinstance(stored, bool) else stored or "")


def test_edges_of_16_digits_beside_shorter_numbers(tmp_path):
    """Spreadsheets compare 15 digits: an edge counts on its own side, and so does the round number next to it."""
    below = [math.nextafter(7.0, -math.inf), math.nextafter(0.3, -math.inf)]
    edges = sorted(
        [0.1234567890123456, math.nextafter(0.3, math.inf) + 0.3, 1234.5678901234567, *below, 98765.43210987654]
    )
    scores = tuple(float(code % 2) for code in range(len(edges) + 2))
    shape = Table(
        levels=Bins(edges=tuple(edges)), scores=scores, weights=(1.0,) * len(scores), positives=(0.5,) * len(scores)
    )
    schema = pr.Schema(features={"ratio": {}})
    part = Part(name="all", intercept=0.0, shapes={"ratio": shape}, link=Logistic())
    model = pr.RiskModel(RiskForm(schema=schema, columns=("ratio",), classes=(0, 1), parts=(part,), pool=Alone()))
    path = tmp_path / "score.xlsx"
    model.export(path)
    cells, _ = read(path, "Rows")
    typed_in = {value for name, value in cells.items() if re.fullmatch(r"A\d+", name)}
    assert typed_in >= {7.0, 0.3, *(float(f"{edge:.16g}") for edge in edges if edge not in below)}
    assert typed_in.isdisjoint(below)
    try:
        found = pr.verify_export(path, model)
    except MissingExtraError as error:
        pytest.skip(str(error))
    assert (found.agrees, found.rows) == (True, 20)


def test_a_changed_formula_is_found(model, book, tmp_path):
    if shutil.which("soffice") is None:
        pytest.skip("LibreOffice is not here.")
    path = tmp_path / "score.xlsx"
    with zipfile.ZipFile(book) as old, zipfile.ZipFile(path, "w") as new:
        for name in old.namelist():
            new.writestr(name, old.read(name).replace(b"1+SUMPRODUCT(", b"1+0*SUMPRODUCT("))
    assert pr.verify_export(book, model).agrees
    assert not pr.verify_export(path, model).agrees


# ---- what may be typed


def test_categories_are_lists_of_labels_and_numbers_have_hints(book):
    with zipfile.ZipFile(book) as file:
        root = ElementTree.fromstring(file.read("xl/worksheets/sheet1.xml"))
    found = {v.get("sqref"): v for v in root.iter(f"{TAG}dataValidation")}
    cells, _ = read(book, "Applicant")
    assert [cells[f"A{n}"] for n in range(2, 8)] == ["Age (years)", "Debt (EUR)", "Occupation", "sex", "stage", "home"]
    assert cells["B4"] in ("Cook", "Clerk", "Smith")
    assert {found[name].get("type") for name in ("B4", "B5", "B6", "B7")} == {"list"}
    assert all(found[name].get("allowBlank") == "1" for name in found)
    first, last = re.fullmatch(r"Tables!\$(\w+)\$1:\$\w+\$(\d)", found["B4"].findtext(f"{TAG}formula1")).groups()
    tables, _ = read(book, "Tables")
    assert [tables[f"{first}{n}"] for n in range(1, int(last) + 1)] == ["Cook", "Clerk", "Smith"]
    assert found["B3"].get("type") == "decimal"
    assert found["B3"].get("error") == "Debt (EUR) must be a number. Leave the cell empty if it is not known."
    assert found["B3"].get("prompt") == "-9: no record; empty: not given"
    assert shown(book)["job"] in ("c", "k", "s")
    assert (cells["B6"], shown(book)["stage"]) in (("first", 1.0), ("second", 2.0), ("last", 3.0))


def test_what_is_typed_is_answered(model, book, tmp_path):
    """Labels and codes, a special value, nothing at all, and a text where a number belongs."""
    base = {"age": 33.0, "debt": -9.0, "job": "k", "sex": "m", "stage": 2.0, "home": "there"}
    cases = [
        ([33, -9, "Clerk", "m", "second", "there"], base),
        ([33, 1234.5, "k", None, 2, "there"], {**base, "debt": 1234.5, "sex": None}),
        ([None] * 6, dict.fromkeys(base)),
        (["old", -9, "Clerk", "m", "second", "there"], None),
    ]
    paths = [typed(book, tmp_path / f"{n}.xlsx", values) for n, (values, _) in enumerate(cases)]
    computed_by_office(paths, tmp_path, 1)
    for path, (_, row) in zip(paths, cases, strict=True):
        with (tmp_path / f"{path.stem}-Applicant.csv").open(encoding="utf-8", newline="") as file:
            answers = {line[3]: line[4] for line in csv.reader(file)}
        outcome = answers["Probability that the applicant does not repay"]
        if row is None:
            assert (outcome, answers["Please check"].strip()) == ("", "Age (years) must be a number.")
        else:
            assert same(model.predict_proba(row)[0, 1], outcome)
            assert same(model.predict_proba(row)[0, 1], answers["This applicant"])


def typed(book, path, values):
    """Write a copy of a workbook with other values typed."""
    with zipfile.ZipFile(book) as old, zipfile.ZipFile(path, "w") as new:
        for name in old.namelist():
            text = old.read(name)
            if name == "xl/worksheets/sheet1.xml":
                for n, value in enumerate(values, 2):
                    number = "" if value is None else f"<v>{value}</v>"
                    is_text = isinstance(value, str)
                    cell = (
                        f'<c r="B{n}" t="inlineStr"><is><t>{value}</t></is></c>'
                        if is_text
                        else f'<c r="B{n}">{number}</c>'
                    )
                    text = re.sub(rf'<c r="B{n}"[^>]*?(/>|>.*?</c>)'.encode(), cell.encode(), text, count=1)
            new.writestr(name, text)
    return path


# ---- the words of the sheet


def test_protected_features_are_one_bar_and_nothing_speaks_of_the_method(book):
    titles = [title for title, _ in lines(book)]
    start = titles.index("Typical applicant")
    assert titles[start:] == [
        "Typical applicant",
        "Age",
        "Debt",
        "Occupation",
        "stage",
        "Protected attributes",
        "This applicant",
    ]
    values = [value for _, value in lines(book)[start:]]
    assert sum(values[:-1]) == pytest.approx(values[-1], abs=1e-15)
    cells, formulas = read(book, "Applicant")
    text = " ".join([*(v for v in cells.values() if isinstance(v, str)), *formulas.values()]).lower()
    assert not re.search(r"subscale|\bbins?\b|score|contribution|reference", text)


def test_without_a_cutoff_there_is_no_decision(book):
    titles = [title for title, _ in lines(book)]
    assert "What counted most" in titles
    assert not {"Decision", "Reasons for the refusal"} & set(titles)


@pytest.mark.parametrize(("cutoff", "decision"), [(0.001, "refused"), (0.999, "approved")])
def test_reasons_stand_there_for_the_refused_only(cutoff, decision, tmp_path):
    path = tmp_path / "score.xlsx"
    found = made(cutoff=cutoff)
    found.export(path)
    answers = dict(lines(path))
    assert answers["Decision"] == decision
    reasons = found.reasons(pd.DataFrame([shown(path)]))
    first = reasons.words(0)[0] if decision == "refused" else None
    assert answers["Reasons for the refusal"] == first
    values = [value for _, value in lines(path)]
    n = int(reasons.withheld[0])
    assert n > 0
    word = "1 protected feature is not named" if n == 1 else f"{n} protected features are not named"
    assert (word in values) == (decision == "refused")


# ---- limits


def wide(n):
    """Fit a model of many features."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, n)).round(3)
    names = [f"feature {j}" for j in range(n)]
    schema = pr.Schema(features={name: {} for name in names}, policy={"cutoff": 0.5})
    y = X.sum(axis=1) + rng.normal(size=600) > 0
    return pr.make_classifier("ARM1", schema).fit(pd.DataFrame(X, columns=names), y.astype(int))


def test_200_features_fit_in_a_sheet():
    program, _ = prepare(wide(200).form_, ReasonOptions(), {"target": "xlsx"})
    layout = spreadsheet.Layout(program)
    assert max(map(len, layout.formulas)) < 8_192
    assert len(layout.names) + 2 * len(program.outputs) < 16_384


def test_too_many_columns_are_refused(model, monkeypatch, tmp_path):
    monkeypatch.setattr(spreadsheet, "MOST_COLUMNS", 50)
    with pytest.raises(DataError, match=r"takes \d+ columns, and a sheet has 50. Ask for fewer reasons"):
        model.export(tmp_path / "score.xlsx")
    assert not list(tmp_path.iterdir())
