"""Comparison of cards and systems, side by side, with its notes."""

from datetime import date

import pytest

from planner.cost.card_prices import CardPrices, PricePoint, PriceSpread
from planner.cost.figure import Figure
from planner.hardware.system import System
from planner.performance.setting import TimeSetting
from planner.plan.placement import PlacementTarget, place_on_all, try_on
from planner.plan.plan import ModelChoice, Plan
from planner.plan.prices import prices_of
from planner.present.catalog.comparison import (
    ComparedCell,
    ComparedFigureRow,
    ComparisonEntry,
    best_value,
    card_entry,
    compared_notes,
    comparison_answer,
    comparison_markdown,
    comparison_rows,
    even_split_notes,
    infeasible_reason,
    is_feasible,
    side_by_side,
    system_entry,
)
from planner.present.catalog.gpu_columns import GPU_COLUMNS
from planner.present.catalog.gpu_details import gpu_details
from planner.present.catalog.gpu_row import GpuRow, gpu_row_without_plan, gpu_rows_without_plan
from planner.present.catalog.records import comparison_totals
from planner.present.catalog.system_columns import SYSTEM_COLUMNS
from planner.present.catalog.system_details import system_details
from planner.present.catalog.system_row import SystemRow, system_rows
from planner.present.format import THIN
from planner.workload.parallel import Parallel
from planner.workload.workload import Inference, Training

TODAY = date(2026, 11, 22)


def named(rows, group, title):
    return next(row for row in rows if (row.group, row.title) == (group, title))


PLAN = Plan(model=ModelChoice(id="meta-llama/Llama-3.1-8B"))


@pytest.fixture(scope="module")
def entry_of(catalog):
    def row_of(gpu):
        return gpu_row_without_plan(gpu, catalog.hardware, {}, ())

    def make(system_id, machines=1):
        system = catalog.hardware.system(system_id)
        return system_entry(f"systems:{system_id}@{machines}", system, catalog.hardware, row_of, machines)

    return make


def tried(plan, entries, catalog):
    return place_on_all(plan, {entry.id: entry.cards for entry in entries}, catalog, TODAY)


def cell(rows, title, place=0):
    return next(row for row in rows if row.title == title and row.group == "All together").cells[place]


def test_numeric_figures_have_bars_and_a_best_value(entries):
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


def test_a_machine_has_the_same_figures_as_in_its_details_and_its_table_row(entries, catalog):
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
    assert named(compared, "All together", "BF16 dense").cells[0].text == "not supported"


def test_totals_state_their_formula_in_the_units_of_other_views(entries):
    rows = side_by_side(entries, {})
    bandwidth = named(rows, "All together", "Bandwidth")
    assert [cell.text for cell in bandwidth.cells] == ["1.01\u2009TB/s", "26.8\u2009TB/s"]
    assert bandwidth.cells[1].tooltip == "8 × 3,350\u2009GB/s (H100 SXM5 80 GB)"
    assert named(rows, "All together", "BF16 dense").cells[1].text == "7.92\u2009PFLOPS"


def test_a_note_suggests_parallelism_where_the_plan_fits_only_if_split(entries, catalog):
    plan = Plan(
        model=ModelChoice(id="meta-llama/Llama-3.1-70B"), workload=Inference(parallel=Parallel(sharing="manual"))
    )
    tried = {entry.id: try_on(plan, entry.row.id, entry.count, catalog, TODAY) for entry in entries}
    (note,) = even_split_notes(entries, tried)  # one card cannot be helped by sharing
    assert note.startswith("DGX H100: the plan puts the whole model on each GPU.")
    assert "on each" in named(side_by_side(entries, tried), "Your plan", "Fits").cells[1].text
    shared = plan.evolve(workload=Inference(parallel=Parallel(tensor=2)), gpu="rtx-4090", count=2)
    two = ComparisonEntry("two", "GeForce RTX 4090", 2, entries[0].row)
    assert even_split_notes((two,), {"two": try_on(shared, "rtx-4090", 2, catalog, TODAY)}) == ()
    assert even_split_notes((two,), {}) == ()


