"""The documents themselves: what stands in them, that they are the same again, and what is refused before any work."""

from __future__ import annotations

import html.parser
import json
import re
import zipfile

import docx
import numpy as np
import polars as pl
import pytest

import plainrisk as pr
from plainrisk.document import PROFILES, collect, gather, measured, write_document
from plainrisk.document.background import Commands, schema
from plainrisk.document.blocks import Grid, gaps_of
from plainrisk.document.limitations import limitations
from plainrisk.document.manuscript import manuscript
from plainrisk.document.profiles import SECTIONS
from plainrisk.document.text import to_markdown
from plainrisk.errors import DataError, OutputError


@pytest.fixture(scope="module")
def written(case, tmp_path_factory):
    folder = tmp_path_factory.mktemp("written")
    given = gather(case.model, case.test, time="month", by=["branch"], file=case.file)
    return write_document(given, folder / "model.docx")


@pytest.fixture
def quick(numbers, monkeypatch):
    """What takes longest is taken from the document that all tests share."""
    monkeypatch.setattr(measured, "weak", lambda given: numbers["weak_spots"])
    monkeypatch.setattr(measured, "sensitive", lambda given: numbers["sensitivity"])
    monkeypatch.setattr(collect, "_exports", lambda given: numbers["exports"])


def texts_of(path):
    document = docx.Document(path)
    cells = [cell.text for table in document.tables for row in table.rows for cell in row.cells]
    return document, [paragraph.text for paragraph in document.paragraphs] + cells


def test_a_word_document_names_the_model_on_every_page_and_marks_its_gaps(written, case):
    document, texts = texts_of(written.document)
    section = document.sections[0]
    digest = json.loads(case.file.read_text(encoding="utf-8"))["form_sha256"]
    assert section.header.paragraphs[0].text == f"Synthetic  ·  form {digest[:16]}"
    fields = [e.text for e in section.footer._element.iter() if e.tag.endswith("instrText")]
    assert fields == ["PAGE", "NUMPAGES"]
    assert digest in texts
    for gap in written.gaps:
        assert gap in texts
    assert len(document.inline_shapes) == 8
    assert all(shape._inline.docPr.get("descr") for shape in document.inline_shapes)
    assert "Head of validation" in texts
    assert "More of it, less risk: policy 7" in texts


def test_every_table_of_figures_names_a_command_that_exists(written):
    from plainrisk.cli.commands import COMMANDS

    _, texts = texts_of(written.document)
    verbs = [verb for text in texts for verb in re.findall(r"plainrisk ([a-z-]+) (?:model\.json|MODEL|TRAIN)", text)]
    assert len(verbs) > 12
    assert set(verbs) <= set(COMMANDS)


