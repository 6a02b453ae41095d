"""A study with people: do they answer questions about applicants better in probability than in log odds?

`python -m plainrisk_lab.user_study build` writes the page that asks, `analyze` reads the files that come back, `power`
says how many people are needed. docs/user-study.md is the protocol.
"""

from plainrisk_lab.user_study.analysis import Analysis, analyze, people_needed
from plainrisk_lab.user_study.questions import build, german_form, make_study

__all__ = ["Analysis", "analyze", "build", "german_form", "make_study", "people_needed"]
