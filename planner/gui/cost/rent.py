"""The form for renting."""

from typing import Final

from planner.cost.estimate import CostEstimate
from planner.cost.terms import RENT_MODES, CostTerms
from planner.gui.cost.questions import YES_OR_NO, MoneyQuestions
from planner.gui.theme import Theme
from planner.gui.widgets.inputs.labelled_form import LabelledForm
from planner.gui.workspace import Workspace
from planner.present import format as fmt
from planner.present.cost.prices import RENT_MODE_TITLES
from planner.present.cost.summary import billing_phrase

_INCREMENTS: Final = ((1, "second"), (60, "minute"), (3_600, "hour"), (86_400, "day"), (2_592_000, "month of 30 days"))
_ONE_MACHINE: Final = ((None, "as needed"), *YES_OR_NO)
_CHEAPEST: Final = (None, "the cheapest")


class RentQuestions(MoneyQuestions):
    """The form for the rental type, the offer, and billing."""

    def __init__(self, workspace: Workspace, theme: Theme) -> None:
        super().__init__(workspace, theme)
        self._billing = ""
        form, bill = LabelledForm(theme), LabelledForm(theme)
        modes = tuple((mode, RENT_MODE_TITLES[mode]) for mode in RENT_MODES)
        self.ask_choice(form, "rent.mode", "&Rental type", modes, "On demand, spot, or reserved for 1 or 3 years.")
        hint = "The rented offer; double-click an offer in the table to use it instead of the cheapest."
        self.offer = self.ask_choice(form, "rent.offer", "Offer", (_CHEAPEST,), hint)
        hint = "Your own rental price, which replaces the offer's price."
        self.ask_number(form, "rent.usd_per_gpu_hour", "Price, $/GPU-hour", (0.001, 1_000), hint, "offer's price")
        hint = "Whether all cards must be in one machine (at most eight); “as needed”: only if they exchange data."
        self.ask_choice(form, "rent.one_machine", "In one machine", _ONE_MACHINE, hint)
        hint = "Whether to include offers that are older than twelve months."
        self.ask_choice(form, "rent.include_history", "Include old offers", YES_OR_NO, hint)
        path, hint = "rent.mean_hours_between_interruptions", "Mean time between interruptions of a spot machine."
        self.ask_number(form, path, "Interrupted after, h", (0.01, 1e6), hint, "card's typical interval")
        hint = "Unit of time that is billed, if the offer does not state one."
        self.ask_choice(bill, "rent.billing_increment_seconds", "Billing increment", _INCREMENTS, hint)
        hint = "Billed hours per job in which nothing runs."
        self.ask_number(bill, "rent.idle_billed_hours", "Idle hours", (0, 1e6), hint)
        hint = "Price of storage per GB and month."
        self.ask_number(bill, "rent.storage_usd_per_gb_month", "Storage, $/GB·month", (0, 10), hint, "typical price")
        hint = "Price per GB transferred out of the cloud."
        self.ask_number(bill, "rent.egress_usd_per_gb", "Egress, $/GB", (0, 10), hint, "provider's price")
        hint = "Expected change of rental prices per year; negative if they fall."
        self.ask_number(bill, "rent.price_drift_per_year", "Price trend, % per year", (-90, 300), hint, scale=0.01)
        self.add_section("Renting", form, _rental_mode_summary, opened=True)
        self.add_section("Billing", bill, self._billing_summary, opened=False)

    def show_billing(self, estimate: CostEstimate | None) -> None:
        """Show in the collapsed section what the rented offer bills, which may not be the chosen increment."""
        rent = None if estimate is None else estimate.result.rent
        self._billing = "" if rent is None else billing_phrase(rent)
        self.update_summaries()

    def refresh(self) -> None:
        """Show the plan's rental terms; the offers to choose from are the chosen one and the cheapest."""
        chosen = self.terms.rent.offer
        self.offer.set_options((_CHEAPEST,) if chosen is None else (_CHEAPEST, (chosen, chosen)))
        self.offer.set_value(chosen)
        super().refresh()

    def applies(self, path: str) -> bool:
        """Return whether the term at `path` has an effect: interruptions only for spot, one machine for many cards."""
        if path == "rent.mean_hours_between_interruptions":
            return self.terms.rent.mode == "spot"
        return path != "rent.one_machine" or self.workspace.plan.count > 1

    def _billing_summary(self, terms: CostTerms) -> str:
        drift = terms.rent.price_drift_per_year
        trend = f"{'rising' if drift > 0 else 'falling'} by {fmt.percent(abs(drift))} a year" if drift else "constant"
        return ", ".join(filter(None, (self._billing, f"prices {trend}")))


def _rental_mode_summary(terms: CostTerms) -> str:
    return RENT_MODE_TITLES[terms.rent.mode]