def test_the_same_numbers_give_the_same_bytes(written, case, tmp_path):
    given = gather(case.model, case.test, time="month", by=["branch"], file=case.file)
    again = write_document(given, tmp_path / "model.docx")
    assert again.document.read_bytes() == written.document.read_bytes()
    assert again.numbers.read_bytes() == written.numbers.read_bytes()
    with zipfile.ZipFile(again.document) as packed:
        assert {entry.date_time for entry in packed.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_figures_of_the_document_stand_in_its_numbers(written):
    numbers = json.loads(written.numbers.read_text(encoding="utf-8"))
    _, texts = texts_of(written.document)
    auc = numbers["performance"]["figures"]["auc"]
    assert f"{auc['estimate']:.3f}" in texts
    assert f"{auc['low']:.3f} to {auc['high']:.3f}" in texts
    (branches,) = [one for one in numbers["groups"] if one["column"] == "branch"]
    for group in branches["groups"]:
        assert f"{group['mean_risk']:.1%}" in texts
    assert numbers["gaps"] == list(written.gaps)
    assert numbers["limitations"] == list(written.limitations)


class Checker(html.parser.HTMLParser):
    VOID = frozenset({"meta", "img"})

    def __init__(self):
        super().__init__()
        self.open, self.seen = [], []

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_is_one_well_formed_file_that_loads_nothing(case, quick, tmp_path):
    renamed = case.model.annotate(about={"owner": "<script>alert(1)</script>"})
    renamed.document(tmp_path / "model.html", case.test)
    text = (tmp_path / "model.html").read_text(encoding="utf-8")
    checker = Checker()
    checker.feed(text)
    assert checker.open == []
    assert "script" not in [tag for tag, _ in checker.seen]
    sources = [attrs["src"] for _, attrs in checker.seen if "src" in attrs]
    assert sources
    assert all(source.startswith("data:image/png;base64,") for source in sources)


def test_markdown_has_every_table_and_no_broken_row(case, quick, tmp_path):
    renamed = case.model.annotate(about={"owner": "a | b"})
    renamed.document(tmp_path / "model.md", case.test)
    lines = (tmp_path / "model.md").read_text(encoding="utf-8").splitlines()
    tables = [line for line in lines if line.startswith("|")]
    widths = [len(re.findall(r"(?<!\\)\|", line)) for line in tables]
    for k, line in enumerate(tables):
        if "---" in line and set(line) <= set("|-: "):
            assert widths[k - 1] == widths[k] == widths[k + 1]
    assert any("a \\| b" in line for line in tables)


@pytest.mark.parametrize("profile", PROFILES)
def test_every_profile_orders_all_sections(numbers, profile):
    text = to_markdown(manuscript(numbers, PROFILES[profile], Commands()))
    headings = re.findall(r"^### (\d+)\.\d+ (.*)$", text, re.MULTILINE)
    plain = {
        "Performance",
        "Calibration",
        "Fairness",
        "How a probability is computed",
        "Signatures",
        "Limitations found by the program",
    }
    assert plain <= {name for _, name in headings}
    assert len({name for _, name in headings}) == len(headings) == len(SECTIONS)
    titles = re.findall(r"^## \d+\. (.*)$", text, re.MULTILINE)
    assert len(titles) > 4
    assert re.findall(r"^- (.*)$", text.partition("\n## ")[0], re.MULTILINE)[-len(titles) :] == titles
    chapters = [int(number) for number, _ in headings]
    assert chapters == sorted(chapters)
    assert ("to judge" in text) == (profile != "plain")
    assert "compliant" not in text


def test_a_profile_asks_a_person_for_what_no_program_knows(numbers):
    gaps = {name: len(list(gaps_of(list(one.blocks(numbers, Commands()))))) for name, one in PROFILES.items()}
    assert all(gaps[name] > gaps["plain"] for name in set(gaps) - {"plain"})
    assert "EU declaration of conformity" in str(list(PROFILES["ai-act"].blocks(numbers, Commands())))


def test_texts_of_the_model_file_fill_gaps(numbers):
    plain = manuscript(numbers, PROFILES["plain"], Commands())
    said = {"data": "Loans of 2024; the month was invented", "monitoring_plan": "Every month, by Risk"}
    filled = {**numbers, "model": {**numbers["model"], "about": {**numbers["model"]["about"], **said}}}
    found = manuscript(filled, PROFILES["plain"], Commands())
    left = [gap.name for gap in gaps_of(found.blocks)]
    assert sorted(gap.name for gap in gaps_of(plain.blocks)) == sorted([*left, "data", "monitoring plan"])
    text = to_markdown(found)
    assert "Data: Loans of 2024; the month was invented" in text
    assert "Monitoring plan: Every month, by Risk" in text


def test_the_method_says_how_the_model_was_fitted(numbers, case):
    """In the words of the settings: a few bins and one penalty here, or fine bins and straight pieces."""
    steps = to_markdown(manuscript(numbers, PROFILES["plain"], Commands()))
    assert "a small tree on the outcome finds" in steps
    assert "mean log loss" in steps
    fit = numbers["model"]["fit"]
    parameters = {**fit["parameters"], "shapes": "'smooth'", "link": "'bands'", "rules": "'free'"}
    bands = {"knots": [-1.0, 0.0, 1.0], "values": [0.1, 0.4, 0.9], "rates": [0.3, 0.5]}
    smooth = {**numbers["model"], "bands": bands, "fit": {**fit, "parameters": parameters}}
    text = to_markdown(manuscript({**numbers, "model": smooth}, PROFILES["plain"], Commands()))
    assert "the marginal likelihood" in text
    assert "straight pieces above replaced it" in text
    assert "empty fields and codes are fitted without rules" in text


# ---- what is refused


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("model.pdf", {}, "must end in .docx, .md or .html"),
        ("model.docx", {"profile": "sr11-7"}, "there is no profile 'sr11-7'"),
        ("model.docx", {"time": "mont"}, "time: there is no column 'mont'.*Did you mean 'month'"),
        ("model.docx", {"by": ["brunch"]}, "by: there is no column 'brunch'.*Did you mean 'branch'"),
        ("model.docx", {"against": "othr"}, "against: there is no column 'othr'"),
        ("model.docx", {"against": "month"}, "month"),
        ("model.docx", {"target": "good"}, "has no column of outcomes 'good'"),
        ("model.docx", {"time": "id"}, "at most 40 fit a document"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_written(case, quick, tmp_path, name, options, message):
    rows = case.test.with_columns(id=pl.int_range(pl.len()))
    with pytest.raises((DataError, ValueError), match=message):
        case.model.document(tmp_path / name, rows, **options)
    assert not list(tmp_path.iterdir())


def test_rows_without_outcomes_features_or_rows_are_refused(case, tmp_path):
    path = tmp_path / "model.docx"
    with pytest.raises(DataError, match="no column of outcomes 'bad'"):
        case.model.document(path, case.test.drop("bad"))
    with pytest.raises(DataError, match="is not in the data"):
        case.model.document(path, case.test.drop(case.first))
    with pytest.raises(DataError, match="has no rows"):
        case.model.document(path, case.test[:0])
    holes = case.test.with_columns(bad=pl.when(pl.int_range(pl.len()) == 3).then(None).otherwise(pl.col("bad")))
    with pytest.raises(DataError, match=r"row 3 .* has no outcome"):
        case.model.document(path, holes)
    with pytest.raises(OutputError, match=r"the folder .* does not exist"):
        case.model.document(tmp_path / "none" / "model.docx", case.test)
    assert not list(tmp_path.iterdir())


def test_probabilities_beyond_one_are_none(case, tmp_path):
    rows = case.test.with_columns(score=pl.lit(1.5))
    with pytest.raises(DataError, match="'score' must hold a probability"):
        case.model.document(tmp_path / "model.md", rows, against="score")


# ---- what the program finds by itself


def test_training_rows_as_test_rows_are_noticed(case, quick, tmp_path):
    written = case.model.document(tmp_path / "model.md", case.train)
    assert any("seem to be the training rows" in one["text"] for one in written.limitations)


def test_one_outcome_and_few_rows_are_noticed(case, quick, tmp_path):
    good = case.test.filter(pl.col("bad") == 0)
    written = case.model.document(tmp_path / "model.md", good)
    assert any("one outcome only" in one["text"] for one in written.limitations)
    few = case.model.document(tmp_path / "model.md", case.test[:150])
    assert any("The rarer outcome occurs in" in one["text"] for one in few.limitations)


def test_shifts_strange_values_and_miscalibration_are_noticed(case, quick, tmp_path):
    moved = case.test.with_columns(pl.col(case.first) * 10, bad=pl.Series(np.resize([1, 1, 0], case.test.height)))
    found = [one["text"] for one in case.model.document(tmp_path / "model.md", moved).limitations]
    assert any("large shift" in text and case.first in text for text in found)
    assert any("beyond all that training saw" in text and case.first in text for text in found)
    assert any("lower than the observed rate" in text for text in found)


def test_one_reason_for_nearly_all_and_codes_better_than_any_value_are_noticed(numbers):
    (first, *_) = numbers["reasons"]["features"]
    given = {**numbers["reasons"], "features": [{**first, "first": 19}], "refused": 20, "reference": "best"}
    level = {"feature": first["feature"], "level": "= -8", "name": "code -8", "rows": 10, "below": 0.3, "lowers": 0.3}
    found = []
    for better in (0.02, 0.0004):  # the latter is 0.0 percentage points
        outside = [{**level, "below_risk": better, "lowers_risk": better}]
        said = limitations({**numbers, "reasons": given, "certificate": {**numbers["certificate"], "outside": outside}})
        found.append([one["text"] for one in said])
    assert any(
        "is the first reason of 95.0% of the refused. Its best level is not a measured value" in t for t in found[0]
    )
    assert any("code -8: up to 2.0 percentage points better" in text for text in found[0])
    assert not any("code -8" in text for text in found[1])
    assert any("is the first reason of 95.0% of the refused." in text for text in found[1])


def test_requirements_without_a_reason_are_the_same_in_the_schema_and_among_the_limitations(numbers):
    free = {"direction": "none", "protected": False, "edits": [], "special_rules": {}, "below_bound": None, "why": None}
    features = [{**feature, **free, "missing": None} for feature in numbers["schema"]]
    features[0]["missing"] = "worst"
    changed = {**numbers, "schema": features}
    (grid,) = [block for block in schema(changed, Commands()) if isinstance(block, Grid)]
    assert [row[-1] for row in grid.rows].count("[to be completed]") == 1
    (text,) = [one["text"] for one in limitations(changed) if one["section"] == "schema" and "reason" in one["text"]]
    assert text == "No reason is stated for the modeler's requirements on 1 feature."


def test_a_model_without_cut_off_file_and_record_has_a_document(case, quick, tmp_path):
    bare = pr.RiskModel(
        case.model.form_.__class__(
            **{
                **{name: getattr(case.model.form_, name) for name in case.model.form_.__struct_fields__},
                "schema": case.model.form_.schema.annotate({"policy": {"cutoff": None}}),
            }
        )
    )
    written = bare.document(tmp_path / "model.md", case.test)
    assert any("states none" in gap for gap in written.gaps)
    assert any("does not say how the model was fitted" in one["text"] for one in written.limitations)


def test_a_document_and_its_figures_go_together(case, quick, tmp_path, monkeypatch):
    """What fails between the two leaves both as they were."""
    from pathlib import Path

    for name in ("m.md", "m.md.json"):
        (tmp_path / name).write_text("old")
    write = Path.write_bytes

    def fill(path, content):
        if path.name.endswith("m.md"):
            raise OSError(28, "No space left on device", str(path))
        return write(path, content)

    monkeypatch.setattr(Path, "write_bytes", fill)
    with pytest.raises(OutputError, match=r"m\.md cannot be written: the disk is full"):
        case.model.document(tmp_path / "m.md", case.test)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"m.md": "old", "m.md.json": "old"}
