"""plainrisk as users of Spark's ML expect it: an Estimator and a Model, in Python only.

`RiskClassifier` fits any classifier of ours to a Spark table, by sums over its partitions. `RiskClassifierModel` scores
by native SQL, the expressions that `plainrisk export --dialect spark` prints: no Python runs on the executors. Both go
into a `Pipeline` and a `CrossValidator`, and are saved around our JSON file without a class of the JVM.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from pyspark import keyword_only
from pyspark.ml import Estimator, Model
from pyspark.ml.functions import array_to_vector
from pyspark.ml.param import Param, Params, TypeConverters
from pyspark.ml.util import (
    DefaultParamsReadable,
    DefaultParamsReader,
    DefaultParamsWritable,
    DefaultParamsWriter,
    MLReadable,
    MLReader,
    MLWritable,
    MLWriter,
)
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import DoubleType, StringType, StructField, StructType

from plainrisk.data.frame import as_frame
from plainrisk.data.remote import open_remote, write_remote
from plainrisk.data.rows import spark as spark_rows
from plainrisk.data.spark_errors import raised_by_spark
from plainrisk.data.texts import read_texts
from plainrisk.errors import DataError
from plainrisk.explain.options import ReasonOptions
from plainrisk.export import Program
from plainrisk.export.sql import sql_query
from plainrisk.exports import prepare
from plainrisk.form import RiskForm, TreePart
from plainrisk.model import RiskModel, load
from plainrisk.models.registry import make_classifier
from plainrisk.schema import Schema

__all__ = ["RiskClassifier", "RiskClassifierModel", "score_table"]

_ROW, _TABLE = "__plainrisk_row", "plainrisk_rows"
_ANSWER = "__plainrisk_{}".format


def _param(name: str, doc: str, convert: Any = TypeConverters.toString) -> Any:
    return Param(Params._dummy(), name, doc, typeConverter=convert)


def _schema_text(value: Any) -> str:
    """Return a schema as JSON: given as one, as its text, or as the path of its file."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        return value
    schema = value if isinstance(value, Schema) else Schema.load(value)
    return json.dumps(schema.to_dict(), sort_keys=True)


def _options_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(dict(value), sort_keys=True)


class _Columns(Params):  # type: ignore[misc]
    """The common base of an Estimator and its Model."""

    probabilityCol: Any = _param("probabilityCol", "vector of the probabilities of both outcomes; '' for none")
    rawPredictionCol: Any = _param("rawPredictionCol", "the same vector, where evaluators look for it; '' for none")
    predictionCol: Any = _param("predictionCol", "the likelier outcome; '' for none")
    riskCol: Any = _param("riskCol", "the probability of the positive outcome, a number; '' for none")
    reasonsCol: Any = _param("reasonsCol", "array of the reasons, the first one first; '' for none")
    contributionsCol: Any = _param("contributionsCol", "map from feature to its share of the probability; '' for none")
    decisionCol: Any = _param("decisionCol", "approved or refused, by the policy's cut-off; '' for none")
    problemCol: Any = _param("problemCol", "why a row cannot be scored; without it, such a row fails the job")

    def __init__(self) -> None:
        super().__init__()
        self._setDefault(
            probabilityCol="probability",
            rawPredictionCol="rawPrediction",
            predictionCol="prediction",
            riskCol="risk",
            reasonsCol="",
            contributionsCol="",
            decisionCol="",
            problemCol="",
        )

    def setParams(self, **params: Any) -> Any:
        """Set parameters by name."""
        return self._set(**params)

    def column(self, name: str) -> str:
        """Return the name of a column of answers; empty if it is not wanted."""
        return str(self.getOrDefault(self.getParam(name)))


