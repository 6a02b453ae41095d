from __future__ import annotations

import json
import re

import numpy as np
import polars as pl
import pytest

import plainrisk as pr
from plainrisk.data.frame import Frame
from plainrisk.form import RiskForm

READERS = {
    "r.parquet": pl.read_parquet,
    "r.csv": pl.read_csv,
    "r.csv.gz": pl.read_csv,
    "r.jsonl": pl.read_ndjson,
}


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("source", ["csv", "parquet"])
def test_the_risks_are_those_of_the_model_exactly(run, credit, tmp_path, source, name) -> None:
    words = (
        "-o",
        tmp_path / name,
        "--keep",
        "id",
        "--keep",
        "housing",
        "--json",
    )
    result = run("score", credit.model_file, getattr(credit, source), *words)
    assert result.exit_code == 0
    written = READERS[name](tmp_path / name)
    risk = pr.load(credit.model_file).predict_proba(credit.frame)[:, 1]
    assert written.columns == ["id", "housing", "risk"]
    assert (written["risk"].to_numpy() == risk).all()
    is_text = source == "csv" and not name.startswith("r.csv")  # a CSV has no types, and what is kept is as written
    assert written["id"].to_list() == credit.frame["id"].cast(pl.String if is_text else pl.Int64).to_list()
    assert written["housing"].to_list() == credit.frame["housing"].to_list()
    summary = json.loads(result.stdout)
    assert summary["rows"] == 600
    np.testing.assert_allclose(summary["mean_risk"], risk.mean(), rtol=1e-9)
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_many_batches_are_in_order_and_exact(run, credit, tmp_path) -> None:
    many = pl.concat([credit.frame] * 200).with_columns(id=pl.arange(600 * 200))
    many.write_parquet(tmp_path / "many.parquet", row_group_size=7_001)
    sizes = []
    risk = RiskForm.risk

    def counted(self: RiskForm, X: Frame) -> object:
        sizes.append(len(X))
        return risk(self, X)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RiskForm, "risk", counted)
        words = ("-o", tmp_path / "r.parquet", "--keep", "id")
        assert run("score", credit.model_file, tmp_path / "many.parquet", *words).exit_code == 0
    assert max(sizes) < len(many)
    assert sum(sizes) == len(many)
    written = pl.read_parquet(tmp_path / "r.parquet")
    assert written["id"].to_list() == list(range(len(many)))
    assert (written["risk"].to_numpy() == pr.load(credit.model_file).predict_proba(many)[:, 1]).all()


def test_what_is_kept_is_as_written(run, credit, tmp_path) -> None:
    frame = credit.frame.head(3).with_columns(id=pl.Series(["00123", "1E2", "true"]))
    frame.with_columns(pl.col("age").cast(pl.String) + ".00").write_csv(tmp_path / "t.csv")
    words = ("-o", tmp_path / "r.csv", "--keep", "id", "--keep", "age")
    assert run("score", credit.model_file, tmp_path / "t.csv", *words).exit_code == 0
    written = pl.read_csv(tmp_path / "r.csv", infer_schema=False)
    assert written["id"].to_list() == ["00123", "1E2", "true"]
    assert all(age.endswith(".00") for age in written["age"])
    risk = pr.load(credit.model_file).predict_proba(credit.frame.head(3))[:, 1]
    assert (written["risk"].cast(pl.Float64).to_numpy() == risk).all()


