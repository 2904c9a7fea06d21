"""What a PCIe link can carry."""

from typing import Final

# PCI Express Base Specification: transfers a second of one lane, and the share of bits that are data (8b/10b,
# 128b/130b; from generation 6 on 236 of 256 bytes of a flit carry packets).
_LANES: Final = {
    1: (2.5e9, 0.8),
    2: (5e9, 0.8),
    3: (8e9, 128 / 130),
    4: (16e9, 128 / 130),
    5: (32e9, 128 / 130),
    6: (64e9, 236 / 256),
}


def link_bytes_per_s(generation: float, lanes: float) -> float | None:
    """Return what a link carries in one direction, in bytes a second; none for a generation that is not known.

    **Formula** transfers a second × share of data bits × lanes ÷ 8.

    **Source** PCI Express Base Specification. Packets' heads take some of it too, a tenth or more.
    """
    lane = _LANES.get(int(generation))
    return None if lane is None else lane[0] * lane[1] * lanes / 8
