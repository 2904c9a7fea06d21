"""What tables and detail panes show of accelerators and models, on the real catalog."""

import pytest

from planner.hardware.software_support import SoftwareFact
from planner.plan.catalog import load_catalog
from planner.plan.evaluate import evaluate, fits_by_gpu
from planner.plan.plan import ModelChoice, Plan
from planner.present.catalog.column_sets import SORT_TITLES
from planner.present.catalog.gpu_columns import GPU_COLUMNS
from planner.present.catalog.gpu_details import gpu_details
from planner.present.catalog.gpu_row import GpuRow, gpu_rows
from planner.present.catalog.models import MODEL_COLUMNS, model_details
from planner.present.format import THIN
from planner.present.plan.phrase import evaluation_view, plan_phrase
from planner.workload.workload import Inference

LLAMA = Plan(model=ModelChoice(id="meta-llama/Llama-3.1-8B"))


@pytest.fixture(scope="module")
def catalog():
    return load_catalog()


def _column(key):
    return next(column for column in GPU_COLUMNS if column.key == key)


def test_column_keys_are_unique_and_headers_name_their_units():
    assert len({column.key for column in GPU_COLUMNS}) == len(GPU_COLUMNS)
    assert _column("memory").header == "Memory, GiB"
    assert _column("name").header == "Name"


def test_what_a_menu_sorts_by_are_the_columns_of_numbers():
    assert {column.key: column.axis for column in GPU_COLUMNS if column.is_number} == SORT_TITLES


def test_every_cell_of_the_catalog_says_something(catalog):
    for row in gpu_rows(catalog.hardware):
        for column in GPU_COLUMNS:
            text = column.text(row)
            assert text
            assert "None" not in text
            assert "nan" not in text.split()
            if column.tooltip:
                assert isinstance(column.tooltip(row), str)


def test_sorting_values_are_of_one_kind_in_a_column(catalog):
    rows = gpu_rows(catalog.hardware)
    for column in GPU_COLUMNS:
        values = [value for row in rows if (value := column.value(row)) is not None]
        assert sorted(values) is not values


def test_verdicts_sort_from_bad_to_good(catalog):
    gpu = catalog.hardware.gpu("rtx-4090")
    fits = _column("fits")
    rows = [GpuRow(gpu, verdict) for verdict in ("does-not-fit", "tight", "fits")]
    assert [fits.value(row) for row in rows] == sorted(fits.value(row) for row in rows)
    assert [fits.text(row) for row in rows] == ["Does not fit", "Tight", "Fits"]


def test_a_figure_that_is_not_known_names_no_source_and_one_that_no_chip_has_names_who_says_so(catalog):
    columns = {column.key: column for column in GPU_COLUMNS}
    gpu = catalog.hardware.gpu("rtx-4090").evolve(board_power_watts=None, launch_price_usd=None)
    fact = SoftwareFact(id="x", feature="fp4", targets=("8.9",), support="no", source="the maker", as_of="2026-11-22")
    row = GpuRow(gpu, lacks={"fp4": fact})
    assert [columns[key].tooltip(row) for key in ("power", "price")] == ["", ""]
    assert columns["bandwidth"].tooltip(row)
    assert columns["fp4"].tooltip(row) == "the maker\nread 22 November 2026"


def test_what_a_verdict_rests_on_is_in_its_tooltip(catalog):
    gpu = catalog.hardware.gpu("rtx-4090")
    tooltip = _column("fits").tooltip
    assert tooltip(GpuRow(gpu, "fits", 2**30)).replace(THIN, " ") == "1.00 GiB free"
    assert tooltip(GpuRow(gpu, "does-not-fit", -(2**30))).replace(THIN, " ") == "1.00 GiB too much"
    assert tooltip(GpuRow(gpu, reason="no kernels")) == "no kernels"
    assert _column("fits").text(GpuRow(gpu, reason="no kernels")) == "Not supported"
    assert _column("fits").text(GpuRow(gpu)) == "unknown"


def test_rows_carry_the_verdicts_of_a_plan(catalog):
    rows = {row.id: row for row in gpu_rows(catalog.hardware, fits_by_gpu(LLAMA, catalog))}
    assert rows["rtx-4090"].verdict == "fits"
    assert rows["tpu-v5e"].reason
    assert {row.id for row in gpu_rows(catalog.hardware)} == set(rows)


def test_every_known_figure_of_a_card_has_a_source(catalog):
    for gpu in catalog.hardware.gpus:
        usable = catalog.hardware.usable_memory(gpu)
        details = [detail for group in gpu_details(gpu, usable) for detail in group.details]
        assert len(details) > 20
        for detail in details:
            assert detail.text
            assert detail.source or detail.text in ("unknown", "not published") or detail.title == "Id in the catalog"


def test_every_model_says_something_in_each_column(catalog):
    for record in catalog.models.records:
        for column in MODEL_COLUMNS:
            assert column.text(record)
            if column.tooltip:
                assert column.tooltip(record)


def test_every_model_has_details_with_where_they_are_known_from(catalog):
    for record in catalog.models.records:
        groups = model_details(record, catalog.models.model(record.id))
        (known,) = [detail for detail in groups[0].details if detail.title == "Based on"]
        assert known.source
        assert known.tooltip.count("\n") == 1


def test_a_published_size_and_variants_are_told(catalog):
    published = next(record for record in catalog.models.records if record.published and record.variants)
    titles = [detail.title for detail in model_details(published, catalog.models.model(published.id))[0].details]
    assert "Size as published" in titles
    assert any(title.startswith("In ") for title in titles)


def test_a_whole_plan(catalog):
    plan = LLAMA.evolve(gpu="rtx-4090", count=2, workload=Inference(batch=2))
    evaluation = evaluate(plan, catalog)
    assert plan_phrase(evaluation, catalog) == (
        "meta-llama/Llama-3.1-8B · inference, 2 × 4,096 tokens, bf16 · 2 × GeForce RTX 4090"
    )
    assert evaluation_view(evaluation, catalog).answer.startswith("Fits on 2 × GeForce RTX 4090: each needs ")


def test_a_plan_without_a_card_names_cards(catalog):
    evaluation = evaluate(LLAMA, catalog)
    assert plan_phrase(evaluation, catalog) == "meta-llama/Llama-3.1-8B · inference, 1 × 4,096 tokens, bf16"
    smallest = catalog.hardware.gpu(evaluation.smallest_fits[0]).name
    assert smallest in evaluation_view(evaluation, catalog).answer


def test_what_two_devices_of_a_card_can_use_is_told_of_each_and_counted_together(catalog):
    rows = {row.id: row for row in gpu_rows(catalog.hardware)}
    usable = next(column for column in GPU_COLUMNS if column.key == "usable_memory")
    assert usable.text(rows["tesla-k80"]) == "2 × 11.2"
    assert usable.value(rows["tesla-k80"]) == 2 * rows["tesla-k80"].usable.bytes
    assert usable.text(rows["rtx-4090"]) == "23.5"
    titles = [line.title for group in gpu_details(rows["tesla-k80"].gpu) for line in group.details]
    assert "Usable by a program, on each device" in titles
