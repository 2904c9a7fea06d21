"""Which readings can go when there are more than one can draw, so that no extreme is lost."""

from typing import Final

import numpy as np

from planner.monitor.history.pyramid import Floats, Places

BUCKET_SECONDS: Final = 2.0
"""Of so long a time two readings are kept: as many as one a second."""


def kept(times: Floats, values: Floats) -> Places:
    """Return the places of the readings to keep, in their order: the lowest and the highest of each two seconds.

    Readings that were thinned already are all kept.
    """
    bucket = np.floor(times / BUCKET_SECONDS)
    order = np.lexsort((values, bucket))
    firsts = np.flatnonzero(np.diff(bucket, prepend=-np.inf))
    lasts = np.append(firsts[1:], len(times)) - 1
    return np.union1d(order[firsts], order[lasts])
