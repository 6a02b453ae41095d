"""A model file that is renamed into place is read anew; a broken one changes nothing."""

import os
from pathlib import Path

import msgspec
import numpy as np

import plainrisk as pr
from plainrisk.serve import Served, Shelf


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
    ((name, change),) = shelf.refresh()
    assert name == "model"
    assert change.risks == change.rows > 100
    assert "have another risk" in str(change)
    assert shelf.first.sha256 == pr.load(paths[1]).certify().form_sha256 != before.sha256


def swapped(place, old, new):
    place.write_bytes(Path(old).read_bytes())
    shelf = Shelf([place])
    shelf.open()
    before, other = shelf.first, place.with_name("next.json")
    other.write_bytes(Path(new).read_bytes())
    os.replace(other, place)
    ((_, found),) = shelf.refresh()
    return shelf, before, found


def test_a_model_of_another_task_leaves_the_old_one(paths, model, tmp_path):
    """Defect: a model that needs other features was taken, so every request was refused while the service was ready."""
    shelf, before, error = swapped(tmp_path / "model.json", paths[1], paths[0])
    assert "needs the feature" in str(error)
    assert shelf.first is before

    other = pr.RiskModel(msgspec.structs.replace(model.form_, classes=("no", "yes")))
    other.save(tmp_path / "other.json")
    shelf, before, error = swapped(tmp_path / "model.json", paths[0], tmp_path / "other.json")
    assert "another outcome" in str(error)
    assert shelf.first is before


def test_what_a_new_model_changes_is_told(paths, model, tmp_path):
    usual = model.form_.risk(Served.read(Path(paths[0])).requests.example)[0]
    model.annotate(cutoff=float(np.nextafter(usual, 1))).save(tmp_path / "stricter.json")
    _, _, change = swapped(tmp_path / "model.json", paths[0], tmp_path / "stricter.json")
    assert change.risks == change.largest == 0 < change.decisions < change.rows
    model.annotate(about={"owner": "someone"}).save(tmp_path / "same.json")
    _, _, change = swapped(tmp_path / "model.json", paths[0], tmp_path / "same.json")
    assert "all" in str(change)


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
