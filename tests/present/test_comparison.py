"""Cards and systems side by side."""

from datetime import date

import pytest

from planner.cost.card_prices import CardPrices, PricePoint, PriceSpread
from planner.hardware.system import System
from planner.plan.catalog import load_catalog
from planner.plan.placement import try_on
from planner.plan.plan import ModelChoice, Plan
from planner.plan.prices import prices_of
from planner.present.catalog.comparison import (
    ComparisonEntry,
    comparison_markdown,
    comparison_rows,
    even_split_notes,
    side_by_side,
)
from planner.present.catalog.gpu_columns import GPU_COLUMNS
from planner.present.catalog.gpu_details import gpu_details
from planner.present.catalog.gpu_row import GpuRow, gpu_rows_without_plan
from planner.present.catalog.placement import fits, no_fit_reason
from planner.present.catalog.system_columns import SYSTEM_COLUMNS
from planner.present.catalog.system_details import system_details
from planner.present.catalog.system_row import SystemRow, system_rows
from planner.present.format import THIN
from planner.workload.parallel import Parallel
from planner.workload.workload import Inference, Training

TODAY = date(2026, 11, 22)


@pytest.fixture(scope="module")
def catalog():
    return load_catalog()


@pytest.fixture(scope="module")
def entries(catalog):
    small, large = (GpuRow(catalog.hardware.gpu(name)) for name in ("rtx-4090", "h100-sxm5-80gb"))
    system = catalog.hardware.system("dgx-h100")
    return (
        ComparisonEntry("accelerators:rtx-4090", small.gpu.name, 1, small),
        ComparisonEntry("systems:dgx-h100", system.name, 8, large, SystemRow(system, large.gpu)),
    )


def named(rows, group, title):
    return next(row for row in rows if (row.group, row.title) == (group, title))


def test_figures_are_compared_with_bars_and_the_best(entries):
    rows = side_by_side(entries, {})
    memory = named(rows, "All together", "Memory")
    assert [cell.text for cell in memory.cells] == ["24\u2009GiB", "640\u2009GiB"]
    assert [cell.is_best for cell in memory.cells] == [False, True]
    assert memory.cells[0].share == pytest.approx(24 / 640)
    power = named(rows, "One accelerator", "Power, W")
    assert [cell.is_best for cell in power.cells] == [True, False]
    assert not named(rows, "One accelerator", "Vendor").differs
    assert named(rows, "One accelerator", "Architecture").differs
    assert not any(row.group == "Your plan" for row in rows)
    assert named(rows, "All together", "Accelerators").cells[1].text == "8 × H100 SXM5 80 GB"


def test_a_machine_reads_as_in_its_pane_and_in_the_table_of_systems(entries, catalog):
    columns = {column.key: column for column in SYSTEM_COLUMNS}
    rows = {row.id: row for row in system_rows(catalog.hardware, software=catalog.software)}
    for name in ("dgx-h100", "dgx-spark", "dgx-2"):
        system = rows[name]
        (card,) = gpu_rows_without_plan((system.gpu,), catalog.hardware, {}, catalog.software)
        entry = ComparisonEntry(name, system.system.name, system.system.gpu_count, card, system)
        compared = side_by_side((entry, entries[0]), {})
        pane = {detail.title: detail.text for group in system_details(system) for detail in group.details}
        for key, title in (("bandwidth", "Bandwidth"), ("bf16", "BF16 dense")):
            text = named(compared, "All together", title).cells[0].text
            assert text == pane[f"Total {title if title[:2].isupper() else title.lower()}"]
            assert text.partition("\u2009")[0] == columns[key].text(system)
    assert named(compared, "All together", "BF16 dense").cells[0].text == "none"


def test_sums_say_their_formula_in_the_units_of_every_view(entries):
    rows = side_by_side(entries, {})
    bandwidth = named(rows, "All together", "Bandwidth")
    assert [cell.text for cell in bandwidth.cells] == ["1.01\u2009TB/s", "26.8\u2009TB/s"]
    assert bandwidth.cells[1].tooltip == "8 × 3,350\u2009GB/s (H100 SXM5 80 GB)"
    assert named(rows, "All together", "BF16 dense").cells[1].text == "7.92\u2009PFLOPS"


