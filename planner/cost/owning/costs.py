"""Costs of owning: upfront, per year, and per hour of use."""

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Final, NamedTuple

from pydantic import Field

from planner.base import Spec
from planner.cost.energy import TariffKind
from planner.cost.figure import Figure
from planner.cost.finance import loan_value
from planner.cost.terms import HOURS_PER_YEAR, BuyTerms, ColocationPower, PlaceKind
from planner.hardware.gpu import Gpu
from planner.units import MONTHS_PER_YEAR, WATTS_PER_KW

Values = Mapping[str, float]
"""Values of the ownership figures, by the names in `FIGURES`."""
FIGURES: Final = (
    "card_price_usd",
    "server_price_usd",
    "host_factor",
    "network_share",
    "rack_usd_per_server",
    "tax_fraction",
    "shipping_usd",
    "install_usd",
    "card_power_watts",
    "server_power_factor",
    "active_power_fraction",
    "idle_power_fraction",
    "pue",
    "tariff_usd_per_kwh",
    "colocation_usd_per_kw_month",
    "operations_fraction_per_year",
    "support_fraction_per_year",
    "spares_fraction_per_year",
    "insurance_fraction_per_year",
    "staff_usd_per_year",
    "licence_usd_per_gpu_year",
)
HOST_RESALE: Final = 0.5
"""Resale value of hosts and networks, relative to that of GPUs of the same price.

**Assumes** it: no prices of used hosts are known, and a host without its GPUs has fewer buyers.
"""


class ServerSetup(Spec):
    """Numbers of GPUs and servers to own, and their financing."""

    count: int
    """GPUs per group."""
    groups: int
    gpus_per_server: int
    colocation_power: ColocationPower
    linked_cards: int | None = None
    """GPUs that exchange data while they work, such as all of a training run; None for all of a group."""
    whole_servers: bool = False
    """Whether even a few GPUs are bought as a whole server, at the user's price."""
    server_power_watts: float | None = None
    network_usd: float | None = None
    switched_off_when_idle: bool = False
    loan_fraction: float = 0.0
    loan_rate: float = 0.0
    loan_years: float = 3.0

    # Cached are the numbers that the simulation reads for each of its draws: computing them is 9 % more calls.
    @cached_property
    def cards(self) -> int:
        """Return the total number of GPUs."""
        return self.count * self.groups

    @cached_property
    def servers(self) -> int:
        """Return the number of servers for all GPUs."""
        return math.ceil(self.cards / self.gpus_per_server)

    @cached_property
    def needs_network(self) -> bool:
        """Return whether GPUs of several servers exchange data, so that a cluster network connects them."""
        return (self.linked_cards or self.count) > self.gpus_per_server


class UpfrontCosts(NamedTuple):
    """Upfront costs of a purchase, in USD."""

    cards: float
    host: float
    network: float
    rack: float
    tax: float
    shipping: float
    install: float

    @property
    def usd(self) -> float:
        """Return the total upfront cost in USD."""
        return sum(self)

    @property
    def resale_base(self) -> float:
        """Return the cost of what can be sold again, in USD: the GPUs, and a part of hosts and network."""
        return self.cards + HOST_RESALE * (self.host + self.network)


class RunningCosts(NamedTuple):
    """Running costs: per year regardless of use, and per busy hour of one group of GPUs, in USD."""

    idle_energy: float
    colocation: float
    operations: float
    support: float
    spares: float
    insurance: float
    staff: float
    licence: float
    usd_per_busy_hour: float

    @property
    def usd_per_year(self) -> float:
        """Return the total yearly cost regardless of use, in USD."""
        return sum(self[:-1])


def upfront_costs(values: Values, setup: ServerSetup) -> UpfrontCosts:
    """Return the upfront costs of a purchase.

    **Formula** host = GPUs · (f − 1), or whole servers of which GPUs / f are the GPUs; network = (GPUs + host) ·
    s / (1 − s) if GPUs of several servers work together; tax on all of it.
    **Source** Epoch AI, training-cost-trends, for the factor and the share
    """
    if buys_servers(values, setup):
        servers = setup.servers * values["server_price_usd"]
        cards = servers / values["host_factor"]
        host = servers - cards
    else:
        cards = setup.cards * values["card_price_usd"]
        host = cards * (values["host_factor"] - 1)
    share = values["network_share"] if setup.needs_network else 0.0
    network = (cards + host) * share / (1 - share) if setup.network_usd is None else setup.network_usd
    rack = setup.servers * values["rack_usd_per_server"]
    tax = values["tax_fraction"] * (cards + host + network + rack)
    return UpfrontCosts(cards, host, network, rack, tax, values["shipping_usd"], values["install_usd"])


