"""Convex problems under bounds, solved to a certificate; knows arrays only."""

from plainrisk.solve.blocks import BLOCK_ROWS, Block, Layout
from plainrisk.solve.bounded import BOX, minimise
from plainrisk.solve.certificate import Solution, kkt_residual
from plainrisk.solve.logistic import LogisticLoss, fit_rows
from plainrisk.solve.ridge_path import RidgePath, choose_ridge, stratified_folds
from plainrisk.solve.squares import PairCounts, count_pairs, minimise_squares

__all__ = [
    "BLOCK_ROWS",
    "BOX",
    "Block",
    "Layout",
    "LogisticLoss",
    "PairCounts",
    "RidgePath",
    "Solution",
    "choose_ridge",
    "count_pairs",
    "fit_rows",
    "kkt_residual",
    "minimise",
    "minimise_squares",
    "stratified_folds",
]