class RiskClassifier(Estimator, _Columns, DefaultParamsReadable, DefaultParamsWritable):  # type: ignore[misc]
    """Fits a classifier of ours to a Spark table, by sums over its partitions.

    Parameters
    ----------
    schema : Schema, path of one, or its JSON text, optional
    classifier : str, default="SmoothARM1"
        One of `plainrisk.CLASSIFIERS`; those of boosted trees are refused.
    options : dict, optional
        Parameters of the classifier, such as {"pairs": "auto"}.
    labelCol : str, default: the schema's target, or "label"
    featuresCols : list of str, optional
        Plain columns; by default the features of the schema, or every column but outcome and weight.
    weightCol : str, optional
    probabilityCol, rawPredictionCol, predictionCol, riskCol, reasonsCol, contributionsCol, decisionCol : str
        Names of the columns that `transform` adds; "" for none.
    problemCol : str
        Why a row cannot be scored; without it, such a row fails the job.

    Examples
    --------
    >>> from plainrisk.spark import RiskClassifier                                            # doctest: +SKIP
    >>> model = RiskClassifier(schema="loans.toml", reasonsCol="reasons").fit(spark.table("loans"))   # doctest: +SKIP
    >>> model.transform(spark.table("applicants")).select("risk", "reasons").show()           # doctest: +SKIP
    """

    schema: Any = _param("schema", "what is known of the features, as JSON", _schema_text)
    classifier: Any = _param("classifier", "one of plainrisk.CLASSIFIERS")
    options: Any = _param("options", "parameters of the classifier, as JSON", _options_text)
    labelCol: Any = _param("labelCol", "the outcome")
    featuresCols: Any = _param("featuresCols", "the features, plain columns", TypeConverters.toListString)
    weightCol: Any = _param("weightCol", "the weight of every row")

    @keyword_only  # type: ignore[untyped-decorator]
    def __init__(
        self,
        *,
        schema: Any = None,
        classifier: str = "SmoothARM1",
        options: Mapping[str, Any] | None = None,
        labelCol: str | None = None,
        featuresCols: list[str] | None = None,
        weightCol: str | None = None,
        probabilityCol: str = "probability",
        rawPredictionCol: str = "rawPrediction",
        predictionCol: str = "prediction",
        riskCol: str = "risk",
        reasonsCol: str = "",
        contributionsCol: str = "",
        decisionCol: str = "",
        problemCol: str = "",
    ) -> None:
        super().__init__()
        self._setDefault(classifier="SmoothARM1", options="{}")
        self._set(**self._input_kwargs)

    def _fit(self, dataset: Any) -> RiskClassifierModel:
        stated = self._schema
        label, weight = self._label(stated), self._given(self.weightCol)
        not_features = [label] if weight is None else [label, weight]
        features = self._given(self.featuresCols) or list(stated.features if stated else ())
        features = features or [name for name in dataset.columns if name not in not_features]
        schema = stated if stated is None else stated.select(features)
        model = make_classifier(
            self.getOrDefault(self.classifier), schema, **json.loads(self.getOrDefault(self.options))
        )
        for name in (*features, *not_features):
            if name not in dataset.columns:
                raise DataError(f"Data: there is no column {name!r}.")
        rows = dataset.select(*(f"`{name.replace('`', '``')}`" for name in (*features, *not_features)))
        model.fit(spark_rows(rows, weight), y=label)
        fitted: RiskClassifierModel = self._copyValues(RiskClassifierModel(RiskModel(model.form_, model.fit_record_)))
        return fitted

    @property
    def _schema(self) -> Schema | None:
        text = self._given(self.schema)
        return None if text is None else Schema.from_dict(json.loads(text))

    def _label(self, schema: Schema | None) -> str:
        given = self._given(self.labelCol)
        if given is None and schema is not None:
            given = schema.target
        return "label" if given is None else given

    def _given(self, param: Any) -> Any:
        return self.getOrDefault(param) if self.isDefined(param) else None


