"""Costs of a fleet: its power and energy, the rent of its GPUs, and what idle ones waste a day."""

from collections.abc import Mapping
from datetime import date
from typing import Final, NamedTuple

from planner.cost.card_prices import CardPrices
from planner.fleet.cards import FleetCard
from planner.fleet.fleet import Fleet
from planner.fleet.serving import FleetServer
from planner.hardware.gpu import Gpu
from planner.monitor.diagnosis.verdict import VerdictKind
from planner.monitor.readings.inventory import Device
from planner.plan.catalog import Catalog
from planner.plan.measured import matching_gpus
from planner.plan.prices import prices_by_card
from planner.units import HOURS_PER_DAY, JOULES_PER_KWH, SECONDS_PER_HOUR

_IDLE_KINDS: Final = frozenset((VerdictKind.IDLE, VerdictKind.IDLE_HELD))
_MILLION: Final = 1e6


class IdleCard(NamedTuple):
    """A GPU that is diagnosed as idle, and what renting such a GPU costs a day; None without a price."""

    card: FleetCard
    usd_per_day: float | None


class FleetCosts(NamedTuple):
    """Power now, energy, and rents, which are medians of the catalog's current on-demand offers.

    `priced` of all GPUs have a rent. `power_cards` of them report their power. `kwh_per_day` is what the power now
    comes to in a day, `kwh_last_day` what was used in the last 24 hours, of which the server holds
    `last_day_held_fraction`; None without a Prometheus that holds some of them.
    """

    power_watts: float
    power_cards: int
    kwh_per_day: float
    electricity_usd_per_day: float | None
    rent_usd_per_hour: float
    priced: int
    idle: tuple[IdleCard, ...]
    idle_usd_per_day: float
    price_date: str | None
    kwh_last_day: float | None = None
    last_day_held_fraction: float | None = None
    electricity_usd_last_day: float | None = None
    idle_usd_last_day: float | None = None

    @property
    def is_idle_priced(self) -> bool:
        """Return whether at least one idle GPU has a price."""
        return any(idle.usd_per_day is not None for idle in self.idle)


class ServingCost(NamedTuple):
    """Cost of a server's tokens: the rent of its GPUs by the tokens that it generated; None where one is unknown."""

    server: FleetServer
    cards: int
    usd_per_hour: float | None
    usd_per_million_tokens: float | None


class FleetPrices:
    """Rents of the GPUs of a fleet, by the catalog's offers of `today`; each kind of GPU is looked up once.

    A GPU that may be one of several records has the price of the cheapest.
    """

    def __init__(self, catalog: Catalog, today: date) -> None:
        self._catalog = catalog
        self._prices: Mapping[str, CardPrices] = prices_by_card(catalog, today)
        self._gpus: dict[tuple[str, float | None], tuple[Gpu, ...]] = {}

    def gpus(self, device: Device) -> tuple[Gpu, ...]:
        """Return the records of the catalog that a GPU may be; none for a MIG instance."""
        kind = (device.name, device.fact("memory_total_bytes"))
        if device.mig_parent is not None:
            return ()
        if kind not in self._gpus:
            self._gpus[kind] = matching_gpus(self._catalog.hardware, device)
        return self._gpus[kind]

    def usd_per_hour(self, device: Device) -> tuple[float | None, str | None]:
        """Return the median on-demand rent of a GPU in USD per hour, and the date of the oldest offer in it."""
        rents = [self._prices[gpu.id].rented.get("on-demand") for gpu in self.gpus(device)]
        known = [rent for rent in rents if rent is not None]
        if not known:
            return None, None
        rent = min(known, key=lambda spread: spread.median_usd)
        return rent.median_usd, min((point.day for point in rent.current if point.day), default=None)

    def costs(self, fleet: Fleet, usd_per_kwh: float | None = None) -> FleetCosts:
        """Return what the fleet costs, with electricity at `usd_per_kwh` if that is given.

        **Formula** kWh a day: power now × 24 h. kWh of the last day: the integral of the power that the server holds.
        Idle: rent × 24 h of each GPU whose diagnosis is idle; of the last day, rent × the time with little use.

        **Assumes** that a MIG instance's power is its GPU's, so that it is not added twice.
        """
        cards = [card for card in fleet.cards if card.device.mig_parent is None]
        drawn = [watts for card in cards if (watts := card.value("power_watts")) is not None]
        rents = {card.key: self.usd_per_hour(card.device) for card in cards}
        known = [usd for usd, _ in rents.values() if usd is not None]
        kwh = sum(drawn) * HOURS_PER_DAY / 1e3
        idle = tuple(
            IdleCard(card, None if (usd := rents[card.key][0]) is None else usd * HOURS_PER_DAY)
            for card in cards
            if card.key in fleet.verdicts and fleet.verdicts[card.key].kind in _IDLE_KINDS
        )
        days = {card.key: fleet.days[card.key] for card in cards if card.key in fleet.days}
        used = sum(day.joules for day in days.values()) / JOULES_PER_KWH if days else None
        idle_rents = [
            usd * day.idle_seconds / SECONDS_PER_HOUR
            for key, day in days.items()
            if day.idle_seconds is not None and (usd := rents[key][0]) is not None
        ]
        return FleetCosts(
            sum(drawn),
            len(drawn),
            kwh,
            None if usd_per_kwh is None else kwh * usd_per_kwh,
            sum(known),
            len(known),
            tuple(sorted(idle, key=lambda one: -(one.usd_per_day or 0.0))),
            sum(one.usd_per_day or 0.0 for one in idle),
            min((day for _, day in rents.values() if day), default=None),
            used,
            sum(day.held_fraction for day in days.values()) / len(days) if days else None,
            None if usd_per_kwh is None or used is None else used * usd_per_kwh,
            sum(idle_rents) if idle_rents else None,
        )

    def serving(self, fleet: Fleet) -> tuple[ServingCost, ...]:
        """Return what a million generated tokens cost at each server, by the rent of its GPUs.

        **Formula** rent of the GPUs per hour ÷ (tokens per second × 3,600) × 10⁶.

        **Assumes** that a server runs on the GPUs that name its pod, or else on all GPUs of its host.
        """
        return tuple(self._serving_cost(server, fleet) for server in fleet.servers)

    def _serving_cost(self, server: FleetServer, fleet: Fleet) -> ServingCost:
        of_pod = [card for card in fleet.cards if server.pod and any(work.pod == server.pod for work in card.work)]
        host = server.instance.rpartition(":")[0]
        of_host = [card for card in fleet.cards if host and card.is_at(host)]
        cards = of_pod or of_host
        rents = [self.usd_per_hour(card.device)[0] for card in cards]
        usd = sum(rent or 0.0 for rent in rents) if rents and None not in rents else None
        tokens = server.output_tokens_per_s
        per_million = usd / (tokens * SECONDS_PER_HOUR) * _MILLION if usd is not None and tokens else None
        return ServingCost(server, len(cards), usd, per_million)
