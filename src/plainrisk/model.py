"""A model is a risk form with methods: what `pr.load` returns, and what every fitted estimator can do."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import numpy as np
import numpy.typing as npt

from plainrisk.errors import PlainriskError
from plainrisk.form import Alone, FitRecord, Layer, Logistic, RiskForm, read_model, write_model

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from plainrisk.explain import Certificate, Drift, Explanation, Overview, Reasons, WhatIf, WhatIfs
    from plainrisk.explain.contributions import Split
    from plainrisk.explain.moves import Cost
    from plainrisk.explain.places import Value
    from plainrisk.explain.reasons import Order
    from plainrisk.explain.reference import Adverse

__all__ = ["FormMethods", "RiskModel", "load"]

Floats = npt.NDArray[np.float64]


class FormMethods:
    """What any owner of a risk form can do with it; needs `form_`, `fit_record_` and `classes_`."""

    form_: RiskForm
    fit_record_: FitRecord | None
    classes_: npt.NDArray[Any]

    def predict_proba(self, X: Any) -> Floats:
        """Return the probabilities of the two outcomes, the positive one last: (rows, 2)."""
        self._require_form()
        return self.form_.probabilities(X)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the likelier outcome of every row."""
        self._require_form()
        return np.asarray(self.classes_[(self.form_.risk(X) > 0.5).astype(np.intp)])

    def explain(
        self,
        X: Any,
        *,
        reference: Any = "constant",
        portfolio: Any = None,
        unit: Literal["probability"] | None = None,
        features: Split | None = None,
        adverse: Adverse = "positive",
        min_rows: float = 0.0,
    ) -> Explanation:
        """Return what every subscale and feature contributes to each row's risk.

        Parameters
        ----------
        reference : {"constant", "neutral", "mean", "best"} or a row, default="constant"
            What the rows are compared with.
        portfolio : rows, optional
            For references that need rows to look at.
        unit : "probability", optional
            Pieces of the probability also through a logistic last link: an approximation, labelled as such.
        features : {"chord", "treeshap"}, optional
            Split subscales that are not additive, by a rule that the explanation names.
        adverse : {"positive", "negative"}, default="positive"
            "negative" if a high probability is good for the applicant; says which levels are the best.
        min_rows : float, default=0
            Levels with fewer training rows are not taken for the best.
        """
        from plainrisk.explain import explain

        self._require_form()
        return explain(
            self.form_,
            X,
            reference=reference,
            portfolio=portfolio,
            unit=unit,
            features=features,
            adverse=adverse,
            min_rows=min_rows,
        )

    def reasons(
        self,
        X: Any,
        k: int = 4,
        against: Any = "best",
        *,
        adverse: Adverse = "positive",
        order: Order = "subscale",
        barred: Sequence[str] = (),
        inquiries: Sequence[str] = (),
        portfolio: Any = None,
        features: Split = "chord",
        min_rows: float = 0.0,
    ) -> Reasons:
        """Return the reasons against each row: what its features cost compared with a reference, ranked, in words.

        Parameters
        ----------
        k : int, default=4
            At most so many reasons.
        against : {"best", "mean", "neutral"} or a row, default="best"
            What applicants are compared with.
        adverse : {"positive", "negative"}, default="positive"
            "negative" if the model predicts the good outcome.
        order : {"subscale", "feature"}, default="subscale"
            Tell the k reasons subscale by subscale, or by their loss alone.
        barred : features that are never named
        inquiries : features of which one is a further reason if it counts and none is among the k
        portfolio : rows, for references that need some
        features : {"chord", "treeshap"}, default="chord"
            How experts that are not additive are split.
        min_rows : float, default=0
            Levels with fewer training rows are not taken for the best.
        """
        from plainrisk.explain import reasons

        self._require_form()
        return reasons(
            self.form_,
            X,
            k,
            against,
            adverse=adverse,
            order=order,
            barred=barred,
            inquiries=inquiries,
            portfolio=portfolio,
            features=features,
            min_rows=min_rows,
        )

    def what_if(
        self,
        x: Any,
        target: float,
        *,
        frozen: Iterable[str] = (),
        cost: Cost = "features",
        adverse: Adverse = "positive",
        answers: int = 3,
        values: Mapping[str, Iterable[Value]] | None = None,
        min_rows: float = 0.0,
    ) -> WhatIf:
        """Return the cheapest changes that bring one row to the target risk, proved to be the cheapest.

        Parameters
        ----------
        x : one row
        target : float
            The risk to reach: at most this, or at least this with adverse="negative".
        frozen : features that must stay as they are
        cost : {"features", "steps"}, dict or callable, default="features"
            "features" changes as few features as possible, then as few bins; "steps" adds up the schema's step
            costs; a dict gives step costs, a callable the cost of (feature, level, new level, steps).
        adverse : {"positive", "negative"}, default="positive"
            "negative" if the model predicts the good outcome.
        answers : int, default=3
            At most so many, each without at least one feature of every answer before it.
        values : dict of feature to values, optional
            Values to try, for features that enter as a line or a curve.
        min_rows : float, default=0
            Levels with fewer training rows are not moved to.
        """
        from plainrisk.explain import what_if

        self._require_form()
        return what_if(self.form_, x, target, frozen=frozen, cost=cost, adverse=adverse, answers=answers, values=values)

    def what_ifs(
        self,
        X: Any,
        target: float,
        *,
        frozen: Iterable[str] = (),
        cost: Cost = "features",
        adverse: Adverse = "positive",
        answers: int = 1,
        values: Mapping[str, Iterable[Value]] | None = None,
        min_rows: float = 0.0,
    ) -> WhatIfs:
        """Return the cheapest changes for every row of X; parameters as in `what_if`."""
        from plainrisk.explain import what_ifs

        self._require_form()
        return what_ifs(
            self.form_,
            X,
            target,
            frozen=frozen,
            cost=cost,
            adverse=adverse,
            answers=answers,
            values=values,
            min_rows=min_rows,
        )

    def overview(self, X: Any = None) -> Overview:
        """Return the model at a glance: shape tables, importance (over the rows of X if given), subscale weights."""
        from plainrisk.explain import overview

        self._require_form()
        return overview(self.form_, X)

    def drift(self, new: Any, old: Any = None) -> Drift:
        """Return how far new rows have moved from old ones, or from the training rows as the form counts them."""
        from plainrisk.explain import drift

        self._require_form()
        return drift(self.form_, new, old)

    def certify(self, *, thin: float = 30.0) -> Certificate:
        """Check from the form alone that the model keeps its promises; levels with fewer rows than `thin` are noted."""
        from plainrisk.explain import certify

        self._require_form()
        return certify(self.form_, thin=thin)

    def save(self, path: str | Path) -> None:
        """Write the model, with its certificate, to a JSON file; `plainrisk.load` reads it back."""
        from plainrisk.explain import certify

        self._require_form()
        write_model(path, self.form_, self.fit_record_, certify(self.form_))

    def at_base_rate(self, base_rate: float | None = None) -> RiskModel:
        """Return the model corrected for training at another base rate than it is used at.

        With a logistic last link, training with class weights shifts the log odds by a constant; this takes
        the shift back.

        Parameters
        ----------
        base_rate : float, optional
            The true share of the positive outcome; default: that of the training rows before class weights.
        """
        self._require_form()
        record = self.fit_record_
        if record is None or not 0 < record.positive_weight < record.weight:
            raise PlainriskError("The model does not say at which base rate it was trained.")
        trained = record.positive_weight / record.weight
        wanted = record.base_rate if base_rate is None else base_rate
        if not 0 < wanted < 1:
            raise PlainriskError(f"base_rate must lie between 0 and 1, not {wanted}.")
        shift = math.log(wanted / (1 - wanted)) - math.log(trained / (1 - trained))
        new_record = msgspec.structs.replace(record, positive_weight=wanted * record.weight)
        return RiskModel(_shifted(self.form_, shift), new_record)

    def _require_form(self) -> None:
        if not hasattr(self, "form_"):
            from sklearn.utils.validation import check_is_fitted

            check_is_fitted(self, "form_")


