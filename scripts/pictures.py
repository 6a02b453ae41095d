"""Draw every picture plainrisk can make of a model, in three sizes: python scripts/pictures.py FOLDER."""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import plainrisk as pr
from plainrisk.explain.plots import (
    draw_bars,
    draw_drift,
    draw_groups,
    draw_importance,
    draw_shape,
    draw_waterfall,
    draw_weights,
)
from plainrisk.validate.bootstrap import bootstrap

SIZES = {"small": (4.5, 3.4), "medium": (7.5, 5.0), "large": (13.0, 8.0)}


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore", pr.errors.PlainriskWarning)
    credit = pr.datasets.make_credit(20_000, seed=1)
    pictures = {**of_one_model(credit), **of_pools(credit), **of_german()}
    for name, draw in pictures.items():
        for size, inches in SIZES.items():
            figure = Figure(figsize=inches, layout="constrained")
            draw(figure)
            figure.savefig(folder / f"{name}-{size}.png", dpi=100)
            print(folder / f"{name}-{size}.png")


def of_one_model(credit):
    model = pr.AdditiveRiskModel(credit.schema, link="linear").fit(credit.frame, credit.target)
    refits = bootstrap(model, credit.frame, credit.target, n=100)
    view = model.overview()
    risk = model.predict_proba(credit.frame)[:, 1]
    row = credit.frame[int(np.argsort(risk)[-200])]
    best = model.explain(row, reference="best")
    spread = refits.contributions(row, reference="best")
    stressed = credit.frame.filter(credit.frame["utilization"] > 0.4)
    drift = model.drift(stressed, credit.frame)
    ages = np.where(credit.frame["age"].to_numpy() < 30, "below 30", "30 and older")
    groups = pr.fairness(model, credit.frame, credit.target, by=ages, cutoff=0.2)
    return {
        "waterfall": lambda f: draw_waterfall(best, 0, interval=spread, ax=f.subplots()),
        "two-levels": lambda f: draw_bars(best, 0, ax=f.subplots()),
        "shape-ordered": lambda f: draw_shape(
            view.shape("bureau_score"), refits.effects("bureau_score"), axes=stacked(f)
        ),
        "shape-categories": lambda f: draw_shape(view.shape("purpose"), refits.effects("purpose"), axes=stacked(f)),
        "importance": lambda f: draw_importance(view, ax=f.subplots()),
        "drift": lambda f: draw_drift(drift, ax=f.subplots()),
        "groups": lambda f: draw_groups(groups, ax=f.subplots()),
    }


def of_pools(credit):
    curved = pr.AdditiveRiskModel(credit.schema).fit(credit.frame, credit.target)
    mixed = pr.SubscaleMixture(pr.AdditiveRiskModel(), credit.schema).fit(credit.frame, credit.target)
    weights = mixed.overview().weights
    spread = bootstrap(mixed, credit.frame, credit.target, n=100).weights()
    row = credit.frame[7]
    log_odds = curved.explain(row, unit="log odds")
    probability = curved.explain(row)
    pooled = mixed.explain(row, reference="best")
    return {
        "waterfall-log-odds": lambda f: draw_waterfall(log_odds, 0, ax=f.subplots()),
        "waterfall-mean-rate": lambda f: draw_waterfall(probability, 0, ax=f.subplots()),
        "two-levels-mixture": lambda f: draw_bars(pooled, 0, ax=f.subplots()),
        "weights": lambda f: draw_weights(weights, spread, ax=f.subplots()),
        "weight-path": lambda f: mixed.plot_weights(credit.frame, credit.target, ax=f.subplots()),
    }


def of_german():
    """Long names, many features, the good outcome predicted, and rows that are cut off."""
    german = pr.datasets.load("german", backend="polars")
    model = pr.AdditiveRiskModel(german.schema, link="linear").fit(german.frame, german.target)
    found = model.explain(german.frame, reference="best", adverse="negative")
    clipped = int(np.argmax(found.rate == 0))
    view = model.overview()
    return {
        "german-waterfall-cut-off": lambda f: draw_waterfall(found, clipped, ax=f.subplots()),
        "german-two-levels": lambda f: draw_bars(found, 3, ax=f.subplots()),
        "german-importance": lambda f: draw_importance(view, ax=f.subplots()),
    }


def stacked(figure):
    return figure.subplots(2, 1, sharex=True, height_ratios=[2, 1])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=Path("gallery"))
    main(parser.parse_args().folder)
