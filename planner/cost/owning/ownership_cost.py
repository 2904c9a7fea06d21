"""Cost of owning, broken down into terms with their derivation."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from planner.cost.carbon import footprint
from planner.cost.catalog import CostCatalog
from planner.cost.demand import Demand, Throughput, usd_per_million_tokens
from planner.cost.figure import Certainty, Figure
from planner.cost.finance import annuity, equivalent_annual, irr
from planner.cost.owning.accounting import OwnedServers, owned_month, value_lost_per_hour, yearly_depreciation
from planner.cost.owning.costs import (
    Ownership,
    RunningCosts,
    UpfrontCosts,
    buys_servers,
    energy_use,
    full_power_watts,
    place_of,
    running_costs,
    upfront_costs,
)
from planner.cost.owning.purchase import used_card_price
from planner.cost.rent_or_buy.case import RentOrBuyCase
from planner.cost.rent_or_buy.cash_flows import CashFlows
from planner.cost.result import MoneySymbol, MoneyTerm, OwnCost, figure_symbol
from planner.cost.terms import HOURS_PER_YEAR, CostTerms
from planner.hardware.gpu import Gpu
from planner.units import MONTHS_PER_YEAR, WATTS_PER_KW

_JOB: Final = "the job"
_MEANINGS: Final = {
    "card_price_usd": ("p", "USD for one GPU"),
    "server_price_usd": ("s", "USD for a server with its GPUs"),
    "host_factor": ("f", "price of a server divided by that of its GPUs"),
    "network_share": ("s", "network's share of the cluster's price"),
    "rack_usd_per_server": ("r", "USD per server for rack, power and room"),
    "tax_fraction": ("x", "tax on the purchase"),
    "shipping_usd": ("v", "USD for shipping"),
    "install_usd": ("i", "USD for installation"),
    "pue": ("PUE", "electricity of the facility divided by that of the machines"),
    "tariff_usd_per_kwh": ("e", "USD per kWh"),
    "colocation_usd_per_kw_month": ("k", "USD per kilowatt and month"),
    "operations_fraction_per_year": ("o", "operations per year, as a fraction of the purchase"),
    "support_fraction_per_year": ("u", "support per year, as a fraction of the purchase"),
    "spares_fraction_per_year": ("b", "spares per year, as a fraction of the GPUs' price"),
    "insurance_fraction_per_year": ("y", "insurance per year, as a fraction of the purchase"),
    "staff_usd_per_year": ("w", "USD per year for staff"),
    "licence_usd_per_gpu_year": ("l", "USD per GPU and year for licenses"),
    "active_power_fraction": ("a", "power at work, as a fraction of full load"),
    "idle_power_fraction": ("i", "idle power, as a fraction of full load"),
    "card_power_watts": ("W", "watts per GPU"),
    "server_power_factor": ("g", "power of a server divided by that of its GPUs"),
}
_UPFRONT: Final = (
    ("cards", "n · p", ("card_price_usd",)),
    ("host", "n · p · (f − 1)", ("host_factor", "card_price_usd")),
    ("network", "(GPUs + host) · s / (1 − s)", ("network_share",)),
    ("rack", "m · r", ("rack_usd_per_server",)),
    ("tax", "x · (GPUs + host + network + rack)", ("tax_fraction",)),
    ("shipping", "v", ("shipping_usd",)),
    ("install", "i", ("install_usd",)),
)
_PRICE_TERMS: Final = ("cards", "servers")
"""Terms that are prices times a number."""
_GROWS_BY: Final[dict[str, Callable[[float], float]]] = {
    "host": lambda factor: factor - 1,
    "network": lambda share: share / (1 - share),
}
"""For terms that are not proportional to their first figure: the function of it that they are proportional to."""
_YEARLY: Final = (
    ("colocation", "P · k", ("colocation_usd_per_kw_month", "card_power_watts", "server_power_factor")),
    ("operations", "C · o / 12", ("operations_fraction_per_year",)),
    ("support", "C · u / 12", ("support_fraction_per_year",)),
    ("spares", "GPUs · b / 12", ("spares_fraction_per_year",)),
    ("insurance", "C · y / 12", ("insurance_fraction_per_year",)),
    ("staff", "w / 12", ("staff_usd_per_year",)),
    ("licence", "n · l / 12", ("licence_usd_per_gpu_year",)),
)
_A_MONTH: Final = " / 12"
_RUNS_PART: Final = "h / 8766"
_RUNS_MONTHS: Final = "h / 730.5"
_PRICES: Final = (
    "card_price_usd",
    "server_price_usd",
    "rack_usd_per_server",
    "tariff_usd_per_kwh",
    "colocation_usd_per_kw_month",
    "licence_usd_per_gpu_year",
)
"""Names of figures that are prices; the age of prices is reported."""
_ENERGY: Final = (
    "tariff_usd_per_kwh",
    "pue",
    "active_power_fraction",
    "idle_power_fraction",
    "card_power_watts",
    "server_power_factor",
)
_POWER_INCLUDED: Final = "electricity is included in the colocation price and not counted separately"
_POWER_METERED: Final = "electricity is metered and paid in addition to the colocation price"
_OWN_STORAGE: Final = "local storage is assumed to be part of the server"
_ONLY_ELECTRICITY: Final = (
    "of your own GPUs, only the electricity of the hours of work is counted: all else is paid with or without this job"
)
_ALWAYS_ON: Final = (
    "of your own GPUs, only electricity is counted, around the clock as a service is always on: all else is paid with "
    "or without this job"
)
_OWNED_AT: Final = (
    "your own GPUs are assumed to be at this location: {}, with the {} electricity tariff and a PUE of {:g}"
)
_RESOLD: Final = "the resale share of servers and networks is assumed to be half that of the GPUs"


def own_cost(
    case: RentOrBuyCase,
    flows: CashFlows,
    demand: Demand,
    terms: CostTerms,
    gpu: Gpu,
    throughput: Throughput | None,
    catalog: CostCatalog,
) -> OwnCost:
    """Return the cost of owning with its derivation; the terms add up to the upfront and monthly totals."""
    place = catalog.ownership(place_of(terms.buy, gpu))
    purchase = upfront_costs(case.central, case.setup)
    yearly = running_costs(case.central, case.setup, purchase)
    upfront = tuple(_upfront_terms(case, purchase))
    monthly = tuple(_monthly_terms(case, purchase, yearly, flows))
    years, rate = case.horizon_years, case.discount_rate
    present = flows.own_usd(years)
    share = case.central["network_share"] if case.setup.needs_network else 0.0
    per_year = present / years if case.once else equivalent_annual(present, rate, years)
    per_hour = per_year / flows.busy_hours_per_year
    energy = energy_use(case.central, case.setup)
    kwh = (energy.idle_year + energy.busy_hour * flows.busy_hours_per_year) * _accounting_years(case)
    borrowed = case.setup.loan_fraction * purchase.usd
    low, middle, high = (share * purchase.resale_base for share in case.resale.band(years))
    used = used_card_price(catalog.purchases, gpu.id) if terms.buy.owned else None
    unused = "card_price_usd" if buys_servers(case.central, case.setup) else "server_price_usd"
    dates = [day for name in _PRICES if name != unused and case.central[name] and (day := case.figures[name].date)]
    return OwnCost(
        gpu=gpu.id,
        count=case.setup.cards,
        upfront_usd=purchase.usd,
        upfront=upfront,
        borrowed_usd=borrowed,
        loan_usd_per_month=borrowed / annuity(case.setup.loan_rate, case.setup.loan_years) / MONTHS_PER_YEAR,
        monthly_cash_usd=sum(term.usd for term in monthly),
        monthly=monthly,
        resale_usd=middle,
        low_resale_usd=low,
        high_resale_usd=high,
        resale_source=case.resale.source,
        sale_today_usd=None if used is None else used.value * case.setup.cards,
        present_value_usd=present,
        equivalent_usd_per_year=per_year,
        usd_per_gpu_hour=per_hour / demand.rented_hours_per_busy_hour / case.setup.count,
        usd_per_period=per_hour * demand.busy_hours,
        usd_per_million_tokens=usd_per_million_tokens(per_hour, throughput),
        amortised_usd_per_gpu_hour=value_lost_per_hour(purchase.cards + purchase.host, share) / case.setup.cards,
        rate_of_return=_rate_of_return(case, flows),
        books=owned_month(accounting_servers(case, flows, terms), accounting_utilization(case, flows)),
        depreciation_usd_by_year=tuple(
            yearly_depreciation(purchase.usd, terms.buy.depreciation, terms.buy.depreciation_years, int(-(-years // 1)))
        ),
        carbon=footprint(catalog.region(terms.region), kwh, case.figures["pue"]),
        oldest_price_date=min(dates, default=None),
        notes=tuple(_owned_notes(case, place, used) if terms.buy.owned else _bought_notes(case, place, purchase)),
    )


def _owned_notes(case: RentOrBuyCase, place: Ownership, used: Figure | None) -> Iterator[str]:
    yield _ONLY_ELECTRICITY if case.setup.switched_off_when_idle else _ALWAYS_ON
    yield _OWNED_AT.format(place.name.lower(), place.tariff_kind, case.central["pue"])
    if used is not None:
        dated = "without a date" if used.date is None else f"of {used.date}"
        price = f"{used.value:,.0f} USD (second-hand price {dated})"
        yield f"one of your GPUs might sell for {price}, which is not counted"


def _bought_notes(case: RentOrBuyCase, place: Ownership, purchase: UpfrontCosts) -> Iterator[str]:
    if case.central["colocation_usd_per_kw_month"]:
        yield _POWER_INCLUDED if case.setup.colocation_power == "included" else _POWER_METERED
    yield from (*place.notes, _OWN_STORAGE, _RESOLD)
    yield from _uncounted_notes(case, purchase)


def accounting_servers(case: RentOrBuyCase, flows: CashFlows, terms: CostTerms) -> OwnedServers:
    """Return the servers for the accounting view, with their power at work as full power."""
    values, setup = case.central, case.setup
    active = values["active_power_fraction"]
    idle = 0.0 if setup.switched_off_when_idle else values["idle_power_fraction"]
    watts = full_power_watts(values, setup) / setup.servers
    return OwnedServers(
        capex_usd=flows.capex_usd,
        servers=setup.servers,
        gpus=setup.cards,
        server_kilowatts=watts * active / WATTS_PER_KW,
        years=terms.buy.depreciation_years,
        capital_rate=case.discount_rate,
        pue=values["pue"],
        tariff_usd_per_kwh=0.0 if setup.colocation_power == "included" else values["tariff_usd_per_kwh"],
        colocation_usd_per_kw_month=values["colocation_usd_per_kw_month"] / active,
        operations_fraction_per_year=values["operations_fraction_per_year"],
        idle_power_fraction=min(idle / active, 1.0),
    )


def accounting_utilization(case: RentOrBuyCase, flows: CashFlows) -> float:
    """Return the servers' utilization for the accounting view: the fraction of time at work."""
    return min(flows.busy_hours_per_year / (HOURS_PER_YEAR * case.setup.groups), 1.0)


