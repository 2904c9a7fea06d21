"""The cost tab: how long, how much, rent or buy, and what would change the answer."""

from collections.abc import Callable
from datetime import UTC, date, datetime
from functools import partial
from threading import Event
from typing import ClassVar, Final

from pydantic_core import to_json
from PySide6.QtCore import Qt, QTimer, Slot
from PySide6.QtGui import QPixmap
from PySide6.QtWidgets import QDialog, QFrame, QHBoxLayout, QScrollArea, QVBoxLayout, QWidget

from planner.cost.estimate import CostEstimate
from planner.cost.modes import RentMode
from planner.cost.montecarlo import Simulation, simulate
from planner.cost.result import MoneyTerm
from planner.cost.sensitivity import tornado
from planner.gui.cost.amounts import Amounts
from planner.gui.cost.answer import Answer, AnswerText
from planner.gui.cost.controls import Controls
from planner.gui.cost.curve.data import cost_curve, with_draws
from planner.gui.cost.curve.panel import CostCurvePanel
from planner.gui.cost.offers import Offers
from planner.gui.cost.tornado import Tornado
from planner.gui.tab import Tab
from planner.gui.tasks import TaskRunner
from planner.gui.theme import Theme
from planner.gui.widgets.hairline import hairline
from planner.gui.widgets.label import make_label
from planner.gui.widgets.result_menu import Result, ResultMenu, picture_of
from planner.gui.workspace import Workspace
from planner.plan.evaluate import Evaluation
from planner.plan.money import PlanCost, evaluate_cost
from planner.present import format as fmt
from planner.present.money import (
    chance_sentence,
    money_rows,
    own_sentence,
    rent_sentence,
    result_sentences,
    swing_rows,
)
from planner.present.time import time_view

REST_MS: Final = 150
_CONTROLS_WIDTH: Final = 384
_CURVE_HEIGHT: Final = 240
_DRAWS: Final = "cost draws"


