"""How people write several of one thing: `2 x RTX 3090`, `2×DGX H100`."""

import re
from typing import Final

# No card's name begins so; `7900XTX` has more digits.
_COUNTED: Final = re.compile(r"(\d{1,6})\s*(?:[x×]\s+|×)(\S.*)|(\d{1,3})x(\S.*)", re.IGNORECASE)


def counted(text: str) -> tuple[int | None, str]:
    """Return how many `text` asks for and of what; none, and the text as it is, where it names no number."""
    found = _COUNTED.fullmatch(text.strip())
    if found is None:
        return None, text
    number, name = (part for part in found.groups() if part is not None)
    return int(number), name
