"""A model is a risk form with methods: what `pr.load` returns, and what every fitted estimator can do."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import msgspec
import numpy as np

from plainrisk import explain as answers
from plainrisk._types import Array, Floats
from plainrisk.checks import LEVEL, check_parameters, instance
from plainrisk.errors import DataError, PlainriskError, PlainriskWarning
from plainrisk.explain import Certificate, Drift, Explanation, Overview, Reasons, Refits, WhatIf, WhatIfs
from plainrisk.explain.options import ExplainOptions, ReasonOptions, WhatIfOptions, WhatIfsOptions, takes
from plainrisk.exports import ExportOptions, write_export
from plainrisk.form import Alone, FitRecord, Layer, Logistic, RiskForm, read_model, write_model
from plainrisk.form.file import PackedState
from plainrisk.text import visible

__all__ = ["FormMethods", "RiskModel", "load"]


class FormMethods(PackedState):
    """What any owner of a risk form can do with it; needs `form_`, `fit_record_` and `classes_`.

    The examples of all methods start from

    >>> import plainrisk as pr
    >>> german = pr.datasets.load("german")
    >>> model = pr.AdditiveRiskModel(german.schema).fit(german.frame, german.target)
    """

    form_: RiskForm
    fit_record_: FitRecord | None
    # The file of format 1 that the model was read from, where its hash does not cover the fit record.
    _unprotected_file: str | None = None
    classes_: Array

    def predict_proba(self, X: Any) -> Floats:
        """Return the probabilities of the two outcomes.

        Parameters
        ----------
        X : rows
            pandas, polars, arrow or numpy; or one row as a dict.

        Returns
        -------
        array of shape (rows, 2)
            The positive outcome stands last.

        Examples
        --------
        >>> model.predict_proba(german.frame.head(2)).round(2)
        array([[0.05, 0.95],
               [0.75, 0.25]])
        """
        self._require_form()
        return self.form_.probabilities(X)

    def predict(self, X: Any) -> Array:
        """Return the likelier outcome of every row.

        Parameters
        ----------
        X : rows

        Returns
        -------
        array of shape (rows,)
            Of the labels in `classes_`.

        Examples
        --------
        >>> model.predict(german.frame.head(3)).tolist()
        [1, 0, 1]
        """
        self._require_form()
        return np.asarray(self.classes_[(self.form_.risk(X) > 0.5).astype(np.intp)])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy, scikit-learn's score of a classifier.

        Parameters
        ----------
        X : rows
        y : the outcomes
        sample_weight : array of shape (rows,), default=None

        Returns
        -------
        float
            The share of rows whose likelier outcome is the true one.

        Examples
        --------
        >>> round(model.score(german.frame, german.target), 1)
        0.8
        """
        from sklearn.metrics import accuracy_score

        found = self.predict(X)
        try:
            return float(accuracy_score(y, found, sample_weight=sample_weight))
        except (TypeError, ValueError) as error:
            raise DataError(f"score: y and sample_weight must have one entry per row. {error}") from None

    @takes(ExplainOptions)
    def explain(self, X: Any, **options: Any) -> Explanation:
        """Return what every subscale and feature contributes to each row's risk.

        Parameters
        ----------
        X : rows
        {options}

        Returns
        -------
        Explanation
            Its `total` is the risk, where contributions are in probability.

        Examples
        --------
        >>> model.explain(german.frame.head(2))
        Explanation of 2 rows in probability, compared with 'typical'
          row    risk  constant  CreditLoanInfo  (no subscale)  PersonalInfo
            0  0.9548    0.7802         0.07133        0.04485       0.05847
            1  0.2513    0.7802         -0.1484        -0.3462      -0.03421
        """
        self._require_form()
        return answers.explain(self.form_, X, **options)

    @takes(ReasonOptions)
    def reasons(self, X: Any, *args: Any, **options: Any) -> Reasons:
        """Return the reasons against each row: what its features cost compared with a reference, ranked, in words.

        Parameters
        ----------
        X : rows
        {options}

        Returns
        -------
        Reasons

        Examples
        --------
        >>> model.reasons(german.frame.head(2), k=2, adverse="negative")
        Reasons against 2 applicants, at most 2, compared with 'best'
          row    risk  reason 1            reason 2
            0  0.9548  Amount of the loan  Status of checking account
            1  0.2513  Amount of the loan  Duration of the loan
        """
        self._require_form()
        return answers.reasons(self.form_, X, *args, **options)

    @takes(WhatIfOptions)
    def what_if(self, x: Any, *args: Any, **options: Any) -> WhatIf:
        """Return the cheapest changes that bring one row to the target risk, proved to be the cheapest.

        Parameters
        ----------
        x : one row
        {options}

        Returns
        -------
        WhatIf

        Examples
        --------
        >>> model.what_if(german.frame[1:2], target=0.6, adverse="negative", answers=2)
        risk 0.2513, target at least 0.6:
          1. Credit amount: 5951 -> 3913 (risk 0.6678)
          2. Duration in month: 48 -> 11 (risk 0.6116)
        """
        self._require_form()
        return answers.what_if(self.form_, x, *args, **options)

    @takes(WhatIfsOptions)
    def what_ifs(self, X: Any, *args: Any, **options: Any) -> WhatIfs:
        """Return the cheapest changes that bring each row to the target risk.

        Parameters
        ----------
        X : rows
        {options}

        Returns
        -------
        WhatIfs

        Examples
        --------
        >>> model.what_ifs(german.frame.head(2), target=0.6, adverse="negative")
        WhatIfs of 2 applicants, 2 of whom can reach the target
          row    risk  reached  new_risk  features_changed  cost  changes
            0  0.9548     True    0.9548                 0     0
            1  0.2513     True    0.6678                 1     1  Credit amount: 5951 -> 3913
        """
        self._require_form()
        return answers.what_ifs(self.form_, X, *args, **options)

    def overview(self, X: Any = None) -> Overview:
        """Return the model at a glance: shape tables, importance, subscale weights.

        Parameters
        ----------
        X : rows, default=None
            Take the importance over these, not over the training counts. Lines, curves and trees need rows.

        Returns
        -------
        Overview

        Examples
        --------
        >>> model.overview().importance[0].feature
        'Status of existing checking account'
        """
        self._require_form()
        return answers.overview(self.form_, X)

    def drift(self, new: Any, old: Any = None) -> Drift:
        """Return how far new rows have moved from old ones.

        Parameters
        ----------
        new : rows
        old : rows, default=None
            None compares with the training rows, as the form counts them.

        Returns
        -------
        Drift

        Examples
        --------
        >>> model.drift(german.frame.head(100)).features[0].feature
        'Purpose'
        """
        self._require_form()
        return answers.drift(self.form_, new, old)

    def certify(self, *, thin: float = 30.0) -> Certificate:
        """Check from the form alone that the model keeps its promises.

        Parameters
        ----------
        thin : float, default=30.0
            Levels with fewer training rows are listed as notes.

        Returns
        -------
        Certificate

        Examples
        --------
        >>> model.certify()
        Certificate: valid, 5 of 5 checks hold, 3 notes
        """
        self._require_form()
        return answers.certify(self.form_, thin=thin)

    def posterior(self, n: int = 200, seed: int = 0) -> Refits:
        """Return models drawn from the posterior of a smooth model's scores: credible intervals without a bootstrap.

        The model was fitted with ``intervals=True``. Draws may break directions; the model itself never does.

        Parameters
        ----------
        n : int, default=200
            How many.
        seed : int, default=0

        Returns
        -------
        Refits
            Intervals of shapes, contributions and risks; plots take them.

        Examples
        --------
        >>> smooth = pr.make_classifier("SmoothARM1", german.schema, intervals=True).fit(german.frame, german.target)
        >>> risk = smooth.posterior().risk(german.frame[:1], level=0.9)
        >>> bool(risk.low[0] < risk.estimate[0] < risk.high[0])
        True
        """
        self._require_form()
        record = self.fit_record_
        if record is None or not record.covariance:
            raise DataError(
                "posterior: the model has no covariance of its scores. Fit one part of smooth shapes with "
                "intervals=True, or use pr.bootstrap."
            )
        return answers.drawn(self.form_, record.covariance, n, seed)

    def save(self, path: str | Path) -> None:
        """Write the model, with its certificate, to a JSON file, which `plainrisk.load` reads.

        Parameters
        ----------
        path : str or Path

        Examples
        --------
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.save(f"{folder}/model.json")
        ...     pr.load(f"{folder}/model.json")
        RiskModel(20 features, parts: all)
        """
        self._require_form()
        write_model(path, self.form_, self.fit_record_, answers.certify(self.form_))

    def export(
        self,
        target: str,
        path: str | Path,
        *,
        dialect: str | None = None,
        table: str = "applicants",
        keep: Sequence[str] = (),
        **reasons: Any,
    ) -> None:
        """Write the model as code, SQL or a file of another format, with its contributions and reasons inside.

        Parameters
        ----------
        target : {"sql", "python", "javascript", "c", "onnx", "xlsx", "pmml"}
        path : str or Path
        dialect : str, default=None
            Of SQL: duckdb, postgres, sqlite, spark, snowflake, bigquery, tsql or redshift.
        table : str, default="applicants"
            Of SQL: the table that is read.
        keep : list of str, default=()
            Of SQL: columns of the table that stand before the answers.
        **reasons
            Of `reasons`: k, adverse, order, barred, portfolio.

        Examples
        --------
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.export("python", f"{folder}/score.py", k=2)
        ...     pr.verify_export(f"{folder}/score.py", model).agrees
        True
        """
        self._require_form()
        write_export(self.form_, target, path, ExportOptions(dialect, table, keep, **reasons))

    def at_base_rate(self, base_rate: float | None = None) -> RiskModel:
        """Return the model corrected for training at another base rate than it is used at.

        With a logistic last link, training with class weights shifts the log odds by a constant; this takes
        the shift back.

        Parameters
        ----------
        base_rate : float, default=None
            The true share of the positive outcome; None takes that of the training rows before class weights.

        Returns
        -------
        RiskModel

        Examples
        --------
        >>> round(float(model.at_base_rate(0.9).predict_proba(german.frame)[:, 1].mean()), 2)
        0.86
        """
        self._require_form()
        record = self.fit_record_
        if record is None or not 0 < record.positive_weight < record.weight:
            raise PlainriskError("The model does not say at which base rate it was trained.")
        if self._unprotected_file:
            warnings.warn(
                f"{self._unprotected_file} is a model file of format 1, whose hash does not cover the base rate that "
                "is corrected here. Fit and save the model again to protect it.",
                PlainriskWarning,
                stacklevel=2,
            )
        trained = record.positive_weight / record.weight
        wanted = record.base_rate if base_rate is None else base_rate
        check_parameters("at_base_rate", {"base_rate": wanted}, {"base_rate": LEVEL})
        shift = math.log(wanted / (1 - wanted)) - math.log(trained / (1 - trained))
        new_record = msgspec.structs.replace(record, positive_weight=wanted * record.weight)
        return RiskModel(_shifted(self.form_, shift), new_record)

    def _require_form(self) -> None:
        if not hasattr(self, "form_"):
            from sklearn.utils.validation import check_is_fitted

            check_is_fitted(self, "form_")