def test_the_plan_is_tried_on_each(entries, catalog):
    plan = Plan(model=ModelChoice(id="meta-llama/Llama-3.1-8B"), workload=Inference())
    tried = {entry.id: try_on(plan, entry.row.id, entry.count, catalog, TODAY) for entry in entries}
    rows = side_by_side(entries, tried)
    assert named(rows, "Your plan", "Fits").cells[0].text.startswith("Fits")
    assert named(rows, "Your plan", "Time").cells[0].text.endswith("per request")
    assert "tokens/s" in named(rows, "Your plan", "Pace").cells[0].text
    assert " per month" in named(rows, "Your plan", "Rented").cells[0].text
    assert named(rows, "Your plan", "Owned").cells[0].tooltip
    assert named(rows, "Your plan", "Memory needed per card").cells[0].value


def test_what_a_month_costs_stands_beside_what_its_work_costs(entries, catalog):
    plan = Plan(model=ModelChoice(id="meta-llama/Llama-3.1-8B"), workload=Inference())
    tried = {entry.id: try_on(plan, entry.row.id, entry.count, catalog, TODAY) for entry in entries}
    rows = side_by_side(entries, tried)
    for title in ("Rented", "Owned"):
        by_month, by_work = named(rows, "Your plan", title), named(rows, "Your plan", f"{title}, per million tokens")
        assert by_month.cells[0].value
        assert by_work.cells[0].value
        assert by_work.cells[0].text.startswith("$")
    hourly = named(rows, "Your plan", "Rented, per hour").cells[1]
    assert hourly.text.endswith(" per hour")
    assert "8 × $" in hourly.tooltip


def test_what_does_not_fit_takes_no_time_and_costs_nothing(entries, catalog):
    plan = Plan(model=ModelChoice(id="Qwen/Qwen3-32B"), workload=Inference())
    tried = {entry.id: try_on(plan, entry.row.id, entry.count, catalog, TODAY) for entry in entries}
    rows = side_by_side(entries, tried)
    assert named(rows, "Your plan", "Fits").cells[0].text.startswith("Does not fit")
    for title in ("Time", "Pace", "Rented", "Rented, per hour", "Rented, per million tokens", "Owned"):
        cells = named(rows, "Your plan", title).cells
        assert (cells[0].text, cells[0].value, cells[0].tooltip) == ("unknown", None, "The plan does not fit.")
        assert cells[1].value is not None


def test_what_cannot_run_takes_no_time_and_costs_nothing_and_says_why(catalog):
    tpu = GpuRow(catalog.hardware.gpu("tpu-v5e"))
    entry = ComparisonEntry("tpu", tpu.gpu.name, 1, tpu)
    for workload in (Inference(), Training()):
        plan = Plan(model=ModelChoice(id="openai-community/gpt2"), workload=workload)
        tried = try_on(plan, "tpu-v5e", 1, catalog, TODAY)
        assert not fits(tried.evaluation)
        assert no_fit_reason(tried.evaluation) == "; ".join(tried.evaluation.memory.unsupported)
        titles = {row.title for row in side_by_side((entry,), {"tpu": tried}) if row.group == "Your plan"}
        assert titles == {"Fits", "Memory needed per card"}


def test_a_card_of_unknown_usable_memory_is_not_judged(catalog):
    plan = Plan(model=ModelChoice(id="openai-community/gpt2"), workload=Inference())
    evaluation = try_on(plan, "rtx-4090", 1, catalog, TODAY).evaluation
    unknown = evaluation.evolve(memory=evaluation.memory.evolve(verdict=None))
    assert "not known" in no_fit_reason(unknown)


def test_cards_that_hold_it_together_but_not_each_are_told_to_share_it(entries, catalog):
    replicas = Inference(parallel=Parallel(sharing="manual"))
    plan = Plan(model=ModelChoice(id="meta-llama/Llama-3.1-70B"), workload=replicas)
    tried = {entry.id: try_on(plan, entry.row.id, entry.count, catalog, TODAY) for entry in entries}
    (note,) = even_split_notes(entries, tried)  # one card cannot be helped by sharing
    assert note.startswith("DGX H100: the plan puts the whole model on each card.")
    assert "on each" in named(side_by_side(entries, tried), "Your plan", "Fits").cells[1].text
    shared = plan.evolve(workload=Inference(parallel=Parallel(tensor=2)), gpu="rtx-4090", count=2)
    two = ComparisonEntry("two", "GeForce RTX 4090", 2, entries[0].row)
    assert even_split_notes((two,), {"two": try_on(shared, "rtx-4090", 2, catalog, TODAY)}) == ()
    assert even_split_notes((two,), {}) == ()


