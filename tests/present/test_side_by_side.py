"""Cards and systems side by side."""

from datetime import date

import pytest

from planner.hardware.system import System
from planner.plan.catalog import load_catalog
from planner.plan.plan import ModelChoice, Plan
from planner.plan.tried import try_on
from planner.present.gpus import GpuRow
from planner.present.side_by_side import Entry, comparison_rows, side_by_side, to_markdown
from planner.present.systems import SystemRow
from planner.workload.parallel import Parallel
from planner.workload.workload import Inference

TODAY = date(2026, 11, 22)


@pytest.fixture(scope="module")
def catalog():
    return load_catalog()


@pytest.fixture(scope="module")
def entries(catalog):
    small, large = (GpuRow(catalog.hardware.gpu(name)) for name in ("rtx-4090", "h100-sxm5-80gb"))
    system = catalog.hardware.system("dgx-h100")
    return (
        Entry("accelerators:rtx-4090", small.gpu.name, 1, small),
        Entry("systems:dgx-h100", system.name, 8, large, SystemRow(system, large.gpu)),
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


def test_the_plan_is_tried_on_each(entries, catalog):
    plan = Plan(model=ModelChoice(id="meta-llama/Llama-3.1-8B"), workload=Inference())
    tried = {entry.id: try_on(plan, entry.row.id, entry.count, catalog, TODAY) for entry in entries}
    rows = side_by_side(entries, tried)
    assert named(rows, "Your plan", "Fits").cells[0].text.startswith("Fits")
    assert named(rows, "Your plan", "Time").cells[0].text.endswith("a request")
    assert "tokens/s" in named(rows, "Your plan", "Pace").cells[0].text
    assert " a month" in named(rows, "Your plan", "Rented").cells[0].text
    assert named(rows, "Your plan", "Owned").cells[0].tooltip
    assert named(rows, "Your plan", "Memory needed, each").cells[0].value


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
    alone = System(id="box", name="A box", vendor="Someone", provenance=entries[1].system.system.provenance)
    entry = Entry("systems:box", "A box", 1, None, SystemRow(alone, None))
    rows = side_by_side((entry, entries[1]), {})
    assert named(rows, "One accelerator", "Vendor").cells[0].text == "unknown"
    assert {named(rows, "All together", title).cells[0].text for title in ("Memory", "Power", "Links", "Price")} == {
        "unknown"
    }


def test_prices_of_cards_and_machines_are_told_apart_and_not_ranked(entries, catalog):
    dgx = catalog.hardware.system("dgx-a100-640gb")
    priced = Entry("systems:dgx", dgx.name, 8, entries[0].row, SystemRow(dgx, entries[0].row.gpu))
    price = named(side_by_side((entries[0], priced), {}), "All together", "Price")
    assert price.cells[0].text == "$1,599 at launch"
    assert "(" in price.cells[1].text
    assert not any(cell.is_best or cell.share for cell in price.cells)


def test_it_becomes_a_table_in_markdown_and_rows_for_programs(entries):
    rows = side_by_side(entries, {})
    text = to_markdown(entries, rows)
    assert text.startswith("|  | 1 × GeForce RTX 4090 | NVIDIA DGX H100 |") or "DGX H100" in text.splitlines()[0]
    assert "**640\u2009GiB**" in text
    assert "| **One accelerator** |" in text
    assert comparison_rows(entries, rows)[0][:2] == ("group", "figure")


def test_before_the_plan_is_tried_it_says_so(entries, catalog):
    plan = Plan(model=ModelChoice(id="meta-llama/Llama-3.1-8B"), workload=Inference())
    first = try_on(plan, "rtx-4090", 1, catalog, TODAY)
    rows = side_by_side(entries, {entries[0].id: first})
    assert named(rows, "Your plan", "Fits").cells[1].text == "working it out…"
    assert named(rows, "Your plan", "Rented").cells[1].text == "unknown"