def test_a_code_is_the_same_whatever_other_rows_hold(run, tmp_path) -> None:
    codes = ["01", "02", "1", "A7"] * 250
    bad = [int(i % 10 < {"01": 8, "02": 3, "1": 1, "A7": 5}[code]) for i, code in enumerate(codes)]
    pl.DataFrame({"code": codes, "bad": bad}).write_csv(tmp_path / "train.csv")
    (tmp_path / "s.toml").write_text('target = "bad"\n[features.code]\nkind = "categorical"\n')
    words = ("--schema", tmp_path / "s.toml", "--cv", "0", "-o", tmp_path / "m.json")
    assert run("fit", tmp_path / "train.csv", *words).exit_code == 0
    found = {}
    for others in ([], ["02"], ["A7"], ["true"], ["1.0", ""]):
        (tmp_path / "t.csv").write_text("\n".join(["code,n", "01,0", *(f"{code},0" for code in others)]) + "\n")
        run("score", tmp_path / "m.json", tmp_path / "t.csv", "-o", tmp_path / "r.parquet")
        found[tuple(others)] = pl.read_parquet(tmp_path / "r.parquet")["risk"][0]
    assert len(set(found.values())) == 1
    assert found[()] > 0.7


def test_nothing_is_kept_unless_asked(run, credit, tmp_path) -> None:
    result = run("score", credit.model_file, credit.parquet, "-o", tmp_path / "r.csv")
    assert "600 rows read, 0 unusable, 600 scored, mean risk 0." in result.stdout
    assert pl.read_csv(tmp_path / "r.csv").columns == ["risk"]


