"""The risk form: shapes, links, pools, and the file they are kept in."""

from plainrisk.form.file import FitRecord, ModelFile, form_hash, read_model, write_model
from plainrisk.form.form import Alone, Layer, Mixture, Part, Pool, RiskForm
from plainrisk.form.levels import Bins, Categories, Levels
from plainrisk.form.links import Linear, Link, Logistic
from plainrisk.form.shapes import Line, Shape, Table

__all__ = [
    "Alone",
    "Bins",
    "Categories",
    "FitRecord",
    "Layer",
    "Levels",
    "Line",
    "Linear",
    "Link",
    "Logistic",
    "Mixture",
    "ModelFile",
    "Part",
    "Pool",
    "RiskForm",
    "Shape",
    "Table",
    "form_hash",
    "read_model",
    "write_model",
]
