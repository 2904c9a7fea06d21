"""RAM of a machine as people name it, with its bandwidth: type, transfers per second and channels."""

import re
from typing import Final

DEFAULT_RAM: Final = "DDR5-5600x2"
"""RAM that is assumed if none is named: two channels, as in the desktop machines of one or two gaming cards."""
_CHANNEL_BYTES: Final = 8
_NAMED: Final = re.compile(r"(?:LP)?DDR[2-6]X?-(\d{3,5})x(\d{1,2})", re.IGNORECASE)
_MEASURED: Final = re.compile(r"(\d{1,5}(?:\.\d{1,3})?) ?GB/s", re.IGNORECASE)
_MOST_BYTES_PER_S: Final = 10e12
_USUAL: Final = (
    ("DDR3-1600x2", "DDR3-1600, 2 channels"),
    ("DDR4-2666x2", "DDR4-2666, 2 channels"),
    ("DDR4-3200x2", "DDR4-3200, 2 channels"),
    ("DDR4-3600x2", "DDR4-3600, 2 channels"),
    ("DDR4-3200x4", "DDR4-3200, 4 channels"),
    ("DDR4-3200x8", "DDR4-3200, 8 channels"),
    ("DDR5-4800x2", "DDR5-4800, 2 channels"),
    ("DDR5-5600x2", "DDR5-5600, 2 channels"),
    ("DDR5-6000x2", "DDR5-6000, 2 channels"),
    ("DDR5-6400x2", "DDR5-6400, 2 channels"),
    ("DDR5-4800x8", "DDR5-4800, 8 channels"),
    ("DDR5-6400x8", "DDR5-6400, 8 channels"),
    ("DDR5-4800x12", "DDR5-4800, 12 channels"),
    ("DDR5-6400x12", "DDR5-6400, 12 channels"),
    ("LPDDR5-6400x2", "LPDDR5-6400, 128 bits wide"),
    ("LPDDR5X-7500x2", "LPDDR5X-7500, 128 bits wide"),
)


def ram_bytes_per_s(name: str | None) -> float:
    """Return the peak bandwidth of the RAM called `name`, by default of `DEFAULT_RAM`, in bytes per second.

    **Formula**: MT/s · 8 bytes · channels: a channel is 64 bits wide, in DDR5 as two halves of 32 bits.

    **Source**: JEDEC JESD79-4 (DDR4) and JESD79-5 (DDR5): 64 data bits of a module; JESD209-5 (LPDDR5), two channels
    of 64 bits standing for a bus of 128 bits.

    Raises:
        ValueError: If it names neither RAM nor a bandwidth.
    """
    text = (name or DEFAULT_RAM).strip()
    if named := _NAMED.fullmatch(text):
        return float(named[1]) * 1e6 * _CHANNEL_BYTES * int(named[2])
    if measured := _MEASURED.fullmatch(text):
        return float(measured[1]) * 1e9
    raise ValueError(f"{text[:40]!r} is neither RAM such as DDR5-5600x2 nor a bandwidth such as 89.6GB/s")


def known_ram(name: str | None) -> str | None:
    """Return `name` if it names RAM with a bandwidth above zero; reject any other text."""
    if name is not None and not 0 < ram_bytes_per_s(name) <= _MOST_BYTES_PER_S:
        raise ValueError(f"{name[:40]!r} has no bandwidth between 0 and 10,000 GB/s")
    return name


RAM_TITLES: Final = {name: f"{title} ({ram_bytes_per_s(name) / 1e9:.4g} GB/s)" for name, title in _USUAL}
"""Usual RAM by name, with its bandwidth."""
