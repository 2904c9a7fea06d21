"""Situations of renting and owning with hand-made sums, each figure within a cent.

Every sum is written out from the offer's price, the card's and the server's price, the tariff and the place's figures,
so that it can be followed with a calculator.
"""

from collections.abc import Callable
from datetime import date
from typing import NamedTuple

import pytest

from planner.cost.catalog import CostCatalog
from planner.cost.demand import Throughput
from planner.cost.estimate import CostEstimate, estimate_cost, hybrid_of_plan
from planner.cost.rent_or_buy.case import RESALE
from planner.cost.terms import DEFAULT_SOURCES, BuyTerms, CostTerms, DailyHours, Job, RentTerms, Run, Service
from planner.plan.catalog import Catalog

CENT = 0.005
H100, L40S, RTX_4090, RTX_3090 = "h100-sxm5-80gb", "l40s", "rtx-4090", "rtx-3090"
AWS = RentTerms(offer="aws-p5.48xlarge-us-east-1-2026-10-10")  # 8 × H100: 55.04 USD an hour
GCP = RentTerms(
    offer="gcp-a3-highgpu-8g-us-central1-2026-08-20"
)  # 88.49, spot 53.0936, 1 year 61.3837, 3 years 38.8644
L40S_RENT = RentTerms(offer="runpod-secure-nvidia-l40s-global-2026-10-10")  # 1.09 USD an hour
SINGLE_CARDS = RentTerms(one_machine=False)
MONTH = 730.5
WEEKS = 30.4375 / 7
"""Weeks of an average month."""
FIVE_YEARS = 0.199526231  # 10^(−0.14 · 5)
HALF_A_YEAR = 0.851138038  # 10^(−0.14 / 2)
SERVER = 295_118.52  # the median of 230,000, 255,237.04, 335,000 and 375,000 USD
FREE = BuyTerms(
    card_price_usd=5_000, host_factor=1, operations_fraction_per_year=0, pue=1, tariff_usd_per_kwh=0.1, resale_share=0.5
)


class Case(NamedTuple):
    """A situation with the figures that it must come to."""

    name: str
    gpu: str
    count: int
    terms: CostTerms
    sums: dict[str, float]
    pace: Throughput | None = None


def terms(job: Job, buy: BuyTerms, rent: RentTerms | None = None, **others: object) -> CostTerms:
    return CostTerms.model_validate({"job": job, "buy": buy, "rent": rent or RentTerms(), "discount_rate": 0, **others})


