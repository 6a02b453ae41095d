"""The section on the method, how a probability is computed and how the model was fitted, and the annex of levels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from plainrisk.document import pictures
from plainrisk.document.background import Commands, note
from plainrisk.document.blocks import Block, Grid, Paragraph
from plainrisk.document.figures import count, figure, percent, points, titles_of

__all__ = ["levels", "method"]


def method(n: dict[str, Any], run: Commands) -> Iterator[Block]:
    """The method in plain words, with one applicant computed by hand."""
    model, fit = n["model"], n["model"]["fit"]
    yield Paragraph(f"{model['what']}. " + _sum_in_words(model))
    if model["bands"] is not None:
        yield from _bands(model["bands"])
    if model["weights"]:
        lines = [(name, figure(weight)) for name, weight in model["weights"].items()]
        yield Grid("Weights of the parts.", ("part", "weight"), lines, command=run("report", "-o page.html"))
    if fit is not None:
        yield from _fitting(fit, model)
        yield Paragraph(_solved(fit))
        settings = [f"{name} = {text}" for name, text in fit["parameters"].items()]
        yield Paragraph(f"Settings of the fit ({fit['estimator']}): {'; '.join(settings)}.")
    yield Paragraph(
        "A contribution is the difference that a feature makes to the probability, compared with a reference "
        "applicant: the probability of the reference and all contributions add up to the probability of the "
        "applicant. No contribution is an approximation, and no step after the model changes the probability."
    )
    yield note("design")
    if n["example"] is not None:
        yield from _example(n)
    yield from _leading_shapes(n, run)


def _sum_in_words(model: dict[str, Any]) -> str:
    if not model["additive"]:
        return "Every part is a sum of decision trees. The parts add up; inside a part, features do not."
    many = len(model["parts"]) > 1
    sentences = ["Each feature of an applicant falls into one level (a bin, a category, a code, or empty)."]
    sentences += ["The level has a score."]
    if model["pairs"]:
        sentences.append(f"{len(model['pairs'])} pairs of features have a table of scores of their own.")
    parts = "Scores are added up within each part, and the parts are weighted."
    sentences.append(parts if many else "The scores are added up, with a constant.")
    sentences.append("The sum is turned into a probability by a rising function, which is the same for everybody.")
    return " ".join(sentences)


def _bands(bands: dict[str, Any]) -> Iterator[Block]:
    knots, values, rates = bands["knots"], bands["values"], bands["rates"]
    yield Grid(
        "From the sum of scores to the probability: straight pieces.",
        ("sum from", "to", "probability from", "to", "points per 0.1 of the sum"),
        [
            (figure(knots[k]), figure(knots[k + 1]), percent(values[k]), percent(values[k + 1]), f"{10 * rates[k]:.1f}")
            for k in range(len(rates))
        ],
        note="The first and the last piece run on until the probability is 0% or 100%.",
        left=(),
    )


def _fitting(fit: dict[str, Any], model: dict[str, Any]) -> Iterator[Block]:
    """How the scores were found, by the settings of the fit: levels, loss, rules and the curve."""
    settings = {name: text.strip("'") for name, text in fit["parameters"].items()}
    if not model["additive"] or "shapes" not in settings:
        return
    yield Paragraph(_levels_in_words(settings))
    squared = settings.get("link") == "linear"
    loss = "mean squared error" if squared else "mean log loss (as in logistic regression)"
    rules = "keep the rules that are stated for them"
    if settings.get("rules") == "free":
        rules = "are fitted without rules"
    yield Paragraph(
        f"The scores minimize the {loss} of the training rows plus this penalty, among all scores that keep the stated "
        f"directions: from one level to the next, a score never moves the wrong way; empty fields and codes {rules}. "
        "There is one solution and no random number: the same rows and settings give the same file, to the last byte."
    )
    if model["bands"] is not None and settings.get("link") == "bands":
        yield Paragraph(
            "The scores were fitted with the S-shaped curve of logistic regression. Then the straight pieces above "
            "replaced it: they follow the observed rates of the training rows where rows are many, and the curve "
            "where they are few. So on one piece, a step of the score is worth the same number of percentage points "
            "for everybody, and contributions to the probability add up exactly."
        )


def _levels_in_words(settings: dict[str, str]) -> str:
    if settings["shapes"] == "steps":
        ridge = "1/(2 rows)" if settings.get("ridge", "auto") == "auto" else settings["ridge"]
        quantiles = settings.get("criterion") == "quantile"
        bins = "of equal numbers of rows" if quantiles else "that a small tree on the outcome finds"
        return (
            f"The levels of a number are a few bins {bins}, or those that the schema fixes. A penalty shrinks all "
            f"scores toward 0, with one strength for all features ({ridge})."
        )
    pairs = ""
    if settings.get("pairs", "None") not in ("None", "0"):
        pairs = " Pairs of features have tables of their own where the training rows hold evidence for them."
    return (
        "The levels of a number are fine bins, as many as there is evidence for. A penalty shrinks the differences "
        "between neighboring bins, feature by feature, with the strength that makes the training outcomes most "
        "probable (the marginal likelihood, or empirical Bayes), so that a feature without evidence adds nothing. At "
        f"the end, neighboring bins are merged where that costs at most {settings.get('tolerance', '5e-05')} of the "
        f"mean loss.{pairs}"
    )


def _solved(fit: dict[str, Any]) -> str:
    end = "The solver ended at the optimum" if fit["converged"] else "The solver STOPPED BEFORE the optimum"
    kkt = max(fit["kkt"], default=0.0)
    solved = f"{end} (largest residual of the optimality conditions {kkt:.0e}, {sum(fit['iterations'])} iterations)."
    if fit["features_left"]:
        solved += f" Features without evidence add nothing: {', '.join(fit['features_left'])}."
    if fit["clipped"]:
        solved += f" {percent(fit['clipped'])} of the training rows are clipped at an end of the scale."
    return solved


def _example(n: dict[str, Any]) -> Iterator[Block]:
    example = n["example"]
    yield Grid(
        "One probability computed by hand: an applicant with the most frequent level of every feature.",
        ("feature", "level", "score"),
        [
            ("(constant)", "", figure(example["intercept"], 4, "+")),
            *((one["title"], one["level"], figure(one["score"], 4, "+")) for one in example["terms"]),
            ("sum of scores", "", figure(example["sum"], 4, "+")),
            ("probability", "", percent(example["risk"], 2)),
        ],
        left=(0, 1),
    )


def _leading_shapes(n: dict[str, Any], run: Commands) -> Iterator[Block]:
    tables, titles = {shape["feature"]: shape for shape in n["shapes"]["tables"]}, titles_of(n)
    ranked = [line["feature"] for line in n["shapes"]["importance"] if line["feature"] in tables]
    ranked = [name for name in ranked if "×" not in name][:6]
    if ranked:
        yield pictures.shapes([tables[name] for name in ranked], [titles.get(name, name) for name in ranked])
        yield Paragraph(
            f"All levels of all features are in the annex. To see and move them: {run('report', '-o page.html')}"
        )


def levels(n: dict[str, Any], run: Commands) -> Iterator[Block]:
    """All levels of all features: an annex from which the model can be built again."""
    records, titles = [], titles_of(n)
    for shape in n["shapes"]["tables"]:
        effects = [None] * len(shape["names"]) if shape["effect"] is None else shape["effect"]
        lines = zip(shape["names"], shape["rows"], shape["bad_rate"], shape["score"], effects, strict=True)
        for j, (name, rows, rate, score, effect) in enumerate(lines):
            if rows or j < shape["n_ordered"] or score:
                title = titles.get(shape["feature"], shape["feature"])
                records.append((title, name, count(rows), percent(rate), figure(score, 4, "+"), points(effect)))
    yield Grid(
        "Every level: training rows, observed rate, score, and effect on a typical applicant.",
        ("feature", "level", "rows", "rate", "score", "points"),
        records,
        command=run("scorecard"),
        note="Points: percentage points of probability for a typical applicant. Levels without training rows are "
        "left out where their score is 0.",
        left=(0, 1),
    )
