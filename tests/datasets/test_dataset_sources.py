"""Where files are looked for, and the one way to the network."""

from __future__ import annotations

import dataclasses
import http.server
import io
import threading
import urllib.request
import zipfile

import pytest

from plainrisk import datasets
from plainrisk.datasets import loading
from plainrisk.errors import DataError


@pytest.fixture
def server(tmp_path):
    """A web server on this machine for the files in `served`."""
    folder = tmp_path / "served"
    folder.mkdir()

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args):
            super().__init__(*args, directory=str(folder))

        def log_message(self, *args):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield folder, f"http://127.0.0.1:{running.server_port}"
        running.shutdown()
        thread.join()


@pytest.fixture
def elsewhere(monkeypatch):
    """Say that a data set is not built in and comes from another address."""

    def change(name, url):
        entry = dataclasses.replace(datasets.info(name), built_in=None, url=url)
        monkeypatch.setattr(loading, "info", lambda _: entry)

    return change


def _zipped(lines, member="german.data"):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("Index", "nothing")
        archive.writestr(member, "\n".join(lines) + "\n")
    return packed.getvalue()


def test_a_download_ends_in_the_cache(server, elsewhere, cache, german_lines):
    folder, address = server
    packed = _zipped(german_lines, "statlog/german.data")
    (folder / "german.zip").write_bytes(packed)
    elsewhere("german", f"{address}/german.zip")
    seen = []
    german = datasets.load("german", download=True, progress=lambda done, total: seen.append((done, total)))
    assert german.path == cache / "german.data"
    assert [path.name for path in cache.iterdir()] == ["german.data"]
    assert seen[-1] == (len(packed), len(packed))
    # The second time it is there, and nobody asks the server.
    (folder / "german.zip").unlink()
    assert datasets.load("german", download=True).n_rows == 1000


def test_a_plain_file_is_downloaded_too(server, elsewhere, cache, german_lines):
    folder, address = server
    (folder / "german.data").write_text("\n".join(german_lines))
    elsewhere("german", f"{address}/german.data")
    assert datasets.load("german", download=True).path == cache / "german.data"


@pytest.mark.parametrize(
    ("served", "words"),
    [
        (None, "could not be fetched from .*german.zip: .*404"),
        (b"<html>moved</html>", "could not be fetched from .*not a zip file"),
        ("other", "there is no german.data in the archive"),
        ("short", "10 rows, not 1,000"),
    ],
)
def test_a_failed_download_leaves_nothing(server, elsewhere, cache, german_lines, served, words):
    folder, address = server
    content = {"other": _zipped(german_lines, "german.numeric"), "short": _zipped(german_lines[:10])}.get(
        served, served
    )
    if content is not None:
        (folder / "german.zip").write_bytes(content)
    elsewhere("german", f"{address}/german.zip")
    with pytest.raises(DataError, match=words):
        datasets.load("german", download=True)
    assert list(cache.iterdir()) == []


def test_loading_never_touches_the_network_unasked(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("network")

    monkeypatch.setattr(urllib.request, "urlopen", refuse)
    assert datasets.load("german").n_rows == 1000
    for name in datasets.names()[1:]:
        with pytest.raises(DataError, match=f"{name} is not on this machine"):
            datasets.load(name)


def test_what_may_be_fetched_says_how(data, cache):
    with pytest.raises(DataError, match="japan is not on this machine") as caught:
        datasets.load("japan")
    message = str(caught.value)
    for words in (
        "download=True",
        "crx.data",
        "archive.ics.uci.edu/dataset/27",
        str(data),
        str(cache),
        "CC BY 4.0",
    ):
        assert words in message


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("heloc", "heloc_dataset_v1.csv"),
        ("gmsc", "cs-training.csv"),
        ("lc_3", "accepted_2007_to_2018Q4.csv.gz"),
        ("lending_club_2007_2011", "lending_club_2007_2011.parquet"),
    ],
)
def test_what_may_not_be_fetched_says_which_file_to_get(name, file, monkeypatch):
    monkeypatch.delenv("PLAINRISK_DATA")
    for download in (False, True):
        with pytest.raises(DataError, match="the environment variable PLAINRISK_DATA") as caught:
            datasets.load(name, download=download)
        assert file in str(caught.value)
        assert "https://" in str(caught.value)
        assert "download=True" not in str(caught.value)


def test_an_excel_file_gets_a_hint(data):
    (data / "default of credit card clients.xls").write_bytes(b"\xd0\xcf\x11\xe0")
    with pytest.raises(DataError, match=r"clients\.xls is there, but is not read: save its sheet as UCI_Credit"):
        datasets.load("taiwan")


def test_the_data_folder_comes_before_the_cache_and_both_before_the_package(data, cache, german_lines):
    cache.mkdir(parents=True)
    text = "\n".join(german_lines)
    (cache / "german.data").write_text(text)
    assert datasets.load("german").path == cache / "german.data"
    (data / "german.data").write_text(text)
    assert datasets.load("german").path == data / "german.data"


def test_check_tells_present_absent_and_wrong_apart(data):
    (data / "crx.data").write_text("b,1\n")
    german, heloc, japan = datasets.check(["german", "heloc", "japan"])
    assert (german.status, german.rows, german.positive_rate, german.message) == ("present", 1000, 0.7, "")
    assert (heloc.status, heloc.path, heloc.rows) == ("absent", None, None)
    assert "heloc_dataset_v1.csv" in heloc.message
    assert (japan.status, japan.path) == ("wrong", data / "crx.data")
    assert "2 columns" in japan.message


def test_check_looks_at_all_by_default():
    assert [result.name for result in datasets.check()] == list(datasets.names())