def test_totals_of_small_cards_have_the_unit_of_one_card(catalog):
    small = [GpuRow(catalog.hardware.gpu(name)) for name in ("rtx-3090", "rtx-4090")]
    rows = side_by_side([ComparisonEntry(row.id, row.gpu.name, 2, row) for row in small], {})
    assert [cell.text.replace(THIN, " ") for cell in named(rows, "All together", "BF16 dense").cells] == [
        "142 TFLOPS",
        "330 TFLOPS",
    ]


def test_equal_figures_have_no_best_value(catalog):
    cards = [GpuRow(catalog.hardware.gpu(name)) for name in ("rtx-3090", "rtx-3090-ti", "rtx-4090")]
    rows = side_by_side([ComparisonEntry(card.id, card.gpu.name, 1, card) for card in cards], {})
    assert not any(cell.is_best for cell in named(rows, "One accelerator", "Memory, GiB").cells)


def test_cards_without_a_launch_price_have_their_street_price(entries, catalog):
    gpu = catalog.hardware.gpu("h100-sxm5-80gb")
    (row,) = gpu_rows_without_plan((gpu,), catalog.hardware, {gpu.id: prices_of(gpu, catalog, TODAY)}, catalog.software)
    price = named(
        side_by_side([ComparisonEntry("a", gpu.name, 8, row), entries[1]], {}), "All together", "Price"
    ).cells[0]
    assert price.text.endswith(" (street, Mar 2025)")
    assert price.value == 8 * row.prices.bought["street"].median_usd
    assert "without a host" in price.tooltip


def test_the_users_own_cards_have_the_price_that_was_paid(entries, catalog):
    paid = GpuRow(catalog.hardware.gpu("rtx-3090").evolve(purchase_price_usd=720.0))
    rows = side_by_side([ComparisonEntry("a", "RTX 3090", 2, paid), entries[1]], {})
    price = named(rows, "All together", "Price").cells[0]
    assert (price.text, price.value) == ("$1,440 as you paid", 1_440)
    assert named(rows, "One accelerator", "Paid").cells[0].text == "$720"


def test_power_at_the_users_limit_is_marked(entries, catalog):
    limited = GpuRow(catalog.hardware.gpu("rtx-3090").evolve(power_limit_watts=250.0))
    power = named(side_by_side([ComparisonEntry("a", "RTX 3090", 2, limited), entries[1]], {}), "All together", "Power")
    assert (power.cells[0].text, power.cells[0].value) == (f"500{THIN}W, GPUs at your limit", 500)
    unknown = GpuRow(limited.gpu.evolve(power_limit_watts=None, board_power_watts=None))
    power = named(side_by_side([ComparisonEntry("a", "RTX 3090", 2, unknown), entries[1]], {}), "All together", "Power")
    assert power.cells[0].text == "unknown"


@pytest.mark.parametrize(("certainty", "text"), [("quoted", "$3,600 (2026)"), ("assumed", "$3,600 (2026) at launch")])
def test_cards_have_the_price_of_the_table_of_cards(catalog, certainty, text):
    price = Figure(value=1_800.0, certainty=certainty, source="asked by sellers", date="2026-09-20")
    row = GpuRow(catalog.hardware.gpu("rtx-4090"), buying=price)
    figure = named(side_by_side((ComparisonEntry("a", "A GPU", 2, row),), {}), "All together", "Price").cells[0]
    assert (figure.text, figure.value) == (text, 3_600)
    assert figure.tooltip == "2 × $1,800, without a host\nAsked by sellers\n20 September 2026"


def test_an_undated_used_price_is_marked_and_a_missing_price_is_unknown(entries, catalog):
    gpu = catalog.hardware.gpu("h100-sxm5-80gb")
    used = PriceSpread((PricePoint(900.0, None, None, "a page"),))
    prices = CardPrices(bought={"used": used}, rented={}, doubtful=(), servers=())
    known, unknown = (ComparisonEntry("a", "A GPU", 2, GpuRow(gpu, prices=each)) for each in (prices, None))
    cells = named(side_by_side([known, unknown, entries[1]], {}), "All together", "Price").cells
    assert [cell.text for cell in cells[:2]] == ["$1,800 (used, no date)", "unknown"]


