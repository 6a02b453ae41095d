"""The reproduction of "Rethinking Log Odds": its tables, experiments and accounts of disagreements.

It is run from the repository and is no part of the installed package: ``python -m paper`` (or ``make paper``) runs the
studies of `paper.plans` and writes docs/results.
"""