class RiskClassifierModel(Model, _Columns, MLReadable, MLWritable):  # type: ignore[misc]
    """A fitted model that scores Spark tables.

    Parameters
    ----------
    risk_model : RiskModel
        Any model of ours will do: `RiskClassifierModel(plainrisk.load("model.json"))`.
    """

    def __init__(self, risk_model: RiskModel | None = None) -> None:
        super().__init__()
        self.risk_model = risk_model

    @property
    def form_(self) -> RiskForm:
        """The risk form."""
        if self.risk_model is None:
            raise DataError("RiskClassifierModel: there is no model in it. Pass one: RiskClassifierModel(model).")
        return self.risk_model.form_

    def copy(self, extra: Any = None) -> RiskClassifierModel:
        """Return the same model with other parameters."""
        copied: RiskClassifierModel = super().copy(extra)
        copied.risk_model = self.risk_model
        return copied

    def _transform(self, dataset: Any) -> Any:
        has_trees = any(isinstance(part, TreePart) for part in self.form_.parts)
        if has_trees and any(map(self.column, ("reasonsCol", "contributionsCol", "decisionCol"))):
            raise DataError("RiskClassifierModel: a sum of trees has no contributions and reasons by feature.")
        with raised_by_spark("scoring"):
            scored = self._by_arrow(dataset) if has_trees else self._by_sql(dataset)
            kept = [F.col(f"{_ROW}.`{name.replace('`', '``')}`").alias(name) for name in dataset.columns]
            return scored.select(*kept, *self._answers())

    @cached_property
    def _program(self) -> Program:
        return prepare(self.form_, ReasonOptions(), {"target": "sql", "dialect": "spark"})[0]

    def _by_sql(self, dataset: Any) -> Any:
        """Return the rows with all answers, by expressions that Spark runs itself."""
        features = [f"`{i.feature.replace('`', '``')}`" for i in self._program.inputs]
        packed = self._read(dataset.select(F.struct("*").alias(_ROW), *features))
        query = sql_query(self._program, "spark", _TABLE, [_ROW]).rstrip().rstrip(";")
        query = query.replace("{", "{{").replace("}", "}}").replace(f"`{_TABLE}`", "{rows}")
        return dataset.sparkSession.sql(query, rows=packed)

    def _read(self, packed: Any) -> Any:
        """Return the rows with texts and codes read as the schema states, by Python on the executors."""
        texts = {field.name for field in packed.schema if isinstance(field.dataType, StringType)}
        # Numbers are read already; the codes of categories may be of any type.
        stated, inputs = self.form_.schema.readings.items(), set(packed.columns)
        readings = {name: own for name, own in stated if name in (texts if own.is_number else inputs)}
        if not readings:
            return packed
        kinds = {name: DoubleType() if own.is_number else StringType() for name, own in readings.items()}
        fields = [StructField(f.name, kinds[f.name]) if f.name in kinds else f for f in packed.schema]

        def read(batches: Iterator[Any]) -> Iterator[Any]:
            import pyarrow

            for batch in batches:
                rows = pyarrow.Table.from_batches([batch])
                frame = read_texts(as_frame(rows.select(list(readings))), readings)
                for name, reading in readings.items():
                    if reading.is_number:
                        values = pyarrow.array(frame.numbers(name), from_pandas=True)
                    else:
                        labels = frame.labels(name)
                        values = pyarrow.array([*labels.labels, None], pyarrow.string()).take(
                            pyarrow.array(labels.codes % (len(labels.labels) + 1))  # a missing one is the last
                        )
                    rows = rows.set_column(rows.column_names.index(name), name, values)
                yield from rows.combine_chunks().to_batches()

        return packed.mapInArrow(read, StructType(fields))

    def _by_arrow(self, dataset: Any) -> Any:
        """Return the rows with their risk, by Python on the executors."""
        form, features = self.form_, self.form_.features
        packed = dataset.select(F.struct("*").alias(_ROW), *(f"`{name.replace('`', '``')}`" for name in features))
        schema = StructType([packed.schema[_ROW]]).add("risk", DoubleType()).add("problem", "string")

        def score(batches: Iterator[Any]) -> Iterator[Any]:
            import pyarrow

            for batch in batches:
                table = pyarrow.Table.from_batches([batch]).select(list(features))
                risk = pyarrow.array(form.risk(as_frame(table)))
                none = pyarrow.nulls(batch.num_rows, pyarrow.string())
                yield pyarrow.RecordBatch.from_arrays([batch.column(_ROW), risk, none], [_ROW, "risk", "problem"])

        return packed.mapInArrow(score, schema)

    def _answers(self) -> Iterator[Any]:
        """Yield the columns of answers that are wanted."""
        risk, problem = F.col("risk"), F.col("problem")
        if not self.column("problemCol"):
            # Spark evaluates an error only for the affected row, so no other row is touched.
            risk = F.when(problem.isNotNull(), F.raise_error(problem).cast("double")).otherwise(risk)
        positive_last = self._sorted_classes[1] == self.form_.classes[1]
        low, high = (1.0 - risk, risk) if positive_last else (risk, 1.0 - risk)
        vector = F.when(risk.isNotNull(), array_to_vector(F.array(low, high)))
        labels = [F.lit(float(c) if isinstance(c, int | float) else c) for c in self._sorted_classes]
        likelier = F.when(risk.isNotNull(), F.when(high > low, labels[1]).otherwise(labels[0]))
        columns = {
            "riskCol": risk,
            "probabilityCol": vector,
            "rawPredictionCol": vector,
            "predictionCol": likelier,
            "problemCol": problem,
        }
        for name, value in columns.items():
            if self.column(name):
                yield value.alias(self.column(name))
        if self.column("reasonsCol"):
            texts = [F.col(o.name) for o in self._program.outputs if re.fullmatch(r"reason_\d+", o.name)]
            yield F.filter(F.array(*texts), lambda text: text.isNotNull()).alias(self.column("reasonsCol"))
        if self.column("decisionCol"):
            if all(o.name != "decision" for o in self._program.outputs):
                raise DataError("RiskClassifierModel: decisionCol needs a cut-off: model.annotate(cutoff=...).")
            yield F.col("decision").alias(self.column("decisionCol"))
        if self.column("contributionsCol"):
            pieces = [o for o in self._program.outputs if o.name.startswith("part_")]
            pairs = [piece for o in pieces for piece in (F.lit(o.title), F.col(o.name))]
            yield F.create_map(*pairs).alias(self.column("contributionsCol"))

    @property
    def _sorted_classes(self) -> list[Any]:
        return sorted(self.form_.classes)

    def write(self) -> MLWriter:
        """Return what saves the model."""
        return _ModelWriter(self)

    @classmethod
    def read(cls) -> MLReader[Any]:
        """Return what reads a model."""
        return _ModelReader()


