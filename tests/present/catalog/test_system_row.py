"""Systems as table rows, with the totals of their accelerators."""

import pytest

from planner.plan.placement import SystemFit, fits_by_system
from planner.plan.plan import ModelChoice, Plan
from planner.present.catalog.system_columns import SYSTEM_COLUMNS
from planner.present.catalog.system_details import system_details
from planner.present.catalog.system_row import (
    BANDWIDTH,
    BF16,
    PER_POWER_FIGURES,
    TOTALS,
    SystemRow,
    system_rows,
)
from planner.present.format import THIN, UNKNOWN
from planner.units import GIB
from planner.workload.training import Training

COLUMNS = {column.key: column for column in SYSTEM_COLUMNS}


def plain(text):
    return text.replace(THIN, " ")


def _bf16(gpu):
    rate = gpu.rate("bf16") if gpu else None
    return None if rate is None else rate.ops_per_s


def test_accelerators_are_counted_and_searched(rows):
    several = next(row for row in rows if row.gpu and (row.system.gpu_count or 0) > 1)
    assert several.accelerators == f"{several.system.gpu_count:,} × {several.gpu.name}"
    assert several.gpu.name.lower() in several.search_text
    assert several.id == several.system.id


def test_every_total_is_the_number_of_accelerators_times_the_figure_of_one(rows):
    for row in rows:
        for total, field in ((BANDWIDTH, row.gpu and row.gpu.bandwidth_bytes_per_s), (BF16, _bf16(row.gpu))):
            value = total.value(row.gpu, row.system.gpu_count)
            assert value == (None if field is None else row.system.gpu_count * field)
            assert COLUMNS[total.key].number(row) == (None if value is None else value / total.per_unit)


def test_totals_have_a_formula_and_the_source_of_one_accelerator(by_id):
    row = by_id["dgx-h100"]
    assert [COLUMNS[key].text(row) for key in ("bandwidth", "bf16")] == ["26.8", "7.92"]
    tooltip = plain(COLUMNS["bf16"].tooltip(row))
    assert tooltip.startswith("8 × 990 TFLOPS (H100 SXM5 80 GB)\n") or tooltip.startswith("8 × 989.5 TFLOPS")
    found = {detail.title: detail for group in system_details(row) for detail in group.details}
    assert plain(found["Total bandwidth"].text) == "26.8 TB/s"
    assert plain(found["Total bandwidth"].origin).startswith("derived: 8 × 3,350 GB/s (H100 SXM5 80 GB)\n")
    assert found["Total bandwidth"].mark == "derived"
    assert found["Basis of the performance as sold"].text.startswith("FP8 tensor, SPARSE")


def test_unknown_totals_have_a_reason(by_id):
    assert [total.title for total in TOTALS] == ["Bandwidth", "BF16 dense", "FP16 dense"]
    assert COLUMNS["bf16"].text(by_id["dgx-2"]) == UNKNOWN
    assert (
        COLUMNS["bf16"].tooltip(by_id["dgx-2"]).startswith("the catalog does not have this figure for one Tesla V100")
    )
    assert (
        COLUMNS["bandwidth"].tooltip(by_id["dgx-station-v100"]).startswith("the catalog does not list the accelerators")
    )
    found = {detail.title: detail for detail in system_details(by_id["dgx-2"])[0].details}
    assert found["Total BF16 dense"].text == UNKNOWN
    assert found["Total BF16 dense"].tooltip.startswith("the catalog does not have this figure")
    assert plain(found["Total FP16 dense"].text) == "2.09 PFLOPS"
    assert "Total FP16 dense" not in {each.title for each in system_details(by_id["dgx-h100"])[0].details}


