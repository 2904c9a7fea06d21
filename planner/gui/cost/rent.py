"""How machines are rented."""

from typing import Final

from planner.cost.terms import RENT_MODES, CostTerms
from planner.gui.cost.questions import YES_OR_NO, MoneyQuestions
from planner.gui.theme import Theme
from planner.gui.widgets.inputs.labelled_form import LabelledForm
from planner.gui.workspace import Workspace
from planner.present import format as fmt
from planner.present.cost.prices import MODE_WORDS

_INCREMENTS: Final = ((1, "second"), (60, "minute"), (3_600, "hour"), (86_400, "day"), (2_592_000, "month of 30 days"))
_CHEAPEST: Final = (None, "the cheapest")


class RentQuestions(MoneyQuestions):
    """The way to rent, the offer, and what a bill has beside the hours."""

    def __init__(self, workspace: Workspace, theme: Theme) -> None:
        super().__init__(workspace, theme)
        form, bill = LabelledForm(theme), LabelledForm(theme)
        modes = tuple((mode, MODE_WORDS[mode]) for mode in RENT_MODES)
        self.ask_choice(form, "rent.mode", "&Rented", modes, "On demand, as spot, or with a commitment.")
        hint = "The cheapest that can be compared with the others. Use another by double-clicking it in the table."
        self.offer = self.ask_choice(form, "rent.offer", "Offer", (_CHEAPEST,), hint)
        hint = "Whether several cards must share a machine, eight of them at most."
        self.ask_choice(form, "rent.one_machine", "In one machine", YES_OR_NO, hint)
        hint = "Whether to list offers that are older than twelve months."
        self.ask_choice(form, "rent.include_history", "Old offers", YES_OR_NO, hint)
        self.ask_number(
            form,
            "rent.mean_hours_between_interruptions",
            "Interrupted after, h",
            (0.01, 1e6),
            "Of a spot machine, on average.",
            "by the card",
        )
        hint = "Where the offer does not say how hours are rounded up."
        self.ask_choice(bill, "rent.billing_increment_seconds", "Billed by the", _INCREMENTS, hint)
        self.ask_number(
            bill, "rent.idle_billed_hours", "Idle hours", (0, 1e6), "Billed for each job while nothing runs."
        )
        self.ask_number(
            bill, "rent.storage_usd_per_gb_month", "Storage, $/GB·m", (0, 10), "A month, for what is stored.", "typical"
        )
        self.ask_number(
            bill, "rent.egress_usd_per_gb", "Egress, $ a GB", (0, 10), "For what leaves the cloud.", "the provider's"
        )
        self.ask_number(
            bill,
            "rent.price_drift_per_year",
            "Rents rise, % a year",
            (-90, 300),
            "0: they stay as they are; below it: they fall.",
            scale=0.01,
        )
        self.add_section("Renting", form, _summary, opened=True)
        self.add_section("The bill", bill, _bill_words, opened=False)

    def refresh(self) -> None:
        """Show the plan's terms; an offer that was chosen can be let go of."""
        chosen = self.terms.rent.offer
        self.offer.set_options((_CHEAPEST,) if chosen is None else (_CHEAPEST, (chosen, chosen)))
        self.offer.set_value(chosen)
        super().refresh()

    def has_meaning(self, path: str) -> bool:
        """Return whether a field makes a difference: interruptions for spot only, one machine for several cards."""
        if path == "rent.mean_hours_between_interruptions":
            return self.terms.rent.mode == "spot"
        return path != "rent.one_machine" or self.workspace.plan.count > 1


def _bill_words(terms: CostTerms) -> str:
    increment = dict(_INCREMENTS).get(terms.rent.billing_increment_seconds, "")
    return f"by the {increment}, rents {_drift_words(terms.rent.price_drift_per_year)}"


def _drift_words(drift: float) -> str:
    return "as they are" if drift == 0 else f"{'rise' if drift > 0 else 'fall'} by {fmt.percent(abs(drift))} a year"


def _summary(terms: CostTerms) -> str:
    return MODE_WORDS[terms.rent.mode]