class RiskModel(FormMethods):
    """A model read from a file, or derived from another: ready to score, explain and certify.

    For scikit-learn it is a fitted classifier, so its metrics, displays and inspection take one. It has no parameters
    and cannot be fitted again. scikit-learn is loaded only when it asks.
    """

    def __init__(self, form: RiskForm, fit_record: FitRecord | None = None) -> None:
        check_parameters("RiskModel", {"form": form}, {"form": instance("a RiskForm", RiskForm)})
        self.form_ = form
        self.fit_record_ = fit_record
        self.classes_ = np.array(form.classes)

    def __repr__(self) -> str:
        parts = ", ".join(part.name for part in self.form_.parts)
        return visible(f"RiskModel({len(self.form_.schema.features)} features, parts: {parts})")

    def fit(self, X: Any, y: Any = None) -> NoReturn:
        """Refuse: scikit-learn takes only objects with this method, but a finished model has nothing to fit.

        Parameters
        ----------
        X, y : ignored
        """
        raise PlainriskError("A RiskModel is finished and cannot be fitted again. Fit an AdditiveRiskModel instead.")

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags

        return Tags(
            estimator_type="classifier",
            target_tags=TargetTags(required=True),
            classifier_tags=ClassifierTags(multi_class=False),
            input_tags=InputTags(allow_nan=True, categorical=True, string=True),
        )


def load(path: str | Path) -> RiskModel:
    """Read a model file written by `save`.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    RiskModel

    Raises
    ------
    ModelFileError
        If the file is damaged, was changed, is too new or is no plainrisk model.

    Examples
    --------
    >>> import tempfile
    >>> import plainrisk as pr
    >>> german = pr.datasets.load("german")
    >>> model = pr.AdditiveRiskModel(german.schema).fit(german.frame, german.target)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/model.json")
    ...     loaded = pr.load(f"{folder}/model.json")
    >>> bool((loaded.predict_proba(german.frame) == model.predict_proba(german.frame)).all())
    True
    """
    content = read_model(path)
    model = RiskModel(content.form, content.fit)
    if not content.protected:
        model._unprotected_file = str(path)
    return model


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
