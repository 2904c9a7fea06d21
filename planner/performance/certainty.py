"""Width of the intervals of speeds, by kind of work and by the number of sources that measured such work."""

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

Kind = Literal["training", "fine-tuning", "decode", "prefill", "requests", "images", "image training"]


class Spreads(NamedTuple):
    """Factors by which a speed may differ, where several sources measured such work, one did, or none.

    Four of five measured speeds lie within the factor; one in ten lies beyond each end.
    """

    several: float
    one: float
    none: float


SPREADS: Final[Mapping[Kind, Spreads]] = {
    "training": Spreads(several=1.15, one=1.22, none=1.6),
    "fine-tuning": Spreads(several=1.18, one=1.2, none=1.6),
    "decode": Spreads(several=1.2, one=1.2, none=1.6),
    "prefill": Spreads(several=1.18, one=1.18, none=1.6),
    "requests": Spreads(several=1.2, one=1.2, none=1.6),
    "images": Spreads(several=1.21, one=1.21, none=1.6),
    "image training": Spreads(several=1.21, one=1.21, none=1.6),
}
"""Factors of the interval of 80 %: the 80th percentile of the error of what was predicted with its source left out.

**Source**: benchmarks/throughput_accuracy.py, "left out". A class with fewer sources has no smaller factor than one
with more; those of prefill are of its rows together, of which three have several. Where none measured such work it is
1.6, the survey's factor for unknown cards, or more where rows have more.
"""
ONE_SOURCE: Final = "One source alone measured such work, so the interval is as wide as without it."


def spread_factor(kind: Kind, sources: int) -> float:
    """Return the factor by which a speed of `kind` may differ, measured by `sources` sources on such cards."""
    found = SPREADS[kind]
    return found.several if sources > 1 else found.one if sources else found.none