def test_figures_per_watt_of_a_machine(by_id):
    memory, rate = PER_POWER_FIGURES
    row = by_id["dgx-a100-640gb"]
    assert memory.value(row.system, row.gpu) == pytest.approx(640 / 6.5)
    assert rate.value(row.system, row.gpu) == pytest.approx(8 * 312 / 6500, rel=0.01)
    assert plain(COLUMNS["memory_per_kw"].tooltip(row)) == "640 GiB ÷ 6,500 W of the whole machine"
    assert rate.value(by_id["dgx-2"].system, by_id["dgx-2"].gpu) is None
    unknown = by_id["dgx-station-v100"]
    assert memory.value(unknown.system, None) is None
    needed = "needs the memory of the accelerators and the power of the machine, which are unknown"
    assert memory.formula(unknown.system, None) == needed
    powerless = row.system.evolve(max_power_watts=None)
    assert memory.formula(powerless, row.gpu) == "needs the power of the machine, which is unknown"
    assert rate.formula(row.system, None) == "needs the dense BF16 rate of the accelerators, which is unknown"


def test_a_verdict_has_the_free_memory_of_each_accelerator(catalog):
    plan = Plan(model=ModelChoice(id="meta-llama/Llama-3.1-405B"))
    rows = {row.id: row for row in system_rows(catalog.hardware, fits_by_system(plan, catalog))}
    fits = COLUMNS["fits"]
    assert [fits.text(rows[name]) for name in ("dgx-h200", "dgx-h100", "tpu-v4-pod", "dgx-station-v100")] == [
        "Fits",
        "Does not fit",
        "Not supported",
        UNKNOWN,
    ]
    assert fits.value(rows["dgx-h200"]) > fits.value(rows["dgx-h100"])
    missing = fits.tooltip(rows["dgx-h100"])
    assert missing.endswith("short on each of 8, shared as in the plan or by its software")
    assert fits.tooltip(rows["dgx-spark"]).endswith("short")
    assert fits.tooltip(rows["tpu-v4-pod"]) == rows["tpu-v4-pod"].unsupported != ""
    assert fits.tooltip(rows["dgx-station-v100"]) == "the catalog does not name this system's accelerator"


def test_a_plan_that_cannot_use_that_many_cards_has_no_verdict(catalog):
    plan = Plan(model=ModelChoice(id="meta-llama/Llama-3.1-8B"), workload=Training(parallel={"tensor": 8}), count=8)
    rows = {row.id: row for row in system_rows(catalog.hardware, fits_by_system(plan, catalog))}
    row = rows["dgx-station-a100-320gb"]
    assert (COLUMNS["fits"].text(row), row.unsupported, row.free_bytes) == (UNKNOWN, "", None)
    assert COLUMNS["fits"].tooltip(row) == "parallel: 4 GPUs are not a multiple of tensor 8"


def test_without_an_evaluation_there_is_no_verdict_and_no_reason(by_id):
    row = by_id["dgx-h100"]
    assert (row.verdict, row.free_bytes, row.reason) == (None, None, "")
    assert SystemRow(row.system, row.gpu, SystemFit(None, "why")).reason == "why"
    assert row.system.memory_bytes == 640 * GIB


def test_the_total_rate_of_an_unsupported_format_is_not_unknown(catalog):
    rows = {row.id: row for row in system_rows(catalog.hardware, software=catalog.software)}
    assert [COLUMNS["bf16"].text(rows[name]) for name in ("dgx-2", "dgx-h100", "tpu-8t-superpod")] == [
        "not supported",
        "7.92",
        UNKNOWN,
    ]
    found = {detail.title: detail for detail in system_details(rows["dgx-2"])[0].details}
    assert found["Total BF16 dense"].text == "not supported"
    assert found["Total BF16 dense"].source


def test_unsupported_formats_are_known_without_a_compute_capability(catalog):
    rows = {row.id: row for row in system_rows(catalog.hardware, software=catalog.software)}
    assert {"fp4", "fp64"} <= set(rows["trn1-32xl"].lacks)
    assert "fp8" in rows["tpu-v4-pod"].lacks
    assert rows["dgx-station-v100"].lacks == {}