def test_a_few_small_cards_are_told_in_the_unit_of_one(catalog):
    small = [GpuRow(catalog.hardware.gpu(name)) for name in ("rtx-3090", "rtx-4090")]
    rows = side_by_side([ComparisonEntry(row.id, row.gpu.name, 2, row) for row in small], {})
    assert [cell.text.replace(THIN, " ") for cell in named(rows, "All together", "BF16 dense").cells] == [
        "142 TFLOPS",
        "330 TFLOPS",
    ]


def test_what_is_alike_has_no_best(catalog):
    cards = [GpuRow(catalog.hardware.gpu(name)) for name in ("rtx-3090", "rtx-3090-ti", "rtx-4090")]
    rows = side_by_side([ComparisonEntry(card.id, card.gpu.name, 1, card) for card in cards], {})
    assert not any(cell.is_best for cell in named(rows, "One accelerator", "Memory, GiB").cells)


def test_cards_without_a_price_at_launch_cost_what_shops_ask(entries, catalog):
    gpu = catalog.hardware.gpu("h100-sxm5-80gb")
    (row,) = gpu_rows_without_plan((gpu,), catalog.hardware, {gpu.id: prices_of(gpu, catalog, TODAY)}, catalog.software)
    price = named(
        side_by_side([ComparisonEntry("a", gpu.name, 8, row), entries[1]], {}), "All together", "Price"
    ).cells[0]
    assert price.text.endswith(" (street, Mar 2025)")
    assert price.value == 8 * row.prices.bought["street"].median_usd
    assert "without a host" in price.tooltip


def test_cards_of_the_persons_own_cost_what_was_paid(entries, catalog):
    paid = GpuRow(catalog.hardware.gpu("rtx-3090").evolve(purchase_price_usd=720.0))
    rows = side_by_side([ComparisonEntry("a", "RTX 3090", 2, paid), entries[1]], {})
    price = named(rows, "All together", "Price").cells[0]
    assert (price.text, price.value) == ("$1,440 as you paid", 1_440)
    assert named(rows, "One accelerator", "Paid").cells[0].text == "$720"


def test_what_cards_draw_at_a_limit_of_the_persons_own_says_so(entries, catalog):
    limited = GpuRow(catalog.hardware.gpu("rtx-3090").evolve(power_limit_watts=250.0))
    power = named(side_by_side([ComparisonEntry("a", "RTX 3090", 2, limited), entries[1]], {}), "All together", "Power")
    assert (power.cells[0].text, power.cells[0].value) == (f"500{THIN}W, cards at your limit", 500)
    unknown = GpuRow(limited.gpu.evolve(power_limit_watts=None, board_power_watts=None))
    power = named(side_by_side([ComparisonEntry("a", "RTX 3090", 2, unknown), entries[1]], {}), "All together", "Power")
    assert power.cells[0].text == "unknown"


def test_an_undated_price_second_hand_is_marked_and_without_any_price_nothing_is_claimed(entries, catalog):
    gpu = catalog.hardware.gpu("h100-sxm5-80gb")
    used = PriceSpread((PricePoint(900.0, None, None, "a page"),))
    prices = CardPrices(bought={"used": used}, rented={}, doubtful=(), servers=())
    known, unknown = (ComparisonEntry("a", "A card", 2, GpuRow(gpu, prices=each)) for each in (prices, None))
    cells = named(side_by_side([known, unknown, entries[1]], {}), "All together", "Price").cells
    assert [cell.text for cell in cells[:2]] == ["$1,800 (used, no date)", "unknown"]