def _upfront_terms(case: RentOrBuyCase, purchase: UpfrontCosts) -> Iterator[MoneyTerm]:
    setup = case.setup
    counts = (
        MoneySymbol("n", setup.cards, "GPUs", _JOB),
        MoneySymbol("m", setup.servers, f"servers of {setup.gpus_per_server}", _JOB),
    )
    whole = buys_servers(case.central, setup)
    if whole:
        yield _ownership_term(case, "servers", purchase.cards + purchase.host, "m · s", ("server_price_usd",), counts)
    for name, formula, figures in _UPFRONT:
        usd = getattr(purchase, name)
        if usd and not (whole and name in ("cards", "host")):
            yield _ownership_term(case, name, usd, formula, figures, counts)


def _monthly_terms(
    case: RentOrBuyCase, purchase: UpfrontCosts, yearly: RunningCosts, flows: CashFlows
) -> Iterator[MoneyTerm]:
    years = _accounting_years(case)
    energy = (yearly.idle_energy + yearly.usd_per_busy_hour * flows.busy_hours_per_year) * years
    busy_hours = MoneySymbol("h", flows.busy_hours_per_year / case.setup.groups * years, "hours of work", _JOB)
    counts = (
        MoneySymbol("n", case.setup.cards, "GPUs", _JOB),
        MoneySymbol("C", purchase.usd, "USD for the whole purchase", "the sum of the upfront terms"),
        MoneySymbol(
            "P", full_power_watts(case.central, case.setup) / WATTS_PER_KW, "kW of all servers at full load", _JOB
        ),
        busy_hours,
    )
    if energy:
        rests = case.setup.switched_off_when_idle
        formula = "P · PUE · e · h · a" if rests else "P · PUE · e · (730.5 · i + h · (a − i))"
        figures = tuple(name for name in _ENERGY if not (rests and name == "idle_power_fraction"))
        yield _ownership_term(case, "energy", energy, formula, figures, counts)
    # Of a purchase for one run, the run pays for its own hours.
    share = flows.busy_hours_per_year / case.setup.groups / HOURS_PER_YEAR if case.once else 1.0
    for name, formula, figures in _YEARLY:
        usd = getattr(yearly, name) * share * years
        if usd:
            for_one_run = f"{formula.removesuffix(_A_MONTH)} · {_RUNS_PART if _A_MONTH in formula else _RUNS_MONTHS}"
            yield _ownership_term(case, name, usd, for_one_run if case.once else formula, figures, counts)


