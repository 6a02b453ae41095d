"""The reproduction of "Rethinking Log Odds": its tables, experiments and accounts of disagreements.

``python -m plainrisk_lab.paper`` (or ``make paper``) runs the studies of `plainrisk_lab.paper.plans` and writes
docs/results.
"""
