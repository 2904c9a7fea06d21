"""Inputs of a rent-or-buy decision with the resulting cash flows, and their construction from terms, GPU and offer."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from typing import Final

from planner.cost.catalog import CostCatalog
from planner.cost.demand import Demand
from planner.cost.figure import NINETY_PERCENT, TEN_TO_NINETY, Certainty, Figure
from planner.cost.finance import ceil_with_tolerance
from planner.cost.owning.accounting import ResaleCurve, resale_curve, user_resale_curve
from planner.cost.owning.costs import FIGURES, Ownership, ServerSetup, place_of, running_costs, upfront_costs
from planner.cost.owning.purchase import card_price, server_price
from planner.cost.rent_or_buy.cash_flows import CashFlows
from planner.cost.renting.quote import TERM_YEARS, RentQuote
from planner.cost.terms import HOURS_PER_YEAR, BuyTerms, CostTerms
from planner.errors import SpecError
from planner.hardware.gpu import Gpu

RESALE: Final = "resale_share"
RENT_PRICE: Final = "rent_usd_per_hour"
DRIFT: Final = "price_drift_per_year"
USE: Final = "use_factor"
TIME: Final = "time_factor"
_NOTHING: Final[Mapping[str, float]] = {}


@dataclass(frozen=True, eq=False)
class RentOrBuyCase:
    """All inputs of one rent-or-buy decision.

    `figures` has the ownership figures by the names in `planner.cost.owning.costs.FIGURES`, the rent per billed
    group-hour, the price drift, and two factors on the hours: for the amount of use and for the duration of the work.
    """

    figures: Mapping[str, Figure]
    setup: ServerSetup
    resale: ResaleCurve
    busy_hours_per_year: float
    billed_per_busy_hour: float
    """Billed hours of rent per hour of work; 0 if the rent does not depend on use."""
    billed_hours_per_year: float
    """Billed hours of rent per year that do not depend on use."""
    rent_usd_per_year: float
    """Yearly rental payments besides the machines, such as storage and egress."""
    rent_term_years: float
    horizon_years: float
    discount_rate: float
    once: bool = False
    """Whether all work is that of a single run: it is paid at once, and machines cost nothing while it does not run."""

    @property
    def central(self) -> dict[str, float]:
        """Return the central values of all figures, by name."""
        return {name: figure.value for name, figure in self.figures.items()}

    @property
    def uncertain(self) -> tuple[str, ...]:
        """Return the names of the figures with a range, including the resale value unless the user set it."""
        ranged = [name for name, figure in self.figures.items() if figure.lowest < figure.highest]
        low, _, high = self.resale.band(self.horizon_years)
        return (*ranged, RESALE) if low < high else tuple(ranged)

    def cash_flows(self, deviations: Mapping[str, float] = _NOTHING) -> CashFlows:
        """Return the cash flows with some figures moved by a number of standard deviations from their median."""
        values = dict(self.central)
        for name, deviation in deviations.items():
            if name != RESALE:
                values[name] = self.figures[name].quantile(deviation)
        return self.with_values(values, deviations.get(RESALE, 0.0))

    def with_values(self, values: Mapping[str, float], resale_deviations: float = 0.0) -> CashFlows:
        """Return the cash flows for these values of all figures."""
        purchase = upfront_costs(values, self.setup)
        yearly = running_costs(values, self.setup, purchase)
        return CashFlows(
            capex_usd=purchase.usd,
            resale_base_usd=purchase.resale_base,
            own_usd_per_year=0.0 if self.once else yearly.usd_per_year,
            own_usd_per_hour=yearly.usd_per_busy_hour
            + (yearly.usd_per_year / (HOURS_PER_YEAR * self.setup.groups) if self.once else 0.0),
            rent_usd_per_hour=values[RENT_PRICE] * self.billed_per_busy_hour,
            rent_usd_per_year=self.rent_usd_per_year + values[RENT_PRICE] * self.billed_hours_per_year,
            rent_term_years=self.rent_term_years,
            horizon_years=self.horizon_years,
            once=self.once,
            busy_hours_per_year=self.busy_hours_per_year * values[USE] * values[TIME],
            drift=values[DRIFT],
            discount_rate=self.discount_rate,
            setup=self.setup,
            resale=self.resale,
            resale_deviations=resale_deviations,
        )


_EPOCH: Final = "github:epoch-research/training-cost-trends"
_HOST: Final = {"a100": "a100", "tesla-v100": "v100", "tesla-p100": "p100"}
_POWER: Final = {"h100": "h100", "a100": "a100"}
_PRICED_SINGLY: Final = "GPUs and hosts are priced one by one"
_WHOLE_COMPUTER: Final = "the price is that of a whole computer, which needs no other host"
_ALREADY_SPENT: Final = "spent already: the GPUs are owned, and paid with or without this job"
_SUNK_COSTS: Final = (
    *("network_share", "rack_usd_per_server", "tax_fraction", "shipping_usd", "install_usd"),
    *("colocation_usd_per_kw_month", "operations_fraction_per_year", "support_fraction_per_year"),
    *("spares_fraction_per_year", "insurance_fraction_per_year", "staff_usd_per_year", "licence_usd_per_gpu_year"),
)
"""Figures of owning that an owned GPU causes with or without the job."""
_TARIFF_SWING: Final = 1.25
"""**Source** the US industrial average price of 2022 over the 2020 average (Epoch AI): 0.0832 / 0.0667."""
_LOW_DRIFT: Final = -0.3
_HIGH_DRIFT: Final = 0.3
_DRIFT_SOURCE: Final = (
    "prices observed in 2025 and 2026: Nebius H100 from 2.95 to 4.50 USD in 5 months, "
    "AWS p5 from 98.32 to 55.04 USD in 19 months"
)
_TODAY: Final = "a run that is done once is paid at today's prices"
_FIXED_PRICE: Final = "the commitment fixes the price"
_NO_DRIFT: Final = f"constant prices; range from {_DRIFT_SOURCE}"


class UnknownFigureError(SpecError):
    """An ownership figure that neither the user nor the catalog provides."""


def build_case(
    terms: CostTerms,
    gpu: Gpu,
    count: int,
    demand: Demand,
    quote: RentQuote | None,
    catalog: CostCatalog,
    today: date,
    linked_cards: int | None = None,
) -> RentOrBuyCase:
    """Return the case of owning `count` GPUs for each group of `demand`, compared with renting at `quote`.

    `linked_cards` of a group exchange data while they work; None for all.

    Raises:
        UnknownFigureError: If the price or the power of the GPU is unknown.
        SpecError: If the job does not fit into the horizon.
    """
    preset = catalog.ownership(place_of(terms.buy, gpu))
    place = (_with_sunk_costs(preset) if terms.buy.owned else preset).with_terms(terms.buy)
    busy = demand.busy_hours * demand.per_year(terms.horizon_years)
    groups = _owned_groups(demand, busy)
    case = RentOrBuyCase(
        figures={
            **_ownership_figures(terms, gpu, place, catalog, today),
            RENT_PRICE: Figure(value=0.0, source="nothing is rented", certainty="assumed"),
            DRIFT: _price_drift_figure(terms.rent.price_drift_per_year, once=demand.periods_per_year is None),
            TIME: _duration_factor(demand),
            USE: Figure(
                value=1.0,
                low=0.8,
                high=max(min(1.25, (HOURS_PER_YEAR * groups / busy)), 1.0),
                source=f"{_EPOCH}: 90 % range of the hardware use of real runs",
                certainty="assumed",
            ),
        },
        setup=_server_setup(
            terms.buy, place, count, groups, linked_cards, rests=_draws_nothing_when_idle(terms.buy, place, demand)
        ),
        resale=_chosen_resale_curve(terms, catalog),
        busy_hours_per_year=busy,
        billed_per_busy_hour=0.0,
        billed_hours_per_year=0.0,
        rent_usd_per_year=0.0,
        rent_term_years=0.0,
        horizon_years=terms.horizon_years,
        discount_rate=terms.discount_rate,
        once=demand.periods_per_year is None,
    )
    return case if quote is None else rented_at(case, quote, demand)


def rented_at(case: RentOrBuyCase, quote: RentQuote, demand: Demand) -> RentOrBuyCase:
    """Return `case` compared with renting at `quote`."""
    # A commitment or an always-on service is paid whether it is used or not.
    fixed, per_year = quote.mode in TERM_YEARS or demand.always_on, demand.per_year(case.horizon_years)
    return replace(
        case,
        figures={**case.figures, RENT_PRICE: _rent_figure(quote), DRIFT: _drift_at(quote, case.figures[DRIFT])},
        billed_per_busy_hour=0.0 if fixed else quote.billed_hours / demand.busy_hours,
        billed_hours_per_year=quote.billed_hours * per_year if fixed else 0.0,
        rent_usd_per_year=(quote.storage_usd + quote.egress_usd) * per_year,
        rent_term_years=TERM_YEARS.get(quote.mode, 0.0) if demand.periods_per_year is not None else 0.0,
    )


def _with_sunk_costs(place: Ownership) -> Ownership:
    """Return the figures of a place without those that are paid with or without the job."""
    spent = Figure(value=0.0, source=_ALREADY_SPENT, certainty="assumed")
    return place.evolve(
        host_factor=Figure(value=1.0, source=_ALREADY_SPENT, certainty="assumed"), **dict.fromkeys(_SUNK_COSTS, spent)
    )


def _chosen_resale_curve(terms: CostTerms, catalog: CostCatalog) -> ResaleCurve:
    share = terms.buy.resale_share
    return resale_curve(catalog.constants) if share is None else user_resale_curve(share, terms.horizon_years)


def _owned_groups(demand: Demand, busy_per_year: float) -> int:
    """Return the number of GPU groups to own, enough for the peak demand and for a year's work in a year."""
    groups = ceil_with_tolerance(busy_per_year / HOURS_PER_YEAR)
    if demand.periods_per_year is None and groups > 1:
        reason = "one run takes longer than the horizon"
        raise SpecError("horizon_years", reason, "Choose more GPUs or a longer horizon.")
    return max(demand.groups, groups)


