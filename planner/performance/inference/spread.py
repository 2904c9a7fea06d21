"""Uncertainty of inference times: the deviation of measurements from the estimate."""

from typing import Final, Literal

from planner.performance.efficiency import Family
from planner.performance.software.engine import Engine

Figure = Literal["decode", "prefill"]

_FACTORS: Final[dict[Figure, float]] = {"decode": 1.22, "prefill": 1.35}
"""Four of five held-out rows lie within this factor, leaving one card out at a time.

**Source**: benchmarks/throughput_left_out.py, 80th percentiles: 1.19 in decoding, 1.29 in prompts, 1.31 queued.
"""
_UNMEASURED: Final = 1.6
"""The spread factor for a card family without measurements of the engine: the survey's factor for unknown cards."""


def request_spread_factor(figure: Figure, engine: Engine, family: Family) -> float:
    """Return the factor by which a figure may be higher or lower; one case in ten lies beyond each end."""
    measured = engine.measured_decoding if figure == "decode" else engine.measured_prompts
    return _FACTORS[figure] if family in measured else _UNMEASURED


def is_decoding_measured(engine: Engine, family: Family) -> bool:
    """Return whether decoding was measured with this engine on cards of this family."""
    return family in engine.measured_decoding
