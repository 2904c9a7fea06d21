"""Time and cost of the plan's job on each card, as text."""

from dataclasses import replace
from datetime import date

from planner.cost.terms import CostTerms, Run
from planner.plan.evaluate import fits_by_gpu
from planner.plan.job_costs import job_by_gpu
from planner.plan.plan import ModelChoice, Plan
from planner.present.catalog.gpu_columns import GPU_COLUMNS
from planner.present.catalog.gpu_row import gpu_rows
from planner.present.catalog.job_summary import job_summaries
from planner.present.format import THIN

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
    assert cells(RUN, catalog, bare)["job_cost"] == ("no offer", "No comparable offer for this card.", None)


def test_a_card_without_a_job_has_a_dash_and_the_reason(catalog):
    (row, *_) = gpu_rows(catalog.hardware)
    columns = {column.key: column for column in GPU_COLUMNS}
    for key in ("job_time", "job_cost", "job_cost_tokens"):
        assert columns[key].text(row) == "–"
        assert "not published" in columns[key].tooltip(row)
        assert columns[key].tooltip(replace(row, verdict="does-not-fit")) == "The plan does not fit."
        assert columns[key].tooltip(replace(row, reason="no kernels")) == "no kernels"
