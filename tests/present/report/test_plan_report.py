"""The report on a plan."""

from datetime import date

import pytest
from cost_samples import QLORA_ON_4090, TODAY
from recordings import training, two_steps

from planner.cost.terms import BuyTerms, CostTerms, RentTerms, Run, Service
from planner.errors import PlannerError
from planner.plan.plan import ModelChoice, Plan
from planner.present.format import THIN
from planner.present.report import plan_report
from planner.present.report.document import Bullets, CodeListing, Drawing, Prose, ReportTable
from planner.present.report.html import report_html
from planner.present.report.plan_report import report_on_plan
from planner.trace.analysis.memory import facts_of
from planner.units import MIB
from planner.workload.workload import Inference, Training

SERVICE = Plan(
    model=ModelChoice(id="meta-llama/Llama-3.1-8B"),
    workload=Inference(profile="vllm", batch=16),
    gpu="l40s",
    cost=CostTerms(job=Service(requests_per_day=200_000)),
)
TOO_LARGE = Plan(model=ModelChoice(id="meta-llama/Llama-3.1-70B"), workload=Training(method="qlora"), gpu="rtx-4090")


@pytest.fixture(scope="module")
def service(catalog):
    return report_on_plan(SERVICE, catalog, TODAY)


def _section(report, title):
    return next(part for part in report.sections if part.title == title)


def _texts(part):
    prose = [block.text for block in part.blocks if isinstance(block, Prose)]
    return prose + [item for block in part.blocks if isinstance(block, Bullets) for item in block.items]


def _cells(part):
    return [cell for block in part.blocks if isinstance(block, ReportTable) for row in block.rows for cell in row]


def test_the_report_has_its_sections_in_the_order_of_a_decision(service):
    assert [part.title for part in service.sections] == [
        "Workload and assumptions",
        "Other hardware for the same job",
        "Memory",
        "Speed",
        "Cost",
        "Bill of materials",
        "Risks, and what would change the answer",
        "Launch settings",
        "Formulas and sources",
    ]
    assert service.title == "meta-llama/Llama-3.1-8B on 1 × L40S"
    assert service.question.startswith("Does meta-llama/Llama-3.1-8B (inference in vLLM")
    assert service.plan == SERVICE
    assert "22 November 2026" in service.made


def test_it_answers_memory_time_and_cost_first(service):
    memory, time, cost = service.answers
    assert (memory.tone, memory.title.partition(":")[0]) == ("ok", "Fits")
    assert "tokens/s" in time.title
    assert cost.title in ("Rent", "Buy", "Too close to call")
    assert "simulated cases" in cost.text


def test_settings_say_whether_the_plan_states_them(service):
    workload = _section(service, "Workload and assumptions")
    table = next(block for block in workload.blocks if isinstance(block, ReportTable))
    stated = {row[0]: row[2] for row in table.rows}
    assert table.rows[0] == ("Parameters", f"8.03{THIN}B", "")
    assert stated["Batch size"] == "stated"
    assert stated["Context length"] == "default"
    assert "For 200,000 requests per day, over 5 years." in _texts(workload)


def test_every_cost_and_every_figure_has_its_source(service):
    for part in (_section(service, "Formulas and sources"), _section(service, "Bill of materials")):
        for block in part.blocks:
            if (
                isinstance(block, ReportTable)
                and block.columns[-1].title == "Source"
                and "Power" not in block.columns[0].title
            ):
                assert all(row[-1] for row in block.rows), block.columns[0].title
    assert "GPUs" in _cells(_section(service, "Bill of materials"))
    assert "From the wall" in _cells(_section(service, "Bill of materials"))


def test_the_files_that_run_the_plan_are_in_it(service):
    launch = _section(service, "Launch settings")
    listing = next(block for block in launch.blocks if isinstance(block, CodeListing))
    assert "vllm serve meta-llama/Llama-3.1-8B" in listing.text
    assert "--max-num-seqs 16" in listing.text
    assert "GPU" in _cells(launch)


def test_the_report_says_where_the_files_reserve_another_share_of_memory_than_is_estimated(catalog):
    plan = Plan(model=ModelChoice(id="meta-llama/Llama-3.1-8B"), workload=Inference(profile="vllm"), gpu="rtx-4090")
    limited = plan.evolve(workload=Inference(profile="vllm", engine={"memory_utilization": 0.9}))
    said, silent = (
        _texts(_section(report_on_plan(each, catalog, TODAY), "Launch settings"))[0] for each in (plan, limited)
    )
    assert "--gpu-memory-utilization 0.7 sets its share of the memory to what this plan needs" in said
    assert "instead of the 0.92 that it reserves by itself" in said
    assert "its share" not in silent