def _draws_nothing_when_idle(buy: BuyTerms, place: Ownership, demand: Demand) -> bool:
    """Return whether idle hours draw nothing because of this job.

    A service is on around the clock, so that it causes idle power on owned machines, too. What else an owned machine
    draws at rest, it draws without the job. GPUs bought for a single run are switched off after it.
    """
    if demand.always_on:
        return buy.switched_off_when_idle or False
    return buy.owned or demand.periods_per_year is None or place.switched_off_when_idle


def _server_setup(
    buy: BuyTerms, place: Ownership, count: int, groups: int, linked_cards: int | None, *, rests: bool
) -> ServerSetup:
    return ServerSetup(
        count=count,
        groups=groups,
        gpus_per_server=place.gpus_per_server,
        colocation_power=place.colocation_power,
        linked_cards=linked_cards,
        whole_servers=buy.server_price_usd is not None and not buy.owned,
        server_power_watts=buy.server_power_watts,
        network_usd=0.0 if buy.owned else buy.network_usd,
        switched_off_when_idle=rests,
        loan_fraction=buy.loan_fraction,
        loan_rate=buy.loan_rate,
        loan_years=buy.loan_years,
    )


def _ownership_figures(
    terms: CostTerms, gpu: Gpu, place: Ownership, catalog: CostCatalog, today: date
) -> dict[str, Figure]:
    figures: dict[str, Figure] = {name: getattr(place, name) for name in FIGURES if name in type(place).model_fields}
    buy = terms.buy
    if buy.host_factor is None and gpu.is_whole_computer:
        figures["host_factor"] = Figure(value=1.0, source=_WHOLE_COMPUTER, certainty="assumed")
    elif buy.host_factor is None and not buy.owned:
        figures["host_factor"] = _constant_of_family(figures["host_factor"], gpu, _HOST, "server-cost-factor", catalog)
    server = _server_price_figure(buy, gpu, place, catalog, today)
    figures["server_price_usd"] = server
    figures["card_price_usd"] = _card_price_figure(buy, gpu, catalog, today, _card_of_server(server, figures, place))
    figures["card_power_watts"] = _card_power_figure(buy, gpu)
    figures["tariff_usd_per_kwh"] = _tariff_figure(terms, place, catalog)
    if buy.server_power_factor is None:
        figures["server_power_factor"] = _constant_of_family(
            figures["server_power_factor"], gpu, _POWER, "server-power-factor", catalog
        )
    return figures


