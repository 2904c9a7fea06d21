"""The form for owning cards: purchase, location, power, running costs and financing."""

from functools import partial
from typing import Final

from planner.cost.energy import Region
from planner.cost.estimate import CostEstimate
from planner.cost.figure import Figure
from planner.cost.owning.costs import place_of
from planner.cost.terms import CostTerms, PlaceKind
from planner.gui.cost.questions import YES_OR_NO, MoneyQuestions, number_input
from planner.gui.theme import Theme
from planner.gui.widgets.inputs.choice_field import PickerField
from planner.gui.widgets.inputs.labelled_form import LabelledForm
from planner.gui.widgets.inputs.number_field import DecimalField
from planner.gui.widgets.popover import Choice
from planner.gui.workspace import Workspace
from planner.present import format as fmt

_PLACES: Final = (
    (None, "by GPU type"),
    ("desk", "home or office"),
    ("lab", "server room"),
    ("colocation", "colocation"),
    ("data-centre", "data center"),
)
_POWER: Final = ((None, "by location"), ("included", "included"), ("metered", "metered separately"))
_OFF_WHEN_IDLE: Final = ((None, "by location"), *YES_OR_NO)
_METHODS: Final = (("straight-line", "straight line"), ("declining", "declining"), ("macrs-5", "MACRS, 5 years"))
_PRICED: Final = (
    ("buy.card_price_usd", "cards", "in the server"),
    ("buy.server_price_usd", "servers", "by GPU price"),
)
"""Prices of a purchase: the field, the cost term, and what an empty field says where the other price is used."""
_PAID: Final = "paid already"
_MILLIONS: Final = (0.0, 1e8)
_SHARE: Final = (0.0, 100.0)


