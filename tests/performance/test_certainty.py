"""Factors of the intervals of speeds."""

from planner.performance.certainty import SPREADS, spread_factor


def test_fewer_sources_never_make_an_interval_narrower() -> None:
    for kind in SPREADS:
        factors = [spread_factor(kind, sources) for sources in (0, 1, 2, 5)]
        assert factors == sorted(factors, reverse=True)
        assert factors[-1] == factors[-2] > 1
