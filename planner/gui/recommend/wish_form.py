"""What a person asks of hardware: limits, rent or own, how many cards."""

from typing import Final

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QCheckBox, QHBoxLayout, QVBoxLayout, QWidget

from planner.gui.theme import Theme
from planner.gui.widgets.choice_field import ChoiceField
from planner.gui.widgets.decimal_field import DecimalField
from planner.gui.widgets.labelled_form import LabelledForm
from planner.plan.recommend.option import Wish

_HAVING: Final = ((("rent", "own"), "rented or owned"), (("rent",), "rented"), (("own",), "owned"))
_MODES: Final = (
    (("on-demand",), "on demand"),
    (("on-demand", "spot"), "on demand or spot"),
    (("on-demand", "spot", "reserved-1y", "reserved-3y"), "any way, commitments too"),
)
_COUNTS: Final = (
    ((1,), "one"),
    ((1, 2), "up to 2"),
    ((1, 2, 4), "up to 4"),
    ((1, 2, 4, 8), "up to 8"),
    ((1, 2, 4, 8, 16, 32, 64), "up to 64"),
)
_NO_LIMIT: Final = "no limit"


class WishForm(QWidget):
    """`changed` says that another wish was made."""

    changed = Signal()

    def __init__(self, theme: Theme, period: str, wish: Wish) -> None:
        super().__init__()
        self.budget = DecimalField(0.01, 1e9, placeholder=_NO_LIMIT)
        self.deadline = DecimalField(0.01, 1e6, placeholder=_NO_LIMIT)
        self.power = DecimalField(1, 1e8, placeholder=_NO_LIMIT)
        self.having = ChoiceField(theme, _HAVING)
        self.modes = ChoiceField(theme, _MODES)
        self.counts = ChoiceField(theme, _COUNTS)
        self.tight = QCheckBox("Also what fits in fewer than 19 of 20 cases")
        left, right = LabelledForm(theme), LabelledForm(theme)
        left.add(f"&Budget, $ a {period}", self.budget, lambda: None, "At most.")
        left.add("&Deadline, hours", self.deadline, lambda: None, "Until a run is done.")
        left.add("&Power, W", self.power, lambda: None, "Board power of all cards together.")
        right.add("&Had by", self.having, lambda: ("rent", "own"), "Renting, owning, or either.")
        right.add("&Rented", self.modes, lambda: ("on-demand",), "Which ways to rent to look at.")
        right.add("&Cards", self.counts, lambda: (1, 2, 4, 8), "How many to look at.")
        left.set_row_visible(self.deadline, period == "run")
        self.set_wish(wish)
        self._lay_out(theme, left, right)
        for field in (self.budget, self.deadline, self.power, self.having, self.modes, self.counts):
            field.edited.connect(self._tell)
        self.tight.clicked.connect(self._tell)

    @property
    def wish(self) -> Wish:
        """Return what is asked."""
        return Wish.model_validate(
            {
                "budget_usd": self.budget.value,
                "deadline_hours": self.deadline.value,
                "power_limit_watts": self.power.value,
                "having": self.having.value,
                "modes": self.modes.value,
                "counts": self.counts.value,
                "include_tight": self.tight.isChecked(),
            }
        )

    def set_wish(self, wish: Wish) -> None:
        """Show a wish; choices that the form does not offer are left as they are."""
        self.budget.set_value(wish.budget_usd)
        self.deadline.set_value(wish.deadline_hours)
        self.power.set_value(wish.power_limit_watts)
        for field, value, known in (
            (self.having, wish.having, _HAVING),
            (self.modes, wish.modes, _MODES),
            (self.counts, wish.counts, _COUNTS),
        ):
            if value in [option for option, _ in known]:
                field.set_value(value)
        self.tight.setChecked(wish.include_tight)

    @Slot()
    def _tell(self) -> None:
        self.changed.emit()

    def _lay_out(self, theme: Theme, left: LabelledForm, right: LabelledForm) -> None:
        forms = QHBoxLayout()
        forms.setSpacing(theme.spacing.large)
        forms.addWidget(left, 1)
        forms.addWidget(right, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(theme.spacing.small)
        column.addLayout(forms)
        column.addWidget(self.tight)
