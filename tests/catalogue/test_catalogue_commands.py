"""Commands: hostile tables for each of them, their options, and where they write."""

from __future__ import annotations

import pytest

READERS = {
    "fit": "fit {%s} --schema {schema.toml} --cv 0 -o m.json",
    "fit --stream": "fit {%s} --schema {schema.toml} --stream -o m.json",
    "score": "score {ARM1.json} {%s} -o s.csv",
    "reasons": "reasons {BandARM1.json} {%s} -o r.csv",
}
# A hostile table, and what the one reader says of it, whichever command asks.
DAMAGED = {
    "too_many_fields.csv": "line 3",
    "too_few_fields.csv": "line 3",
    "truncated.csv": "line 121",
    "two_a.csv": "'a'",
    "empty.csv": "empty",
    "nul.csv": "line 3|NUL",
    "latin1.csv": "UTF-8",
    "utf16.csv": "UTF|NUL",
    "open_quote.csv": "quote",
    "cut_in_header.csv.gz": "gzip|cut",
    "cut.csv.gz": "gzip|cut",
    "not_gzip.csv.gz": "gzip",
    "text.parquet": "Parquet",
    "cut.parquet": "Parquet",
    "damaged.parquet": "damaged.parquet",
    "rows.txt": "csv",
    "a_folder.csv": "folder",
    "none.csv": "exist|none.csv",
    "words.csv": "'a'",
    "infinite.csv": "'a'",
    "other_columns.csv": "'(a|bad)'",
    "lists.parquet": "'a'",
}
WHOLE = (
    "good.csv",
    "good.csv.gz",
    "good.parquet",
    "bom.csv",
    "crlf.csv",
    "semicolons.csv",
    "tabs.csv",
    "quoted_newline.csv",
)


@pytest.mark.parametrize("how", READERS)
@pytest.mark.parametrize("file", DAMAGED)
def test_damaged_tables(command, how, file):
    command(READERS[how] % file, 2, DAMAGED[file])


@pytest.mark.parametrize("how", READERS)
@pytest.mark.parametrize("file", WHOLE)
def test_tables_that_are_whole(command, how, file):
    command(READERS[how] % file, 0, "")


OTHERS = {
    "explain": "explain {ARM1.json} {%s}",
    "what-if": "what-if {ARM1.json} {%s} --cutoff 0.2",
    "drift": "drift {ARM1.json} {%s}",
    "evaluate": "evaluate {ARM1.json} {%s}",
    "cutoffs": "cutoffs {ARM1.json} {%s}",
    "fairness": "fairness {ARM1.json} {%s} --by c --cutoff 0.3",
    "a test file": "fit {good.csv} --schema {schema.toml} --cv 0 --test {%s} -o m.json",
    "schema infer": "schema infer {%s} -o s.toml",
    "schema check": "schema check {%s} --schema {schema.toml}",
    "a portfolio": "explain {ARM1.json} {good.csv} --reference typical --portfolio {%s}",
    "old rows": "drift {ARM1.json} {good.csv} --old {%s}",
    "diff": "diff {ARM1.json} {ARM1.json} {%s}",
}


@pytest.mark.parametrize("how", OTHERS)
@pytest.mark.parametrize("file", ["too_many_fields.csv", "truncated.csv", "cut_in_header.csv.gz", "cut.parquet"])
def test_damaged_tables_of_other_commands(command, how, file):
    command(OTHERS[how] % file, 2, file)