def test_options_have_the_dates_of_their_prices(service):
    table = next(
        one for one in _section(service, "Other hardware for the same job").blocks if isinstance(one, ReportTable)
    )
    at = [column.title for column in table.columns].index("Price date")
    assert all(row[at] == "no date" or date.fromisoformat(row[at]) <= TODAY for row in table.rows)
    assert any(row[at] != "no date" for row in table.rows)


def test_a_plan_that_no_program_is_written_for_has_no_files(catalog):
    report = report_on_plan(SERVICE.evolve(workload=Inference(), gpu=None), catalog, TODAY)
    assert "Launch settings" not in [part.title for part in report.sections]


def test_costs_are_drawn_with_their_sensitivity(service):
    figures = [block for block in _section(service, "Cost").blocks if isinstance(block, Drawing)]
    assert len(figures) == 2
    assert "80 % of 2,000 simulated cases" in figures[0].caption


def test_a_plan_that_does_not_fit_says_what_would_help_and_nothing_of_money(catalog):
    report = report_on_plan(TOO_LARGE, catalog, TODAY)
    memory, help_first = report.answers
    assert memory.tone == "bad"
    assert help_first.text.startswith("The change that would help most: ")
    assert any("hypothetical" in text for text in _texts(_section(report, "Speed")))
    assert _texts(_section(report, "Cost")) == [
        text for text in _texts(_section(report, "Cost")) if text.startswith("Does not fit")
    ]
    assert "Bill of materials" not in [part.title for part in report.sections]


def test_other_hardware_begins_with_the_plans_own_cards_and_says_what_must_change(service, catalog):
    fitting, too_large = (
        _section(each, "Other hardware for the same job")
        for each in (
            service,
            report_on_plan(TOO_LARGE.evolve(model=ModelChoice(id="meta-llama/Llama-3.1-8B")), catalog, TODAY),
        )
    )
    own, changed = (next(one for one in part.blocks if isinstance(one, ReportTable)) for part in (fitting, too_large))
    assert own.rows[0][0].startswith("2 × L40S")
    assert "Changes to the plan" not in [column.title for column in own.columns]
    assert (changed.columns[-1].title, changed.rows[0][0]) == ("Changes to the plan", "1 × GeForce RTX 4090")
    assert changed.rows[0][-1] != "none"
    assert {"The GPUs of the plan come first."} & set(_texts(fitting)) & set(_texts(too_large))


def test_a_plan_without_a_card_asks_how_much_memory_it_needs(catalog):
    report = report_on_plan(TOO_LARGE.evolve(gpu=None), catalog, TODAY)
    assert report.question.startswith("How much memory does meta-llama/Llama-3.1-70B need")
    assert len(report.answers) == 1
    assert {"Speed", "Cost", "Other hardware for the same job"}.isdisjoint(part.title for part in report.sections)


def test_your_own_cards_need_no_bill(catalog):
    terms = CostTerms(job=Run(amount=10), buy=BuyTerms(owned=True))
    report = report_on_plan(QLORA_ON_4090.evolve(cost=terms), catalog, TODAY)
    assert "Bill of materials" not in [part.title for part in report.sections]
    heads = [block.columns[-1].title for block in _section(report, "Cost").blocks if isinstance(block, ReportTable)]
    assert "Your own" in heads


def test_whole_machines_with_these_cards_are_listed(catalog):
    eight = SERVICE.evolve(gpu="h100-sxm5-80gb", count=8)
    bill = _section(report_on_plan(eight, catalog, TODAY), "Bill of materials")
    tables = {block.columns[0].title: block for block in bill.blocks if isinstance(block, ReportTable)}
    assert "DGX H100" in [row[0] for row in tables["Sold as"].rows]
    assert any("(DGX H100)" in title or "(HGX H100" in title for title in tables)


@pytest.mark.parametrize(
    ("gpu", "tables"),
    [
        ("l4", ["Rented", "Provider"]),
        ("instinct-mi250", ["Monthly, if bought"]),
        ("instinct-mi100", []),
    ],
)
def test_a_side_without_a_price_is_left_out(catalog, gpu, tables):
    small = Plan(model=ModelChoice(id="Qwen/Qwen3-0.6B"), workload=Inference(), gpu=gpu)
    cost = _section(report_on_plan(small, catalog, TODAY), "Cost")
    heads = [block.columns[0].title for block in cost.blocks if isinstance(block, ReportTable)]
    assert [head for head in heads if head] == tables
    assert _texts(cost)