def _server_price_figure(buy: BuyTerms, gpu: Gpu, place: Ownership, catalog: CostCatalog, today: date) -> Figure:
    """Return the price of a server with its GPUs: the user's, else the catalog's; 0 if GPUs are priced one by one."""
    if buy.owned:
        return Figure(value=0.0, source=_ALREADY_SPENT, certainty="yours")
    if buy.server_price_usd is not None:
        return Figure.own(buy.server_price_usd)
    own_parts = buy.card_price_usd is not None or buy.host_factor is not None or gpu.purchase_price_usd is not None
    price = None if own_parts else server_price(catalog.purchases, gpu.id, place.gpus_per_server, today)
    return price or Figure(value=0.0, source=_PRICED_SINGLY, certainty="assumed")


def _card_of_server(server: Figure, figures: dict[str, Figure], place: Ownership) -> Figure | None:
    """Return the price of one GPU that follows from a server's price, or None without one."""
    if not server.value or server.certainty == "yours":
        return None
    part = place.gpus_per_server * figures["host_factor"].value
    return server.evolve(
        value=server.value / part,
        low=server.lowest / part,
        high=server.highest / part,
        source=f"a server's price by its GPUs and the cost of a host: {server.source}",
        certainty="derived",
    )


def _card_price_figure(buy: BuyTerms, gpu: Gpu, catalog: CostCatalog, today: date, of_server: Figure | None) -> Figure:
    if buy.owned:
        sale = buy.sale_usd_per_card
        return Figure(value=0.0, source=_ALREADY_SPENT, certainty="yours") if sale is None else Figure.own(sale)
    if buy.card_price_usd is not None:
        return Figure.own(buy.card_price_usd)
    if gpu.purchase_price_usd is not None:
        provenance = gpu.provenance_of("purchase_price_usd")
        return Figure(value=gpu.purchase_price_usd, source=provenance.source, date=provenance.as_of, certainty="yours")
    price = card_price(catalog.purchases, gpu.id, gpu.launch_price_usd, today, gpu.released) or of_server
    if price is not None:
        return price
    if buy.server_price_usd is not None:
        return Figure(value=0.0, source="not needed: the server's price includes its GPUs", certainty="assumed")
    reason = f"the price of one {gpu.name} is unknown"
    raise UnknownFigureError("buy.card_price_usd", reason, "Enter the price that you would pay.")


