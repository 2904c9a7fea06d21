"""Snapshots of nvtop: JSON lists of cards, one after the other in a log.

Version 3.3.0 leaves out some commas (Syllo/nvtop issue 438), so they are put in where they lack.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from planner.monitor.recording.logs.cells import readings_of
from planner.monitor.recording.logs.names import NVTOP
from planner.monitor.recording.logs.ticks import Line

_NO_COMMA: Final = re.compile(r"([\"\dleE}\]])([ \t\r]*\n\s*\")")
_BETWEEN: Final = re.compile(r"[\s,]*")


def read_nvtop(text: str) -> Iterator[Line]:
    """Yield what each snapshot says of each card; what is half written at the end is left out."""
    for snapshot in _values(_NO_COMMA.sub(r"\1,\2", text)):
        cards = snapshot.get("gpus") if isinstance(snapshot, dict) else snapshot
        for number, card in enumerate(cards if isinstance(cards, list) else ()):
            if isinstance(card, dict):
                yield _line(number, card)


def _values(text: str) -> Iterator[Any]:
    decoder, place = json.JSONDecoder(), 0
    while (place := _after(text, place)) < len(text):
        try:
            value, place = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            return
        yield value


def _after(text: str, place: int) -> int:
    """Return where the next value begins."""
    match = _BETWEEN.match(text, place)
    return place if match is None else match.end()


def _line(number: int, card: dict[str, Any]) -> Line:
    cells = {key: str(value) for key, value in card.items() if isinstance(value, str | int | float)}
    return Line(None, readings_of(cells, NVTOP), str(number), cells.get("device_name"), place=cells.get("pci"))
