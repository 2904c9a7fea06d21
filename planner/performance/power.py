"""Cards whose power limit keeps the matrix units far below their dense rate."""

from collections.abc import Mapping
from typing import Final

from planner.hardware.gpu import Gpu

_SUSTAINED_SHARES: Final[Mapping[str, float]] = {"tesla-t4": 24 / 65}
"""Share of the 16-bit dense rate that large matrix products sustain within the power limit, by catalog id.

**Source**: forums.developer.nvidia.com/t/about-gpu-peak-performance/264462: a T4 multiplies matrices of 4,096 rows at
24 TFLOP/s, its clock lowered to stay within 70 W.
"""


def share_within_power_limit(gpu: Gpu, share: float) -> float:
    """Return `share` of the 16-bit rate, capped at what the card sustains within its power limit."""
    return min(share, _SUSTAINED_SHARES.get(gpu.id, share))
