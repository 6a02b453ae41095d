"""Convex problems under bounds, solved to a certificate; knows arrays and sums over rows only."""

from plainrisk.solve.evidence import Evidence, Hyperprior, averaged, log_factors, maximise_evidence, polished
from plainrisk.solve.loss import LogisticLoss
from plainrisk.solve.newton import BOX, Solution, kkt_residual, minimise
from plainrisk.solve.rows import Block, Layout, MappedRows, Rows
from plainrisk.solve.squares import Moments, minimise_squares

__all__ = [
    "BOX",
    "Block",
    "Evidence",
    "Hyperprior",
    "Layout",
    "LogisticLoss",
    "MappedRows",
    "Moments",
    "Rows",
    "Solution",
    "averaged",
    "kkt_residual",
    "log_factors",
    "maximise_evidence",
    "minimise",
    "minimise_squares",
    "polished",
]
