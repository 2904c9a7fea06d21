"""Speed of cost estimates: `python benchmarks/cost_speed.py`.

Each figure is the median over answers without cached results, alongside a loop in the same run; only the ratio can be
compared between machines.
"""

import argparse
from datetime import date

from speed import beside_loop, print_beside, write_printed
from tables import add_table_option

from planner.cost.demand import Throughput, demand_of
from planner.cost.estimate import estimate_cost
from planner.cost.rent_or_buy.uncertainty import simulate, tornado
from planner.cost.renting.quote import RentalFacts
from planner.cost.renting.table import CardDemand, quote_offers
from planner.cost.terms import RENT_MODES, BuyTerms, CostTerms, DailyHours, RentTerms, Run, Service
from planner.plan.catalog import Catalog, load_catalog
from planner.plan.cost import evaluate_cost
from planner.plan.evaluate import evaluate
from planner.plan.plan import ModelChoice, Plan
from planner.plan.recommend.option import Recommendation, Wish
from planner.plan.recommend.recommend import recommend
from planner.workload.workload import Inference, Training

TODAY = date(2026, 11, 22)
PACE = Throughput(tokens_per_second=20_000, low_time_factor=0.85, high_time_factor=1.3)

EVERY_COUNT = Wish(counts=(1, 2, 4, 8, 16, 32, 64), quantize=True)
LLAMA = ModelChoice(id="meta-llama/Llama-3.1-8B")
LARGE = ModelChoice(id="meta-llama/Llama-3.3-70B-Instruct")
RECOMMENDED = {
    "fine-tuning": Plan(
        model=LLAMA,
        workload=Training(method="qlora", micro_batch=8),
        cost=CostTerms(job=Run(amount=50e6, unit="tokens")),
    ),
    "a service": Plan(
        model=LARGE,
        workload=Inference(profile="vllm", batch=50, context_length=4_096),
        cost=CostTerms(job=Service(requests_per_day=20_000)),
    ),
    "a desk": Plan(
        model=LARGE,
        workload=Inference(profile="llama.cpp", weights="Q4_K_M"),
        cost=CostTerms(job=DailyHours(hours_per_day=8), buy=BuyTerms(place="desk")),
    ),
}


def main() -> None:
    """Print a line for each kind of answer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=15, help="answers of each kind; default 15")
    add_table_option(parser)
    arguments = parser.parse_args()
    runs = arguments.runs
    catalog = load_catalog()
    print(f"{'what':52} {'median':>10} {'reference':>10} {'ratio':>7} {'aim':>8}")
    print_read(runs)
    print_offers(catalog, runs)
    print_plan(catalog, runs)
    print_keystroke(catalog, runs)
    print_recommendations(catalog, min(runs, 5))
    if arguments.table:
        write_printed("cost-speed")


def print_read(runs: int) -> None:
    """Print the time to read the offers, which is done once."""
    taken, loop = beside_loop(lambda fresh: len(fresh.offers), [load_catalog() for _ in range(min(runs, 5))])
    print_beside("reading all offers / a loop, ms", taken * 1e3, loop * 1e3, "")


def print_offers(catalog: Catalog, runs: int) -> None:
    """Print the table of every offer for a job that fits on every card, for each kind of rental and for all of them."""
    facts = RentalFacts.of(catalog.cost)
    everything = RentTerms(include_history=True)
    for name, modes in (*((mode, (mode,)) for mode in RENT_MODES), ("every way", RENT_MODES)):
        inputs = [_candidates(catalog, hours) for hours in range(10, 10 + runs)]
        taken, loop = beside_loop(
            lambda candidates, ways=modes: quote_offers(catalog.offers, candidates, everything, facts, TODAY, ways),
            inputs,
        )
        print_beside(f"{len(catalog.offers)} offers, {name} / a loop, ms", taken * 1e3, loop * 1e3, "≤ 50 ms")


def print_plan(catalog: Catalog, runs: int) -> None:
    """Print the time of the computations after one edit of a plan: the decision, the tornado chart, and all draws."""
    gpu = catalog.hardware.gpu("h100-sxm5-80gb")
    terms = [
        CostTerms(job=Run(amount=1e9 * run, unit="tokens", repeats_per_year=20), buy=BuyTerms(place="colocation"))
        for run in range(1, runs + 1)
    ]
    taken, loop = beside_loop(lambda one: estimate_cost(one, gpu, 8, PACE, catalog.cost, TODAY), terms)
    print_beside("rent or own, one plan / a loop, ms", taken * 1e3, loop * 1e3, "≤ 50 ms")
    cases = [estimate_cost(one, gpu, 8, PACE, catalog.cost, TODAY).case for one in terms]
    for name, action, aim in (("tornado", tornado, "≤ 5 ms"), ("2,000 draws", simulate, "≤ 200 ms")):
        taken, loop = beside_loop(action, cases)
        print_beside(f"{name} / a loop, ms", taken * 1e3, loop * 1e3, aim)


def print_keystroke(catalog: Catalog, runs: int) -> None:
    """Print the time from a keystroke in the job's hours to the decision: memory, time, offers, costs and draws."""
    plan = Plan(model=ModelChoice(id="meta-llama/Llama-3.1-8B"), gpu="h100-sxm5-80gb", count=8)
    evaluate_cost(evaluate(plan, catalog), catalog, TODAY)
    plans = [plan.evolve(cost=CostTerms(job=DailyHours(hours_per_day=1 + hours / 10))) for hours in range(1, runs + 1)]
    taken, loop = beside_loop(lambda one: evaluate_cost(evaluate(one, catalog), catalog, TODAY), plans)
    print_beside("a keystroke in the job, to the decision / a loop, ms", taken * 1e3, loop * 1e3, "≤ 50 ms")


def print_recommendations(catalog: Catalog, runs: int) -> None:
    """Print the time until the first hardware is recommended and until all options are there, for several jobs."""
    for name, plan in RECOMMENDED.items():
        plans = [plan.evolve(workload=plan.workload.evolve(other_processes_bytes=run)) for run in range(1, runs + 1)]
        first, loop = beside_loop(lambda one: _first_options(one, catalog), plans)
        print_beside(f"first options for {name} / a loop, ms", first * 1e3, loop * 1e3, "≤ 1 s")
        everything, loop = beside_loop(lambda one: recommend(one, catalog, TODAY, EVERY_COUNT), plans)
        print_beside(f"all options for {name} / a loop, ms", everything * 1e3, loop * 1e3, "≤ 10 s")


def _first_options(plan: Plan, catalog: Catalog) -> None:
    """Search until the first options are found."""
    found: list[Recommendation] = []
    recommend(plan, catalog, TODAY, EVERY_COUNT, stop=lambda: bool(found), found=found.append)


def _candidates(catalog: Catalog, hours: float) -> dict[str, CardDemand]:
    demand = demand_of(Run(amount=hours, checkpoint_seconds=60, restart_seconds=600, egress_gb=200), None)
    return {gpu.id: CardDemand(gpu.id, 8, demand) for gpu in catalog.hardware.gpus}


if __name__ == "__main__":
    main()
