"""Renting and owning capable GPUs: offers and ownership costs as hardware options."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Final, NamedTuple

from planner.cost.catalog import CostCatalog
from planner.cost.demand import Demand
from planner.cost.figure import TEN_TO_NINETY, Figure
from planner.cost.finance import annuity
from planner.cost.owning.costs import buys_servers, full_power_watts, upfront_costs
from planner.cost.rent_or_buy.case import RESALE, RentOrBuyCase, UnknownFigureError, build_case
from planner.cost.renting.quote import RentalFacts
from planner.cost.renting.table import CardDemand, OfferRow, quote_offers
from planner.cost.terms import CostTerms, PlaceKind
from planner.hardware.gpu import Gpu
from planner.hardware.system import System, cards_sold_together
from planner.performance.links import links_of
from planner.performance.result import TimeResult
from planner.plan.catalog import Catalog
from planner.plan.plan import Plan
from planner.plan.recommend.option import HardwareOption, Wish
from planner.plan.recommend.variants import PlanVariant
from planner.plan.sharing import SharedFit

NO_OFFER: Final = "no offer to rent it is known"
_NO_PRICE: Final = "the cost of owning it is unknown"
_CARD_PRICE: Final = "card_price_usd"
_LOW: Final[Mapping[str, float]] = {RESALE: TEN_TO_NINETY, _CARD_PRICE: -TEN_TO_NINETY}
_HIGH: Final[Mapping[str, float]] = {RESALE: -TEN_TO_NINETY, _CARD_PRICE: TEN_TO_NINETY}
_OLD_PRICE_YEARS: Final = 3
"""Age from which a launch price, or the newest price of a GPU, is not one at which it can be bought."""
_OF_PLANS_CARDS: Final = ("card_price_usd", "server_price_usd", "server_power_watts", "sale_usd_per_card")
"""Ownership terms that hold for the plan's own GPUs only."""


@dataclass(frozen=True, slots=True)
class CapableCards:
    """GPUs that can do the job, with their sharing and memory verdict, throughput, and the demand on them."""

    gpu: Gpu
    variant: PlanVariant
    shared: SharedFit
    time: TimeResult
    demand: Demand
    linked_cards: int
    """GPUs of one copy that exchange data while they work."""

    @property
    def count(self) -> int:
        """Return the number of GPUs of one copy."""
        return self.variant.plan.count


class Market(NamedTuple):
    """Terms of the plan, catalog, wish and day, by which GPUs are priced, and the reasons why others were left out."""

    plan: Plan
    catalog: Catalog
    wish: Wish
    today: date
    left_out: Counter[str]

    def ownership_obstacle(self, gpu: Gpu, cards: int) -> str | None:
        """Return why `cards` of this kind cannot be bought or placed, or None if they can."""
        return ownership_obstacle(gpu, cards, self.plan.cost.buy.place, self.catalog.hardware.systems)


def rent_options(market: Market, capable: Mapping[str, CapableCards]) -> Iterator[HardwareOption]:
    """Yield the options of renting the GPUs, by their offers."""
    wish, catalog = market.wish, market.catalog
    if "rent" not in wish.having:
        return
    candidates = {
        gpu_id: CardDemand(gpu_id, cards.count, cards.demand, cards.linked_cards) for gpu_id, cards in capable.items()
    }
    terms, facts = market.plan.cost.rent, RentalFacts.of(catalog.cost)
    rows = quote_offers(catalog.offers, candidates, terms, facts, market.today, wish.modes)
    for row in rows:
        yield _rented_option(capable[row.gpu], row)
    if "own" not in wish.having:
        market.left_out[NO_OFFER] += len(capable.keys() - {row.gpu for row in rows})


def _rented_option(cards: CapableCards, row: OfferRow) -> HardwareOption:
    each = int(row.offer.gpu_count)
    return HardwareOption(
        **_common_fields(cards),
        **_network_fields(cards, each),
        having="rent",
        hours=row.hours,
        low_hours=row.low_hours,
        high_hours=row.high_hours,
        usd=row.usd,
        low_usd=row.low_usd,
        high_usd=row.high_usd,
        machines=row.instances,
        cards_per_machine=each,
        offer=row.offer.id,
        provider=row.offer.provider,
        mode=row.mode,
        price_date=row.price_date,
        comparable=row.comparable,
        current=row.current,
        remarks=row.remarks,
    )