EVERY_HOUR = DailyHours(hours_per_day=24, days_per_week=7)
CASES = [
    Case(
        "a desk in the USA, eight hours on working days",
        RTX_4090,
        1,
        terms(DailyHours(hours_per_day=8), BuyTerms(place="desk")),
        {
            "rent": 40 * WEEKS * 0.29,
            "upfront": 1_800 * 1.64,
            # 450 W, 1.8 for the machine, 75 % of it at work; asleep otherwise; 0.1872 USD for a household.
            "monthly": 0.45 * 1.8 * 0.75 * 40 * WEEKS * 0.1872,
            "resale": FIVE_YEARS * (1_800 + 1_152 / 2),
        },
    ),
    Case(
        "the same desk in Germany",
        RTX_4090,
        1,
        terms(DailyHours(hours_per_day=8), BuyTerms(place="desk"), region="DE"),
        {"monthly": 0.45 * 1.8 * 0.75 * 40 * WEEKS * 0.404},
    ),
    Case(
        "a desk where the machine stays on",
        RTX_4090,
        1,
        terms(DailyHours(hours_per_day=8), BuyTerms(place="desk", switched_off_when_idle=False)),
        {"monthly": 0.45 * 1.8 * (0.35 * MONTH + 0.4 * 40 * WEEKS) * 0.1872},
    ),
    Case(
        "a server room, one server day and night",
        H100,
        8,
        terms(EVERY_HOUR, BuyTerms(place="lab"), AWS),
        {
            "rent": MONTH * 55.04,
            "upfront": SERVER,
            # 8 % of the purchase a year; 8 × 700 W × 1.8214 × 1.56 for cooling at 75 %, 0.0826 USD for industry.
            "monthly": SERVER * 0.08 / 12 + 8 * 0.7 * 1.8214 * 1.56 * 0.75 * MONTH * 0.0826,
            # cards are 1 / 1.64 of a server, and hosts keep half of what cards keep
            "resale": FIVE_YEARS * (SERVER / 1.64 + SERVER * (1 - 1 / 1.64) / 2),
            "rented hour of a GPU": 55.04 / 8,
        },
    ),
    Case(
        "a server room in the state of Washington",
        H100,
        8,
        terms(EVERY_HOUR, BuyTerms(place="lab"), AWS, region="US-WA"),
        {"monthly": SERVER * 0.08 / 12 + 8 * 0.7 * 1.8214 * 1.56 * 0.75 * MONTH * 0.0635},
    ),
    Case(
        "colocation with metered electricity, half of the day",
        L40S,
        4,
        terms(DailyHours(hours_per_day=12, days_per_week=7), BuyTerms(place="colocation"), L40S_RENT),
        {
            "rent": 4 * MONTH / 2 * 1.09,
            "upfront": 4 * 8_500 * 1.64,
            "monthly": (
                4 * 0.35 * 1.8 * 150
                + 4 * 8_500 * 1.64 * 0.08 / 12
                + 4 * 0.35 * 1.8 * 1.42 * 0.0826 * (0.35 * MONTH + 0.4 * MONTH / 2)
            ),
        },
    ),
    Case(
        "colocation with electricity included",
        L40S,
        4,
        terms(
            DailyHours(hours_per_day=12, days_per_week=7),
            BuyTerms(place="colocation", colocation_power="included"),
            L40S_RENT,
        ),
        {"monthly": 4 * 0.35 * 1.8 * 150 + 4 * 8_500 * 1.64 * 0.08 / 12},
    ),
    Case(
        "a data centre of one's own",
        L40S,
        8,
        terms(EVERY_HOUR, BuyTerms(place="data-centre")),
        {
            "upfront": 79_000 + 50_000,
            "monthly": 129_000 * 0.08 / 12 + 8 * 0.35 * 1.8 * 1.1 * 0.75 * MONTH * 0.0826,
        },
    ),
    Case(
        "a GPU that is owned already, in Germany",
        RTX_3090,
        1,
        terms(Run(amount=10), BuyTerms(place="desk", owned=True), region="DE"),
        {"upfront": 0, "a run on own GPUs": 0.35 * 1.8 * 0.75 * 10 * 0.404, "resale": 0},
    ),
    Case(
        "reserved for three years against on demand, half of the day",
        H100,
        8,
        terms(DailyHours(hours_per_day=12, days_per_week=7), BuyTerms(), GCP.evolve(mode="reserved-3y")),
        {
            # A commitment is paid for 8,760 hours a year, used or not.
            "rent": 38.8644 * 730,
            "on-demand": 88.49 * MONTH / 2,
            "reserved-1y": 61.3837 * 730,
            "reserved-3y": 38.8644 * 730,
        },
    ),
    Case(
        "spot with interruptions every 24 hours",
        H100,
        8,
        terms(
            Run(amount=100, checkpoint_seconds=180, checkpoint_interval_hours=1, restart_seconds=900),
            BuyTerms(),
            GCP.evolve(mode="spot", mean_hours_between_interruptions=24, billing_increment_seconds=1),
        ),
        # 0.05 / 1 for checkpoints, half an hour lost and a quarter to restart in 24 hours; one start.
        {"rent": 53.0936 * (100 * (1 + 0.05 + 0.75 / 24) + 0.25)},
    ),
    Case(
        "a single run",
        H100,
        8,
        terms(Run(amount=299.5), BuyTerms(), AWS),
        {
            "rent": 300 * 55.04,
            # The server, with 8 % a year and electricity for the hours of the run, and sold after five years.
            "a run on own GPUs": (
                SERVER * (1 + 299.5 / 8_766 * 0.08)
                + 8 * 0.7 * 1.8214 * 1.56 * 0.0826 * 0.75 * 299.5
                - FIVE_YEARS * SERVER * (1 / 1.64 + (1 - 1 / 1.64) / 2)
            ),
        },
    ),
    Case(
        "monthly runs with data to store and to take out",
        H100,
        8,
        terms(Run(amount=50, repeats_per_year=12, checkpoint_gb=500, dataset_gb=1_500, egress_gb=600), BuyTerms(), AWS),
        # 2,000 GB for 50 of 730.5 hours at 0.02 USD; 500 GB beyond the free ones at 0.09.
        {"rent": 50 * 55.04 + 2_000 * 50 / MONTH * 0.02 + 500 * 0.09},
    ),
    Case(
        "half of the purchase on loan",
        RTX_4090,
        2,
        terms(
            DailyHours(hours_per_day=8),
            BuyTerms(place="desk", card_price_usd=2_000, host_factor=1.5, loan_fraction=0.5, loan_rate=0.06),
            SINGLE_CARDS,
        ),
        # 3,000 USD over three years: 3,000 / 2.752423585 a year, as (1 − 1.06⁻³) / ln 1.06 is that
        {"upfront": 6_000, "borrowed": 3_000, "loan a month": 3_000 / 2.752423585 / 12},
    ),
    Case(
        "six months, then sold",
        RTX_4090,
        2,
        terms(DailyHours(hours_per_day=10, days_per_week=7), BuyTerms(place="desk"), SINGLE_CARDS, horizon_years=0.5),
        {
            "rent": 70 * WEEKS * 2 * 0.29,
            "resale": HALF_A_YEAR * 2 * (1_800 + 1_152 / 2),
            "own over the horizon": (
                2 * 2_952 + 6 * 2 * 0.45 * 1.8 * 0.75 * 70 * WEEKS * 0.1872 - HALF_A_YEAR * 2 * (1_800 + 1_152 / 2)
            ),
        },
    ),
    Case(
        "later payments at eight per cent",
        RTX_4090,
        1,
        terms(EVERY_HOUR, BuyTerms(place="desk", resale_share=0.25), discount_rate=0.08),
        # (1 − 1.08⁻⁵) / ln 1.08 = 4.150370087 years; 1.08⁵ = 1.469328.
        {
            "own over the horizon": (
                2_952 + 0.45 * 1.8 * 0.75 * 8_766 * 0.1872 * 4.150370087 - 0.25 * (1_800 + 1_152 / 2) / 1.4693280768
            ),
            "rent over the horizon": 0.29 * 8_766 * 4.150370087,
        },
    ),
    Case(
        "training on two servers, which need a network",
        H100,
        16,
        terms(EVERY_HOUR, BuyTerms(place="lab"), AWS),
        {"rent": 2 * MONTH * 55.04, "upfront": 2 * SERVER / 0.81, "network": 2 * SERVER * 0.19 / 0.81},
    ),
    Case(
        "a service with four machines day and night",
        L40S,
        1,
        # 138,240 requests a day are 1.6 a second: one card at 80 % of its 2; four of them at the peak.
        terms(Service(requests_per_day=138_240, peak_factor=4), FREE.evolve(idle_power_fraction=0), L40S_RENT),
        {
            "rent": 4 * MONTH * 1.09,
            "upfront": 4 * 5_000,
            "monthly": 0.35 * 1.8 * 0.75 * 0.8 * MONTH * 0.1,
            "rented hour of a GPU": 1.09,
        },
        Throughput(samples_per_second=2),
    ),
    Case(
        "one machine owned for the base load, one rented for half of the day",
        L40S,
        1,
        terms(
            Service(requests_per_day=138_240, hourly_shares=(3,) * 12 + (1,) * 12, scales_down=True),
            FREE.evolve(idle_power_fraction=0),
            L40S_RENT.evolve(billing_increment_seconds=1),
            horizon_years=1,
        ),
        {
            # 1.5 groups half of the day, 0.5 the other half: 3 machine-hours in 2 hours.
            "rent": 1.5 * MONTH * 1.09,
            "none owned": 1.5 * 8_766 * 1.09,
            # Three quarters of the 0.8 hours of work of each hour are done by the own one.
            "one owned": 5_000 * 0.5 + 0.35 * 1.8 * 0.75 * 0.1 * 0.8 * 8_766 * 0.75 + 0.5 * 8_766 * 1.09,
            "two owned": 2 * 5_000 * 0.5 + 0.35 * 1.8 * 0.75 * 0.1 * 0.8 * 8_766,
        },
        Throughput(samples_per_second=2),
    ),
]
READERS: dict[str, Callable[[CostEstimate, Case], float]] = {
    "rent": lambda found, _: found.result.rent.usd,
    "upfront": lambda found, _: found.result.own.upfront_usd,
    "monthly": lambda found, _: found.result.own.monthly_cash_usd,
    "resale": lambda found, _: found.result.own.resale_usd,
    "borrowed": lambda found, _: found.result.own.borrowed_usd,
    "loan a month": lambda found, _: found.result.own.loan_usd_per_month,
    "network": lambda found, _: next(term.usd for term in found.result.own.upfront if term.name == "network"),
    "a run on own GPUs": lambda found, _: found.result.own.usd_per_period,
    "rented hour of a GPU": lambda found, _: found.result.rent.usd_per_gpu_hour,
    "own over the horizon": lambda found, _: found.result.answer.own_usd,
    "rent over the horizon": lambda found, _: found.result.answer.rent_usd,
    "none owned": lambda found, case: hybrid_of_plan(found, case.terms, case.pace).mixes[0].usd,
    "one owned": lambda found, case: hybrid_of_plan(found, case.terms, case.pace).mixes[1].usd,
    "two owned": lambda found, case: hybrid_of_plan(found, case.terms, case.pace).mixes[2].usd,
    **{
        mode: lambda found, _, mode=mode: next(each.usd for each in found.result.rental_modes if each.mode == mode)
        for mode in ("on-demand", "reserved-1y", "reserved-3y")
    },
}