def test_an_unsupported_format_is_not_shown_as_unpublished(catalog):
    gpu = catalog.hardware.gpu("a100-sxm4-80gb")
    (row,) = gpu_rows_without_plan((gpu,), catalog.hardware, {}, catalog.software)
    assert {column.key: column.text(row) for column in GPU_COLUMNS}["fp8"] == "not supported"
    assert {column.key: column.text(GpuRow(gpu)) for column in GPU_COLUMNS}["fp8"] == "not published"
    details = {line.title: line for group in gpu_details(gpu, row.usable, row.lacks) for line in group.details}
    assert details["FP8"].text == "not supported"
    assert details["FP8"].source


def test_an_entry_without_an_evaluation_has_the_reason(entries, catalog):
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


def test_single_cards_have_no_totals(entries):
    rows = side_by_side(entries[:1], {})
    assert {row.group for row in rows} == {"One accelerator"}


def test_a_system_with_an_unknown_accelerator_has_its_own_figures(entries):
    source = entries[1].system.system.provenance
    alone = System(id="box", name="A box", vendor="Someone", kind="server", provenance=source)
    entry = ComparisonEntry("systems:box", "A box", 1, None, SystemRow(alone, None))
    rows = side_by_side((entry, entries[1]), {})
    assert named(rows, "One accelerator", "Vendor").cells[0].text == "unknown"
    assert {named(rows, "All together", title).cells[0].text for title in ("Memory", "Power", "Links", "Price")} == {
        "unknown"
    }


def test_prices_of_cards_and_of_machines_are_distinguished_and_not_ranked(entries, catalog):
    dgx = catalog.hardware.system("dgx-a100-640gb")
    priced = ComparisonEntry("systems:dgx", dgx.name, 8, entries[0].row, SystemRow(dgx, entries[0].row.gpu))
    price = named(side_by_side((entries[0], priced), {}), "All together", "Price")
    assert price.cells[0].text == "$1,599 at launch"
    assert "(" in price.cells[1].text
    assert not any(cell.is_best or cell.share for cell in price.cells)


def test_a_comparison_is_exported_as_markdown_and_as_rows(entries):
    rows = side_by_side(entries, {})
    text = comparison_markdown(entries, rows)
    assert text.startswith("|  | 1 × GeForce RTX 4090 | NVIDIA DGX H100 |") or "DGX H100" in text.splitlines()[0]
    assert "**640\u2009GiB**" in text
    assert "| **One accelerator** |" in text
    assert comparison_rows(entries, rows)[0][:2] == ("group", "figure")


def test_the_best_value_is_the_lowest_price_and_the_largest_memory():
    assert best_value((3.0, None, 2.0), lower_is_better=True) == 2.0
    assert best_value((3.0, None, 2.0), lower_is_better=False) == 3.0


def test_there_is_no_best_value_of_equal_ones_or_without_a_direction():
    assert best_value((3.0, 3.0, None), lower_is_better=False) is None
    assert best_value((2020, 2021), lower_is_better=None) is None
    assert best_value((None,), lower_is_better=False) is None


def test_several_machines_have_the_totals_of_one_times_their_number(entry_of):
    one, two = entry_of("dgx-h100"), entry_of("dgx-h100", 2)
    assert (one.title, two.title, two.count) == ("DGX H100", "2 × DGX H100", 16)
    assert (one.cards, two.cards) == (PlacementTarget("h100-sxm5-80gb", 8), PlacementTarget("h100-sxm5-80gb", 16, 8))
    rows = side_by_side((one, two), {})
    for title in ("Memory", "Bandwidth", "BF16 dense", "Power", "Price"):
        assert cell(rows, title, 1).value == 2 * cell(rows, title).value
    assert cell(rows, "Power", 1).tooltip.startswith("2 × 10,200")
    assert cell(rows, "Price", 1).tooltip.startswith("2 × $270,000, street")
    assert cell(rows, "Links", 1).text.endswith("inside each; between machines unknown")
    assert "between" not in cell(rows, "Links").text
    assert comparison_totals(two)["system_power_watts"] == 2 * comparison_totals(one)["system_power_watts"]


def test_a_figure_unknown_for_one_machine_is_unknown_for_two(entry_of):
    unknown, board = entry_of("dgx-station-v100", 2), entry_of("hgx-h100-8", 2)
    rows = side_by_side((unknown, board, entry_of("dgx-h100")), {})
    assert [cell(rows, "Power", place).text for place in (0, 1)] == ["unknown", "unknown"]
    assert [cell(rows, "Price", place).value for place in (0, 1)] == [138_000, None]
    assert comparison_totals(unknown)["memory_bytes"] is None
    assert comparison_totals(unknown)["system_price_usd"] == 138_000


