"""The left column of the Cost tab: the forms for the job, renting and owning, and the buttons."""

from collections.abc import Iterator
from functools import cached_property
from typing import TypeVar

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import QVBoxLayout, QWidget

from planner.cost.terms import CostTerms
from planner.gui.cost.buy import BuyQuestions
from planner.gui.cost.job import JobQuestions
from planner.gui.cost.questions import MoneyQuestions
from planner.gui.cost.rent import RentQuestions
from planner.gui.theme import Theme
from planner.gui.widgets.buttons import push_button
from planner.gui.widgets.layout import (
    STRETCH,
    ScrollColumn,
    hairline,
    in_column,
    in_row,
    scrolled,
    set_tab_order,
    tab_stops,
)
from planner.gui.workspace import Workspace

Asked = TypeVar("Asked", bound=MoneyQuestions)


class CostControls(QWidget):
    """Left column of the Cost tab: forms above buttons. The tab connects the buttons except Reset."""

    def __init__(self, workspace: Workspace, theme: Theme, width: int) -> None:
        super().__init__()
        self._workspace, self._theme = workspace, theme
        self._job_place, self._rent_place, self._buy_place = QVBoxLayout(), QVBoxLayout(), QVBoxLayout()
        self.recommend = push_button(
            "Ch&oose for me…", "Compare all cards, numbers of cards and rental offers for this job."
        )
        self.prices = push_button("Prices…", "Show the age of the prices, fetch new ones, or add your own offers.")
        self.copy = push_button("Cop&y", "Copy or save the answer.")
        self._reset = push_button("Re&set", "Reset every field of this column to its default.")
        self.setFixedWidth(width)
        self._lay_out(theme)
        self._reset.clicked.connect(self.reset)

    # Created one by one while the window is idle: all of them at once would keep it waiting.

    @cached_property
    def job(self) -> JobQuestions:
        """Return the form for the job."""
        return self._placed(JobQuestions(self._workspace, self._theme), self._job_place)

    @cached_property
    def rent(self) -> RentQuestions:
        """Return the form for renting."""
        return self._placed(RentQuestions(self._workspace, self._theme), self._rent_place)

    @cached_property
    def buy(self) -> BuyQuestions:
        """Return the form for owning."""
        return self._placed(self._unplaced_buy, self._buy_place)

    @cached_property
    def _unplaced_buy(self) -> BuyQuestions:
        return BuyQuestions(self._workspace, self._theme)

    def prepare(self) -> Iterator[MoneyQuestions]:
        """Create the forms, one in each step; the longest is created in one step and placed in the next."""
        yield self.job
        yield self.rent
        yield self._unplaced_buy
        yield self.buy

    @property
    def questions(self) -> tuple[MoneyQuestions, ...]:
        """Return the forms for the job, renting and owning."""
        return self.job, self.rent, self.buy

    def refresh(self) -> None:
        """Show the plan's cost terms in the forms."""
        for questions in self.questions:
            questions.refresh()
        plan = self._workspace.plan
        self._reset.setEnabled(plan.cost != CostTerms() or plan.timing.measured is not None)

    def point_to(self, path: str, reason: str) -> None:
        """Show the `reason` for a missing answer below the field at `path`, such as `rent.offer`."""
        for questions in self.questions:
            if path in questions.paths:
                questions.field(path).show_problem(reason)

    def reveal(self, path: str) -> None:
        """Scroll to the field at `path`, which the form marks if it differs from its default."""
        field = next((each.field(path) for each in self.questions if path in each.paths), None)
        if field is not None:
            self.area.ensureWidgetVisible(field)

    @Slot()
    def reset(self) -> None:
        """Reset every field to its default in one undo step."""
        with self._workspace.step():
            timing = self._workspace.plan.timing.evolve(measured=None)
            self._workspace.apply("reset cost terms", cost=CostTerms(), timing=timing)

    def _lay_out(self, theme: Theme) -> None:
        column = in_column((self._scrolled_forms(theme), 1), hairline(Qt.Orientation.Horizontal), owner=self, spacing=0)
        buttons = in_row(
            self.recommend,
            self.prices,
            self._reset,
            self.copy,
            STRETCH,
            margins=(theme.spacing.medium, theme.spacing.small),
            spacing=theme.spacing.small,
        )
        column.addLayout(buttons)
        self._buttons = buttons

    def _placed(self, questions: Asked, place: QVBoxLayout) -> Asked:
        place.addWidget(questions)
        set_tab_order((*tab_stops(self._column), *tab_stops(self._buttons)))
        return questions

    def _scrolled_forms(self, theme: Theme) -> ScrollColumn:
        body = QWidget()
        self._column = in_column(
            self._job_place,
            self._rent_place,
            self._buy_place,
            STRETCH,
            owner=body,
            margins=theme.spacing.medium,
            spacing=theme.spacing.small,
        )
        self.area = scrolled(body)
        return self.area
