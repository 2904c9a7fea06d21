"""How cards are owned: what is bought, where it stands, what it takes each month, and for how long."""

from typing import Final

from planner.cost.energy import Region
from planner.cost.figure import Figure
from planner.cost.terms import CostTerms
from planner.gui.cost.questions import YES_OR_NO, MoneyQuestions
from planner.gui.theme import Theme
from planner.gui.widgets.inputs.choice_field import PickerField
from planner.gui.widgets.inputs.labelled_form import LabelledForm
from planner.gui.widgets.inputs.number_field import DecimalField
from planner.gui.widgets.search_list import Choice
from planner.gui.workspace import Workspace
from planner.present import format as fmt

_PLACES: Final = (
    ("desk", "a desk at home"),
    ("lab", "a server room"),
    ("colocation", "colocation"),
    ("data-centre", "a data centre"),
)
_POWER: Final = ((None, "as the place has it"), ("included", "included"), ("metered", "metered beside it"))
_METHODS: Final = (("straight-line", "straight line"), ("declining", "declining"), ("macrs-5", "MACRS, 5 years"))
_MILLIONS: Final = (0.0, 1e8)
_SHARE: Final = (0.0, 100.0)


class BuyQuestions(MoneyQuestions):
    """Every figure of owning. What is left open has that of the place, which the field says."""

    def __init__(self, workspace: Workspace, theme: Theme) -> None:
        super().__init__(workspace, theme)
        self._from_place: dict[str, tuple[DecimalField, float]] = {}
        self._ask_what(LabelledForm(theme))
        self._ask_beside_the_cards(LabelledForm(theme))
        self._ask_power(LabelledForm(theme))
        self._ask_running(LabelledForm(theme))
        self._ask_money(LabelledForm(theme))

    def refresh(self) -> None:
        """Show the plan's terms, and in the open fields what the place has."""
        place = self.workspace.catalog.cost.ownership(self.terms.buy.place)
        for name, (field, scale) in self._from_place.items():
            figure: Figure = getattr(place, name)
            field.set_placeholder(f"{figure.value / scale:,.4g}")
            field.setToolTip(f"{figure.source}{f', {fmt.date(figure.date)}' if figure.date else ''}")
        tariff = self.workspace.catalog.cost.region(self.terms.region).tariff(place.tariff_kind)
        self._hint("buy.tariff_usd_per_kwh", None if tariff is None else tariff.value)
        super().refresh()

    def show_card_price(self, usd: float | None) -> None:
        """Say in the open field what the catalog takes a card to cost, or that it does not know."""
        self._hint("buy.card_price_usd", usd)

    def _hint(self, path: str, value: float | None) -> None:
        field = self.field(path)
        if isinstance(field, DecimalField):
            field.set_placeholder("not known" if value is None else f"{value:,.4g}")

    def _of_place(
        self, form: LabelledForm, name: str, label: str, ends: tuple[float, float], hint: str, scale: float = 1.0
    ) -> None:
        """Ask for a figure that the place has, too."""
        field = DecimalField(*ends, placeholder="of the place", scale=scale)
        self._from_place[name] = field, scale
        self.ask(form, f"buy.{name}", label, field, hint)

    def _ask_what(self, form: LabelledForm) -> None:
        self.ask_choice(form, "buy.place", "They stand &in", _PLACES, "Sets every figure that is open.")
        self.ask_number(form, "buy.card_price_usd", "A card, $", (0.01, 1e7), "What one costs you.", "of the catalog")
        self.ask_number(
            form,
            "buy.server_price_usd",
            "A whole server, $",
            (0.01, 1e8),
            "With its cards, instead of them.",
            "not known",
        )
        self.add_section("Owning", form, _place_words, opened=True)

    def _ask_beside_the_cards(self, form: LabelledForm) -> None:
        self._of_place(form, "host_factor", "Server over cards", (1, 10), "Price of the server over that of its cards.")
        self._of_place(
            form, "network_share", "Network, %", (0, 99), "Of the cluster's price, from two servers on.", 0.01
        )
        self._of_place(form, "rack_usd_per_server", "Rack, $ a server", (0, 1e7), "Rack, power strips, UPS, room.")
        self._of_place(form, "tax_fraction", "Tax, %", _SHARE, "On everything that is bought.", 0.01)
        self._of_place(form, "shipping_usd", "Shipping, $", _MILLIONS, "Once.")
        self._of_place(form, "install_usd", "Installation, $", _MILLIONS, "Once.")
        self.add_section("Beside the cards", form, lambda _terms: "server, network, rack, tax", opened=False)

    def _ask_power(self, form: LabelledForm) -> None:
        regions = PickerField(self.theme, self._regions, self._region_name, "Search regions")
        self.ask(form, "region", "Electricity of", regions, "Whose tariff and carbon.")
        self.ask_number(form, "buy.tariff_usd_per_kwh", "Tariff, $ a kWh", (0, 5), "What you pay.", "of the region")
        self._of_place(form, "pue", "PUE", (1, 4), "Electricity of the room over that of the machines.")
        self._of_place(form, "active_power_fraction", "At work, %", (1, 100), "Drawn, of full load.", 0.01)
        self._of_place(form, "idle_power_fraction", "At rest, %", _SHARE, "Drawn, of full load.", 0.01)
        hint = "Whether machines are switched off while nothing runs."
        self.ask_choice(form, "buy.switched_off_when_idle", "Off when idle", YES_OR_NO, hint)
        self.add_section("Power", form, self._power_words, opened=False)

    def _ask_running(self, form: LabelledForm) -> None:
        hint = (
            "Never counted twice: either in the price of colocation, or metered; say so before you change that price."
        )
        self.ask_choice(form, "buy.colocation_power", "Colocation power", _POWER, hint)
        self._of_place(
            form, "colocation_usd_per_kw_month", "Colocation, $/kW·m", (0, 5_000), "A month, for each kW of full load."
        )
        self._of_place(
            form, "operations_fraction_per_year", "Operations, % a year", _SHARE, "Of what was bought.", 0.01
        )
        self._of_place(form, "support_fraction_per_year", "Support, % a year", _SHARE, "Of what was bought.", 0.01)
        self._of_place(form, "spares_fraction_per_year", "Spares, % a year", _SHARE, "Of the cards' price.", 0.01)
        self._of_place(form, "insurance_fraction_per_year", "Insurance, % a year", _SHARE, "Of what was bought.", 0.01)
        self._of_place(form, "staff_usd_per_year", "Staff, $ a year", _MILLIONS, "For these machines.")
        self._of_place(form, "licence_usd_per_gpu_year", "Licences, $/card", (0, 1e5), "Of software, a year.")
        self.add_section("Running it", form, lambda _terms: "operations, support, staff", opened=False)

    def _ask_money(self, form: LabelledForm) -> None:
        self.ask_number(form, "horizon_years", "Owned for, years", (0.05, 30), "Until it is sold.")
        self.ask_number(form, "discount_rate", "Discount, % a year", (0, 99), "Worth of money later.", scale=0.01)
        self.ask_number(form, "buy.resale_share", "Resale, %", _SHARE, "Of the cards' price.", "by the trend", 0.01)
        self.ask_number(form, "buy.loan_fraction", "Borrowed, %", _SHARE, "Of what is bought.", scale=0.01)
        self.ask_number(form, "buy.loan_rate", "Interest, % a year", (0, 99), "On what is borrowed.", scale=0.01)
        self.ask_number(form, "buy.loan_years", "Paid back in, years", (0.05, 30), "In equal parts.")
        hint = "For the books; the decision is made on cash."
        self.ask_choice(form, "buy.depreciation", "Depreciation", _METHODS, hint)
        self.ask_number(form, "buy.depreciation_years", "over, years", (0.05, 30), "For the books.")
        self.add_section("Money and time", form, _money_words, opened=False)

    def _regions(self) -> list[Choice]:
        cost = self.workspace.catalog.cost
        codes = dict.fromkeys(record.code for record in cost.energy)
        return [Choice(code, cost.region(code).name, _tariffs(cost.region(code)), words=code) for code in codes]

    def _region_name(self, code: object) -> str:
        return self.workspace.catalog.cost.region(str(code)).name

    def _power_words(self, terms: CostTerms) -> str:
        return self._region_name(terms.region)


def _tariffs(region: Region) -> str:
    """Return what is known of a region: `$0.34 at home, $0.20 for firms, 380 g CO₂`."""
    told = (
        f"{fmt.money(region.household.value)} at home" if region.household else "",
        f"{fmt.money(region.industrial.value)} for firms" if region.industrial else "",
        f"{region.carbon_grams_per_kwh.value:,.0f} g CO₂ a kWh" if region.carbon_grams_per_kwh else "",
    )
    return ", ".join(part for part in told if part) or fmt.UNKNOWN


def _place_words(terms: CostTerms) -> str:
    return dict(_PLACES)[terms.buy.place]


def _money_words(terms: CostTerms) -> str:
    return f"{fmt.plain(terms.horizon_years)} years at {fmt.percent(terms.discount_rate)}"
