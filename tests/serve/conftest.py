"""A service in this process, with two models of German credit."""

import warnings

import pytest
from starlette.testclient import TestClient

import plainrisk as pr
from plainrisk.serve import Settings, make_app


@pytest.fixture(scope="session")
def german():
    return pr.datasets.load("german")


@pytest.fixture(scope="session")
def folder(german, tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, made in (("german", "SmoothARM1"), ("mixed", "MixLinARM1")):
            pr.make_classifier(made, german.schema).fit(german.frame, german.target).save(folder / f"{name}.json")
    return folder


@pytest.fixture(scope="session")
def paths(folder):
    return (str(folder / "german.json"), str(folder / "mixed.json"))


@pytest.fixture(scope="session")
def model(paths):
    return pr.load(paths[0])


@pytest.fixture(scope="session")
def client(paths):
    with TestClient(make_app(Settings(models=paths, max_rows=1000, max_bytes=2**20)), "http://localhost") as found:
        yield found


@pytest.fixture(scope="session")
def rows(german):
    columns = german.frame
    return [{name: columns[name][i] for name in german.schema.features} for i in range(50)]
