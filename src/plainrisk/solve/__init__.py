"""Convex problems under bounds, solved to a certificate; knows arrays and sums over rows only."""

from plainrisk.solve.evidence import Evidence, Hyperprior, averaged, log_factors, maximize_evidence, polished
from plainrisk.solve.loss import LogisticLoss
from plainrisk.solve.newton import BOX, Solution, kkt_residual, minimize
from plainrisk.solve.rows import Block, Layout, MappedRows, Rows
from plainrisk.solve.squares import Moments, minimize_squares

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
    "maximize_evidence",
    "minimize",
    "minimize_squares",
    "polished",
]
