"""The feeds from which prices are fetched."""

import re

from planner.cost.price_feeds.registry import HOSTS, SOURCES


def test_each_source_has_a_key_of_its_own_and_a_plain_host():
    assert all(re.fullmatch(r"[a-z0-9-]+(\.[a-z0-9-]+)+", host) for host in HOSTS)
    assert len({source.key for source in SOURCES}) == len(SOURCES)
