"""What the links of an accelerator carry, as its record tells it."""

import re
from typing import Final

_LINKS: Final = re.compile(r"(?:NVLink\d|NVLink-C2C|Fabric|ICI|NeuronLink-v\d|scale-up|RoCE)[^;]*?(\d+(?:\.\d+)?) GB/s")


def links_bytes_per_s(interconnect: str | None) -> float | None:
    """Return what all links of one accelerator carry, both directions together, as catalogs state it.

    None where `interconnect` names no links, or no figure of them.
    """
    found = _LINKS.search(interconnect or "")
    return float(found[1]) * 1e9 if found else None
