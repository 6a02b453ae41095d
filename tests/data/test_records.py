from __future__ import annotations

import csv
import gzip
import io
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from plainrisk.data import records
from plainrisk.data.reader import open_table
from plainrisk.data.records import csv_layout
from plainrisk.errors import DataError

CELLS = st.text(st.sampled_from('a1,;"\n\r é'), max_size=5)
TABLES = st.integers(2, 4).flatmap(lambda k: st.lists(st.lists(CELLS, min_size=k, max_size=k), max_size=8))


@given(TABLES, st.sampled_from([",", ";", "\t"]), st.integers(1, 40), st.booleans(), st.data())
def test_records_are_those_of_the_csv_module(tmp_path_factory, table, separator, block, quote_all, data):
    """Whatever the fields hold, wherever a block ends; and a record that lost or gained a field is found."""
    path = tmp_path_factory.getbasetemp() / "records.csv"
    names = [f"x{j}" for j in range(len(table[0]) if table else 2)]
    # The csv module leaves a lone carriage return unquoted.
    lone = any("\r" in cell for cells in table for cell in cells)
    quoting = csv.QUOTE_ALL if quote_all or lone else csv.QUOTE_MINIMAL
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=separator, quoting=quoting, lineterminator="\n").writerows([names, *table])
    path.write_bytes(text.getvalue().encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records, "BLOCK", block)
        assert csv_layout(path) == records.Layout(separator, tuple(names), len(table))
        if not table:
            return
        row = data.draw(st.integers(0, len(table) - 1))
        broken = [list(cells) for cells in table]
        broken[row] = data.draw(st.sampled_from([[*broken[row], "x"], broken[row][1:]]))
        text = io.StringIO(newline="")
        writer = csv.writer(text, delimiter=separator, quoting=quoting, lineterminator="\n")
        writer.writerows([names, *broken[:row]])
        line = text.getvalue().count("\n") + 1
        writer.writerows(broken[row:])
        path.write_bytes(text.getvalue().encode())
        with pytest.raises(
            DataError, match=rf"line [\d,]+: (the record has {len(broken[row])} field|the line)"
        ) as error:
            csv_layout(path)
        lines = text.getvalue().split("\n")[line - 1 :]
        assert f"line {line:,}:" in str(error.value) or '"' in lines[0]


def test_a_field_longer_than_a_block(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "BLOCK", 8)
    (tmp_path / "t.csv").write_text('a,b\n1,"' + "x,y\n" * 50 + '"\n2,z\n3\n')
    with pytest.raises(DataError, match="line 54: the record has 1 field"):
        csv_layout(tmp_path / "t.csv")


def test_a_field_that_goes_on_after_a_quote_that_starts_a_block(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "BLOCK", 8)
    (tmp_path / "t.csv").write_text('a,b\n1,"\n"x\n2,z\n')
    with pytest.raises(DataError, match=r"line 2: .*a field goes on after its quote"):
        csv_layout(tmp_path / "t.csv")


# ---- memory that does not grow with the file


@given(TABLES, st.integers(1, 40))
def test_pieces_hold_every_record_once_and_each_a_header(tmp_path_factory, table, block):
    path = tmp_path_factory.getbasetemp() / "pieces.csv"
    names = [f"x{j}\n" for j in range(len(table[0]) if table else 2)]
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows([names, *table])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records, "BLOCK", block)
        pieces = [[*csv.reader(io.StringIO(piece.decode(), newline=""))] for piece in records.csv_pieces(path)]
    assert all(header == names for header, *_ in pieces)
    assert [row for _, *rows in pieces for row in rows] == table


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
@pytest.mark.parametrize("record", ["1" * 3000, '"' + "1\n" * 1500 + '"'], ids=["a line", "a quoted field"])
def test_a_record_without_an_end_is_not_held(tmp_path, monkeypatch, name, record):
    monkeypatch.setattr(records, "BLOCK", 64)
    monkeypatch.setattr(records, "LONGEST", 1024)
    path = tmp_path / name
    with gzip.open(path, "wt") if name.endswith(".gz") else path.open("w") as file:
        file.write(f"a,b\n1,2\n3,{record}\n")
    with pytest.raises(DataError, match=rf"{re.escape(name)} is no CSV file: a line or a quoted field has more than"):
        list(records.csv_pieces(path))


CELLS_OF_KINDS = st.sampled_from(["", "1", "-2", "2.5", "1e3", "true", "False", "x", '"7"', "NA"])


@example([("1", "2"), ("12345678901234567890", "")], 4)
@given(st.lists(st.tuples(CELLS_OF_KINDS, CELLS_OF_KINDS), min_size=1, max_size=12), st.integers(1, 20))
def test_types_of_pieces_are_those_of_the_whole(tmp_path_factory, rows, block):
    pl = pytest.importorskip("polars")
    path = tmp_path_factory.getbasetemp() / "types.csv"
    path.write_text("a,b\n" + "".join(f"{a},{b}\n" for a, b in rows))
    whole = pl.scan_csv(path, infer_schema_length=None, null_values=["", "NA"]).collect_schema()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records, "BLOCK", block)
        assert dict(open_table(path, ["NA"]).lazy.collect_schema()) == dict(whole)
