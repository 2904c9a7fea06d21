"""Cards whose power limit holds their matrix units far below the rate that their makers state."""

from collections.abc import Mapping
from typing import Final

from planner.hardware.gpu import Gpu

_SHARES: Final[Mapping[str, float]] = {"tesla-t4": 24 / 65}
"""Share of the 16-bit dense rate that large products hold.

**Source**: forums.developer.nvidia.com/t/about-gpu-peak-performance/264462: a T4 multiplies matrices of 4,096 rows at
24 TFLOP/s, its clock lowered to stay within 70 W.
"""


def within_power(gpu: Gpu, share: float) -> float:
    """Return `share` of the 16-bit rate, or what the card's power lets it hold where that is less."""
    return min(share, _SHARES.get(gpu.id, share))
