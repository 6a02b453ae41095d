"""A model is a risk form with methods: what `pr.load` returns, and what every fitted estimator can do."""

from __future__ import annotations

import functools
import importlib
import logging
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import msgspec
import numpy as np

from plainrisk import explain as answers
from plainrisk._types import Array, Floats
from plainrisk.checks import LEVEL, NOTHING, PROBABILITY, Allowed, check_parameters, instance
from plainrisk.data.frame import as_frame, refuse_other_order
from plainrisk.errors import DataError, PlainriskError, warn
from plainrisk.explain import (
    Certificate,
    Decisions,
    Drift,
    Effects,
    Explanation,
    Overview,
    Reasons,
    Refits,
    Scorecard,
    WhatIf,
    WhatIfs,
)
from plainrisk.explain.options import DecideOptions, ExplainOptions, ReasonOptions, WhatIfOptions, WhatIfsOptions, takes
from plainrisk.explain.overview import column_importance
from plainrisk.explain.reasons import check_words
from plainrisk.files import write_text
from plainrisk.form import (
    Alone,
    Bands,
    FitRecord,
    Logistic,
    Mixture,
    RiskForm,
    read_model,
    schema_with_bins,
    write_model,
)
from plainrisk.form.beyond import ENOUGH, strangers, warn_of_strangers
from plainrisk.form.file import ModelFile, PackedState
from plainrisk.form.links import at_odds
from plainrisk.schema import Schema

if TYPE_CHECKING:
    from plainrisk.receipts import Receipt

__all__ = ["CUTOFF", "FormMethods", "RiskModel", "load", "loaded", "sign"]

LOG = logging.getLogger("plainrisk")
T = TypeVar("T")

CUTOFF = NOTHING | PROBABILITY
ABOUT = Allowed(
    ("a dict of texts by name",),
    lambda value: isinstance(value, Mapping) and all(isinstance(t, str) for item in value.items() for t in item),
)

FRAMED_ROWS = 20  # of an explanation, that its page in a notebook holds


