"""Verdict, memory, time and cost of a plan on each compared entry."""

from datetime import date

from planner.plan.placement import try_on
from planner.plan.plan import ModelChoice, Plan
from planner.present.catalog.comparison import (
    ComparisonEntry,
    side_by_side,
)
from planner.present.catalog.gpu_row import GpuRow
from planner.present.catalog.placement import infeasible_reason, is_feasible
from planner.workload.workload import Inference, Training

TODAY = date(2026, 11, 22)


def named(rows, group, title):
    return next(row for row in rows if (row.group, row.title) == (group, title))


def test_each_entry_has_the_plans_figures(entries, catalog):
    plan = Plan(model=ModelChoice(id="meta-llama/Llama-3.1-8B"), workload=Inference())
    tried = {entry.id: try_on(plan, entry.row.id, entry.count, catalog, TODAY) for entry in entries}
    rows = side_by_side(entries, tried)
    assert named(rows, "Your plan", "Fits").cells[0].text.startswith("Fits")
    assert named(rows, "Your plan", "Time").cells[0].text.endswith("per request")
    assert "tokens/s" in named(rows, "Your plan", "Speed").cells[0].text
    assert " per month" in named(rows, "Your plan", "Rented").cells[0].text
    assert named(rows, "Your plan", "Owned").cells[0].tooltip
    assert named(rows, "Your plan", "Memory needed per card").cells[0].value


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
        assert titles == {"Fits", "Memory needed per card"}


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