def test_a_plan_is_not_evaluated_on_unknown_accelerators(entry_of, catalog):
    entry = entry_of("dgx-station-v100", 2)
    found = tried(PLAN, (entry,), catalog)
    (row,) = [row for row in side_by_side((entry,), found) if row.title == "Fits"]
    assert (row.cells[0].text, row.cells[0].tooltip) == (
        "not evaluated",
        "the catalog does not name this system's accelerator",
    )
    assert compared_notes((entry,), found) == (
        "2 × DGX Station (V100) is not evaluated: the catalog does not name this system's accelerator.",
    )


def test_a_note_states_the_network_that_the_time_assumes(entry_of, catalog):
    entries = (entry_of("dgx-h100", 2), entry_of("dgx-h100"), entry_of("dgx-2", 2))
    eight, sixteen = compared_notes(entries, tried(PLAN, entries, catalog))
    assert eight.endswith("8 GPUs per machine and 50\u2009GB/s from each GPU to other machines, which is assumed.")
    assert "with 16 GPUs per machine" in sixteen
    said = PLAN.evolve(timing=TimeSetting(network_bytes_per_s=25e9, cards_per_node=4))
    (note, _) = compared_notes(entries, tried(said, entries, catalog))
    assert note.endswith("4 GPUs per machine and 25\u2009GB/s from each GPU to other machines, as the plan specifies.")
    assert compared_notes(entries[:1], {}) == (
        "2 × DGX H100: the catalog does not list the network between the machines.",
    )


def test_a_plan_that_does_not_fit_has_no_note_on_the_network(entry_of, catalog):
    entries = (entry_of("dgx-1-p100", 2),)
    large = PLAN.evolve(model=ModelChoice(id="meta-llama/Llama-3.1-405B"))
    *_, note = compared_notes(entries, tried(large, entries, catalog))
    assert note == "2 × DGX-1 (P100): the catalog does not list the network between the machines."


def test_machines_larger_than_a_node_are_evaluated_with_default_nodes(entry_of, catalog):
    pods = entry_of("tpu-v4-pod", 2)
    assert pods.cards == PlacementTarget("tpu-v4", 8192, 4096)
    (found,) = tried(PLAN, (pods,), catalog).values()
    assert found.evaluation is None or found.evaluation.plan.timing.cards_per_node is None


def test_more_cards_than_a_plan_may_have_get_totals_but_no_evaluation(entry_of, catalog):
    entry = entry_of("tpu7x-pod", 1000)
    found = tried(PLAN, (entry,), catalog)
    assert compared_notes((entry,), found)[0].endswith("a plan can have at most 100,000 GPUs, not 9,216,000.")
    assert cell(side_by_side((entry,), found), "Accelerators").text.startswith("9,216,000 × ")


def test_cards_in_two_machines_train_slower_than_in_one(entry_of, catalog):
    shared = PLAN.evolve(workload=Training(parallel=Parallel(zero=3)))
    machines = entry_of("dgx-station-a100-320gb", 2)
    loose = card_entry("cards", machines.row, 8)
    found = tried(shared, (machines, loose), catalog)
    apart, joined = (found[entry.id].evaluation.time.seconds for entry in (machines, loose))
    assert apart > joined


def test_each_entry_has_the_plans_figures(entries, catalog):
    plan = Plan(model=ModelChoice(id="meta-llama/Llama-3.1-8B"), workload=Inference())
    tried = {entry.id: try_on(plan, entry.row.id, entry.count, catalog, TODAY) for entry in entries}
    rows = side_by_side(entries, tried)
    assert named(rows, "Your plan", "Fits").cells[0].text.startswith("Fits")
    assert named(rows, "Your plan", "Time").cells[0].text.endswith("per request")
    assert "tokens/s" in named(rows, "Your plan", "Speed").cells[0].text
    assert " per month" in named(rows, "Your plan", "Rented").cells[0].text
    assert named(rows, "Your plan", "Owned").cells[0].tooltip
    assert named(rows, "Your plan", "Memory needed per GPU").cells[0].value


def test_a_service_has_costs_per_month_and_per_million_tokens(entries, catalog):
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