class FormMethods(PackedState):
    """What any owner of a risk form can do with it; needs `form_`, `fit_record_`, `classes_` and `positive_`.

    The examples of all methods start from

    >>> import plainrisk as pr
    >>> german = pr.datasets.load("german")
    >>> model = pr.AdditiveRiskModel(german.schema).fit(german.frame, german.target)
    """

    form_: RiskForm
    fit_record_: FitRecord | None
    about: Mapping[str, str] = MappingProxyType({})
    # The file of format 1 that the model was read from, where its hash does not cover the fit record.
    _unprotected_file: str | None = None
    classes_: Array
    positive_: Any

    def _set_classes(self, outcomes: Array) -> None:
        """Keep the two outcomes, given with the positive one last, in the order that scikit-learn expects."""
        self.classes_ = np.sort(outcomes)
        positive = outcomes[1]
        self.positive_ = positive.item() if hasattr(positive, "item") else positive

    @property
    def _outcomes(self) -> Array:
        """The two outcomes, the positive one last."""
        return self.classes_ if self.classes_[1] == self.positive_ else self.classes_[::-1]

    def _by_class(self, probabilities: Floats) -> Floats:
        """Put the columns of (the other outcome, the positive one) into the order of `classes_`."""
        return probabilities if self.classes_[1] == self.positive_ else probabilities[:, ::-1]

    def predict_proba(self, X: Any, *, columns: Sequence[str] | None = None) -> Floats:
        """Return the probabilities of the two outcomes.

        Parameters
        ----------
        X : rows
            pandas, polars, arrow or numpy; or one row as a dict.
        columns : list of str, default=None
            The names of the columns, for rows that have none.

        Returns
        -------
        array of shape (rows, 2)
            In the order of `classes_`, which is sorted; `positive_` is the outcome whose probability is the risk.

        Examples
        --------
        >>> model.predict_proba(german.frame.head(2)).round(2)
        array([[0.05, 0.95],
               [0.75, 0.25]])
        """
        rows = _named(X, columns)
        probabilities = self._form.probabilities(rows)
        if len(probabilities) >= ENOUGH:
            warn_of_strangers(strangers(self.form_, self.form_.align(rows)), len(probabilities))
        return self._by_class(probabilities)

    @property
    def feature_importances_(self) -> Floats:
        """The mean absolute contribution of every column over the training rows, in shares that sum to 1.

        A pair counts half for each of its features. Curves and trees keep no counts of the training rows; their
        importance is in ``overview(X)``.
        """
        importance = column_importance(self._form)
        if importance is None:
            raise AttributeError(
                "feature_importances_ is for models of tables and lines. overview(X).importance takes rows."
            )
        return importance

    def predict(self, X: Any, *, columns: Sequence[str] | None = None) -> Array:
        """Return the likelier outcome of every row.

        Parameters
        ----------
        X : rows
        columns : list of str, default=None
            The names of the columns, for rows that have none.

        Returns
        -------
        array of shape (rows,)
            Of the labels in `classes_`.

        Examples
        --------
        >>> model.predict(german.frame.head(3)).tolist()
        [1, 0, 1]
        """
        likelier = self.predict_proba(X, columns=columns).argmax(axis=1)
        return np.asarray(self.classes_[likelier])

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, columns: Sequence[str] | None = None) -> float:
        """Return the accuracy, scikit-learn's score of a classifier.

        Parameters
        ----------
        X : rows
        y : the outcomes
        sample_weight : array of shape (rows,), default=None
        columns : list of str, default=None
            The names of the columns, for rows that have none.

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

        refuse_other_order(X, y=y, sample_weight=sample_weight)
        predicted = self.predict(X, columns=columns)
        try:
            return float(accuracy_score(y, predicted, sample_weight=sample_weight))
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
          row    risk  constant  Credit and loan  (no subscale)  Personal
            0  0.9548    0.7802          0.07133        0.04485   0.05847
            1  0.2513    0.7802          -0.1484        -0.3462  -0.03421
        """
        explanation = answers.explain(self._form, X, **options)
        return replace(explanation, view=functools.partial(_framed, self))

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
        >>> model.reasons(german.frame.head(2), k=2)
        Reasons against 2 applicants, at most 2, compared with 'best'
          row    risk  reason 1            reason 2
            0  0.9548  Checking account    Amount of the loan
            1  0.2513  Amount of the loan  Duration of the loan
        """
        return answers.reasons(self._form, X, *args, **options)

    @takes(DecideOptions)
    def decide(self, X: Any, *args: Any, **options: Any) -> Decisions:
        """Return who is approved and who is refused by the model's cut-off, with the reasons of the refused.

        Parameters
        ----------
        X : rows
        {options}

        Returns
        -------
        Decisions

        Examples
        --------
        >>> print(model.decide(german.frame[1:2]).letter(0).splitlines()[0])
        We are sorry that we cannot approve your application.
        """
        return answers.decide(self._form, X, *args, **options)

    def receipt(self, x: Any, *, key: str | Path, time: datetime | None = None) -> Receipt:
        """Return a signed record of the decision on one row, which anybody can check offline (`pr.verify_receipt`).

        It contains the model's hash, the probability, the decision, its reasons, the changes that would reverse it
        and, of the inputs, only salted hashes.

        Parameters
        ----------
        x : one row
        key : str or Path
            The private key, on the curve P-256 (see `sign`).
        time : datetime, default=None
            The time of the decision, with a time zone; None takes now.

        Returns
        -------
        Receipt

        Examples
        --------
        >>> import tempfile
        >>> from plainrisk.signing import new_key
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     public = new_key(f"{folder}/key.pem")
        ...     receipt = model.receipt(german.frame[1:2], key=f"{folder}/key.pem")
        >>> receipt.record.decision, [reason.words for reason in receipt.record.reasons][:1]
        ('refused', ['Amount of the loan'])
        """
        from plainrisk.receipts import ReceiptMaker

        frame = self._form.align(x)
        if frame.n_rows != 1:
            raise DataError(f"receipt answers for one row, not {frame.n_rows:,}.")
        return ReceiptMaker.of(self.form_, key).receipts(frame, time)[0]

    @property
    def cutoff(self) -> float | None:
        """The cut-off of the model's policy, or None."""
        return self._form.schema.policy.cutoff

    def annotate(
        self,
        changes: Mapping[str, Any] | Schema | None = None,
        *,
        cutoff: float | None = None,
        about: Mapping[str, str] | None = None,
    ) -> RiskModel:
        """Return the model with different words, policy or texts about it; no probability changes.

        Parameters
        ----------
        changes : dict with "outcome", "policy" and "features", or a Schema, default=None
            See `Schema.annotate`.
        cutoff : float, default=None
            Short for ``{"policy": {"cutoff": cutoff}}``.
        about : dict of texts by name, default=None
            Texts to keep, such as name, owner or purpose; an empty one is removed. The name is shown on the page.

        Returns
        -------
        RiskModel

        Examples
        --------
        >>> changed = model.annotate({"features": {"Housing": {"label": "Home"}}}, cutoff=0.6)
        >>> changed.cutoff, changed.form_.schema.title("Housing")
        (0.6, 'Home')
        """
        given, allowed = {"cutoff": cutoff, "about": about}, {"cutoff": CUTOFF, "about": ABOUT | NOTHING}
        check_parameters("annotate", given, allowed)
        schema = self._form.schema if changes is None else self.form_.schema.annotate(changes)
        if cutoff is not None:
            schema = schema.annotate({"policy": {"cutoff": float(cutoff)}})
        texts = {name: text for name, text in {**self.about, **(about or {})}.items() if text}
        form = msgspec.structs.replace(self.form_, schema=schema)
        check_words(form)
        return RiskModel(form, self.fit_record_, about=texts)

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
        >>> model.what_if(german.frame[1:2], target=0.6, answers=2)
        risk 0.2513, target at least 0.6:
          1. Credit amount: 5951 -> 3913 (risk 0.6678)
          2. Duration in month: 48 -> 11 (risk 0.6116)
        """
        return answers.what_if(self._form, x, *args, **options)

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
        >>> model.what_ifs(german.frame.head(2), target=0.6)
        WhatIfs of 2 applicants, 2 of whom can reach the target
          row    risk  reached  new_risk  features_changed  cost  changes
            0  0.9548     True    0.9548                 0     0
            1  0.2513     True    0.6678                 1     1  Credit amount: 5951 -> 3913
        """
        return answers.what_ifs(self._form, X, *args, **options)

    def overview(self, X: Any = None, *, columns: Sequence[str] | None = None) -> Overview:
        """Return the model at a glance: shape tables, importance, subscale weights.

        Parameters
        ----------
        X : rows, default=None
            Take the importance over these, not over the training counts. Curves and trees need rows.
        columns : list of str, default=None
            The names of the columns, for rows that have none.

        Returns
        -------
        Overview

        Examples
        --------
        >>> model.overview().importance[0].feature
        'Status of existing checking account'
        """
        return answers.overview(self._form, _named(X, columns))

    def effects(self, X: Any = None, *, refits: Refits | None = None, columns: Sequence[str] | None = None) -> Effects:
        """Return what one more unit, bin or category adds to the probability.

        Behind a line that is the same for everybody inside its range; behind bands it is one number per band; behind a
        sigmoid it depends on the applicant, and the range over nine in ten of them is given.

        Parameters
        ----------
        X : rows, default=None
            Take ranges over these. Without rows they are over the training rows, where the model keeps their
            probabilities, else over all applicants there could be.
        refits : Refits, default=None
            From `pr.bootstrap` or `posterior`, for intervals; a model fitted with ``intervals=True`` has them without.
        columns : list of str, default=None
            The names of the columns, for rows that have none.

        Returns
        -------
        Effects

        Examples
        --------
        >>> import warnings
        >>> lines = pr.make_classifier("LinNNLR", german.schema)
        >>> with warnings.catch_warnings():  # a line clips some rows, and says so
        ...     warnings.simplefilter("ignore")
        ...     effects = lines.fit(german.frame, german.target).effects()
        >>> print(effects.sentence(effects.of("Duration in month")[0]))
        Duration of the loan: -0.54 points per month, for everybody inside the linear range
        """
        check_parameters("effects", {"refits": refits}, {"refits": NOTHING | instance("refits", Refits)})
        return answers.effects(self._form, self.fit_record_, _named(X, columns), refits)

    def drift(
        self, new: Any, old: Any = None, *, y: Any = None, old_y: Any = None, columns: Sequence[str] | None = None
    ) -> Drift:
        """Return how far new rows have moved from old ones, and with outcomes how performance has changed.

        Parameters
        ----------
        new : rows
        old : rows, default=None
            None compares with the training rows, as the model file counts them.
        y : array of shape (new rows,), default=None
            Their outcomes; some may be missing.
        old_y : array of shape (old rows,), default=None
        columns : list of str, default=None
            The names of the columns, for rows that have none, new and old.

        Returns
        -------
        Drift

        Examples
        --------
        >>> model.drift(german.frame.head(100)).features[0].feature
        'Purpose'
        """
        self._require_form()
        before = None if old is None else _named(old, columns)
        record = self.fit_record_
        return answers.drift(self.form_, _named(new, columns), before, y=y, old_y=old_y, record=record)

    def report(
        self,
        path: str | Path,
        data: Any = None,
        *,
        against: FormMethods | None = None,
        applicants: int = 0,
        by: str | None = None,
        target: str | None = None,
        cutoff: float | None = None,
        title: str | None = None,
    ) -> None:
        """Write the decision page: one HTML file that shows the model, explains applicants and answers what-if.

        It contains the model itself and needs neither server nor network. It contains only summaries of `data`, unless
        `applicants` asks for rows.

        Parameters
        ----------
        path : str or Path
        data : rows, default=None
            A sample to measure the model on: calibration, AUC, cut-offs, drift.
        against : a model, default=None
            A second model, to compare with.
        applicants : int, default=0
            How many rows of the data the page holds as examples, from the least to the greatest risk.
        by : str, default=None
            A column of the data by whose groups the model is measured, too.
        target : str, default=None
            The column of the data with the outcomes; without it the schema's target, if the data have it.
        cutoff : float, default=None
            A cut-off to try, for a model whose policy has none; without it the base rate of training.
        title : str, default=None

        Examples
        --------
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.report(f"{folder}/page.html", german.frame)
        """
        self._require_form()
        payload = _payload(
            self,
            data,
            against=against,
            applicants=applicants,
            by=by,
            target=target,
            cutoff=cutoff,
            title=title,
        )
        from plainrisk.report import page

        write_text(path, page(payload))

    def document(
        self,
        path: str | Path,
        data: Any,
        y: Any = None,
        *,
        train: Any = None,
        train_y: Any = None,
        against: Any = None,
        time: str | None = None,
        by: Sequence[str] = (),
        target: str | None = None,
        profile: str = "plain",
    ) -> Any:
        """Write the model document: measured, checked and marked where a person must complete it; a file to sign.

        Every figure is computed from the model and the rows, and is also in a JSON file next to the document
        (model.docx.json for model.docx). The same input gives the same bytes.

        Parameters
        ----------
        path : str or Path
            A .docx, .md or .html file.
        data : rows
            With outcomes, that the model was not fitted to.
        y : array of shape (rows,), default=None
            The outcomes; None takes the column `target`.
        train, train_y : rows and their outcomes, default=None
            The training rows: for prices of rules, challengers and a second fit, which take minutes.
        against : a model, the name of a column or array of shape (rows,), default=None
            Another model, or its probabilities, to compare with.
        time : str, default=None
            The column of periods, such as the month.
        by : list of str, default=()
            Columns of groups or segments.
        target : str, default=None
            The column of outcomes; None takes the schema's.
        profile : {"plain", "sr-26-2", "ss1-23", "ai-act"}, default="plain"
            The order and the names of the chapters.

        Returns
        -------
        plainrisk.document.Written
            The two files, the limitations that were found and the gaps that people must complete.

        Examples
        --------
        >>> import tempfile
        >>> rows, outcomes = german.frame[700:], german.target[700:]
        >>> fitted = pr.AdditiveRiskModel(german.schema).fit(german.frame[:700], german.target[:700])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     written = fitted.document(f"{folder}/model.md", rows, outcomes)
        >>> any("reads protected features" in limitation["text"] for limitation in written.limitations)
        True
        """
        # The only call upward: a document needs measures from packages above `model`, so they are imported when
        # called.
        made = importlib.import_module("plainrisk.document")
        made.check_path(path, profile)
        given = {"train": train, "train_y": train_y, "against": against, "time": time, "by": by, "target": target}
        return made.write_document(made.gather(self, data, y, **given), path, profile=profile)

    def _repr_html_(self) -> str | None:
        """Return the decision page in a frame, for notebooks; before a fit, scikit-learn's diagram.

        ``sklearn.utils.estimator_html_repr(model)`` gives the diagram of a fitted model, too.
        """
        if not hasattr(self, "form_"):
            diagram = getattr(super(), "_repr_html_", None)
            return None if diagram is None else diagram()
        return _framed(self)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        """Return what notebooks show: the page or the diagram unless scikit-learn is set to display text."""
        try:
            html = self._repr_html_()
        except AttributeError:  # scikit-learn hides its diagram this way where display="text"
            html = None
        return {"text/plain": repr(self)} | ({} if html is None else {"text/html": html})

    def certify(self, *, thin: float = 30.0) -> Certificate:
        """Check from the form alone that the model has the properties it claims.

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
        Certificate: valid, 7 of 7 checks hold, 3 notes
        """
        return answers.certify(self._form, thin=thin)

    def scorecard(
        self,
        *,
        points: float = 600.0,
        odds: float = 50.0,
        pdo: float = 20.0,
        decimals: int | None = None,
    ) -> Scorecard:
        """Return a scorecard: whole points per level that add up, with weight of evidence and information value.

        One part behind a sigmoid, or behind bands, has points of log odds: more points mean less risk. Where every link
        is a line, points are percentage points of the probability.

        Parameters
        ----------
        points, odds : float, default=600.0 and 50.0
            These points stand for these odds of good to bad.
        pdo : float, default=20.0
            The points that double the odds.
        decimals : int, default=None
            Of the points; None is 0 for log odds and 1 for percentage points.

        Returns
        -------
        Scorecard

        Examples
        --------
        >>> card = model.scorecard()
        >>> [(row.level, row.points) for row in card.rows if row.feature == "Housing"]
        [('A151', 16.0), ('A152', 28.0), ('A153', 33.0), ('missing', 26.0), ('unseen', 26.0)]
        >>> print(card.facts()[0])
        600 points stand for odds of 50 good to 1 bad, and 20 points more double the odds. The points of all levels
        add up; more points mean less risk.
        """
        return answers.scorecard(self._form, points=points, odds=odds, pdo=pdo, decimals=decimals)

    def schema_with_bins(self) -> Schema:
        """Return the model's schema with the bins, categories and groups that were found, to edit and fit again.

        Step shapes fitted with it on the same rows have the same bins. A feature without a table (a line, a curve, one
        that only trees or pairs read) does not change.

        Returns
        -------
        Schema

        Examples
        --------
        >>> schema = model.schema_with_bins()
        >>> schema.features["Duration in month"].edges
        (11.5, 15.5, 34.5, 43.5)
        >>> coarser = schema.edit("Duration in month", merge=[(0, 1)])
        """
        return schema_with_bins(self._form)

    def posterior(self, n: int = 200, seed: int = 0) -> Refits:
        """Return models drawn from the posterior of a smooth model's scores: credible intervals without a bootstrap.

        The model was fitted with ``intervals=True``. Draws may break directions; the model itself never does.
        In simulations, intervals of 90% covered 91% of the true probabilities where shapes are straight, and 84 to 86%
        where they jump, since bins blur a jump (docs/choices.md).

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

    def save(self, path: str | Path, *, cutoff: float | None = None, about: Mapping[str, str] | None = None) -> None:
        """Write the model, with its certificate, to a JSON file, which `plainrisk.load` reads.

        Parameters
        ----------
        path : str or Path
        cutoff : float, default=None
            The risk from which applicants are refused; None keeps the model's own, if it has one.
        about : dict of texts, default=None
            Free texts by name, such as owner, purpose or approval, added to those that the model has.

        Examples
        --------
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.save(f"{folder}/model.json", cutoff=0.2, about={"owner": "Retail credit"})
        ...     loaded = pr.load(f"{folder}/model.json")
        >>> loaded
        RiskModel(20 features, parts: all)
        >>> loaded.cutoff, loaded.about
        (0.2, {'owner': 'Retail credit'})
        """
        model = self.annotate(cutoff=cutoff, about=about)
        write_model(path, model.form_, model.fit_record_, answers.certify(model.form_), model.about)
        LOG.info("wrote the model file %s", path)

    def export(
        self,
        path: str | Path,
        *,
        target: str | None = None,
        dialect: str | None = None,
        table: str = "applicants",
        keep: Sequence[str] = (),
        k: int | None = None,
        portfolio: Any = None,
    ) -> None:
        """Write the model as code, SQL or a file of another format, with its contributions, reasons and decisions.

        Parameters
        ----------
        path : str or Path
            Its ending sets the format: .sql, .py, .js, .mjs, .c, .onnx, .xlsx, .pmml or .xml.
        target : {"sql", "python", "javascript", "c", "onnx", "xlsx", "pmml"}, default=None
            The format; by default, that of the ending.
        dialect : str, default=None
            Of SQL: duckdb, postgres, sqlite, spark, snowflake, bigquery, tsql or redshift.
        table : str, default="applicants"
            Of SQL: the table that is read, with its schema if need be ("risk.applicants").
        keep : list of str, default=()
            Of SQL: columns of the table that stand before the answers.
        k : int, default=None
            The largest number of reasons, not above the policy's; without it the policy's, or 4.
        portfolio : rows, default=None
            The portfolio rows, for references that need them (lines, curves and trees).

        Examples
        --------
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.export(f"{folder}/score.py", k=2)
        ...     pr.verify_export(f"{folder}/score.py", model).agrees
        True
        """
        from plainrisk.exports import ExportOptions, write_export

        write_export(self._form, path, ExportOptions(target, dialect, table, keep, k=k, portfolio=portfolio))

    def at_base_rate(self, base_rate: float | None = None) -> RiskModel:
        """Return the model corrected for training at another base rate than it is used at.

        Training with class weights, or on rows of which one outcome was sampled less, multiplies the odds by a
        constant; this takes it back. With a logistic last link that is a shift of the intercept. A line or bands
        become bands of more pieces, which are within 0.005 of the exact correction everywhere, in the same order. A
        cut-off is not kept, since it was chosen for other probabilities.

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
            warn(
                f"{self._unprotected_file} is a model file of format 1, whose hash does not cover the base rate that "
                "is corrected here. Fit and save the model again to protect it.",
            )
        trained = record.positive_weight / record.weight
        new_rate = record.base_rate if base_rate is None else base_rate
        check_parameters("at_base_rate", {"base_rate": new_rate}, {"base_rate": LEVEL})
        shift = math.log(new_rate / (1 - new_rate)) - math.log(trained / (1 - trained))
        new_record = msgspec.structs.replace(record, positive_weight=new_rate * record.weight, risks=None)
        schema = self.form_.schema
        policy = msgspec.structs.replace(schema.policy, cutoff=None)
        form = msgspec.structs.replace(self.form_, schema=schema.replace(policy=policy))
        return RiskModel(_at_odds(form, shift), new_record, about=self.about)

    @property
    def _form(self) -> RiskForm:
        """The form; without a fit, an error."""
        self._require_form()
        return self.form_

    def _require_form(self) -> None:
        if not hasattr(self, "form_"):
            from sklearn.utils.validation import check_is_fitted

            check_is_fitted(self, "form_")


