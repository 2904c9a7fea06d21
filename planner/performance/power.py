"""Cards whose power limit keeps their matrix units far below the stated rate."""

from collections.abc import Mapping
from typing import Final

from planner.hardware.gpu import Gpu

_SHARES: Final[Mapping[str, float]] = {"tesla-t4": 24 / 65}
"""Share of the 16-bit dense rate that large products sustain.

**Source**: forums.developer.nvidia.com/t/about-gpu-peak-performance/264462: a T4 multiplies matrices of 4,096 rows at
24 TFLOP/s, its clock lowered to stay within 70 W.
"""


def share_within_power_limit(gpu: Gpu, share: float) -> float:
    """Return `share` of the 16-bit rate, or the share that the card's power limit sustains if that is less."""
    return min(share, _SHARES.get(gpu.id, share))