def test_a_plan_that_does_not_fit_has_no_time_or_cost(entries, catalog):
    plan = Plan(model=ModelChoice(id="Qwen/Qwen3-32B"), workload=Inference())
    tried = {entry.id: try_on(plan, entry.row.id, entry.count, catalog, TODAY) for entry in entries}
    rows = side_by_side(entries, tried)
    assert named(rows, "Your plan", "Fits").cells[0].text.startswith("Does not fit")
    for title in ("Time", "Speed", "Rented", "Rented, per hour", "Rented, per million tokens", "Owned"):
        cells = named(rows, "Your plan", title).cells
        assert (cells[0].text, cells[0].value, cells[0].tooltip) == ("unknown", None, "The plan does not fit.")
        assert cells[1].value is not None


def test_a_plan_that_cannot_run_has_a_reason_but_no_time_or_cost(catalog):
    tpu = GpuRow(catalog.hardware.gpu("tpu-v5e"))
    entry = ComparisonEntry("tpu", tpu.gpu.name, 1, tpu)
    for workload in (Inference(), Training()):
        plan = Plan(model=ModelChoice(id="openai-community/gpt2"), workload=workload)
        tried = try_on(plan, "tpu-v5e", 1, catalog, TODAY)
        assert not is_feasible(tried.evaluation)
        assert infeasible_reason(tried.evaluation) == "; ".join(tried.evaluation.memory.unsupported)
        titles = {row.title for row in side_by_side((entry,), {"tpu": tried}) if row.group == "Your plan"}
        assert titles == {"Fits", "Memory needed per GPU"}


def test_a_card_of_unknown_usable_memory_has_no_verdict(catalog):
    plan = Plan(model=ModelChoice(id="openai-community/gpt2"), workload=Inference())
    evaluation = try_on(plan, "rtx-4090", 1, catalog, TODAY).evaluation
    unknown = evaluation.evolve(memory=evaluation.memory.evolve(verdict=None))
    assert "unknown" in infeasible_reason(unknown)


def test_an_entry_without_a_result_yet_shows_computing(entries, catalog):
    plan = Plan(model=ModelChoice(id="meta-llama/Llama-3.1-8B"), workload=Inference())
    first = try_on(plan, "rtx-4090", 1, catalog, TODAY)
    rows = side_by_side(entries, {entries[0].id: first})
    assert named(rows, "Your plan", "Fits").cells[1].text == "computing…"
    assert named(rows, "Your plan", "Rented").cells[1].text == "unknown"


def test_a_card_of_unknown_bandwidth_has_a_reason_but_no_time(catalog):
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


def test_a_card_that_nobody_sells_has_no_cost_of_owning(catalog):
    plan = Plan(model=ModelChoice(id="openai-community/gpt2"), workload=Inference())
    cards = [GpuRow(catalog.hardware.gpu(name)) for name in ("instinct-mi325x", "rtx-4090")]
    pair = tuple(ComparisonEntry(row.gpu.id, row.gpu.name, 1, row) for row in cards)
    rows = side_by_side(pair, {entry.id: try_on(plan, entry.id, 1, catalog, TODAY) for entry in pair})
    unsold, sold = named(rows, "Your plan", "Owned").cells
    assert unsold.value is None
    assert sold.value


def test_the_answer_names_the_best_for_the_plan(catalog, entry_of):
    row = gpu_row_without_plan(catalog.hardware.gpu("l40s"), catalog.hardware, {}, ())
    entries = [card_entry("accelerators:l40s", row, 8), entry_of("dgx-h100")]
    slow, fast = (
        ComparedCell(text, is_best=is_best) for text, is_best in (("322 tokens/s", False), ("4,530 tokens/s", True))
    )
    cheap, dear = ComparedCell("$1.96", is_best=True), ComparedCell("$15.53")
    rows = [
        ComparedFigureRow("Your plan", "Speed", (slow, fast)),
        ComparedFigureRow("Your plan", "Rented, per million tokens", (cheap, dear)),
        ComparedFigureRow("Your plan", "Owned", (dear, dear)),
    ]
    assert comparison_answer(entries, rows) == (
        "Highest throughput: DGX H100 (4,530 tokens/s). Cheapest to rent: 8 × L40S ($1.96 per million tokens)."
    )
    assert comparison_answer(entries, rows[2:]) == ""