class RiskModel(FormMethods):
    """A model read from a file, or derived from another: ready to score, explain and certify.

    For scikit-learn it is a fitted classifier, so its metrics, displays and inspection tools accept one. It has no
    parameters and cannot be fitted again. scikit-learn is loaded only if it is used.

    Attributes
    ----------
    form_ : RiskForm
    fit_record_ : how it was fitted, or None
    about : texts by name, such as owner, purpose or approval
    clipped_ : of a model made by `linearise`, the share of the rows given that its line cuts off; else None

    Examples
    --------
    >>> import plainrisk as pr
    >>> german = pr.datasets.load("german")
    >>> fitted = pr.make_classifier("ARM1", german.schema).fit(german.frame, german.target)
    >>> model = RiskModel(fitted.form_)
    >>> bool((model.predict_proba(german.frame) == fitted.predict_proba(german.frame)).all())
    True
    """

    clipped_: float | None = None

    def __init__(
        self,
        form: RiskForm,
        fit_record: FitRecord | None = None,
        *,
        about: Mapping[str, str] | None = None,
    ) -> None:
        given = {"form": form, "about": about or {}}
        check_parameters("RiskModel", given, {"form": instance("a RiskForm", RiskForm), "about": ABOUT})
        self.form_ = form
        self.fit_record_ = fit_record
        self.about = dict(about or {})
        self._set_classes(np.array(form.classes))

    def __repr__(self) -> str:
        return repr(self.form_).replace("RiskForm", "RiskModel", 1)

    @classmethod
    def from_fitted(
        cls, model: Any, X: Any = None, *, schema: Schema | None = None, y: Any = None, sample_weight: Any = None
    ) -> RiskModel:
        """Return a fitted logistic model of another library with our methods and exactly the same probabilities.

        `pr.linearise` replaces the sigmoid by a line in probability.

        Parameters
        ----------
        model : fitted model
            Logistic regressions of scikit-learn, statsmodels and glum, also in pipelines; EBM, LogisticGAM, scorecards
            of optbinning, boosted trees of scikit-learn, XGBoost and LightGBM.
        X : rows, default=None
            The training rows: they count rows per level and center every shape, so that 0 means neutral.
        schema : Schema, default=None
            Directions, labels, subscales and policy of the features.
        y, sample_weight : default=None
            Outcomes and weights of the rows X, for the bad rates per level.

        Returns
        -------
        RiskModel

        Examples
        --------
        >>> import plainrisk as pr
        >>> from sklearn.linear_model import LogisticRegression
        >>> german = pr.datasets.load("german")
        >>> X = german.frame[["Duration in month", "Credit amount"]]
        >>> regression = LogisticRegression(max_iter=1000).fit(X, german.target)
        >>> read = pr.RiskModel.from_fitted(regression, X)
        >>> bool(abs(read.predict_proba(X) - regression.predict_proba(X)).max() < 1e-12)
        True
        """
        from plainrisk.extract import extract_form

        return cls(extract_form(model, X, schema=schema, y=y, sample_weight=sample_weight))

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