def _accounting_years(case: RentOrBuyCase) -> float:
    """Return the time that running costs are stated for, in years: a month, or the horizon of a single run."""
    return case.horizon_years if case.once else 1 / MONTHS_PER_YEAR


def _ownership_term(
    case: RentOrBuyCase, name: str, usd: float, formula: str, figures: tuple[str, ...], counts: tuple[MoneySymbol, ...]
) -> MoneyTerm:
    """Return a cost term with the range, source and date of its first figure; it lists the `counts` in its formula.

    Only a price by itself is quoted: a share of one, or what is calculated from several figures, is derived.
    """
    main, grows_by = case.figures[figures[0]], _GROWS_BY.get(name, float)
    now = grows_by(main.value)
    named = tuple(figure_symbol(_MEANINGS[figure][0], case.figures[figure], _MEANINGS[figure][1]) for figure in figures)
    return MoneyTerm(
        name=name,
        usd=usd,
        formula=formula,
        symbols=(*(count for count in counts if count.name in formula.split()), *named),
        source=main.source,
        certainty=_term_certainty(name, [case.figures[figure].certainty for figure in figures]),
        date=main.date,
        low_usd=usd * grows_by(main.lowest) / now if now else usd,
        high_usd=usd * grows_by(main.highest) / now if now else usd,
    )


