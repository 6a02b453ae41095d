"""The risk form: shapes, links, pools, and its file."""

from plainrisk.form.file import (
    Certificate,
    Check,
    FitRecord,
    GroupEvidence,
    GroupKind,
    ModelFile,
    OutsideLevel,
    form_hash,
    read_model,
    write_model,
)
from plainrisk.form.form import Alone, Layer, Mixture, Pool, RiskForm, pool_score, schema_with_bins
from plainrisk.form.levels import Bins, Categories, Levels
from plainrisk.form.links import ALPHA_STAR, Bands, Linear, Link, Logistic
from plainrisk.form.outside import BOUNDS, held_scores, measured_levels, outside_rules
from plainrisk.form.risks import TrainedRisks
from plainrisk.form.shapes import Curve, Line, PairTable, Part, Shape, Table
from plainrisk.form.trees import Tree, TreeInput, TreePart

__all__ = [
    "ALPHA_STAR",
    "BOUNDS",
    "Alone",
    "Bands",
    "Bins",
    "Categories",
    "Certificate",
    "Check",
    "Curve",
    "FitRecord",
    "GroupEvidence",
    "GroupKind",
    "Layer",
    "Levels",
    "Line",
    "Linear",
    "Link",
    "Logistic",
    "Mixture",
    "ModelFile",
    "OutsideLevel",
    "PairTable",
    "Part",
    "Pool",
    "RiskForm",
    "Shape",
    "Table",
    "TrainedRisks",
    "Tree",
    "TreeInput",
    "TreePart",
    "form_hash",
    "held_scores",
    "measured_levels",
    "outside_rules",
    "pool_score",
    "read_model",
    "schema_with_bins",
    "write_model",
]