def _framed(model: FormMethods, explanation: Explanation | None = None) -> str | None:
    """Return the decision page in a frame; None where scikit-learn is set to display text."""
    sklearn = sys.modules.get("sklearn")
    if sklearn is not None and sklearn.get_config()["display"] == "text":
        return None
    from plainrisk.report import frame

    rows = None if explanation is None or explanation.rows is None else explanation.rows.take(0, FRAMED_ROWS)
    return frame(_payload(model, shown=rows))


def _payload(model: FormMethods, data: Any = None, *, against: Any = None, **options: Any) -> dict[str, Any]:
    """Return the data of the decision page."""
    from plainrisk.report import Subject, collect, described

    check_parameters("report", {"against": against}, {"against": NOTHING | instance("a fitted model", FormMethods)})
    if against is not None:
        against._require_form()
    models = [model] if against is None else [model, against]
    names = [m.about.get("name") or described(m.form_, m.fit_record_) for m in models]
    subjects = [Subject(n, m.form_, m.fit_record_, m.about) for n, m in zip(names, models, strict=True)]
    return collect(subjects, data, **options)


def load(path: str | Path, *, key: str | Path | None = None, signature: str | Path | None = None) -> RiskModel:
    """Read a model file written by `save`.

    Parameters
    ----------
    path : str or Path
    key : str or Path, default=None
        The public key that the file must be signed by (see `sign`): nothing else is read.
    signature : str or Path, default=None
        The file of the signature; None takes the one next to the model file, with the same name and ".sig".

    Returns
    -------
    RiskModel

    Raises
    ------
    ModelFileError
        If the file is damaged, was changed, is too new or is no plainrisk model.
    SignatureError
        If the file is not signed by the key.

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
    return loaded(read_model(path, _by_key(path, key, signature)), path)


def loaded(content: ModelFile, path: str | Path) -> RiskModel:
    """Return the model of a file that was read."""
    model = RiskModel(content.form, content.fit, about=_given(content.about))
    if not content.protected:
        model._unprotected_file = str(path)
    LOG.info("read the model file %s: %s features, %s parts", path, len(content.form.features), len(content.form.parts))
    return model


def _by_key(path: str | Path, key: str | Path | None, signature: str | Path | None) -> Callable[[bytes], None] | None:
    """Return what raises unless the bytes of a file are signed by the key; None where no key is given."""
    if key is None:
        if signature is not None:
            raise DataError("load: a signature needs a key to check it. Add key=PUBLIC.")
        return None
    from plainrisk.signing import check_signature, read_public_key

    public = read_public_key(key)
    return lambda content: check_signature(content, path, public, signature)


def sign(path: str | Path, key: str | Path, *, output: str | Path | None = None) -> Path:
    """Sign a model file in the format of OpenSSF model signing, offline; `load` with the public key checks it.

    Parameters
    ----------
    path : str or Path
        A model file, which is read to see that it is one, and not changed.
    key : str or Path
        The private key, on the curve P-256, in PEM; the environment variable PLAINRISK_KEY_PASSWORD holds the password
        of one that is protected.
    output : str or Path, default=None
        The signature to write; None writes it next to the model file, with the ending ".sig".

    Returns
    -------
    Path
        The signature that was written.

    Examples
    --------
    >>> import tempfile
    >>> import plainrisk as pr
    >>> from plainrisk.signing import new_key
    >>> german = pr.datasets.load("german")
    >>> model = pr.AdditiveRiskModel(german.schema).fit(german.frame, german.target)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     public = new_key(f"{folder}/key.pem")
    ...     model.save(f"{folder}/model.json")
    ...     print(pr.sign(f"{folder}/model.json", f"{folder}/key.pem").name)
    ...     loaded = pr.load(f"{folder}/model.json", key=public)
    model.json.sig
    """
    from plainrisk.signing import make_bundle, read_private_key, signature_path

    private, read = read_private_key(key), bytearray()
    read_model(path, read.extend)
    place = signature_path(path) if output is None else Path(output)
    write_text(place, make_bundle(bytes(read), Path(path).name, private))
    return place


def _named(X: Any, columns: Sequence[str] | None) -> Any:
    """Return rows under the names that the caller gives them, or unchanged without names."""
    return X if columns is None else as_frame(X, columns)


def _given(value: T | msgspec.UnsetType) -> T | None:
    return None if value is msgspec.UNSET else value


def _at_odds(form: RiskForm, shift: float) -> RiskForm:
    """Return the form with the log odds of its risk shifted: a sigmoid's by the intercept, a line's by its bands."""
    if form.last_link is None:
        raise PlainriskError(
            "at_base_rate: a mixture that is not calibrated has no link to correct. Fit it with calibrate=True, or "
            "without class weights."
        )
    link, replace = form.last_link, msgspec.structs.replace
    if abs(shift) < 1e-12:  # rounding
        return form
    if not isinstance(link, Logistic):
        # The scores behind bands are log odds, and stay so; behind those of a mixture they are risks.
        moved = isinstance(link, Bands) and not isinstance(form.pool, Mixture)
        link = at_odds(link, math.exp(shift))
        shift = shift if moved else 0.0
        link = replace(link, knots=tuple(knot + shift for knot in link.knots))
    if isinstance(form.pool, Alone):
        part = form.parts[0]
        return replace(form, parts=(replace(part, intercept=part.intercept + shift, link=link),))
    if isinstance(form.pool, Mixture):
        return replace(form, pool=replace(form.pool, link=link))
    return replace(form, pool=replace(form.pool, intercept=form.pool.intercept + shift, link=link))