def _term_certainty(name: str, certainties: Sequence[Certainty]) -> Certainty:
    """Return the certainty of a term from those of its figures, of which the first is the main one."""
    if certainties[0] == "yours" or name in _PRICE_TERMS:
        return certainties[0]
    return "assumed" if "assumed" in certainties else "derived"


def _rate_of_return(case: RentOrBuyCase, flows: CashFlows) -> float | None:
    """Return the yearly rate of return from buying instead of renting, or None if the purchase never pays back.

    **Assumes** whole years, and the resale at the end of the last.
    """
    years = max(round(case.horizon_years), 1)
    hours = flows.busy_hours_per_year
    cash = flows.own_usd_per_year + flows.own_usd_per_hour * hours
    rent = flows.rent_usd_per_hour * hours + flows.rent_usd_per_year
    grown = annuity(0.0, 1.0, flows.drift)
    returns = (rent * grown * (1 + flows.drift) ** year - cash for year in range(years))
    payments = [-flows.capex_usd, *returns]
    payments[-1] += flows.resale_base_usd * flows.resale.share(years)
    return irr(payments)


def _uncounted_notes(case: RentOrBuyCase, purchase: UpfrontCosts) -> Iterator[str]:
    uncounted = {"tax": "tax", "shipping": "shipping", "install": "installation"}
    names = [title for name, title in uncounted.items() if not getattr(purchase, name)]
    if not case.central["insurance_fraction_per_year"]:
        names.append("insurance")
    if names:
        yield f"not counted: {', '.join(names)}"
