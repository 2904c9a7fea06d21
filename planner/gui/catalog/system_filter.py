"""What systems can be narrowed by."""

from typing import Final

from planner.gui.catalog.filters import RecordFilter
from planner.gui.catalog.narrowed import Narrowed
from planner.gui.catalog.range_slider import round_stops
from planner.hardware.system_fields import SYSTEM_WORDS
from planner.hardware.system_query import SystemQuery
from planner.present.catalog.system_columns import SYSTEM_COLUMNS
from planner.present.catalog.system_row import SystemRow

_NUMBERS: Final = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)


def _itself(row: SystemRow) -> SystemRow:
    """Return the row: it is the record that queries read."""
    return row


SYSTEMS: Final = Narrowed(
    noun="system",
    things="systems",
    columns={column.key: column for column in SYSTEM_COLUMNS},
    words=SYSTEM_WORDS,
    ranges=("cards", "memory", "memory_each", "bandwidth", "bf16", "link", "power", "price", "rent", "year"),
    record_of=_itself,
    first=("vendor", "kind"),
    scales={"cards": _NUMBERS, "rent": round_stops([1, 20_000])},
    value_words={"price_kind": {kind: f"{kind} price" for kind in ("list", "street", "used")}},
    prefix="systems-",
)


class SystemFilter(RecordFilter):
    """What the systems are narrowed to."""

    of = SYSTEMS
    query: SystemQuery = SystemQuery()