def estimated(case: Case, catalog: CostCatalog, hardware: Catalog, today: date) -> CostEstimate:
    return estimate_cost(case.terms, hardware.hardware.gpu(case.gpu), case.count, case.pace, catalog, today)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_sum_is_right_to_the_cent(case: Case, catalog: Catalog, today: date) -> None:
    found = estimated(case, catalog.cost, catalog, today)
    sums = {name: READERS[name](found, case) for name in case.sums}
    assert sums == pytest.approx(case.sums, abs=CENT)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_printed_formula_of_electricity_comes_to_its_amount(case: Case, catalog: Catalog, today: date) -> None:
    own = estimated(case, catalog.cost, catalog, today).result.own
    assert own is not None
    for term in own.monthly:
        if term.name in ("energy", "operations"):
            formula = term.formula.replace("·", "*").replace("−", "-")
            values = {symbol.name: symbol.value for symbol in term.symbols}
            assert eval(formula, {}, values) == pytest.approx(term.usd)
            assert all(name in term.formula for name in values if name in ("i", "h", "a"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_figure_is_cited(case: Case, catalog: Catalog, today: date) -> None:
    found = estimated(case, catalog.cost, catalog, today)
    assert found.case is not None
    assert all(figure.source for figure in found.case.figures.values())
    assert found.case.resale.source
    result = found.result
    assert result.rent is not None
    assert result.own is not None
    for term in (*result.rent.terms, *result.own.upfront, *result.own.monthly):
        assert term.source
        assert all(symbol.source for symbol in term.symbols)
    assert RESALE not in found.case.figures


def test_every_default_has_a_source() -> None:
    plain = CostTerms().model_dump()
    numbers = {f"buy.{name}" for name, value in plain["buy"].items() if isinstance(value, float)}
    zero = {"buy.loan_fraction", "buy.loan_rate"}
    assert numbers - zero <= set(DEFAULT_SOURCES)
    assert "buy.switched_off_when_idle" in DEFAULT_SOURCES