class CostTab(Tab):
    """Questions on the left; the answer and its evidence on the right. `today` is asked when a result is made."""

    key: ClassVar[str] = "cost"
    title: ClassVar[str] = "Cost"
    icon_name: ClassVar[str] = "cost"

    def __init__(
        self,
        workspace: Workspace,
        theme: Theme,
        tasks: TaskRunner,
        today: Callable[[], date] = lambda: datetime.now(UTC).date(),
    ) -> None:
        super().__init__(workspace, theme, tasks)
        self._today = today
        self.cost = PlanCost(None)
        self.dialog: QDialog | None = None
        self.controls = Controls(workspace, theme, _CONTROLS_WIDTH)
        self.answer = Answer(theme)
        self.curve = CostCurvePanel(theme)
        self.curve.setMinimumHeight(_CURVE_HEIGHT)
        self.tornado = Tornado(theme)
        self.offers = Offers(theme)
        self.rented, self.bought, self.monthly = (Amounts(theme, "") for _ in range(3))
        self._rest = QTimer(self, singleShot=True, interval=REST_MS)
        self._lay_out()
        self.copy_menu = ResultMenu(Result(self.copy_result, self.offers.csv, self._json, self._picture), "cost", self)
        self.controls.copy.setMenu(self.copy_menu)
        self._rest.timeout.connect(self._draw_samples)
        self.offers.used.connect(self._use)
        self.controls.recommend.clicked.connect(self.choose_hardware)
        self.controls.prices.clicked.connect(self.show_prices)
        for part in (self.copy_menu, self.curve):
            part.failed.connect(workspace.failed)

    def refresh(self, evaluation: Evaluation) -> None:
        """Show what the plan costs; how sure that is follows when the plan has rested."""
        self.tasks.cancel(_DRAWS)
        self.controls.refresh()
        self.cost = evaluate_cost(evaluation, self.workspace.catalog, self._today())
        estimate = self.cost.estimate
        self.answer.show_answer(self._answer(evaluation, estimate))
        self._show_evidence(estimate)
        if estimate is not None and estimate.case is not None:
            self._rest.start()

    def copy_result(self) -> str:
        """Return the answer with all amounts as text."""
        return self.answer.text

    def focus_search(self) -> None:
        """Put the keyboard into the table of offers."""
        self.offers.table.setFocus()

    @Slot()
    def choose_hardware(self) -> None:
        """Open the dialog that looks at every card, number and offer for the job."""
        from planner.gui.recommend.dialog import RecommendDialog  # opened by some, and never first

        self._open(RecommendDialog(self.workspace, self.theme, self.tasks, self.window()))

    @Slot()
    def show_prices(self) -> None:
        """Open the dialog about prices."""
        from planner.gui.prices.dialog import PricesDialog  # opened by some, and never first

        self._open(PricesDialog(self.workspace, self.theme, self.tasks, self.window()))

    def _open(self, dialog: QDialog) -> None:
        self.dialog = dialog
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.open()

    def shut_down(self) -> None:
        """Draw no more."""
        self._rest.stop()
        self.tasks.cancel(_DRAWS)

    def _answer(self, evaluation: Evaluation, estimate: CostEstimate | None) -> AnswerText:
        time = () if evaluation.time is None else _time_lines(evaluation)
        if estimate is None:
            return AnswerText(self.cost.reason, time, (), ())
        result = estimate.result
        sentence, *more = result_sentences(result, self._card(), self._today()) or ("",)
        ways = (
            *((rent_sentence(result.rent),) if result.rent else ()),
            *((own_sentence(result.own, estimate.demand),) if result.own else ()),
        )
        notes = (*(result.rent.notes if result.rent else ()), *(result.own.notes if result.own else ()))
        return AnswerText(sentence, (*more[:1], *time, *ways), tuple(more[1:]), tuple(dict.fromkeys(notes)))

    def _show_evidence(self, estimate: CostEstimate | None) -> None:
        result = None if estimate is None else estimate.result
        curve = result.curve if result else ()
        self.curve.setVisible(bool(curve))
        if curve and result is not None:
            self.curve.set_curve(cost_curve(curve, result.break_even))
        case = None if estimate is None else estimate.case
        self.swings.setVisible(case is not None and bool(curve))
        if case is not None:
            self.tornado.show_rows(swing_rows(tornado(case)))
        self.offers.setVisible(estimate is not None)
        if estimate is not None:
            self.offers.show_rows(estimate.rows, self._card(), result.rent.offer_id if result and result.rent else None)
        rent, own = (result.rent, result.own) if result else (None, None)
        period = "run" if estimate is not None and estimate.demand.period == "run" else "month"
        self._show_amounts(
            self.rented, rent.terms if rent else (), self.tr("Rented, a {0}").format(period), rent.usd if rent else 0
        )
        self._show_amounts(self.bought, own.upfront if own else (), self.tr("Bought"), own.upfront_usd if own else 0)
        self._show_amounts(
            self.monthly, own.monthly if own else (), self.tr("Owned, each month"), own.monthly_cash_usd if own else 0
        )

    def _show_amounts(self, amounts: Amounts, terms: tuple[MoneyTerm, ...], heading: str, usd: float) -> None:
        amounts.setVisible(bool(terms))
        amounts.show_rows(money_rows(terms), f"{heading}: {fmt.money(usd)}")

    @Slot()
    def _draw_samples(self) -> None:
        estimate = self.cost.estimate
        if estimate is None or estimate.case is None:
            return
        stop = Event()
        work = partial(simulate, estimate.case, cancelled=stop.is_set)
        self.tasks.run(_DRAWS, work, self._take_draws, self._fail, stop.set)

    def _take_draws(self, found: Simulation | None) -> None:
        curve = self.curve.curve
        if found is not None and curve is not None and self.curve.isVisibleTo(self):
            self.answer.add_muted(chance_sentence(found))
            self.curve.set_curve(with_draws(curve, found))

    def _fail(self, error: BaseException) -> None:
        raise error

    @Slot(str, str)
    def _use(self, offer: str, mode: RentMode) -> None:
        terms = self.workspace.plan.cost
        self.workspace.end_gesture()
        with self.workspace.reporting():
            rent = terms.rent.evolve(offer=offer, mode=mode)
            self.workspace.apply("offer", cost=terms.evolve(rent=rent))

    def _card(self) -> str:
        gpu = self.workspace.plan.gpu
        return "" if gpu is None else self.workspace.catalog.hardware.gpu(gpu).name

    def _json(self) -> str:
        """Return what `gpu-planner cost --json` prints for this plan."""
        estimate, evaluation = self.cost.estimate, self.workspace.evaluation
        fields: dict[str, object] = {"plan": evaluation.plan, "time": evaluation.time}
        if estimate is not None:
            fields |= {"cost": estimate.result, "demand": estimate.demand, "offers": estimate.rows}
        return to_json(fields, indent=2).decode()

    def _picture(self) -> QPixmap:
        """Return the answer with its evidence as it is shown."""
        last = self.below if self.below.isVisible() else self.answer
        return picture_of(self._body, self.answer.geometry().united(last.geometry()), self.theme.spacing.medium)

    def _lay_out(self) -> None:
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self.controls)
        layout.addWidget(hairline(Qt.Orientation.Vertical))
        layout.addWidget(self._results(), 1)

    def _results(self) -> QScrollArea:
        space = self.theme.spacing
        self._body = QWidget()
        column = QVBoxLayout(self._body)
        column.setContentsMargins(space.large, space.medium, space.large, space.small)
        column.setSpacing(space.medium)
        column.addWidget(self.answer)
        column.addWidget(self.curve, 1)
        self.below = self._below()
        column.addWidget(self.below)
        column.addWidget(self.offers, 1)
        column.addStretch()
        area = QScrollArea()
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setWidgetResizable(True)
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        area.setWidget(self._body)
        return area

    def _below(self) -> QWidget:
        """Return what moves the decision beside the amounts that it rests on."""
        space = self.theme.spacing
        self.swings = QWidget()
        moving = QVBoxLayout(self.swings)
        moving.setContentsMargins(0, 0, 0, 0)
        moving.setSpacing(space.tiny)
        moving.addWidget(make_label(self.tr("What moves the decision"), font=self.theme.font(bold=True)))
        moving.addWidget(self.tornado)
        moving.addStretch(1)
        amounts = QVBoxLayout()
        amounts.setSpacing(space.small)
        for part in (self.rented, self.bought, self.monthly):
            amounts.addWidget(part)
        amounts.addStretch(1)
        below = QWidget()
        row = QHBoxLayout(below)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(space.large)
        row.addWidget(self.swings, 3)
        row.addLayout(amounts, 2)
        return below


def _time_lines(evaluation: Evaluation) -> tuple[str, ...]:
    """Return how long a step or a request takes, or why that is not known."""
    assert evaluation.time is not None  # asked only where there is one
    view = time_view(evaluation.time)
    return (f"{view.answer} {view.reason}".strip(),)