COMMANDS = {
    "no command": ("nothing", 2, "No such command"),
    "no arguments": ("fit", 2, "Missing"),
    "an unknown option": ("score {good.csv} --modle {ARM1.json}", 2, "--modle"),
    "an unknown option in JSON": ("score {good.csv} --modle {ARM1.json} --json", 2, "--modle"),
    "a failure in JSON": ("score {ARM1.json} {none.csv} --json", 2, "none.csv"),
    "a failure of fit in JSON": (
        "fit {one_class.csv} --schema {schema.toml} -o m.json --json",
        2,
        "outcome|label|class",
    ),
    # ---- models
    "no model file": ("score {none.json} {good.csv}", 2, "none.json"),
    "a model that is a table": ("score {good.csv} {good.csv}", 2, "good.csv"),
    "data before the model": ("score {good.csv} {ARM1.json}", 2, "is not a model file. The model comes first"),
    "half a model": ("score {half.json} {good.csv}", 2, "half.json"),
    "a hostile model": ("certify {escape.json}", 2, "escape.json"),
    "a hostile model in JSON": ("certify {escape.json} --json", 2, "escape.json"),
    "a deep model": ("certify {deep.json}", 2, "deep.json"),
    "a model that is a folder": ("certify {parts}", 2, "parts"),
    "a model that is a device": ("certify /dev/zero", 2, "/dev/zero"),
    "bins of a hostile model": ("bins {escape.json}", 2, "escape.json"),
    "bins over a schema that is there": ("bins {ARM1.json} -o {schema.toml}", 2, "force"),
    "diff with a hostile model": ("diff {ARM1.json} {escape.json}", 2, "escape.json"),
    "diff with no model": ("diff {none.json} {ARM1.json} --json", 2, "none.json"),
    "diff with a cut-off beyond 1": ("diff {ARM1.json} {ARM1.json} {good.csv} --cutoff 2", 2, "cutoff"),
    "diff with NaN": ("diff {ARM1.json} {ARM1.json} {good.csv} --cutoff nan", 2, "cutoff"),
    "certify with NaN": ("certify {ARM1.json} --thin nan", 2, "thin"),
    "certify with text": ("certify {ARM1.json} --thin x", 2, "thin"),
    # ---- schemas
    "no schema": ("fit {good.csv} --schema {none.toml} -o m.json", 2, "none.toml"),
    "broken TOML": ("fit {good.csv} --schema {broken.toml} -o m.json", 2, "broken.toml"),
    "an unknown kind": ("fit {good.csv} --schema {unknown_key.toml} -o m.json", 2, "kind"),
    "a deep schema": ("fit {good.csv} --schema {deep.toml} -o m.json", 2, "deep.toml"),
    "a schema of dots": ("fit {good.csv} --schema {dots.toml} -o m.json", 2, "dots.toml"),
    "a schema of digits": ("schema check {good.csv} --schema {digits.toml}", 2, "digits.toml"),
    "a schema of digits in JSON": ("schema check {good.csv} --schema {digits.json}", 2, "digits.json"),
    "a schema that is a list": ("schema check {good.csv} --schema {list.json}", 2, "list.json"),
    "a schema in Latin 1": ("schema check {good.csv} --schema {latin1.toml}", 2, "latin1.toml"),
    "a schema that is a device": ("schema check {good.csv} --schema /dev/zero", 2, "/dev/zero"),
    # ---- rows
    "a header alone to fit": ("fit {header.csv} --schema {schema.toml} -o m.json", 2, "rows"),
    "a header alone to score": ("score {ARM1.json} {header.csv} -o s.csv", 0, "0"),
    "no rows of Parquet to score": ("score {ARM1.json} {no_rows.parquet} -o s.csv", 0, "0"),
    "without columns the model reads": ("score {ARM1.json} {only_a.csv} -o s.csv", 2, "'b'"),
    "without the target": ("score {ARM1.json} {no_target.csv} -o s.csv", 0, ""),
    "fit without the target": ("fit {no_target.csv} --schema {schema.toml} -o m.json", 2, "'bad'"),
    "one outcome": ("fit {one_class.csv} --schema {schema.toml} -o m.json", 2, "'bad'|outcome"),
    "three outcomes": ("fit {three_classes.csv} --schema {schema.toml} -o m.json", 2, "'bad'|3"),
    "a missing outcome": ("fit {missing_outcome.csv} --schema {schema.toml} -o m.json", 2, "row"),
    "a decimal comma": ("score {ARM1.json} {decimal_commas.csv} -o s.csv", 2, "'a'|comma"),
    "a decimal comma to fit": ("fit {decimal_commas.csv} --schema {schema.toml} -o m.json", 2, "'a'|comma"),
    "blank lines": ("score {ARM1.json} {blank_lines.csv}", 2, "blank_lines.csv"),
    "escapes in the header": ("score {ARM1.json} {escapes.csv}", 2, "'a'"),
    "escapes in the header to draft": ("schema infer {escapes.csv}", 0, "features"),
    "escapes in cells": ("score {ARM1.json} {escape_cells.csv} --row 1", 0, ""),
    "escapes in cells to explain": ("explain {ARM1.json} {escape_cells.csv} --row 1", 0, ""),
    "escapes in cells to check": ("schema check {escape_cells.csv} --schema {schema.toml}", 0, ""),
    "secrets in cells": ("score {ARM1.json} {secret.csv} -o s.csv", 0, ""),
    "formulas kept in Parquet": ("score {ARM1.json} {formula.csv} --keep id -o s.parquet", 0, ""),
    "files with other columns": ("fit {parts/*.csv} --schema {schema.toml} --stream -o m.json", 2, "'c'|2.csv"),
    "outcomes that change type": (
        "fit {types/*.parquet} --schema {schema.toml} --stream -o m.json",
        2,
        "bad|2.parquet",
    ),
    "a pattern that finds nothing": ("fit {zz*.csv} --schema {schema.toml} --stream -o m.json", 2, "zz"),
    "a stream without a schema": ("fit {good.csv} --stream -o m.json", 2, "schema"),
    "a data set that is none": ("fit germn -o m.json", 2, "german"),
    "an empty name": ("fit  -o m.json", 2, ""),
    # ---- options
    "a row beyond the last": ("score {ARM1.json} {good.csv} --row 500", 2, "500"),
    "a row of 2**63": ("score {ARM1.json} {good.csv} --row 9223372036854775808", 2, "row"),
    "a negative row": ("score {ARM1.json} {good.csv} --row -1", 2, "row"),
    "a row that is text": ("score {ARM1.json} {good.csv} --row x", 2, "row"),
    "a column to keep that is none": ("score {ARM1.json} {good.csv} --keep zz -o s.csv", 2, "zz"),
    "a column to keep twice": ("score {ARM1.json} {good.csv} --keep a --keep a -o s.csv", 0, ""),
    "k of 10**9": ("reasons {BandARM1.json} {good.csv} -k 1000000000 -o r.csv", 0, ""),
    "k of 0": ("reasons {BandARM1.json} {good.csv} -k 0", 2, "k"),
    "k of text": ("reasons {BandARM1.json} {good.csv} -k x", 2, "k"),
    "a letter without a cut-off": ("reasons {BandARM1.json} {good.csv}", 2, "has no cut-off"),
    "the refused without a cut-off": ("reasons {BandARM1.json} {good.csv} --refused -o r.csv", 2, "cut-off"),
    "a cut-off of NaN": ("reasons {BandARM1.json} {good.csv} --cutoff nan", 2, "cutoff must be"),
    "a cut-off of 7": ("reasons {BandARM1.json} {good.csv} --cutoff 7", 2, "cutoff must be"),
    "a score by a cut-off of 7": ("score {BandARM1.json} {good.csv} --cutoff 7", 2, "cutoff must be"),
    "a decision without a cut-off": ("score {BandARM1.json} {good.csv} --decision", 2, "has no cut-off"),
    "min-rows of NaN": ("reasons {BandARM1.json} {good.csv} --min-rows nan", 2, "min.rows"),
    "a protected feature that is none": ("annotate {BandARM1.json} --set features.zz.protected=true", 2, "zz"),
    "protected as a text": ("annotate {BandARM1.json} --set features.a.protected='yes'", 2, "'a'.*protected"),
    "inquiries that are none": ("annotate {BandARM1.json} --set policy.inquiries=['zz']", 2, "zz"),
    "an order of another word": ("annotate {BandARM1.json} --set policy.order='size'", 2, "order"),
    "a policy of 7 for a cut-off": ("annotate {BandARM1.json} --set policy.cutoff=7", 2, "cutoff must be"),
    "a set of no value for nothing": ("annotate {BandARM1.json} --set policy.kutoff=", 2, "kutoff"),
    "a set of nothing": ("annotate {BandARM1.json} --set =", 2, "--set"),
    "a set of no table": ("annotate {BandARM1.json} --set policy=3", 2, "policy"),
    "a change of the fit": ("annotate {BandARM1.json} --set features.a.direction='none'", 2, "part of the fit"),
    "annotations of a schema that is none": ("annotate {BandARM1.json} --schema {good.csv}", 2, "good.csv"),
    "groups of no protected feature": ("fairness {ARM1.json} {good.csv} --cutoff 0.3", 2, "no protected"),
    "groups without a cut-off": ("fairness {ARM1.json} {good.csv} --by c", 2, "has no cut-off"),
    "an unknown reference": ("explain {ARM1.json} {good.csv} --reference median", 2, "reference"),
    "an unknown split": ("explain {ARM1.json} {good.csv} --split shap", 2, "split"),
    "a target of NaN": ("what-if {ARM1.json} {good.csv} --cutoff nan", 2, "cutoff must be"),
    "a target of 7": ("what-if {ARM1.json} {good.csv} --cutoff 7", 2, "cutoff must be"),
    "no target": ("what-if {ARM1.json} {good.csv}", 2, "has no cut-off"),
    "answers of 0": ("what-if {ARM1.json} {good.csv} --cutoff 0.1 --answers 0", 2, "answers"),
    "values of another feature": ("what-if {ARM1.json} {good.csv} --cutoff 0.1 --values zz=1", 2, "zz"),
    "values without a feature": ("what-if {ARM1.json} {good.csv} --cutoff 0.1 --values 3", 2, "values"),
    "values of text": ("what-if {ARM1.json} {good.csv} --cutoff 0.1 --values a=x,y", 2, "'a'"),
    "a frozen feature that is none": ("what-if {ARM1.json} {good.csv} --cutoff 0.1 --frozen zz", 2, "zz"),
    "a seed of 2**32": ("fit {good.csv} --schema {schema.toml} -o m.json --cv 2 --seed 4294967296", 0, ""),
    "a seed of -1": ("fit {good.csv} --schema {schema.toml} -o m.json --cv 2 --seed -1", 2, "seed"),
    "a seed of 1.5": ("fit {good.csv} --schema {schema.toml} -o m.json --cv 2 --seed 1.5", 2, "seed"),
    "1 fold": ("fit {good.csv} --schema {schema.toml} -o m.json --cv 1", 2, "cv|fold"),
    "10**9 folds": ("fit {good.csv} --schema {schema.toml} -o m.json --cv 1000000000", 2, "cv|fold"),
    "an unknown model": ("fit {good.csv} --schema {schema.toml} -o m.json --model ARMY", 2, "ARMY"),
    "a ridge of text": ("fit {good.csv} --schema {schema.toml} -o m.json --ridge x", 2, "ridge"),
    "a ridge of NaN": ("fit {good.csv} --schema {schema.toml} -o m.json --ridge nan", 2, "ridge"),
    "max-bins of 0": ("fit {good.csv} --schema {schema.toml} -o m.json --max-bins 0", 2, "max.bins"),
    "a positive that is none": ("fit {good.csv} --schema {schema.toml} -o m.json --positive 7", 2, "7"),
    "a target that is none": ("fit {good.csv} --schema {schema.toml} -o m.json --column zz", 2, "zz"),
    # ---- where to write
    "into a missing folder": ("score {ARM1.json} {good.csv} -o no/such/s.csv", 2, "no/such"),
    "over a folder": ("score {ARM1.json} {good.csv} -o {a_folder.csv}", 2, "a_folder.csv"),
    "of an unknown ending": ("score {ARM1.json} {good.csv} -o s.docx", 2, "docx"),
    "without an ending": ("score {ARM1.json} {good.csv} -o s", 2, "csv"),
    "a model of another ending": ("fit {good.csv} --schema {schema.toml} -o m.pkl", 2, "json"),
    "a schema of another ending": ("schema infer {good.csv} -o s.yaml", 2, "toml"),
    "over a schema that is there": ("schema infer {good.csv} -o {schema.toml}", 2, "force"),
    "an output with a NUL": ("score {ARM1.json} {good.csv} -o a\\x00b.csv", 2, ""),
    # ---- data sets by name, and what a terminal would obey
    "a data set to show that is none": ("data show germn", 2, "german"),
    "a data set to check that is none": ("data check germn", 2, "german"),
    "escapes on the command line": ("data show \\x1b[2J", 2, "data set"),
    "right to left on the command line": ("fit \\u202egerman -o m.json", 2, ""),
    "markup on the command line": ("data show [red]x[/]", 2, r"\[red\]x\[/\]"),
}


@pytest.mark.parametrize(("words", "code", "expected"), COMMANDS.values(), ids=COMMANDS)
def test_commands(command, words, code, expected):
    command(words, code, expected)


@pytest.mark.parametrize("ending", ["csv", "csv.gz"])
def test_formulas_for_spreadsheets_are_not_written_in_silence(world, tmp_path, monkeypatch, ending):
    """A cell such as =cmd|... is run by a spreadsheet: a CSV file with one is refused, or the column is named."""
    from typer.testing import CliRunner

    from plainrisk.cli.app import app

    monkeypatch.chdir(tmp_path)
    words = ["score", world.folder / "ARM1.json", world.folder / "formula.csv", "--keep", "id", "-o"]
    result = CliRunner().invoke(app, [*map(str, words), f"s.{ending}"])
    assert "id" in result.output
    assert "formula" in result.output or "spreadsheet" in result.output
