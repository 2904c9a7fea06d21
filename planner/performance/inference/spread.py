"""Uncertainty of inference times: the deviation of measurements from the estimate."""

from typing import Final, Literal

from planner.performance.efficiency import Family
from planner.performance.software.engine import Engine

Figure = Literal["decode", "prefill"]

_FACTORS: Final[dict[Figure, float]] = {"decode": 1.22, "prefill": 1.35}
"""Spread factors of measured card families: four of five held-out measurements lie within the factor.

**Source**: benchmarks/throughput_left_out.py, 80th percentiles: 1.19 in decoding, 1.29 in prompts, 1.31 queued.
"""
_UNMEASURED: Final = 1.6
"""Spread factor of a card family without measurements of the engine: the survey's factor for unknown cards."""


def request_spread_factor(figure: Figure, engine: Engine, family: Family) -> float:
    """Return the factor by which a prefill or decode time may differ; one case in ten lies beyond each end."""
    measured = engine.measured_decoding if figure == "decode" else engine.measured_prompts
    return _FACTORS[figure] if family in measured else _UNMEASURED


def is_decoding_measured(engine: Engine, family: Family) -> bool:
    """Return whether decoding with this engine was measured on this card family."""
    return family in engine.measured_decoding
