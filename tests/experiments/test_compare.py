"""McNemar's exact test: against published values, and the same with the two turned round."""

from __future__ import annotations

import pytest

from bilevel.experiments.statistics import mcnemar


def test_published_values() -> None:
    """Airway responsiveness before and after a transplantation, 21 pairs (Fagerland et al., 2014)."""
    assert mcnemar(1, 7) == pytest.approx(0.0703, abs=5e-5)
    assert mcnemar(0, 0) == mcnemar(3, 3) == 1.0
    assert mcnemar(2, 90) == mcnemar(90, 2) < 1e-20