class _ModelWriter(MLWriter):  # type: ignore[misc]
    """Saves the columns as Spark does, with our JSON file next to them."""

    def __init__(self, model: RiskClassifierModel) -> None:
        super().__init__()
        self.model = model

    def saveImpl(self, path: str) -> None:
        """Save the model in a folder of any file system that Spark knows."""
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "model.json"
            assert self.model.risk_model is not None
            self.model.risk_model.save(file)
            text = file.read_text(encoding="utf-8")
        DefaultParamsWriter.saveMetadata(self.model, path, self.sparkSession)
        lines = self.sparkSession.createDataFrame([(text.rstrip("\n"),)], "value string")
        lines.coalesce(1).write.text(f"{path}/model")


class _ModelReader(MLReader):  # type: ignore[misc]
    """Reads what `_ModelWriter` saved."""

    def load(self, path: str) -> RiskClassifierModel:
        """Read a model; our file is checked against its hash."""
        metadata = DefaultParamsReader.loadMetadata(path, self.sparkSession)
        text = self.sparkSession.read.text(f"{path}/model", wholetext=True).first()[0]
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "model.json"
            file.write_text(text, encoding="utf-8")
            model = RiskClassifierModel(load(file))
        model._resetUid(metadata["uid"])
        DefaultParamsReader.getAndSetParams(model, metadata)
        return model


def score_table(
    model: RiskModel,
    data: str,
    output: str,
    *,
    keep: Sequence[str] = (),
    reasons: int = 0,
    decision: bool = False,
    master: str | None = None,
    conf: Sequence[str] = (),
) -> int:
    """Score a Spark table, write risk, decision and reasons next to the columns to keep, and count the rows.

    Parameters
    ----------
    data, master, conf : as for `plainrisk.data.remote.open_remote`
    output : a path of any file system that Spark knows; Parquet unless its ending differs
    keep : columns of the table
    reasons : how many at most
    decision : whether to add the decision
    """
    scorer = RiskClassifierModel(model).setParams(
        probabilityCol="",
        rawPredictionCol="",
        predictionCol="",
        problemCol="problem",
        reasonsCol="reasons" if reasons else "",
        decisionCol="decision" if decision else "",
    )
    scored = scorer.transform(open_remote(data, master, conf))
    columns = [*(F.col(f"`{name.replace('`', '``')}`") for name in keep), F.col("risk")]
    columns += [F.col("decision")] if decision else []
    for n in range(reasons):
        text = F.try_element_at("reasons", F.lit(n + 1))
        columns.append((F.when(F.col("decision") == "refused", text) if decision else text).alias(f"reason_{n + 1}"))
    with raised_by_spark("scoring"):
        return write_remote(scored.select(*columns, "problem"), output)