def buys_servers(values: Values, setup: ServerSetup) -> bool:
    """Return whether whole servers are bought: at the user's price, for a full server, or if that is cheaper."""
    price = values["server_price_usd"]
    if not price or setup.whole_servers or setup.cards >= setup.gpus_per_server:
        return price > 0
    return price < setup.cards * values["card_price_usd"] * values["host_factor"]


def full_power_watts(values: Values, setup: ServerSetup) -> float:
    """Return the power draw of all servers at full load, in watts.

    **Formula** servers · their own power, or GPUs · board power · factor
    """
    if setup.server_power_watts is not None:
        return setup.servers * setup.server_power_watts
    return setup.cards * values["card_power_watts"] * values["server_power_factor"]


class EnergyUse(NamedTuple):
    """Energy use in kWh, including cooling and power conversion: per idle year, and on top per busy group-hour."""

    idle_year: float
    busy_hour: float


def energy_use(values: Values, setup: ServerSetup) -> EnergyUse:
    """Return the energy use of all servers.

    **Formula** P · PUE · 8,766 · i for an idle year, and P · PUE · (a − i) / groups for an hour of one group
    """
    idle = 0.0 if setup.switched_off_when_idle else values["idle_power_fraction"]
    kilowatts = full_power_watts(values, setup) / WATTS_PER_KW * values["pue"]
    return EnergyUse(
        kilowatts * HOURS_PER_YEAR * idle, kilowatts * (values["active_power_fraction"] - idle) / setup.groups
    )


def running_costs(values: Values, setup: ServerSetup, purchase: UpfrontCosts) -> RunningCosts:
    """Return the running costs; electricity counts once, either metered or included in colocation."""
    tariff = 0.0 if setup.colocation_power == "included" else values["tariff_usd_per_kwh"]
    capex, colocation = purchase.usd, values["colocation_usd_per_kw_month"]
    energy = energy_use(values, setup)
    return RunningCosts(
        idle_energy=energy.idle_year * tariff,
        colocation=full_power_watts(values, setup) / WATTS_PER_KW * colocation * MONTHS_PER_YEAR if colocation else 0.0,
        operations=capex * values["operations_fraction_per_year"],
        support=capex * values["support_fraction_per_year"],
        spares=purchase.cards * values["spares_fraction_per_year"],
        insurance=capex * values["insurance_fraction_per_year"],
        staff=values["staff_usd_per_year"],
        licence=setup.cards * values["licence_usd_per_gpu_year"],
        usd_per_busy_hour=energy.busy_hour * tariff,
    )


def financed_usd(capex_usd: float, setup: ServerSetup, discount_rate: float, years: float) -> float:
    """Return the present value of a purchase that ends after `years`: the equity and the loan."""
    if setup.loan_fraction == 0:
        return capex_usd
    borrowed = setup.loan_fraction * capex_usd
    loan = loan_value(borrowed, setup.loan_rate, setup.loan_years, discount_rate, years)
    return capex_usd - borrowed + loan


def place_of(buy: BuyTerms, gpu: Gpu | None) -> PlaceKind:
    """Return where the machines are: unless stated, at a desk if they are owned GPUs made for one, else in a lab."""
    if buy.place is not None:
        return buy.place
    is_for_servers = gpu is None or gpu.segment in ("datacenter", "tpu")
    return "lab" if is_for_servers or not buy.owned else "desk"


class Ownership(Spec):
    """Preset ownership figures for one kind of place; `BuyTerms` can override some of them."""

    id: PlaceKind
    name: str = Field(min_length=3)
    description: str = Field(min_length=3)
    gpus_per_server: int = Field(ge=1, le=72)
    tariff_kind: TariffKind
    colocation_power: ColocationPower
    switched_off_when_idle: bool
    host_factor: Figure
    network_share: Figure
    rack_usd_per_server: Figure
    tax_fraction: Figure
    shipping_usd: Figure
    install_usd: Figure
    server_power_factor: Figure
    active_power_fraction: Figure
    idle_power_fraction: Figure
    pue: Figure
    colocation_usd_per_kw_month: Figure
    operations_fraction_per_year: Figure
    support_fraction_per_year: Figure
    spares_fraction_per_year: Figure
    insurance_fraction_per_year: Figure
    staff_usd_per_year: Figure
    licence_usd_per_gpu_year: Figure
    notes: tuple[str, ...] = ()

    def with_terms(self, terms: BuyTerms) -> "Ownership":
        """Return the ownership figures with the user's own values in place of preset values."""
        own = {name: getattr(terms, name) for name in _FIGURES}
        changed: dict[str, object] = {name: Figure.own(value) for name, value in own.items() if value is not None}
        for name in ("gpus_per_server", "colocation_power", "switched_off_when_idle"):
            if (value := getattr(terms, name)) is not None:
                changed[name] = value
        return self.evolve(**changed)


_FIGURES: Final = tuple(name for name, field in Ownership.model_fields.items() if field.annotation is Figure)
