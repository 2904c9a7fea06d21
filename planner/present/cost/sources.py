"""The names of sources, short enough for a table."""

import re
from typing import Final

_DETAIL: Final = re.compile(r" ?; |: | \(")
_SHORT_SOURCE: Final = 48


def short_source(source: str) -> str:
    """Return the name of a source without what follows it: the file, the range, further ones."""
    name = _DETAIL.split(source, maxsplit=1)[0].strip()
    if name.startswith("github:"):
        name = name.partition(" ")[0].rstrip(",")
    return name if len(name) <= _SHORT_SOURCE else f"{name[: _SHORT_SOURCE - 1].rsplit(' ', 1)[0].rstrip(',')} …"
