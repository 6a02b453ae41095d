"""A model file that is renamed into place is read anew; a broken one changes nothing."""

import os
from pathlib import Path

import plainrisk as pr
from plainrisk.serve import Shelf


def test_a_renamed_file_is_read_anew(paths, tmp_path):
    place = tmp_path / "model.json"
    place.write_bytes(Path(paths[0]).read_bytes())
    shelf = Shelf([place])
    shelf.open()
    before = shelf.first
    assert list(shelf.refresh()) == []

    other = tmp_path / "next.json"
    other.write_bytes(Path(paths[1]).read_bytes())
    os.replace(other, place)
    assert list(shelf.refresh()) == [("model", None)]
    assert shelf.first.sha256 == pr.load(paths[1]).certify().form_sha256 != before.sha256


def test_a_broken_file_leaves_the_old_model(paths, tmp_path):
    place = tmp_path / "model.json"
    place.write_bytes(Path(paths[0]).read_bytes())
    shelf = Shelf([place])
    shelf.open()
    before = shelf.first
    place.write_text("{}")
    ((name, error),) = shelf.refresh()
    assert name == "model"
    assert "model.json" in str(error)
    assert shelf.first is before
    assert list(shelf.refresh()) == [], "a file that failed is tried again only when it changes"
    place.unlink()
    assert list(shelf.refresh()) == []
