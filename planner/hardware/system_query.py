"""What to look for among systems."""

from planner.hardware.query import Query
from planner.hardware.system import PriceKind, SystemKind, Topology
from planner.hardware.system_fields import SYSTEM_WORDS


class SystemQuery(Query):
    """What to look for among systems; None among chosen values finds those of which it is not known."""

    words = SYSTEM_WORDS
    vendors: tuple[str, ...] = ()
    kinds: tuple[SystemKind, ...] = ()
    price_kinds: tuple[PriceKind | None, ...] = ()
    topologies: tuple[Topology | None, ...] = ()
    architectures: tuple[str | None, ...] = ()
