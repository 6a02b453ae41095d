"""A fitted model, or two of them, measured on rows they were not fitted to: model, rows, outcomes.

Probabilities may be given in place of a model; then rows are not needed, and outcomes are 0 and 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from plainrisk.data.frame import as_frame, column_of, refuse_other_order
from plainrisk.data.rows import is_stored
from plainrisk.errors import DataError, quoted
from plainrisk.explain import Drift, GroupReport, Profile, SeenRows
from plainrisk.explain import drift as form_drift
from plainrisk.explain.groups import compare_groups
from plainrisk.explain.monitor import risk_drift
from plainrisk.form import RiskForm
from plainrisk.measure.cutoffs import Cutoffs, cutoffs_of_sums, risk_cutoffs
from plainrisk.measure.evaluation import Evaluation, evaluate_risk, evaluate_sums
from plainrisk.validate.counted import counted_profile, counted_risks
from plainrisk.validate.grouping import Bands, groups_by
from plainrisk.validate.scored import (
    adverse_of,
    classes_of,
    column_in,
    cutoff_of,
    form_of,
    judged,
    risks_of,
    target_name,
    target_of,
)

__all__ = ["cutoffs", "drift", "evaluate", "fairness"]


def evaluate(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    against: Any = None,
    by: Any = None,
    bands: Bands = None,
    grades: Sequence[float] | None = None,
    sample_weight: Any = None,
    level: float = 0.95,
    seed: int = 0,
) -> Evaluation:
    """Measure a model on rows with known outcomes: AUC, KS, Brier score, log loss and calibration, with intervals.

    Parameters
    ----------
    model : a fitted classifier, or (n,) probabilities
        One of ours, a loaded one, or any with predict_proba. With probabilities, outcomes are 0 and 1.
    X : rows
        None if only probabilities are given. Rows that are not in memory (`pr.rows`) are scored and counted where they
        are, in one pass, by a model of ours; y and sample_weight are then names of columns, and the intervals come from
        a bootstrap with other samples.
    y : (n,), default=None
        The outcomes, as the model knows them; None takes the target column of the model's schema from the rows.
    against : a fitted classifier, (n,) probabilities, or str, default=None
        Another model to compare with on the same rows, or the column that holds its probabilities: DeLong's test of the
        AUCs, a paired bootstrap for the other figures.
    by : str, tuple of str, or (n,), default=None
        A column of the rows, several for their intersections, or the group of every row, such as its month: the same
        figures for every group.
    bands : list of float, int, or dict by column, default=None
        For groups that are numbers: the lower ends of bands, or how many there are. None makes five bands of more than
        30 numbers.
    grades : list of float, default=None
        The probabilities at which a new grade begins, for Jeffreys' test; None makes ten grades of about equal size.
    sample_weight : (n,), default=None
    level : float, default=0.95
        Of the intervals.
    seed : int, default=0
        Of the bootstrap.

    Returns
    -------
    Evaluation
        It prints as a table; ``found["auc"]`` has `.estimate`, `.low` and `.high`.

    Examples
    --------
    >>> import plainrisk as pr
    >>> german = pr.datasets.load("german")
    >>> fitted, held_out = german.frame.head(600), german.frame.tail(400)
    >>> model = pr.make_classifier("SmoothARM1", german.schema).fit(fitted, german.target[:600])
    >>> found = pr.evaluate(model, held_out, german.target[600:])
    >>> auc = found["auc"]
    >>> bool(auc.low < auc.estimate < auc.high), found.rows
    (True, 400)
    """
    options: dict[str, Any] = {"grades": grades, "level": level, "seed": seed}
    if is_stored(X):
        if against is not None or by is not None:
            raise DataError(
                "evaluate: against and by need rows in memory. Evaluate every model, or the rows of every group "
                '(df.where("month = 1")), separately.'
            )
        sums, seen = counted_risks("evaluate", model, X, y, sample_weight)
        weighted = sample_weight is not None or X.weight is not None
        return replace(evaluate_sums(sums, weighted=weighted, **options), seen_before=seen)
    if isinstance(against, str):
        column_in("evaluate: against", against, X)
        against = as_frame(X).numbers(against)
    models = [model] if against is None else [model, against]
    refuse_other_order(X, y=y, by=by, sample_weight=sample_weight)
    outcomes, risks = judged("evaluate", models, X, target_of("evaluate", model, X) if y is None else y)
    groups = None if by is None else groups_by("evaluate", X, by, bands, form_of(model))
    options |= {"against": risks[1] if len(risks) > 1 else None, "by": groups, "sample_weight": sample_weight}
    evaluation = evaluate_risk(outcomes, risks[0], **options)
    form = form_of(model)
    if form is None:
        return evaluation
    return replace(evaluation, seen_before=SeenRows(form, getattr(model, "fit_record_", None)).add(X).are_all)


def cutoffs(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    cost_bad: float = 1.0,
    gain_good: float | None = None,
    amount: Any = None,
    cutoff: float | None = None,
    adverse: str | None = None,
    sample_weight: Any = None,
    level: float = 0.95,
) -> Cutoffs:
    """Return approval, bad rate, refused outcomes and profit at every cut-off.

    Parameters
    ----------
    model : a fitted classifier, or (n,) probabilities
    X : rows
        None if only probabilities are given. For rows that are not in memory (`pr.rows`), y, amount and sample_weight
        are names of columns.
    y : (n,), default=None
        The outcomes, as the model knows them; None takes the target column of the model's schema from the rows.
    cost_bad : float, default=1.0
        The cost of an approved applicant with a bad outcome; with `amount`, the share of it that is lost.
    gain_good : float, default=None
        The gain from an approved applicant with a good outcome; with `amount`, a share of it. None: no profits.
    amount : str or (n,), default=None
        A column of the rows, or the amount of every loan.
    cutoff : float, default=None
        The cut-off whose figures are `chosen`; None takes that of the model's policy.
    adverse : "positive" or "negative", default=None
        Which outcome is the bad one; None takes the adverse outcome of the model's schema, and "positive" for
        probabilities.
    sample_weight : (n,), default=None
    level : float, default=0.95
        Of the intervals: Wilson's for shares, the normal approximation for the profit, each at a fixed cut-off.

    Returns
    -------
    Cutoffs

    Examples
    --------
    >>> import plainrisk as pr
    >>> found = pr.cutoffs([0.1, 0.2, 0.3, 0.4, 0.9], None, [0, 0, 1, 0, 1], gain_good=0.5)
    >>> found.best.cutoff, found.best.profit.estimate
    (0.3, 1.0)
    """
    decided = cutoff_of(model) if cutoff is None else cutoff
    options: dict[str, Any] = {"adverse": adverse_of(model, adverse), "cutoff": decided, "level": level}
    options |= {"cost_bad": cost_bad, "gain_good": gain_good}
    if is_stored(X):
        return cutoffs_of_sums(counted_risks("cutoffs", model, X, y, sample_weight, amount)[0], **options)
    refuse_other_order(X, y=y, amount=amount, sample_weight=sample_weight)
    outcomes, (risk,) = judged("cutoffs", [model], X, target_of("cutoffs", model, X) if y is None else y)
    amount = np.asarray(column_in("cutoffs: amount", amount, X)) if isinstance(amount, str) else amount
    return risk_cutoffs(outcomes, risk, amount=amount, sample_weight=sample_weight, **options)


def fairness(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    by: Any = None,
    bands: Bands = None,
    cutoff: float | None = None,
    reference: str | None = None,
    adverse: Any = None,
    level: float = 0.95,
) -> GroupReport:
    """Compare groups: approval, the adverse impact ratio, and with outcomes equal opportunity, calibration and AUC.

    Parameters
    ----------
    model : a fitted classifier, or (n,) probabilities
    X : rows
        None if only probabilities are given.
    y : (n,), default=None
        The outcomes, as the model knows them; None takes the target column of the model's schema, if the rows have it.
    by : str, tuple of str, or (n,), default=None
        A column of the rows, several for their intersections, or the group of every applicant; None takes the protected
        feature of the model, if there is just one. Applicants without a group are a group of their own, "(no group)".
    bands : list of float, int, or dict by column, default=None
        For groups that are numbers: the lower ends of bands, or how many there are. None makes five bands of more than
        30 numbers.
    cutoff : float, default=None
        Who is approved; None takes the cut-off of the model's policy.
    reference : str, default=None
        The group to compare with; None takes the largest that has a name.
    adverse : "positive" or "negative", default=None
        Which outcome is the bad one; None takes the adverse outcome of the model's schema, and "positive" for
        probabilities.
    level : float, default=0.95
        Of the intervals.

    Returns
    -------
    GroupReport

    Examples
    --------
    >>> import plainrisk as pr
    >>> found = pr.fairness([0.1, 0.9, 0.6, 0.7], None, [0, 1, 0, 1], by=["a", "a", "b", "b"], cutoff=0.5)
    >>> found.reference, found.groups[1].impact.estimate
    ('a', 0.0)
    """
    refuse_other_order(X, y=y, by=by)
    decided = cutoff_of(model) if cutoff is None else cutoff
    if decided is None:
        raise DataError("fairness: give a cutoff; the model has none in its policy (model.annotate(cutoff=0.25)).")
    if y is None and X is not None:
        target = target_name(model)
        y = as_frame(X).column(target) if target is not None and target in as_frame(X).columns else None
    if y is None:
        outcomes, risk = None, risks_of("fairness", model, X, classes_of("fairness", [model]))
    else:
        outcomes, (risk,) = judged("fairness", [model], X, y)
    options: dict[str, Any] = {"cutoff": decided, "adverse": adverse_of(model, adverse), "reference": reference}
    return compare_groups(outcomes, risk, _groups(model, X, by, bands), level=level, **options)


def drift(model: Any, X: Any, y: Any = None, *, old: Any = None, old_y: Any = None, level: float = 0.95) -> Drift:
    """Compare new rows with old ones: shifts of features and of the probability and, with outcomes, of performance.

    Parameters
    ----------
    model : a fitted classifier, or (n,) probabilities of the new rows
        Without a model of ours, only the shift of the probability is measured.
    X : rows
        The new ones; None if only probabilities are given. For rows that are not in memory (`pr.rows`), new or old,
        outcomes are the name of a column.
    y : (n,), default=None
        Their outcomes; with a model of ours, some may be missing.
    old : rows, or (m,) probabilities, default=None
        None compares with the training rows, as the file of a model of ours counts them.
    old_y : (m,), default=None
    level : float, default=0.95
        Of the intervals of performance.

    Returns
    -------
    Drift

    Examples
    --------
    >>> import plainrisk as pr
    >>> found = pr.drift([0.1, 0.2, 0.9, 0.8], None, old=[0.1, 0.2, 0.3, 0.4])
    >>> found.risk.size, round(found.new_risk, 2)
    ('large', 0.5)
    """
    form = form_of(model)
    if form is not None:
        record = getattr(model, "fit_record_", None)
        (new, y), (old, old_y) = (_counted(form, rows, outcomes) for rows, outcomes in ((X, y), (old, old_y)))
        return form_drift(form, new, old, y=y, old_y=old_y, record=record, level=level)
    if old is None:
        raise DataError("drift: give the old rows, or their probabilities (old=...); only models of ours count them.")
    if isinstance(old, Profile) or isinstance(X, Profile):
        raise DataError("drift: a Profile counts the levels of a model of ours. Give rows.")
    classes = classes_of("drift", [model])
    new = risks_of("drift", model, X, classes)
    before = risks_of("drift", model if hasattr(model, "predict_proba") else old, old, classes)
    if classes is not None:
        y, old_y = (ends if ends is None else column_of(ends).outcomes(classes) for ends in (y, old_y))
    return risk_drift(new, before, y=y, old_y=old_y, level=level)


def _counted(form: RiskForm, rows: Any, y: Any) -> tuple[Any, Any]:
    """Return rows and their outcomes; for rows that are not in memory, a profile of both."""
    return (counted_profile(form, rows, y), None) if is_stored(rows) else (rows, y)


def _groups(model: Any, X: Any, by: Any, bands: Bands) -> Any:
    """Return the group of every row, by default in the one protected feature of the model."""
    form = form_of(model)
    if by is None:
        protected = () if form is None else tuple(form.schema.protected)
        if len(protected) != 1:
            several = f" It has several protected features: {quoted(protected)}." if protected else ""
            raise DataError(f"fairness: by which groups? Give by, a column of the rows or a group for each.{several}")
        by = protected[0]
    return groups_by("fairness", X, by, bands, form)
