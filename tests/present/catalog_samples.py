"""Cards, a system and prices made up for the tests of tables and details."""

from planner.cost.card_prices import CardPrices, PricePoint, PriceSpread
from planner.hardware.gpu import FigureNote, Gpu, Provenance, Rate
from planner.hardware.system import System
from planner.units import GIB

SOURCE = Provenance(basis="published", certainty="confirmed", source="a data sheet", as_of="2026-01-31")


def card(**changes):
    figures = {"memory_bytes": 24 * GIB, "launch_price_usd": 1200.0, "board_power_watts": 300.0, **changes}
    return Gpu(
        **{
            "id": "a-card",
            "name": "A GPU",
            "vendor": "NVIDIA",
            "segment": "consumer",
            "architecture": "Ada Lovelace",
            "memory_label": "24 GB",
            "provenance": SOURCE,
            **figures,
        }
    )


def point(usd, day="2026-10-01", **changes):
    return PricePoint(usd, day, **{"age_days": 10, "source": "a shop's page", **changes})


PRICES = CardPrices(
    bought={"street": PriceSpread((point(900.0), point(1100.0, "2026-09-01")))},
    rented={"on-demand": PriceSpread((point(0.5, seller="Someone", region="eu-1"), point(0.9)))},
    doubtful=(),
    servers=(),
)


SHEET = Provenance(basis="published", certainty="confirmed", source="Data sheet", as_of="2026-01-31")


DERIVED = Provenance(basis="derived", certainty="single-source", source="Sheet", as_of="2026-01-31", formula="a × b")


CARD = Gpu(
    id="card",
    name="Card",
    vendor="NVIDIA",
    segment="datacenter",
    architecture="Hopper",
    memory_label="80 GB",
    memory_bytes=80 * GIB,
    boost_clock_hz=1.98e9,
    shader_cores=16896,
    rates=(
        Rate(dtype="fp32", ops_per_s=67e12, unit="vector"),
        Rate(dtype="bf16", ops_per_s=989e12, unit="tensor", accumulate="fp32", provenance=DERIVED),
    ),
    provenance=SHEET,
    figure_notes=(FigureNote(field="boost_clock_hz", provenance=DERIVED),),
)


RACK = System(
    id="rack",
    name="Rack",
    vendor="NVIDIA",
    kind="rack",
    released="2025-06",
    gpu_id="card",
    gpu_count=72,
    memory_bytes=72 * 80 * GIB,
    price_usd=3e6,
    price_kind="estimate",
    price_date="2025",
    provenance=SHEET,
)


def details(groups):
    return {detail.title: detail for group in groups for detail in group.details}