def test_a_format_that_the_chip_lacks_is_not_merely_unpublished(catalog):
    gpu = catalog.hardware.gpu("a100-sxm4-80gb")
    (row,) = gpu_rows_without_plan((gpu,), catalog.hardware, {}, catalog.software)
    assert {column.key: column.text(row) for column in GPU_COLUMNS}["fp8"] == "none"
    assert {column.key: column.text(GpuRow(gpu)) for column in GPU_COLUMNS}["fp8"] == "not published"
    details = {line.title: line for group in gpu_details(gpu, row.usable, row.lacks) for line in group.details}
    assert details["FP8"].text == "none"
    assert details["FP8"].source


def test_what_cannot_be_tried_says_why(entries, catalog):
    plan = Plan(
        model=ModelChoice(id="meta-llama/Llama-3.1-8B"),
        workload=Inference(parallel=Parallel(tensor=8)),
        gpu="h100-sxm5-80gb",
        count=8,
    )
    failed = try_on(plan, "rtx-4090", 3, catalog, TODAY)
    assert failed.reason
    assert failed.evaluation is None
    missing = try_on(plan, "no-such-card", 8, catalog, TODAY)
    assert "no-such-card" in missing.reason
    rows = side_by_side(entries[:1], {entries[0].id: missing})
    assert not any(row.title == "Time" for row in rows)


def test_one_card_of_each_needs_no_sum(entries):
    rows = side_by_side(entries[:1], {})
    assert {row.group for row in rows} == {"One accelerator"}


def test_a_system_without_a_known_accelerator_says_what_is_known(entries):
    source = entries[1].system.system.provenance
    alone = System(id="box", name="A box", vendor="Someone", kind="server", provenance=source)
    entry = ComparisonEntry("systems:box", "A box", 1, None, SystemRow(alone, None))
    rows = side_by_side((entry, entries[1]), {})
    assert named(rows, "One accelerator", "Vendor").cells[0].text == "unknown"
    assert {named(rows, "All together", title).cells[0].text for title in ("Memory", "Power", "Links", "Price")} == {
        "unknown"
    }


def test_prices_of_cards_and_machines_are_told_apart_and_not_ranked(entries, catalog):
    dgx = catalog.hardware.system("dgx-a100-640gb")
    priced = ComparisonEntry("systems:dgx", dgx.name, 8, entries[0].row, SystemRow(dgx, entries[0].row.gpu))
    price = named(side_by_side((entries[0], priced), {}), "All together", "Price")
    assert price.cells[0].text == "$1,599 at launch"
    assert "(" in price.cells[1].text
    assert not any(cell.is_best or cell.share for cell in price.cells)


def test_it_becomes_a_table_in_markdown_and_rows_for_programs(entries):
    rows = side_by_side(entries, {})
    text = comparison_markdown(entries, rows)
    assert text.startswith("|  | 1 × GeForce RTX 4090 | NVIDIA DGX H100 |") or "DGX H100" in text.splitlines()[0]
    assert "**640\u2009GiB**" in text
    assert "| **One accelerator** |" in text
    assert comparison_rows(entries, rows)[0][:2] == ("group", "figure")


def test_before_the_plan_is_tried_it_says_so(entries, catalog):
    plan = Plan(model=ModelChoice(id="meta-llama/Llama-3.1-8B"), workload=Inference())
    first = try_on(plan, "rtx-4090", 1, catalog, TODAY)
    rows = side_by_side(entries, {entries[0].id: first})
    assert named(rows, "Your plan", "Fits").cells[1].text == "computing…"
    assert named(rows, "Your plan", "Rented").cells[1].text == "unknown"


def test_a_card_of_unknown_bandwidth_has_no_time_and_says_why(catalog):
    plan = Plan(model=ModelChoice(id="openai-community/gpt2"), workload=Inference())
    row = GpuRow(catalog.hardware.gpu("rtx-5880-ada"))
    placement = try_on(plan, "rtx-5880-ada", 1, catalog, TODAY)
    entries = (
        ComparisonEntry("card", row.gpu.name, 1, row),
        ComparisonEntry("known", "A known one", 1, GpuRow(catalog.hardware.gpu("l40s"))),
    )
    rows = side_by_side(entries, {"card": placement, "known": try_on(plan, "l40s", 1, catalog, TODAY)})
    unknown, known = named(rows, "Your plan", "Time").cells
    assert unknown.value is None
    assert "bandwidth" in unknown.tooltip
    assert known.value