def own_options(market: Market, capable: Mapping[str, CapableCards]) -> Iterator[HardwareOption]:
    """Yield the options of owning the GPUs, where they can be bought and placed."""
    if "own" not in market.wish.having:
        return
    for cards in capable.values():
        try:
            case = _ownership_case(market, cards)
        except UnknownFigureError:
            market.left_out[_NO_PRICE] += 1
            continue
        obstacle = market.ownership_obstacle(cards.gpu, case.setup.cards) or _desk_obstacle(market, case)
        if obstacle:
            market.left_out[obstacle] += 1
        else:
            yield _owned_option(market, cards, case)


def _ownership_case(market: Market, cards: CapableCards) -> RentOrBuyCase:
    terms = _terms_for(market.plan, cards.gpu, cards.count * cards.demand.groups)
    catalog, linked = market.catalog.cost, cards.linked_cards
    return build_case(terms, cards.gpu, cards.count, cards.demand, None, catalog, market.today, linked)


def _terms_for(plan: Plan, gpu: Gpu, cards: int) -> CostTerms:
    """Return the plan's terms for GPUs of this kind: what is known of the plan's own GPUs holds for no others."""
    if gpu.id == plan.gpu and (cards <= plan.count or not plan.cost.buy.owned):
        return plan.cost
    bought = plan.cost.buy.evolve(**dict.fromkeys(_OF_PLANS_CARDS), owned=False)
    return plan.cost.evolve(buy=bought)


def _desk_obstacle(market: Market, case: RentOrBuyCase) -> str | None:
    """Return why the machines cannot stand at a desk: it is one machine on one circuit."""
    if market.plan.cost.buy.place != "desk":
        return None
    if case.setup.servers > 1:
        return SEVERAL_MACHINES
    limit = circuit_watts(market.plan.cost.region, market.catalog.cost)
    return OVER_CIRCUIT if full_power_watts(case.central, case.setup) > limit.value else None


def _owned_option(market: Market, cards: CapableCards, case: RentOrBuyCase) -> HardwareOption:
    """Return the option of owning the GPUs: all costs over the horizon, divided among its runs or months."""
    years, demand = case.horizon_years, cards.demand
    # A run that is done once is all of it; other periods have the same cost each, as in the Cost tab.
    periods = 1.0 if case.once else annuity(case.discount_rate, years) * demand.per_year(years)
    usd, low, high = (
        case.cash_flows(deviations).own_usd(years) / periods
        for deviations in (
            {},
            _uncertain_deviations(_LOW, case.uncertain),
            _uncertain_deviations(_HIGH, case.uncertain),
        )
    )
    network = _network_fields(cards, case.setup.gpus_per_server)
    purchase, whole = upfront_costs(case.central, case.setup), buys_servers(case.central, case.setup)
    if network:
        network["network_usd"] = purchase.network / periods
    price = case.figures["server_price_usd" if whole else _CARD_PRICE]
    old = tuple(_old_price_remarks(price, cards.gpu, market.today))
    return HardwareOption(
        **_common_fields(cards),
        **network,
        having="own",
        hours=demand.busy_hours,
        low_hours=demand.low_busy_hours,
        high_hours=demand.high_busy_hours,
        usd=usd,
        low_usd=min(low, usd),
        high_usd=max(high, usd),
        machines=case.setup.servers,
        cards_per_machine=case.setup.gpus_per_server,
        purchase_usd=(purchase.cards + purchase.host * whole) or None,
        upfront_usd=purchase.usd or None,
        price_date=price.date,
        comparable=not old,
        remarks=old,
    )