def _card_power_figure(buy: BuyTerms, gpu: Gpu) -> Figure:
    if gpu.drawn_watts is not None:
        provenance = gpu.provenance_of("board_power_watts" if gpu.power_limit_watts is None else "power_limit_watts")
        is_own = provenance.basis == "yours"
        certainty: Certainty = "yours" if is_own else "quoted"
        return Figure(value=gpu.drawn_watts, source=provenance.source, date=provenance.as_of, certainty=certainty)
    if buy.server_power_watts is not None:
        return Figure(value=0.0, source="not needed: the server's power includes its GPUs", certainty="assumed")
    reason = f"the board power of the {gpu.name} is unknown"
    raise UnknownFigureError("buy.server_power_watts", reason, "Enter the power of a server with it at full load.")


def _tariff_figure(terms: CostTerms, place: Ownership, catalog: CostCatalog) -> Figure:
    if terms.buy.tariff_usd_per_kwh is not None:
        return Figure.own(terms.buy.tariff_usd_per_kwh)
    region = catalog.region(terms.region)
    tariff = region.tariff(place.tariff_kind)
    if tariff is None:
        reason = f"the electricity price in {region.name} is unknown"
        raise UnknownFigureError(
            "buy.tariff_usd_per_kwh", reason, "Enter your electricity price, or choose another region."
        )
    return tariff.evolve(low=tariff.value / _TARIFF_SWING, high=tariff.value * _TARIFF_SWING)


def _constant_of_family(preset: Figure, gpu: Gpu, known: dict[str, str], kind: str, catalog: CostCatalog) -> Figure:
    """Return the constant for the GPU's family if there is one, with a range that includes the preset's value."""
    family = next((name for start, name in known.items() if gpu.id.startswith(start)), None)
    if family is None:
        return preset
    constant = catalog.constant(f"{kind}-{family}")
    return constant.evolve(low=min(constant.value, preset.lowest), high=max(constant.value, preset.highest))


def _rent_figure(quote: RentQuote) -> Figure:
    price = quote.machine_usd / quote.billed_hours
    low, high = quote.offer.price_range
    return Figure(
        value=price,
        low=low * price,
        high=high * price,
        source=quote.offer.source,
        date=quote.offer.price_date,
        certainty="yours" if quote.offer.own else "quoted",
    )


def _price_drift_figure(per_year: float, *, once: bool) -> Figure:
    if once:
        return Figure(value=0.0, source=_TODAY, certainty="assumed")
    if per_year:
        return Figure.own(per_year)
    return Figure(value=0.0, low=_LOW_DRIFT, high=_HIGH_DRIFT, source=_NO_DRIFT, certainty="assumed")


def _drift_at(quote: RentQuote, drift: Figure) -> Figure:
    """Return the price drift, which is no guess where a commitment fixes the price."""
    is_guess = quote.mode in TERM_YEARS and drift.certainty != "yours"
    return Figure(value=0.0, source=_FIXED_PRICE, certainty="assumed") if is_guess else drift


def _duration_factor(demand: Demand) -> Figure:
    """Return the uncertainty of the duration, widened from the estimate's 80 % range to 90 %."""
    widened = NINETY_PERCENT / TEN_TO_NINETY
    return Figure(
        value=1.0,
        low=(demand.low_busy_hours / demand.busy_hours) ** widened,
        high=(demand.high_busy_hours / demand.busy_hours) ** widened,
        source="the range of the time estimate",
    )
