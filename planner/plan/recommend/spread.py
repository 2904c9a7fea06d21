"""The plan on other numbers of cards: each holding the whole network, and sharing it in the usual way."""

from collections.abc import Iterator
from typing import NamedTuple

from planner.errors import SpecError
from planner.models.architecture import Architecture
from planner.plan.catalog import Catalog
from planner.plan.evaluate import architecture_of
from planner.plan.plan import Plan
from planner.plan.recommend.option import Option
from planner.plan.sharing import usual_sharing
from planner.plan.solve import on_cards
from planner.workload.defaults import with_defaults


class Spread(NamedTuple):
    """The plan without a card on a number of them; `how` says how they share the network, empty where they do not."""

    plan: Plan
    how: str


def spreads(plan: Plan, architecture: Architecture | None, counts: tuple[int, ...]) -> Iterator[tuple[Spread, ...]]:
    """Yield, for each of `counts` that is possible, the ways to spread `plan`, the plain one first.

    A plan that shares the network in its own way keeps it, on multiples of what that takes. A traced module runs on as
    many cards as it was traced for.
    """
    bare = plan.evolve(gpu=None, workload=plan.workload.evolve(gpus=()), count=1 if plan.workload.gpus else plan.count)
    if architecture is None:
        yield (Spread(bare, ""),)
        return
    parallel = bare.workload.parallel
    if not parallel.is_plain:
        unit = parallel.model_shards * parallel.expert
        yield from ((Spread(on_cards(bare, count), ""),) for count in _sorted(counts) if count % unit == 0)
        return
    sharing = usual_sharing(with_defaults(bare.workload, architecture, 1), architecture)
    for count in _sorted(counts):
        plain = Spread(on_cards(bare, count), "")
        shared = (Spread(on_cards(bare, count, sharing.settings(count)), sharing.title),)
        yield (plain, *(shared if count > 1 and count in sharing.counts else ()))


def plan_of(option: Option, plan: Plan, catalog: Catalog) -> Plan:
    """Return `plan` on the cards of `option`, rented or owned as it says.

    Raises:
        SpecError: If the plan is another than the option was found for.
    """
    architecture = None if plan.model.trace is not None else architecture_of(plan, catalog)
    ways = (spread for group in spreads(plan, architecture, (option.count,)) for spread in group)
    spread = next((spread for spread in ways if spread.how == option.sharing), None)
    if spread is None:
        raise SpecError("count", f"the plan does not go on {option.count} cards", "Choose again.")
    rent = plan.cost.rent
    if option.mode is not None:
        rent = rent.evolve(offer=option.offer, mode=option.mode)
    return spread.plan.evolve(gpu=option.gpu, cost=plan.cost.evolve(rent=rent))


def _sorted(counts: tuple[int, ...]) -> list[int]:
    return sorted(set(counts))