def test_a_pattern_of_files_is_scored_in_their_order(run, credit, tmp_path) -> None:
    for k in (2, 0, 1):
        credit.frame[k * 200 : (k + 1) * 200].write_csv(tmp_path / f"part{k}.csv")
    for words in (("score",), ("reasons", "--cutoff", "0.3", "--refused")):
        for data, name in ((tmp_path / "part*.csv", "several.csv"), (credit.csv, "whole.csv")):
            result = run(words[0], credit.model_file, data, *words[1:], "-o", tmp_path / name, "--json")
            found = json.loads(result.stdout)
            assert (found["rows"], found["unusable"], found["scored"]) == (600, 0, 600)
        assert (tmp_path / "several.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()
        assert found["written"] == len(pl.read_csv(tmp_path / "whole.csv"))


def test_values_that_are_missing_or_new_are_counted(run, credit, tmp_path) -> None:
    frame = credit.frame.clone()
    frame[3, "age"], frame[4, "age"], frame[5, "age"], frame[0, "housing"] = None, 999, None, "boat"
    words = ("-o", tmp_path / "r.csv")
    none = json.loads(run("score", credit.model_file, credit.csv, *words, "--json").stdout)["values"]
    for source in ("t.csv", "t.parquet"):
        frame.write_csv(tmp_path / source) if source == "t.csv" else frame.write_parquet(tmp_path / source)
        found = json.loads(run("score", credit.model_file, tmp_path / source, *words, "--json").stdout)
        assert found["values"] == {**none, "age": {"missing": 2, "out_of_range": 1}, "housing": {"unseen": 1}}
    said = run("score", credit.model_file, tmp_path / "t.csv", *words).stdout
    assert "\nage: 2 missing, 1 out of range\n" in said
    assert "\nhousing: 1 unseen\n" in said


@pytest.mark.parametrize("words", [(), ("--reasons", "2")])
def test_a_column_that_is_coded_otherwise_is_said(run, credit, tmp_path, words) -> None:
    credit.frame.with_columns(housing=pl.col("housing").str.to_uppercase()).write_csv(tmp_path / "t.csv")
    result = run("score", credit.model_file, tmp_path / "t.csv", "-o", tmp_path / "r.csv", *words)
    message = "every row of column 'housing' holds a category that training never saw; is it coded otherwise?"
    assert result.stderr.count(message) == 1


def test_a_data_set_by_name(run, tmp_path) -> None:
    run("fit", "german", "--cv", "0", "-o", tmp_path / "m.json")
    assert run("score", tmp_path / "m.json", "german", "-o", tmp_path / "r.csv").exit_code == 0
    assert pl.read_csv(tmp_path / "r.csv").height == 1000


def test_no_rows_give_no_rows(run, credit, tmp_path) -> None:
    credit.frame.head(0).write_parquet(tmp_path / "none.parquet")
    words = ("-o", tmp_path / "r.parquet", "--json")
    result = run("score", credit.model_file, tmp_path / "none.parquet", *words)
    assert json.loads(result.stdout)["mean_risk"] is None
    assert pl.read_parquet(tmp_path / "r.parquet").schema == {"risk": pl.Float64}


def test_text_in_a_numeric_column_is_found_by_its_row(run, credit, tmp_path) -> None:
    frame = credit.frame.with_columns(pl.col("age").cast(pl.String))
    frame[431, "age"] = "unknown"
    frame.write_csv(tmp_path / "t.csv")
    words = ("score", credit.model_file, tmp_path / "t.csv", "-o", tmp_path / "r.csv")
    result = run(*words)
    assert result.exit_code == 2
    assert "t.csv, row 431, the first being 0: feature 'age' is a number in this model but holds text" in result.stderr
    assert "unknown" not in result.stderr
    assert not (tmp_path / "r.csv").exists()
    assert run(*words, "--missing", "unknown").exit_code == 0
    expected = credit.frame.clone()
    expected[431, "age"] = None
    risk = pr.load(credit.model_file).predict_proba(expected)[:, 1]
    assert (pl.read_csv(tmp_path / "r.csv")["risk"].to_numpy() == risk).all()


def test_a_level_that_is_refused_is_found_by_its_row(run, tmp_path) -> None:
    levels = pl.DataFrame({"job": ["clerk", "cook"] * 50})
    schema = pr.Schema(features={"job": {"kind": "categorical", "unseen": "error"}})
    pr.AdditiveRiskModel(schema).fit(levels, [0, 1, 1, 1] * 25).save(tmp_path / "m.json")
    many = pl.concat([levels] * 300 + [pl.DataFrame({"job": ["clown"]})])
    many.write_parquet(tmp_path / "t.parquet", row_group_size=5_000)
    result = run("score", tmp_path / "m.json", tmp_path / "t.parquet", "-o", tmp_path / "r.csv")
    assert result.exit_code == 2
    row, start = re.search(r"row (\d+): level 'unseen'.* from .*t\.parquet, row ([\d,]+)", result.stderr).groups()
    assert int(row) + int(start.replace(",", "")) == 30_000
    assert not (tmp_path / "r.csv").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--keep", "hosing"), "--keep 'hosing' is not in the data. Did you mean 'housing'?"),
        (("-o", "r.docx"), "r.docx: cannot write this kind of file. The name must end in .csv, .xlsx, .md, .html"),
        (("--row", "-1"), "Invalid value for '--row'"),
    ],
)
def test_wrong_options(run, credit, tmp_path, monkeypatch, words, message) -> None:
    monkeypatch.chdir(tmp_path)
    result = run("score", credit.model_file, credit.csv, "-o", "r.csv", *words)
    assert result.exit_code == 2
    assert message in result.stderr
    assert (result.stdout, list(tmp_path.iterdir())) == ("", [])


@pytest.mark.parametrize("words", [("-o", "r.csv"), ("--row", "0"), ("-o", "-")])
def test_a_model_that_is_not_there_is_named_and_nothing_is_written(run, credit, tmp_path, monkeypatch, words) -> None:
    monkeypatch.chdir(tmp_path)
    result = run("score", "absent.json", credit.csv, *words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.strip() == "error: absent.json does not exist."
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["score", "explain", "reasons"])
def test_a_column_of_the_name_of_a_new_one_is_not_kept(run, credit, tmp_path, command) -> None:
    credit.frame.with_columns(risk=1).write_parquet(tmp_path / "t.parquet")
    words = ("-o", tmp_path / "r.csv", "--keep", "risk")
    result = run(command, credit.model_file, tmp_path / "t.parquet", *words)
    assert result.exit_code == 2
    assert "--keep risk: a new column has this name. Rename the old one first." in result.stderr
    assert not (tmp_path / "r.csv").exists()