class RiskModel(FormMethods):
    """A model read from a file, or derived from another: ready to score, explain and certify."""

    def __init__(self, form: RiskForm, fit_record: FitRecord | None = None) -> None:
        self.form_ = form
        self.fit_record_ = fit_record
        self.classes_ = np.array(form.classes)

    def __repr__(self) -> str:
        parts = ", ".join(part.name for part in self.form_.parts)
        return f"RiskModel({len(self.form_.schema.features)} features, parts: {parts})"


def load(path: str | Path) -> RiskModel:
    """Read a model file written by `save`.

    Raises
    ------
    ModelFileError
        If the file is damaged, was changed, is too new or is no plainrisk model.
    """
    content = read_model(path)
    return RiskModel(content.form, content.fit)


def _shifted(form: RiskForm, shift: float) -> RiskForm:
    if not isinstance(form.last_link, Logistic):
        raise PlainriskError(
            "The prior correction needs a logistic last link: a line has no constant shift that corrects it. "
            "Train without class weights instead."
        )
    replace = msgspec.structs.replace
    if isinstance(form.pool, Alone):
        part = form.parts[0]
        return replace(form, parts=(replace(part, intercept=part.intercept + shift),))
    assert isinstance(form.pool, Layer)
    return replace(form, pool=replace(form.pool, intercept=form.pool.intercept + shift))