def _old_price_remarks(price: Figure, gpu: Gpu, today: date) -> Iterator[str]:
    """Yield a remark if the only known price of a GPU is so old that it can no longer be bought for it."""
    is_launch_price = price.date is None and price.certainty == "assumed"
    dated = gpu.released if is_launch_price else price.date
    if dated is not None and price.certainty != "yours" and today.year - int(dated[:4]) >= _OLD_PRICE_YEARS:
        yield f"the newest known price is {'the one at launch, ' if is_launch_price else 'of '}{dated[:4]}"


def _uncertain_deviations(deviations: Mapping[str, float], uncertain: tuple[str, ...]) -> dict[str, float]:
    return {name: value for name, value in deviations.items() if name in uncertain}


def _network_fields(cards: CapableCards, cards_per_machine: int) -> dict[str, object]:
    """Return the network that the GPUs of one copy need between their machines, empty if they need none."""
    if cards.linked_cards <= cards_per_machine:
        return {}
    return {"network_bytes_per_s": links_of(cards.gpu, cards.variant.plan.timing).network_bytes_per_s}


def _common_fields(cards: CapableCards) -> dict[str, object]:
    """Return the fields that renting and owning the same GPUs have in common."""
    power, scheme = cards.gpu.drawn_watts, cards.shared.scheme
    return {
        "gpu": cards.gpu.id,
        "period": cards.demand.period,
        "count": cards.count,
        "sharing": cards.variant.sharing or ("" if scheme is None else scheme.title),
        "changes": cards.variant.changes,
        "copies": cards.demand.groups,
        "verdict": cards.shared.fit.verdict,
        "free_bytes": cards.shared.fit.free_bytes,
        "fit_probability": cards.shared.fit.fit_probability,
        "tokens_per_second": cards.time.tokens_per_second,
        "samples_per_second": cards.time.samples_per_second,
        "output_token_seconds": cards.time.output_token_seconds,
        "bound": cards.time.bound,
        "basis": cards.time.basis,
        "power_watts": None if power is None else power * cards.count * cards.demand.groups,
    }


_NOT_SOLD: Final = "not for sale"
_WHOLE_SERVERS: Final = "only sold in whole servers"
_NOT_AT_A_DESK: Final = "cannot be placed at a desk"
_ONE_COMPUTER: Final = "a whole computer, which cannot be combined with others"
_NO_LICENCE: Final = "its driver is not licensed for data centers"
SEVERAL_MACHINES: Final = "a desk has room for one machine"
OVER_CIRCUIT: Final = "over the power of one circuit"

_CIRCUITS: Final = {"US": "120-v-15-a", "CA": "120-v-15-a", "MX": "120-v-15-a", "JP": "100-v-15-a", "GB": "230-v-13-a"}
_USUAL_CIRCUIT: Final = "230-v-16-a"


def ownership_obstacle(gpu: Gpu, cards: int, place: PlaceKind | None, systems: Iterable[System]) -> str | None:
    """Return why `cards` of this kind cannot be bought or placed at `place`, or None if they can.

    **Source** GeForce driver licence, 2.1.3: no data center deployment
    """
    return next(_obstacles(gpu, cards, place, systems), None)


def _obstacles(gpu: Gpu, cards: int, place: PlaceKind | None, systems: Iterable[System]) -> Iterator[str]:
    form = gpu.form_factor or ""
    if form == "Cloud only" or gpu.preliminary:
        yield _NOT_SOLD
    if gpu.is_whole_computer and cards > 1:
        yield _ONE_COMPUTER
    if place == "desk" and gpu.segment == "datacenter":  # modules, and boards that are cooled by a server's fans
        yield _NOT_AT_A_DESK
    if cards % (cards_sold_together(gpu, systems) or 1):
        yield _WHOLE_SERVERS
    if place in ("colocation", "data-centre") and gpu.vendor == "NVIDIA" and gpu.segment == "consumer":
        yield _NO_LICENCE


def circuit_watts(region: str, catalog: CostCatalog) -> Figure:
    """Return the power of one circuit in a home or an office of `region`, in watts."""
    return catalog.constant(f"circuit-{_CIRCUITS.get(region.partition('-')[0], _USUAL_CIRCUIT)}")
