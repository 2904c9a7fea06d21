"""The decision in words: its headline, the figures of both sides, what would change it, and what blocks it."""

import pytest
from cost_samples import OWNING, RENTING, TODAY, decision_to_rent

from planner.cost.estimate import estimate_cost
from planner.cost.result import Blocked, BreakEven, CostResult, Decision, Flip, Machines, RentalMode
from planner.cost.terms import BuyTerms, CostTerms, DailyHours, RentTerms, Run, days_since
from planner.plan.cost_alternatives import BatchedService, FasterRental
from planner.present.cost.decision import (
    FlipChip,
    batched_service_sentence,
    buying_title,
    commitment_chip,
    confidence_phrase,
    decision_headline,
    faster_rental_sentence,
    flip_chips,
    machines_sentence,
    modes_sentence,
    result_lines,
    side_rows,
    totals_sentence,
)
from planner.present.format import THIN


def result(decision: Decision | None, **changes: object) -> CostResult:
    even = BreakEven(gpu_hours=1_430.0, utilization_fraction=0.41, years=18 / 365.25)
    return CostResult(**{"rent": None, "own": None, "break_even": even, "answer": decision, **changes})


def plain(text: str) -> str:
    return text.replace(THIN, " ")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "cheaper in 82 % of cases"),
        ({"confidence": 0.9985}, "cheaper in over 99 % of cases"),
        ({"verdict": "too-close", "confidence": 0.52}, "renting is cheaper in 52 % of simulated cases"),
        (
            {"verdict": "too-close", "confidence": 0.6, "more_often_cheaper": "buy"},
            "buying is cheaper in 60 % of simulated cases",
        ),
    ],
)
def test_the_confidence_is_never_total(changes, words):
    assert plain(confidence_phrase(decision_to_rent(**changes))) == words


def test_cards_that_are_owned_are_not_bought_again():
    owned = decision_to_rent(owned=True, decision="buy", verdict="buy")
    assert buying_title(owned) == "Your own"
    assert "using your own" in totals_sentence(result(owned))


def test_totals_say_from_when_a_purchase_pays_off_in_days():
    assert plain(totals_sentence(result(decision_to_rent()))) == (
        "Present value over 2.5 years: renting $300, buying $1,510; they break even after 18 days."
    )
    assert totals_sentence(result(decision_to_rent(rent_figures=RENTING | {"month_usd": None}))) == ""
    never = result(decision_to_rent(), break_even=None)
    assert plain(totals_sentence(never)) == "Present value over 2.5 years: renting $300, buying $1,510."


def test_both_sides_stand_in_a_table():
    rows = [tuple(row) for row in side_rows(decision_to_rent())]
    assert rows == [
        ("Upfront", "–", "$2,952"),
        ("Ongoing, per month", "$212", "$131"),
        ("Per 1,000 requests, net of resale", "$0.0042", "$1.52"),
    ]
    own = decision_to_rent(owned=True)
    assert side_rows(own)[-1].title == "Per 1,000 requests"


def test_the_rows_of_a_single_run_add_up_to_what_it_costs():
    bought = OWNING | {"month_usd": None, "resale_usd": 300.0, "running_usd": 8.0, "unit_usd": 2_660.0, "unit": "run"}
    rented = RENTING | {"month_usd": None, "unit_usd": 2.41, "unit": "run"}
    once = decision_to_rent(rent_figures=rented, own_figures=bought)
    assert [tuple(row) for row in side_rows(once)] == [
        ("Upfront", "–", "$2,952"),
        ("Resale after 2.5 years, present value", "–", "−$300"),
        ("Electricity and upkeep of the run", "–", "$8.00"),
        ("Total, if bought for this run alone", "$2.41", "$2,660"),
    ]
    on_loan = decision_to_rent(rent_figures=rented, own_figures=bought | {"start_usd": 952.0})
    assert tuple(side_rows(on_loan)[1]) == ("Loan, present value", "–", "$2,000")
    owned = decision_to_rent(rent_figures=rented, own_figures=bought, owned=True)
    assert [row.title for row in side_rows(owned)] == ["Upfront", "Per run"]


def test_a_chip_says_what_trying_it_sets():
    chip = FlipChip("a server costs over $400,000", "cost.buy.server_price_usd", 430_000.0)
    assert chip.try_text == "Try it: sets the server price to $430,000"
    assert chip.trial_text == "a server price of $430,000"
    hours = FlipChip("used more", "cost.job.hours_per_day", 12.8)
    assert (hours.try_text, hours.trial_text) == ("Try it: sets the hours per day to 12.8", "12.8 hours per day")
    mode = FlipChip("rented spot", "cost.rent.mode", "spot")
    assert (mode.try_text, mode.trial_text) == ("Try it: sets the rental type to spot", "renting spot")
    untried = FlipChip("a GPU costs more", None, None)
    assert (untried.try_text, untried.trial_text) == ("", "")


