"""Figures of cards and systems with their sources."""

from planner.hardware.catalog import HardwareCatalog
from planner.hardware.gpu import FigureNote, Gpu, Provenance, Rate
from planner.hardware.system import System
from planner.hardware.usable import UsableMemory
from planner.present import format as fmt
from planner.present.catalog.gpu_details import gpu_details
from planner.present.catalog.system_columns import SYSTEM_COLUMNS
from planner.present.catalog.system_details import system_details
from planner.present.catalog.system_row import system_rows
from planner.present.columns import MARK_MEANINGS, figure_detail, provenance_mark, provenance_text
from planner.units import GIB

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


def details(groups):
    return {detail.title: detail for group in groups for detail in group.details}


def test_one_sign_says_how_sure_a_figure_is():
    measured = SHEET.evolve(basis="measured")
    assert [provenance_mark(where) for where in (SHEET, DERIVED, measured)] == ["•", "ƒ", "m"]
    marks = {
        provenance_mark(SHEET.evolve(certainty=certainty))
        for certainty in ("confirmed", "single-source", "conflicting", "preliminary")
    }
    assert marks | {"ƒ", "m", "~", "y"} == {sign for sign, _ in MARK_MEANINGS}


def test_a_persons_own_figure_is_called_theirs():
    detail = figure_detail("Paid", "$720", Provenance.own("your own figure", "2026-11-01"))
    assert (detail.certainty, detail.mark, dict(MARK_MEANINGS)[detail.mark]) == ("yours", "y", "yours")
    assert detail.tooltip == "your own figure\nyours\nentered 1 November 2026"


def test_where_a_figure_comes_from_is_said_in_full():
    assert provenance_text(DERIVED) == "derived: a × b\nSheet\none source\nread 31 January 2026"
    detail = figure_detail("Memory", "80 GiB", SHEET, exact="85,899,345,920 B")
    assert detail.tooltip == f"85,899,345,920 B\n{detail.origin}"
    assert figure_detail("Memory", fmt.NOT_PUBLISHED, SHEET).tooltip == ""


def test_a_card_is_told_in_groups():
    groups = gpu_details(CARD)
    assert [group.title for group in groups] == [
        "Memory",
        "Dense rates on matrix units",
        "Rates on shader cores",
        "No rate published",
        "Chip",
        "Board",
    ]
    found = details(groups)
    assert (found["Physical"].text, found["Physical"].exact) == ("80.0\u2009GiB", "85,899,345,920\u2009B")
    assert (found["BF16, fp32 accumulation"].text, found["BF16, fp32 accumulation"].mark) == ("989\u2009TFLOPS", "ƒ")
    assert found["FP32"].text == "67\u2009TFLOPS"
    assert found["FP64, TF32, FP16, FP8, INT8, FP4"].text == fmt.NOT_PUBLISHED
    assert (found["Boost clock"].text, found["Boost clock"].mark) == ("1,980\u2009MHz", "ƒ")
    assert (found["Shader cores"].text, found["Matrix units"].text) == ("16,896", fmt.NOT_PUBLISHED)
    assert found["Usable by a program"].text == fmt.UNKNOWN


def test_a_card_without_matrix_units_has_no_group_for_them():
    plain = CARD.evolve(rates=(), boost_clock_hz=None)
    assert "Dense rates on matrix units" not in [group.title for group in gpu_details(plain)]
    every = tuple(
        Rate(dtype=dtype, ops_per_s=1e12, unit="tensor")
        for dtype in ("fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "int8", "fp4")
    )
    assert "Rates on shader cores" not in [group.title for group in gpu_details(CARD.evolve(rates=every))]


def test_only_a_card_whose_maker_numbers_its_targets_shows_one():
    assert details(gpu_details(CARD))["Compute capability"].text == fmt.UNKNOWN
    radeon = details(gpu_details(CARD.evolve(vendor="AMD", compute_capability="gfx1100")))
    assert (radeon["ROCm target"].text, "Compute capability" in radeon) == ("gfx1100", False)
    assert {"ROCm target", "Compute capability"}.isdisjoint(details(gpu_details(CARD.evolve(vendor="Google"))))


def test_usable_memory_is_measured_or_said_to_be_assumed():
    usable = UsableMemory(
        bytes=78 * GIB,
        low_bytes=77 * GIB,
        high_bytes=79 * GIB,
        certainty="assumed",
        source="the family",
        explanation="as other Hopper cards",
    )
    assumed = details(gpu_details(CARD, usable))["Usable by a program"]
    assert (assumed.text, assumed.mark) == ("78.0\u2009GiB", "~")
    assert "77.0 – 79.0" in assumed.exact
    measured = details(gpu_details(CARD.evolve(usable_memory_bytes=79 * GIB), usable))["Usable by a program"]
    assert (measured.text, measured.mark) == ("79.0\u2009GiB", "•")


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


def test_a_system_is_told_with_its_accelerators():
    unknown = System(id="box", name="Box", vendor="ACME", kind="server", provenance=SHEET)
    rows = system_rows(HardwareCatalog(gpus=(CARD,), systems=(RACK, unknown)))
    assert [row.id for row in rows] == ["rack", "box"]
    assert [row.accelerators for row in rows] == ["72 × Card", None]
    assert "72 × card" in rows[0].search_text
    found = details(system_details(rows[0]))
    assert found["Accelerators"].text == "72 × Card"
    assert found["Price (estimate)"].text == "$3,000,000"
    assert found["Total memory"].exact == fmt.exact_bytes(RACK.memory_bytes)
    assert details(system_details(rows[1]))["Price"].text == fmt.NOT_PUBLISHED


def test_system_columns_read_every_row():
    unknown = System(id="box", name="Box", vendor="ACME", kind="server", gpu_id="card", provenance=SHEET)
    rows = system_rows(HardwareCatalog(gpus=(CARD,), systems=(RACK, unknown)))
    for row in rows:
        for column in SYSTEM_COLUMNS:
            assert column.text(row)
            assert column.value(row) is None or column.value(row) != ""
            assert column.tooltip is None or column.tooltip(row) or column.key == "fits"
    columns = {column.key: column for column in SYSTEM_COLUMNS}
    assert columns["price"].tooltip(rows[0]).startswith("estimate price\n2025\n")
    assert columns["accelerators"].text(rows[1]) == "Card"
    assert columns["year"].text(rows[1]) == fmt.UNKNOWN


def test_a_power_limit_stands_beside_the_board_power():
    limited = CARD.evolve(board_power_watts=450.0, power_limit_watts=250.0)
    (board,) = [group for group in gpu_details(limited) if group.title == "Board"]
    told = {detail.title: detail.text for detail in board.details}
    assert (told["Board power"], told["Your power limit"]) == ("450\u2009W", "250\u2009W")


def test_a_figure_of_a_system_may_have_a_source_of_its_own():
    rack = RACK.evolve(max_power_watts=120_000, figure_notes=(FigureNote(field="max_power_watts", provenance=DERIVED),))
    (row,) = system_rows(HardwareCatalog(gpus=(CARD,), systems=(rack,)))
    found = details(system_details(row))
    assert found["Maximum power"].source == found["From the wall"].source == "Sheet"
    assert found["Released"].source == "Data sheet"
