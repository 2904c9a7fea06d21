"""The feeds from which prices are fetched."""

from planner.cost.price_feeds.registry import HOSTS, SOURCES


def test_the_sources_are_two_publishers_over_https():
    assert len(HOSTS) == 2
    assert len({source.key for source in SOURCES}) == len(SOURCES)