def test_a_cheaper_commitment_is_pointed_out(catalog):
    def chip(**changes):
        job = changes.pop("job", DailyHours(hours_per_day=24, days_per_week=7))
        rent = RentTerms(offer="gcp-a3-highgpu-8g-us-central1-2026-08-20", **changes.pop("rent", {}))
        terms = CostTerms(job=job, rent=rent, **changes)
        card = catalog.hardware.gpu("h100-sxm5-80gb")
        return commitment_chip(estimate_cost(terms, card, 8, None, catalog.cost, TODAY).result)

    assert chip() is None  # buying is cheaper still
    found = chip(chosen="rent")
    assert found.text == "Save $1,582,319 over 5 years: reserve for 3 years"
    assert found.terms == "GCP, $28,390 per month for 2 terms; $1,240,423 more than buying"
    assert found[1:3] == ("cost.rent.mode", "reserved-3y")
    assert chip(horizon_years=2, chosen="rent").value == "reserved-1y"
    assert chip(horizon_years=0.5, chosen="rent") is None
    assert chip(job=DailyHours(hours_per_day=1), chosen="rent") is None
    assert chip(job=Run(amount=10), chosen="rent") is None
    assert chip(rent={"mode": "reserved-1y"}, chosen="rent") is None
    assert commitment_chip(result(None)) is None


def test_chips_say_the_condition_and_what_to_try():
    flips = (
        Flip(
            name="utilization", value=0.56, now=0.8, direction="under", field="cost.job.hours_per_day", try_value=12.8
        ),
        Flip(name="card-price", value=3_760, now=1_800, direction="over"),
        Flip(
            name="rental-price",
            value=0.18,
            now=0.29,
            direction="under",
            field="cost.rent.usd_per_gpu_hour",
            try_value=0.171,
        ),
    )
    chips = flip_chips(result(decision_to_rent(flips=flips)))
    assert [plain(chip.text) for chip in chips] == [
        "used under 56 % of the time (now 80 %)",
        "a GPU costs over $3,760 (now $1,800)",
        "renting costs under $0.18 (now $0.29) per GPU-hour",
    ]
    assert flip_chips(result(decision_to_rent(flips=flips, owned=True)))[1].text == "a GPU sells for over $3,760"
    assert chips[0][1:3] == ("cost.job.hours_per_day", 12.8)
    assert plain(result_lines(result(decision_to_rent(flips=flips)), "L40S", TODAY)[1]) == (
        "Changes if used under 56 % of the time (now 80 %), a GPU costs over $3,760 (now $1,800) or renting costs "
        "under $0.18 (now $0.29) per GPU-hour."
    )


def test_what_cannot_run_has_no_decision():
    blocked = Blocked(code="speed-unknown", sentence="The speed of these GPUs is unknown.")
    told = result_lines(result(None, blocked=blocked), "L40S", TODAY)
    assert told == ("No decision yet. The speed of these GPUs is unknown.",)
    unknown = result(None, notes=("no offer is known", "Ends itself."))
    assert result_lines(unknown, "L40S", TODAY) == ("No offer is known.", "Ends itself.")
    assert decision_headline(unknown, "L40S") == ""


def test_a_service_counts_its_machines():
    twelve = Machines(groups=12, cards_per_group=1, cards=12, rented=12, owned=2, power_watts=9_000)
    assert plain(machines_sentence(twelve, "MI300X")) == (
        "Peak load needs 12 × MI300X: 12 machines if rented, 2 machines if bought and 9,000 W for the GPUs."
    )
    pairs = twelve.evolve(cards_per_group=2, cards=24, owned=None, rented=1, power_watts=None)
    assert machines_sentence(pairs, "L4") == "Peak load needs 24 × L4 in 12 groups of 2: 1 machine if rented."
    assert machines_sentence(twelve.evolve(groups=1), "MI300X") == machines_sentence(None, "MI300X") == ""


def mode(name: str, horizon_usd: float | None) -> RentalMode:
    money = {"usd": 40.0, "month_usd": 40.0, "usd_per_gpu_hour": 0.1, "horizon_usd": horizon_usd}
    return RentalMode.model_validate({"mode": name, "provider": "Azure", "offer_id": name, "price_date": None, **money})


def test_a_rental_mode_that_changes_the_decision_is_a_chip():
    dear, spot = mode("on-demand", 2_000.0), mode("spot", 900.0)
    buys = decision_to_rent(decision="buy", verdict="buy", own_usd=1_510.0)
    chips = flip_chips(result(buys, rental_modes=(dear, spot)))
    assert [chip[:3] for chip in chips] == [("rented spot ($40.00 per month at Azure)", "cost.rent.mode", "spot")]
    assert flip_chips(result(buys, rental_modes=(dear, mode("spot", None)))) == ()
    rents = decision_to_rent(own_usd=1_510.0)
    assert flip_chips(result(rents, rental_modes=(dear, spot)))[0].value == "on-demand"
    assert flip_chips(result(rents, rental_modes=(spot, mode("reserved-3y", 9_000.0)))) == ()
    assert flip_chips(result(None)) == ()


