"""Which texts of a ranking may be given, and which ones several candidates share."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from plainrisk.form import Bins
from plainrisk.form.ranking import Comparison, Ranking

LEVELS = Bins(edges=(1.0,))


@pytest.fixture
def ranking() -> Ranking:
    """Debt has words by level; age and sex are protected, and age may say what debt says."""
    return Ranking(
        comparison=Comparison(points=(), score=0.0, risk=0.5, keys=()),
        candidates=("income", "debt", "age", "sex"),
        subscales=("", "", "", ""),
        words=("income is low", "debt is high", "debt is unknown", "age", "sex"),
        base=np.array([0, 1, 3, 4]),
        by_level={1: ("debt", LEVELS, np.array([1, 2])), 2: ("age", LEVELS, np.array([3, 1]))},
        protected=np.array([False, False, True, True]),
        inquiries=np.array([False, False, False, False]),
        k=2,
        sign=1,
        by_subscale=False,
        cutoff=None,
    )


def test_words_of_protected_features_alone_are_never_given(ranking: Ranking) -> None:
    assert ranking.sayable == ("income is low", "debt is high", "debt is unknown", "", "")


def test_texts_of_several_candidates_are_known_with_their_owners(ranking: Ranking) -> None:
    assert ranking.shared == {1: [1, 2]}


def test_an_inquiry_may_be_a_further_reason(ranking: Ranking) -> None:
    assert ranking.width == 2
    assert replace(ranking, inquiries=np.array([False, True, False, False])).width == 3
