"""A model, its training rows and later ones, and the numbers of their document."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

import plainrisk as pr
from plainrisk.document import refits
from plainrisk.document.collect import collect
from plainrisk.document.evidence import gather

MONTHS = ["2024-01", "2024-02", "2024-03"]  # invented


@pytest.fixture(scope="session")
def case(tmp_path_factory):
    made = pr.datasets.make_credit(2400, 11, backend="polars")
    rng = np.random.default_rng(3)
    frame = made.frame.with_columns(
        pl.Series("bad", made.target),
        pl.Series("month", rng.choice(MONTHS, 2400)),
        pl.Series("branch", rng.choice(["north", "south", "west"], 2400, p=[0.6, 0.35, 0.05])),
        pl.Series("other", np.clip(0.7 * np.asarray(made.target) * rng.random(2400) + 0.1, 0, 1)),
    )
    train, test = frame[:1600], frame[1600:]
    schema = made.schema.replace(target="bad")
    first = next(iter(schema.features))
    schema = schema.annotate({"features": {first: {"why": "More of it, less risk: policy 7"}}})
    model = pr.make_classifier("ARM1", schema).fit(train, None)
    file = tmp_path_factory.mktemp("document") / "model.json"
    about = {"name": "Synthetic", "owner": "Retail", "intended use": "new customers"}
    model.save(file, cutoff=0.25, about=about)
    return SimpleNamespace(model=pr.load(file), file=file, train=train, test=test, first=first)


@pytest.fixture(scope="session")
def numbers(case):
    """All numbers, with one quick challenger."""
    quick = {name: rival for name, rival in refits.RIVALS.items() if name == "logistic regression"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(refits, "RIVALS", quick)
        given = gather(
            case.model, case.test, train=case.train, against="other", time="month", by=["branch"], file=case.file
        )
        return collect(given)