def test_rental_modes_stand_side_by_side_whichever_is_chosen(catalog):
    terms = CostTerms(
        job=DailyHours(hours_per_day=24, days_per_week=7),
        rent=RentTerms(offer="gcp-a3-highgpu-8g-us-central1-2026-08-20", mode="reserved-1y"),
    )
    found = estimate_cost(terms, catalog.hardware.gpu("h100-sxm5-80gb"), 8, None, catalog.cost, TODAY).result
    told = modes_sentence(found)
    assert told == (
        "Renting, per month: on demand $64,642 at GCP and spot $38,785 at GCP for the hours in use; "
        "reserved for 1 year $44,841 at GCP and reserved for 3 years $28,390 at GCP for all hours of the term."
    )
    once = estimate_cost(
        terms.evolve(job=Run(amount=10)), catalog.hardware.gpu("h100-sxm5-80gb"), 8, None, catalog.cost, TODAY
    ).result
    assert modes_sentence(once).startswith("Renting, per run: on demand $885 at GCP")
    cheap = once.evolve(rent=once.rent.evolve(mode="on-demand"))
    assert modes_sentence(cheap).endswith(" and spot $531 at GCP for the hours in use.")
    assert "reserved" not in modes_sentence(cheap)
    assert modes_sentence(found.evolve(rental_modes=found.rental_modes[:1])) == ""
    assert modes_sentence(found.evolve(rent=None)) == ""
    others = tuple(mode for mode in found.rental_modes if mode.mode != "reserved-1y")
    assert modes_sentence(found.evolve(rental_modes=others)) == ""


@pytest.mark.parametrize(
    ("usd", "each", "end"),
    [
        (3.53, 0.5, "costs $3.53: $2.58 more than your electricity, 3.00 h sooner."),
        (0.5, -0.2, "costs $0.50, less than your electricity."),
    ],
)
def test_a_faster_rental_says_what_it_costs_more(usd, each, end):
    found = FasterRental(
        gpu="a100",
        count=1,
        provider="Vast.ai",
        offer_id="x",
        mode="on-demand",
        hours=5,
        usd=usd,
        own_hours=8,
        own_usd=0.95,
        usd_per_hour_saved=each,
    )
    told = plain(faster_rental_sentence(found, "A100"))
    assert told == f"Faster: renting 1 × A100 from Vast.ai takes 5.00 h instead of 8.00 h and {end}"


def test_a_program_that_batches_requests_says_what_it_needs():
    found = BatchedService(
        profile="vllm", at_once=256, cards=1, rent_usd_per_month=1_899, present_at_once=1, present_cards=35
    )
    told = plain(batched_service_sentence(found, "L40S", "hf"))
    needs = "vLLM answers 256 and needs 1 × L40S instead of 35"
    assert told == f"Hugging Face Transformers answers 1 request at a time; {needs}, $1,899 per month if rented."
    unpriced = plain(batched_service_sentence(found.evolve(rent_usd_per_month=None), "L40S", "hf"))
    assert unpriced.endswith(f"{needs}.")


def test_close_calls_and_single_runs_have_their_own_headline(catalog):
    card = catalog.hardware.gpu("rtx-4090")
    once = estimate_cost(CostTerms(job=Run(amount=8)), card, 1, None, catalog.cost, TODAY).result
    assert plain(decision_headline(once, "RTX 4090")) == (
        "Rent (cheaper in over 99 % of cases): $2.32 and 8.00 h on 1 × RTX 4090 from OpenRelay."
    )
    close = once.answer.evolve(verdict="too-close", confidence=0.52)
    assert plain(decision_headline(once.evolve(answer=close), "RTX 4090")) == (
        "Too close to call: renting is cheaper in 52 % of simulated cases."
    )
    own = CostTerms(job=DailyHours(hours_per_day=8), buy=BuyTerms(place="desk", owned=True))
    daily = estimate_cost(own, card, 1, None, catalog.cost, TODAY).result
    assert plain(decision_headline(daily, "RTX 4090")).endswith("% of cases): $19.78 of electricity per month.")
    once_owned = own.evolve(job=Run(amount=8))
    run = estimate_cost(once_owned, card, 1, None, catalog.cost, TODAY).result
    assert plain(decision_headline(run, "RTX 4090")).endswith("% of cases): $0.91 of electricity per run.")
    seldom = estimate_cost(CostTerms(job=DailyHours(hours_per_day=2)), card, 1, None, catalog.cost, TODAY).result
    assert plain(decision_headline(seldom, "RTX 4090")) == "Rent (cheaper in over 99 % of cases)."


@pytest.mark.parametrize(("day", "days"), [("2026-11-20", 2), ("2026-11", 21), ("2026", 325), (None, None)])
def test_the_age_of_a_month_counts_from_its_first_day(day, days):
    assert days_since(day, TODAY) == days
    assert "21 days old" in " ".join(result_lines(result(decision_to_rent(oldest_price_date="2026-11")), "L40S", TODAY))