class BuyQuestions(MoneyQuestions):
    """Form for the costs of owning cards; an empty field shows the location's default as its placeholder."""

    def __init__(self, workspace: Workspace, theme: Theme) -> None:
        super().__init__(workspace, theme)
        self._from_place: dict[str, tuple[DecimalField, float]] = {}
        self._add_purchase(LabelledForm(theme))
        self._add_infrastructure(LabelledForm(theme))
        self._add_power(LabelledForm(theme))
        self._add_running_costs(LabelledForm(theme))
        self._add_financing(LabelledForm(theme))

    def refresh(self) -> None:
        """Show the plan's terms of owning, and the location's defaults in empty fields."""
        place = self.workspace.catalog.cost.ownership(self._place)
        for name, (field, scale) in self._from_place.items():
            figure: Figure = getattr(place, name)
            field.set_placeholder(fmt.plain(figure.value / scale))
            field.setToolTip(f"{figure.source}{f', {fmt.date(figure.date)}' if figure.date else ''}")
        tariff = self.workspace.catalog.cost.region(self.terms.region).tariff(place.tariff_kind)
        self._show_default_as_placeholder("buy.tariff_usd_per_kwh", None if tariff is None else tariff.value)
        super().refresh()

    def show_prices(self, estimate: CostEstimate | None) -> None:
        """Show the assumed prices of one card and of one server as the placeholders of the empty price fields."""
        own = estimate.result.own if estimate else None
        bought = {} if own is None else {term.name: term.usd for term in own.upfront}
        is_owned = own is not None and not own.upfront
        for path, name, unused in _PRICED:
            count = _bought_count(estimate, name)
            self._show_default_as_placeholder(
                path,
                bought[name] / count if name in bought and count else None,
                fmt.UNKNOWN if own is None else _PAID if is_owned else unused,
            )

    def _show_default_as_placeholder(self, path: str, value: float | None, without_value: str = fmt.UNKNOWN) -> None:
        field = self.field(path)
        if isinstance(field, DecimalField):
            field.set_placeholder(without_value if value is None else fmt.plain(value))

    def _ask_location_figure(
        self, form: LabelledForm, name: str, label: str, ends: tuple[float, float], hint: str, scale: float = 1.0
    ) -> None:
        """Add a number that has a default for each location."""
        field = number_input(f"buy.{name}", ends, "by location", scale)
        self._from_place[name] = field, scale
        self.ask(form, f"buy.{name}", label, field, hint)

    def _add_purchase(self, form: LabelledForm) -> None:
        hint = (
            "Where your machines are. It sets the defaults of the empty fields. By GPU type: a desktop GPU of your own "
            "is at home, where no cooling is paid; all others are in a server room."
        )
        self.ask_choice(form, "buy.place", "Loca&tion", _PLACES, hint)
        hint = "The price of GPUs that you already own is not counted, only their electricity."
        self.ask_choice(form, "buy.owned", "I own the GPUs", YES_OR_NO, hint)
        hint = "The price that you pay for one GPU."
        self.ask_number(form, "buy.card_price_usd", "GPU price, $", (0.01, 1e7), hint, "from the catalog")
        hint = "Price of a server including its GPUs; replaces the price of the GPUs."
        self.ask_number(form, "buy.server_price_usd", "Server price, $", (0.01, 1e8), hint, "from the catalog")
        self.add_section("Owning", form, lambda _terms: dict(_PLACES)[self._place], opened=True)

    def _add_infrastructure(self, form: LabelledForm) -> None:
        figure = partial(self._ask_location_figure, form)
        figure(
            "host_factor",
            "Server-to-GPU price ratio",
            (1, 10),
            "Price of a whole server divided by the price of its GPUs.",
        )
        figure(
            "network_share",
            "Network, %",
            (0, 99),
            "The network's share of the price of a cluster of two or more servers.",
            0.01,
        )
        figure(
            "rack_usd_per_server",
            "Rack, $ per server",
            (0, 1e7),
            "Cost of rack, power strips, UPS and room, per server.",
        )
        figure("tax_fraction", "Tax, %", _SHARE, "Sales tax on all purchases.", 0.01)
        figure("shipping_usd", "Shipping, $", _MILLIONS, "Shipping cost, paid once.")
        figure("install_usd", "Installation, $", _MILLIONS, "Installation cost, paid once.")
        self.add_section("Infrastructure", form, lambda _terms: "server, network, rack, tax", opened=False)

    def _add_power(self, form: LabelledForm) -> None:
        figure = partial(self._ask_location_figure, form)
        regions = PickerField(self.theme, self._region_choices, self._region_name, "Search regions")
        self.ask(form, "region", "Region", regions, "Region of the electricity tariff and carbon intensity.")
        hint = "Your electricity price; empty means the region's tariff."
        self.ask_number(form, "buy.tariff_usd_per_kwh", "Tariff, $/kWh", (0, 5), hint, "regional tariff")
        figure(
            "pue",
            "PUE",
            (1, 4),
            "Power usage effectiveness: electricity of the facility divided by that of the machines.",
        )
        figure(
            "active_power_fraction", "Power in use, %", (1, 100), "Power while in use, as a share of full load.", 0.01
        )
        figure("idle_power_fraction", "Power when idle, %", _SHARE, "Power while idle, as a share of full load.", 0.01)
        hint = "Whether machines are switched off while nothing runs."
        self.ask_choice(form, "buy.switched_off_when_idle", "Off when idle", _OFF_WHEN_IDLE, hint)
        self.add_section("Power", form, lambda terms: self._region_name(terms.region), opened=False)

    def _add_running_costs(self, form: LabelledForm) -> None:
        figure = partial(self._ask_location_figure, form)
        hint = "Whether the colocation price includes electricity. Choose it before you enter a price of your own."
        self.ask_choice(form, "buy.colocation_power", "Colocation power", _POWER, hint)
        yearly = "Yearly cost as a share of the purchase price."
        figure(
            "colocation_usd_per_kw_month",
            "Colocation, $/kW·month",
            (0, 5_000),
            "Colocation price per month and kW of full load.",
        )
        figure("operations_fraction_per_year", "Operations, % per year", _SHARE, yearly, 0.01)
        figure("support_fraction_per_year", "Support, % per year", _SHARE, yearly, 0.01)
        figure(
            "spares_fraction_per_year",
            "Spares, % per year",
            _SHARE,
            "Yearly cost as a share of the GPUs' price.",
            0.01,
        )
        figure("insurance_fraction_per_year", "Insurance, % per year", _SHARE, yearly, 0.01)
        figure("staff_usd_per_year", "Staff, $ per year", _MILLIONS, "Yearly cost of staff for these machines.")
        figure("licence_usd_per_gpu_year", "Licenses, $/GPU", (0, 1e5), "Software licenses per GPU and year.")
        self.add_section("Running costs", form, lambda _terms: "operations, support, staff", opened=False)

    def _add_financing(self, form: LabelledForm) -> None:
        hint = "Annual rate at which future payments are discounted."
        self.ask_number(form, "discount_rate", "Discount, % per year", (0, 99), hint, scale=0.01)
        hint = "Resale value as a share of the GPUs' price."
        self.ask_number(form, "buy.resale_share", "Resale, %", _SHARE, hint, "from the price trend", 0.01)
        self.ask_number(
            form, "buy.loan_fraction", "Loan, %", _SHARE, "Share of the purchase price that is borrowed.", scale=0.01
        )
        self.ask_number(form, "buy.loan_rate", "Interest, % per year", (0, 99), "Interest on the loan.", scale=0.01)
        self.ask_number(
            form,
            "buy.loan_years",
            "Loan term, years",
            (0.05, 30),
            "Years in which the loan is repaid in equal installments.",
        )
        hint = "Depreciation method for accounting. It does not affect the decision."
        self.ask_choice(form, "buy.depreciation", "Depreciation", _METHODS, hint)
        self.ask_number(form, "buy.depreciation_years", "Depreciation, years", (0.05, 30), "Years of depreciation.")
        self.add_section("Financing", form, _financing_summary, opened=False)

    @property
    def _place(self) -> PlaceKind:
        """Return where the machines are, also if the plan leaves it to the card."""
        plan, hardware = self.workspace.plan, self.workspace.catalog.hardware
        return place_of(plan.cost.buy, None if plan.gpu is None else hardware.gpu(plan.gpu))

    def _region_choices(self) -> list[Choice]:
        cost = self.workspace.catalog.cost
        codes = dict.fromkeys(record.code for record in cost.energy)
        return [Choice(code, cost.region(code).name, _tariffs_text(cost.region(code)), words=code) for code in codes]

    def _region_name(self, code: object) -> str:
        return self.workspace.catalog.cost.region(str(code)).name


def _tariffs_text(region: Region) -> str:
    """Return a region's tariffs and carbon intensity: `$0.34 household, $0.20 industrial, 380 g CO₂ per kWh`."""
    parts = (
        f"{fmt.money(region.household.value)} household" if region.household else "",
        f"{fmt.money(region.industrial.value)} industrial" if region.industrial else "",
        f"{region.carbon_grams_per_kwh.value:,.0f} g CO₂ per kWh" if region.carbon_grams_per_kwh else "",
    )
    return ", ".join(filter(None, parts)) or fmt.UNKNOWN


def _bought_count(estimate: CostEstimate | None, name: str) -> int | None:
    """Return the number of bought cards or servers (`name` is `cards` or `servers`), or None if it is unknown."""
    machines = estimate.result.machines if estimate else None
    return None if machines is None else machines.cards if name == "cards" else machines.owned


def _financing_summary(terms: CostTerms) -> str:
    return f"discounted at {fmt.percent(terms.discount_rate)} a year"
