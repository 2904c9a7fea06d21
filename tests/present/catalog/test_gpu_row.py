"""Cards as table rows, and the user's changes to them as text."""

from dataclasses import replace
from datetime import date

import pytest
from catalog_samples import PRICES, card

from planner.cost.terms import CostTerms, Run
from planner.hardware.own import OwnHardware, make_card_change
from planner.plan.catalog import Catalog, load_catalog
from planner.plan.cost import job_by_gpu
from planner.plan.evaluate import fits_by_gpu
from planner.plan.plan import ModelChoice, Plan
from planner.present.catalog.gpu_columns import GPU_COLUMNS
from planner.present.catalog.gpu_row import change_summary, gpu_rows, job_summaries, product_kind, removal_summary
from planner.present.format import THIN
from planner.workload.workload import Inference

LLAMA = Plan(model=ModelChoice(id="meta-llama/Llama-3.1-8B"))


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"purchase_price_usd": 720, "power_limit_watts": 250, "note": "used"}, "paid $720, limited to 250 W, used"),
        ({"power_limit_watts": 1250}, "limited to 1,250 W"),
        ({"note": "water cooled"}, "water cooled"),
    ],
)
def test_the_summary_lists_only_the_users_changes(told: dict[str, object], words: str) -> None:
    assert change_summary(make_card_change("l4", "2026-11-22", told)) == words


def test_the_removal_summary_names_what_is_deleted(catalog: Catalog) -> None:
    card, change = catalog.hardware.gpu("l4"), make_card_change("l4", "2026-11-22", {"purchase_price_usd": 900})
    assert removal_summary(OwnHardware(cards=(card,)), "l4") == "your own GPU of 24 GB"
    assert removal_summary(OwnHardware(changes=(change,)), "l4") == "your changes: paid $900"
    both = OwnHardware(cards=(card,), changes=(change,))
    assert removal_summary(both, "l4") == "your own GPU of 24 GB; your changes: paid $900"


def test_rows_carry_the_verdicts_of_a_plan(catalog):
    rows = {row.id: row for row in gpu_rows(catalog.hardware, fits_by_gpu(LLAMA, catalog))}
    assert rows["rtx-4090"].verdict == "fits"
    assert rows["tpu-v5e"].reason
    assert {row.id for row in gpu_rows(catalog.hardware)} == set(rows)


def test_product_kinds_distinguish_cards_laptop_parts_and_systems_on_a_chip():
    assert product_kind(card()) == "card"
    assert product_kind(card(name="RTX 9 Laptop GPU")) == "laptop part"
    assert product_kind(card(device_count=2)) == "card, 2 devices of 12.0\u2009GiB"
    assert product_kind(card(segment="soc", unified_memory=True)) == "system on chip, memory shared with the CPU"


def test_rows_have_verdicts_and_prices_only_if_given():
    catalog = load_catalog()
    plan = Plan(model=ModelChoice(id="meta-llama/Llama-3.1-8B"), workload=Inference(), gpu="rtx-4090")
    rows = {row.id: row for row in gpu_rows(catalog.hardware, fits_by_gpu(plan, catalog), prices={"rtx-4090": PRICES})}
    assert rows["rtx-4090"].verdict == "fits"
    assert rows["rtx-4090"].prices is PRICES
    assert rows["rtx-3090"].prices is None
    assert gpu_rows(catalog.hardware)[0].verdict is None


TODAY = date(2026, 11, 22)


SERVING = Plan(model=ModelChoice(id="meta-llama/Llama-3.1-8B"))


RUN = SERVING.evolve(cost=CostTerms(job=Run(amount=1e6, unit="tokens")))


def cells(plan: Plan, catalog, gpu_id: str) -> dict[str, tuple[str, str, object]]:
    """Return text, tooltip and value of the columns about the job."""
    words = job_summaries(job_by_gpu(plan, catalog, TODAY))
    row = next(row for row in gpu_rows(catalog.hardware, fits_by_gpu(plan, catalog), words) if row.id == gpu_id)
    columns = (column for column in GPU_COLUMNS if column.key in ("job_time", "job_cost", "job_cost_tokens"))
    return {column.key: (column.text(row), column.tooltip(row), column.value(row)) for column in columns}


def test_a_run_has_hours_and_a_price_with_its_date_and_source(catalog):
    shown = cells(RUN, catalog, "rtx-4090")
    text, tooltip, hours = shown["job_time"]
    assert text.replace(THIN, " ").split()[1] in ("h", "min")
    assert "tokens/s" in tooltip
    assert hours > 0
    text, tooltip, usd = shown["job_cost"]
    assert text == f"${usd:,.2f}"
    provider, machines, price, dated, source, *_ = tooltip.splitlines()
    assert "(" not in provider
    assert machines.startswith("1 × ")
    assert price.startswith(f"{text} per run, $")
    assert dated.startswith("price of ")
    assert source


def test_a_job_without_an_end_has_a_pace(catalog):
    shown = cells(SERVING, catalog, "rtx-4090")
    assert shown["job_time"][0].endswith(" tok/s")
    assert shown["job_cost"][0].endswith("/mo")
    assert shown["job_cost_tokens"][0].startswith("$")


def test_a_card_without_an_offer_has_no_cost(catalog):
    jobs = job_by_gpu(RUN, catalog, TODAY)
    bare = next(gpu_id for gpu_id, job in jobs.items() if job.offer is None)
    assert cells(RUN, catalog, bare)["job_cost"] == ("no offer", "No comparable offer for this GPU.", None)


def test_a_card_without_a_job_has_a_dash_and_the_reason(catalog):
    (row, *_) = gpu_rows(catalog.hardware)
    columns = {column.key: column for column in GPU_COLUMNS}
    for key in ("job_time", "job_cost", "job_cost_tokens"):
        assert columns[key].text(row) == "–"
        assert "not published" in columns[key].tooltip(row)
        assert columns[key].tooltip(replace(row, verdict="does-not-fit")) == "The plan does not fit."
        assert columns[key].text(replace(row, verdict="fits")) == "unknown"
        computed = replace(row, verdict="fits", awaits_job=True)
        assert (columns[key].text(computed), columns[key].tooltip(computed)) == ("…", "It is being computed.")
        assert columns[key].tooltip(replace(row, reason="no kernels")) == "no kernels"
