from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plainrisk.data import records
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