def test_the_carbon_of_both_sides_is_told_where_the_region_is_known(catalog):
    terms = CostTerms(job=Run(amount=10), rent=RentTerms(regions=("us-east-1",)))
    cost = _section(report_on_plan(SERVICE.evolve(cost=terms), catalog, TODAY), "Cost")
    places = [text.partition(":")[0] for text in _texts(cost) if "CO₂" in text]
    assert len(places) == 2
    assert [place.partition(" in ")[0] for place in places] == ["Rented", "Owned"]


def test_a_search_that_fails_is_told_where_its_results_would_be(catalog, monkeypatch):
    def fail(*_given):
        raise PlannerError("no such job")

    monkeypatch.setattr(plan_report, "recommend", fail)
    report = report_on_plan(SERVICE, catalog, TODAY)
    assert _texts(_section(report, "Other hardware for the same job")) == ["No such job."]


def test_a_traced_module_has_a_report_as_well(catalog):
    facts = facts_of(two_steps(MIB, training(batch=8)))
    report = report_on_plan(Plan(model=ModelChoice.of_trace(facts), gpu="rtx-4090"), catalog, TODAY)
    assert [part.title for part in report.sections][:2] == ["Workload and assumptions", "Memory"]
    assert report.answers[0].tone == "ok"


def test_a_mixture_of_experts_states_its_active_parameters(catalog):
    report = report_on_plan(Plan(model=ModelChoice(id="mistralai/Mixtral-8x7B-v0.1")), catalog, TODAY)
    assert "Active parameters" in _cells(_section(report, "Workload and assumptions"))


def test_a_report_repeats_to_the_byte(service, catalog):
    again = report_on_plan(SERVICE, catalog, TODAY)
    assert report_html(again) == report_html(service)
    assert report_html(report_on_plan(SERVICE, catalog, date(2026, 12, 24))) != report_html(service)


def test_a_published_comparison_is_reproduced_in_its_report_to_the_dollar(catalog):
    """Lenovo LP2225 (2025): 8 H100 for $833,806 and $0.87 an hour, or $98.32 an hour in the cloud, for 5 years.

    It counts 365 days a year, and prints $4,306,416, $871,912 and a break-even after 8,556 hours of 8 GPUs.
    """
    nothing = dict.fromkeys(
        (
            "network_usd", "network_share", "rack_usd_per_server", "tax_fraction", "shipping_usd", "install_usd",
            "colocation_usd_per_kw_month", "operations_fraction_per_year", "support_fraction_per_year",
            "spares_fraction_per_year", "insurance_fraction_per_year", "staff_usd_per_year",
            "licence_usd_per_gpu_year", "idle_power_fraction", "resale_share",
        ),
        0.0,
    )  # fmt: skip
    bought = {
        **nothing, "server_price_usd": 833_806, "gpus_per_server": 8, "server_power_watts": 8_700,
        "active_power_fraction": 1.0, "pue": 1.0, "tariff_usd_per_kwh": 0.1,
    }  # fmt: skip
    cost = CostTerms.model_validate(
        {
            "job": {"kind": "daily-hours", "hours_per_day": 24, "days_per_week": 7 * 365 / 365.25},
            "rent": {"usd_per_gpu_hour": 98.32 / 8, "price_drift_per_year": 0},
            "buy": bought,
            "horizon_years": 5,
            "discount_rate": 0,
        }
    )
    plan = Plan(
        model=ModelChoice(id="meta-llama/Llama-3.1-70B"),
        workload=Inference(profile="vllm", parallel={"tensor": 8}),
        gpu="h100-sxm5-80gb",
        count=8,
        cost=cost,
    )
    section = _section(report_on_plan(plan, catalog, TODAY), "Cost")
    texts = " ".join(_texts(section))
    assert "renting $4,306,416, buying $871,912" in texts
    assert f"Buying pays off above {8_556.2 * 8:,.0f} GPU-hours" in texts
    rows = [row for block in section.blocks if isinstance(block, ReportTable) for row in block.rows]
    assert ("Per hour of all 8 GPUs, net of resale", "$98.32", "$19.91") in rows