@pytest.fixture(scope="module")
def partial(tmp_path_factory):
    """A mixture whose subscales leave out the feature c, in a file, and its rows without c."""
    path = tmp_path_factory.mktemp("models") / "mixture.json"
    rows = pl.DataFrame({name: [(i * step) % 17 for i in range(300)] for name, step in (("a", 1), ("b", 5), ("c", 3))})
    schema = pr.Schema(features={"a": {}, "b": {}, "c": {}}, subscales={"one": ("a",), "two": ("b",)})
    outcome = [int(a + b > 15) for a, b in zip(rows["a"], rows["b"], strict=True)]
    pr.make_classifier("MixARM1", schema).fit(rows, outcome).save(path)
    return path, rows.drop("c")


@pytest.mark.parametrize("command", ["score", "explain", "reasons", "what-if"])
def test_columns_the_model_never_reads_need_not_be_there(run, partial, tmp_path, command) -> None:
    model, rows = partial
    rows.write_parquet(tmp_path / "t.parquet")
    words = ("--cutoff", "0.2") if command == "what-if" else ()
    result = run(command, model, tmp_path / "t.parquet", "-o", tmp_path / "r.parquet", *words)
    assert result.exit_code == 0, result.stderr
    expected = pr.load(model).predict_proba(rows)[:, 1]
    np.testing.assert_array_equal(pl.read_parquet(tmp_path / "r.parquet")["risk"], expected)


@pytest.mark.parametrize("command", ["score", "drift"])
def test_a_hint_names_the_columns_of_the_data_alone(run, partial, tmp_path, command) -> None:
    model, rows = partial
    rows.select("a", other="b").write_parquet(tmp_path / "t.parquet")
    result = run(command, model, tmp_path / "t.parquet")
    assert result.exit_code == 2
    assert "feature 'b' is not in the data. Known: 'a', 'other'." in result.stderr


def test_one_row_is_shown_without_an_output(run, credit) -> None:
    risk = pr.load(credit.model_file).predict_proba(credit.frame[7])[0, 1]
    words = ("score", credit.model_file, credit.csv, "--row", 7)
    assert run(*words).stdout.startswith(f"Row 7: {risk:.1%} probability that ")
    assert json.loads(run(*words, "--json").stdout)["risk"] == risk


@pytest.mark.parametrize("number", [600, 2**63])
def test_a_row_that_is_not_there(run, credit, number) -> None:
    result = run("score", credit.model_file, credit.csv, "--row", number)
    assert result.exit_code == 2
    assert f"there is no row {number}. It has 600 rows; the first is 0" in result.stderr


def test_a_number_that_is_none_is_text(run, credit, tmp_path) -> None:
    credit.frame.with_columns(age=pl.lit("nan")).write_csv(tmp_path / "t.csv")
    result = run("score", credit.model_file, tmp_path / "t.csv")
    assert "t.csv, row 0, the first being 0: feature 'age' is a number in this model but holds text" in result.stderr


def test_a_missing_feature(run, credit, tmp_path) -> None:
    credit.frame.rename({"income": "incme"}).write_parquet(tmp_path / "t.parquet")
    result = run("score", credit.model_file, tmp_path / "t.parquet", "-o", tmp_path / "r.csv")
    assert result.exit_code == 2
    assert "feature 'income' is not in the data. Did you mean 'incme'?" in result.stderr


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize(("error", "code"), [(KeyboardInterrupt, 130), (MemoryError, 1)])
def test_a_failure_in_a_batch_leaves_nothing(run, credit, tmp_path, monkeypatch, name, error, code) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(RiskForm, "risk", fail)
    result = run("score", credit.model_file, credit.parquet, "-o", tmp_path / name)
    assert result.exit_code == code
    assert list(tmp_path.iterdir()) == []
