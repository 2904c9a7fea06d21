"""What has to be said beside a comparison, above all of several machines."""

from datetime import date

import pytest

from planner.performance.setting import TimeSetting
from planner.plan.catalog import load_catalog
from planner.plan.placement import PlacementTarget, place_on_all
from planner.plan.plan import ModelChoice, Plan
from planner.present.catalog.comparison import card_entry, compared_notes, side_by_side, system_entry
from planner.present.catalog.gpu_row import gpu_row_without_plan
from planner.present.catalog.records import comparison_totals
from planner.workload.parallel import Parallel
from planner.workload.training import Training

TODAY = date(2026, 11, 22)
PLAN = Plan(model=ModelChoice(id="meta-llama/Llama-3.1-8B"))


@pytest.fixture(scope="module")
def catalog():
    return load_catalog()


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


def test_several_machines_sum_up_what_one_has(entry_of):
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


def test_what_nobody_publishes_of_one_machine_is_not_known_of_two(entry_of):
    unknown, board = entry_of("dgx-station-v100", 2), entry_of("hgx-h100-8", 2)
    rows = side_by_side((unknown, board, entry_of("dgx-h100")), {})
    assert [cell(rows, "Power", place).text for place in (0, 1)] == ["unknown", "unknown"]
    assert [cell(rows, "Price", place).value for place in (0, 1)] == [138_000, None]
    assert comparison_totals(unknown)["memory_bytes"] is None
    assert comparison_totals(unknown)["system_price_usd"] == 138_000


def test_a_plan_is_not_tried_on_cards_that_nobody_knows(entry_of, catalog):
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


def test_the_time_says_what_it_assumes_between_machines(entry_of, catalog):
    entries = (entry_of("dgx-h100", 2), entry_of("dgx-h100"), entry_of("dgx-2", 2))
    eight, sixteen = compared_notes(entries, tried(PLAN, entries, catalog))
    assert eight.endswith("8 cards per machine and 50\u2009GB/s from each card to other machines, which is assumed.")
    assert "with 16 cards per machine" in sixteen
    said = PLAN.evolve(timing=TimeSetting(network_bytes_per_s=25e9, cards_per_node=4))
    (note, _) = compared_notes(entries, tried(said, entries, catalog))
    assert note.endswith(
        "4 cards per machine and 25\u2009GB/s from each card to other machines, as the plan specifies."
    )
    assert compared_notes(entries[:1], {}) == (
        "2 × DGX H100: the catalog does not list the network between the machines.",
    )


def test_where_the_plan_does_not_fit_no_time_is_told(entry_of, catalog):
    entries = (entry_of("dgx-1-p100", 2),)
    large = PLAN.evolve(model=ModelChoice(id="meta-llama/Llama-3.1-405B"))
    *_, note = compared_notes(entries, tried(large, entries, catalog))
    assert note == "2 × DGX-1 (P100): the catalog does not list the network between the machines."


def test_machines_too_large_for_a_plan_are_tried_with_the_usual_nodes(entry_of, catalog):
    pods = entry_of("tpu-v4-pod", 2)
    assert pods.cards == PlacementTarget("tpu-v4", 8192, 4096)
    (found,) = tried(PLAN, (pods,), catalog).values()
    assert found.evaluation is None or found.evaluation.plan.timing.cards_per_node is None


def test_more_cards_than_a_plan_has_are_summed_up_and_not_planned(entry_of, catalog):
    entry = entry_of("tpu7x-pod", 1000)
    found = tried(PLAN, (entry,), catalog)
    assert compared_notes((entry,), found)[0].endswith("a plan can have at most 100,000 cards, not 9,216,000.")
    assert cell(side_by_side((entry,), found), "Accelerators").text.startswith("9,216,000 × ")


def test_two_machines_train_slower_than_their_cards_would_in_one(entry_of, catalog):
    shared = PLAN.evolve(workload=Training(parallel=Parallel(zero=3)))
    machines = entry_of("dgx-station-a100-320gb", 2)
    loose = card_entry("cards", machines.row, 8)
    found = tried(shared, (machines, loose), catalog)
    apart, joined = (found[entry.id].evaluation.time.seconds for entry in (machines, loose))
    assert apart > joined
