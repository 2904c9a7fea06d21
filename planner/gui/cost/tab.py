"""The Cost tab."""

from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from functools import partial
from threading import Event
from typing import ClassVar, Final, NamedTuple

from pydantic_core import to_json
from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QPixmap, QShowEvent
from PySide6.QtWidgets import QDialog, QWidget

from planner.cost.estimate import CostEstimate, hybrid_of_plan
from planner.cost.rent_or_buy.uncertainty import Simulation, simulate, tornado
from planner.cost.terms import RentMode, Service
from planner.gui.cost.controls import CostControls
from planner.gui.cost.cost_curve import CostCurve, CostCurvePanel, curve_with_draws
from planner.gui.cost.decision_card import DecisionCard
from planner.gui.cost.evidence import CarbonByRegion, OfferList, Tornado
from planner.gui.cost.figures import CostFigures, PinnedComparison
from planner.gui.cost.questions import change_term, term_value
from planner.gui.cost.serving_panel import ServingPanel
from planner.gui.memory.advice import AdvicePanel
from planner.gui.tab import QuestionTab
from planner.gui.tasks import TaskRunner
from planner.gui.theme import Theme
from planner.gui.threads import CalmTimer
from planner.gui.widgets.dialogs import open_later
from planner.gui.widgets.labels import make_label
from planner.gui.widgets.layout import STRETCH, SideBySide, add_items, in_column
from planner.gui.workspace import Workspace
from planner.plan.advice.inference_changes import CONTINUOUS_BATCHING
from planner.plan.advice.search import apply_change
from planner.plan.cost import PlanCost, evaluate_cost, plan_throughput
from planner.plan.cost_alternatives import BatchedService, FasterRental, find_batched_service, find_faster_rental
from planner.plan.evaluate import Evaluation
from planner.present.cost.amounts import swing_rows
from planner.present.cost.decision import FlipChip, batched_service_sentence, faster_rental_sentence
from planner.present.cost.decision_card import decision_view
from planner.present.cost.rent_or_buy import ComparedPlan
from planner.present.cost.summary import running_period, saving_range_sentence
from planner.present.plan.phrase import plan_phrase
from planner.workload.software.registry import SOFTWARE

REST_MS: Final = 150
_CONTROLS_WIDTH: Final = 392
_BELOW_WIDTH: Final = 860
_CURVE_HEIGHT: Final = 240
_FIRST: Final = "first cost"
_DRAWS: Final = "cost draws"
_FASTER: Final = "faster rental"
_BATCHED: Final = "batched service"
_TRY: Final = "try a change"
_WHAT_MOVES: Final = "What moves the decision"


class Trial(NamedTuple):
    """A value that is tried in the plan, with the path of its cost term and the value before."""

    path: str
    before: object
    chip: FlipChip


class CostTab(QuestionTab):
    """The forms on the left; the answer and its evidence on the right.

    `today` returns the date of a result; `drawn` tells whether the current plan's uncertainty has been simulated.
    """

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
        self.faster_rental: FasterRental | None = None
        self.batched_service: BatchedService | None = None
        self.dialog: QDialog | None = None
        self.controls = CostControls(workspace, theme, _CONTROLS_WIDTH)
        self.answer = DecisionCard(theme)
        self.advice = AdvicePanel(workspace, theme, tasks)
        self.serving = ServingPanel(workspace, theme, tasks)
        self.curve = CostCurvePanel(theme)
        self.curve.setMinimumHeight(_CURVE_HEIGHT)
        self.tornado = Tornado(theme)
        self.offers = OfferList(theme)
        self.comparison = PinnedComparison(workspace, theme)
        self.figures = CostFigures(theme)
        self.elsewhere = CarbonByRegion(theme)
        self._trial: Trial | None = None
        self.drawn = False
        self._rest = CalmTimer(self, REST_MS)
        self._fill_column()
        self._lay_out(self.controls)
        self._make_copy_menu(self.controls.copy, self.offers.csv, self._json)
        self._rest.timeout.connect(self._draw_samples)
        self.answer.flip_requested.connect(self._try_flip)
        self.answer.back_requested.connect(self._take_trial_back)
        self.answer.hardware_requested.connect(self.choose_hardware)
        self.answer.note_followed.connect(self._use_batched_service)
        self.offers.used.connect(self._use)
        self.elsewhere.chosen.connect(self._move_to)
        self.controls.recommend.clicked.connect(self.choose_hardware)
        self.controls.prices.clicked.connect(self.show_prices)
        self.serving.search_requested.connect(self.find_service)
        self.curve.failed.connect(workspace.failed)

    def prepare(self) -> Iterator[object]:
        """Create the forms, and the rows of the first plan's figures once its cost is computed in the background."""
        yield from self.controls.prepare()
        evaluation, catalog, today = self.workspace.evaluation, self.workspace.catalog, self._today()
        self.tasks.run(_FIRST, lambda: (evaluation, evaluate_cost(evaluation, catalog, today)), self._show_first)

    def refresh(self, evaluation: Evaluation) -> None:
        """Show the plan's cost; its uncertainty follows once the plan has not changed for a moment."""
        self._stop_background_work()
        self.drawn = False
        self.faster_rental = self.batched_service = None
        self.controls.refresh()
        self.cost = self.workspace.cost or evaluate_cost(evaluation, self.workspace.catalog, self._today())
        self.workspace.cost = self.cost
        estimate = self.cost.estimate
        self.answer.show_view(decision_view(self.cost, evaluation, self.workspace.catalog, self._today()))
        self._show_trial()
        if self.cost.estimate is None:
            self.controls.point_to(self.cost.field.removeprefix("cost."), self.cost.reason)
        self.controls.buy.show_prices(estimate)
        self.controls.rent.show_billing(estimate)
        self._show_pinned(evaluation)
        self._show_advice(evaluation)
        is_service = isinstance(self.workspace.plan.cost.job, Service) and evaluation.workload.task == "inference"
        self.serving.setVisible(is_service)
        self._show_evidence(None if self.cost.blocked else estimate)
        if self.isVisible():
            self._rest.start()

    def showEvent(self, event: QShowEvent) -> None:
        """Simulate the uncertainty of a plan that was evaluated while the tab was hidden."""
        super().showEvent(event)
        if not self.drawn:
            self._rest.start()

    def _show_first(self, priced: tuple[Evaluation, PlanCost]) -> None:
        evaluation, cost = priced
        if evaluation is self.workspace.evaluation:
            self.workspace.cost = cost
            self.catch_up()

    def copy_result(self) -> str:
        """Return the answer as text."""
        return self.answer.text

    def focus_search(self) -> None:
        """Focus the table of offers."""
        self.offers.table.setFocus()

    @Slot()
    def choose_hardware(self) -> None:
        """Open the dialog that recommends cards for the job."""
        from planner.gui.cost.recommend_dialog import RecommendDialog  # rarely opened

        self._open(RecommendDialog(self.workspace, self.theme, self.tasks, self.window(), today=self._today))

    @Slot()
    def show_prices(self) -> None:
        """Open the Prices dialog."""
        from planner.gui.cost.prices_dialog import PricesDialog  # rarely opened

        self._open(PricesDialog(self.workspace, self.theme, self.tasks, self.window()))

    @Slot()
    def find_service(self) -> None:
        """Open the dialog that searches the hardware on which the service meets its latency targets."""
        from planner.gui.cost.serving_search import ServingSearchDialog  # for services only

        traffic = self.serving.traced
        self._open(ServingSearchDialog(self.workspace, self.theme, self.tasks, self.window(), self._today, traffic))

    def _open(self, dialog: QDialog) -> None:
        self.dialog = dialog
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        open_later(dialog, self.window())

    def shut_down(self) -> None:
        """Stop the simulation."""
        self._rest.stop()
        self._stop_background_work()

    def _stop_background_work(self) -> None:
        for key in (_FIRST, _DRAWS, _FASTER, _BATCHED):
            self.tasks.cancel(key)
        self.serving.cancel()

    def _show_pinned(self, evaluation: Evaluation) -> None:
        pinned = self.workspace.pin.evaluation
        if pinned is None:
            self.comparison.hide()
            return
        catalog, today = self.workspace.catalog, self._today()
        other = evaluate_cost(pinned, catalog, today)
        answer = decision_view(other, pinned, catalog, today).summary
        subject = plan_phrase(pinned, catalog)
        mine = ComparedPlan(evaluation.time, self.cost.estimate)
        self.comparison.show_scenarios(mine, ComparedPlan(pinned.time, other.estimate), subject, answer)

    def _show_advice(self, evaluation: Evaluation) -> None:
        """Show changes that make a plan fit instead of the cost of one that does not."""
        blocked = self.cost.blocked
        helps = blocked is not None and blocked.code == "does-not-fit"
        self.advice.setVisible(helps)
        if helps:
            self.advice.set_evaluation(evaluation)

    def _show_evidence(self, estimate: CostEstimate | None) -> None:
        result = None if estimate is None else estimate.result
        is_single_run = estimate is not None and estimate.demand.periods_per_year is None
        curve = result.curve if result and not is_single_run else ()
        self.curve.setVisible(bool(curve))
        if curve and result is not None:
            owned = self.workspace.plan.cost.buy.owned
            self.curve.set_data(CostCurve(curve, result.break_even, owned))
        case = None if estimate is None else estimate.case
        self.swings.setVisible(case is not None and bool(result and result.curve))
        if case is not None:
            rows = swing_rows(tornado(case))
            self.tornado.show_rows(rows)
            may_flip = any(row.flips for row in self.tornado.rows)
            self._moves.setText(f"{_WHAT_MOVES} (blue: can flip it)" if may_flip else _WHAT_MOVES)
        self.offers.setVisible(estimate is not None)
        self.figures.setVisible(estimate is not None)
        self.elsewhere.setVisible(estimate is not None)
        if estimate is None:
            return
        rent = estimate.result.rent
        self.offers.show_rows(estimate.rows, self._card(), rent.offer_id if rent else None)
        self.figures.show_estimate(estimate)
        own = estimate.result.own
        self.elsewhere.setVisible(own is not None)
        if own is not None:
            terms = self.workspace.plan.cost
            per = running_period(estimate.demand)
            self.elsewhere.show_energy(own.carbon.energy_kwh, per, self.workspace.catalog.cost, terms.region)

    @Slot()
    def _draw_samples(self) -> None:
        estimate = self.cost.estimate
        if self.serving.isVisibleTo(self):
            self.serving.simulate(self.workspace.evaluation, 1 if estimate is None else estimate.demand.groups)
        if estimate is None or estimate.case is None or self.cost.blocked:
            return
        if self.workspace.plan.cost.buy.owned:
            self._look_for_faster_rental(estimate)
        elif isinstance(self.workspace.plan.cost.job, Service):
            self._look_for_batched_service(estimate)
        if self.curve.isVisibleTo(self):
            self.curve.draw()
            stop = Event()
            work = partial(simulate, estimate.case, cancelled=stop.is_set)
            self.tasks.run(_DRAWS, work, self._take_draws, stop=stop.set)

    def _look_for_faster_rental(self, estimate: CostEstimate) -> None:
        """Look in the background for a card to rent that is faster than the owned ones."""
        stop = Event()
        evaluation, catalog, today = self.workspace.evaluation, self.workspace.catalog, self._today()
        work = partial(find_faster_rental, evaluation, estimate, catalog, today, stop.is_set)
        self.tasks.run(_FASTER, work, self._show_faster_rental, stop=stop.set)

    def _look_for_batched_service(self, estimate: CostEstimate) -> None:
        """Look in the background for a program that serves the requests with fewer cards."""
        evaluation, catalog, today = self.workspace.evaluation, self.workspace.catalog, self._today()
        work = partial(find_batched_service, evaluation, estimate, catalog, today)
        self.tasks.run(_BATCHED, work, self._show_batched_service)

    def _show_batched_service(self, found: BatchedService | None) -> None:
        self.batched_service = found
        if found is not None:
            profile = self.workspace.evaluation.workload.profile or ""
            sentence = batched_service_sentence(found, self._card(), profile)
            self.answer.show_note(sentence, f"Use {SOFTWARE[found.profile].title}")

    @Slot()
    def _use_batched_service(self) -> None:
        """Serve the plan's requests with the program that answers many at once."""
        workload = apply_change(self.workspace.plan, CONTINUOUS_BATCHING).workload
        self.workspace.apply(CONTINUOUS_BATCHING.name, workload=workload)

    def _show_faster_rental(self, rental: FasterRental | None) -> None:
        self.faster_rental = rental
        if rental is not None:
            card = self.workspace.catalog.hardware.gpu(rental.gpu).name
            self.answer.show_note(faster_rental_sentence(rental, card))

    def _take_draws(self, simulation: Simulation | None) -> None:
        curve = self.curve.data
        if simulation is not None and curve is not None and self.curve.isVisibleTo(self):
            answer = self.cost.estimate.result.answer if self.cost.estimate else None
            self.answer.show_saving_range("" if answer is None else saving_range_sentence(simulation, answer))
            self.curve.set_data(curve_with_draws(curve, simulation))
            self.drawn = True

    @Slot(str, str)
    def _use(self, offer: str, mode: RentMode) -> None:
        """Rent by this offer, also if the plan was to own the cards."""
        terms = self.workspace.plan.cost
        with self.workspace.step():
            rent = terms.rent.evolve(offer=offer, mode=mode)
            chosen = None if terms.chosen is None else "rent"
            self.workspace.apply("offer", cost=terms.evolve(rent=rent, chosen=chosen))

    @Slot(object)
    def _try_flip(self, chip: FlipChip) -> None:
        """Apply the value at which the decision changes to the plan, in one undo step."""
        path = (chip.field or "").removeprefix("cost.")
        terms = self.workspace.plan.cost
        self._trial = Trial(path, term_value(terms, path), chip)
        with self.workspace.step():
            self.workspace.apply(_TRY, cost=change_term(terms, path, chip.value))
        self.controls.reveal(path)

    @Slot()
    def _take_trial_back(self) -> None:
        """Undo the change that is tried; after further changes, restore only its field."""
        trial, stack = self._trial, self.workspace.undo_stack
        if trial is None:
            return
        if stack.undoText() == _TRY:
            stack.undo()
            return
        with self.workspace.step():
            terms = change_term(self.workspace.plan.cost, trial.path, trial.before)
            self.workspace.apply("end of the trial", cost=terms)

    def _show_trial(self) -> None:
        """Say in the card which value is tried, as long as the plan has it."""
        trial = self._trial
        is_on = trial is not None and term_value(self.workspace.plan.cost, trial.path) == trial.chip.value
        self.answer.show_trial(trial.chip.trial_text if trial is not None and is_on else "")

    @Slot(str)
    def _move_to(self, region: str) -> None:
        with self.workspace.step():
            self.workspace.apply("region", cost=self.workspace.plan.cost.evolve(region=region))

    def _card(self) -> str:
        gpu = self.workspace.plan.gpu
        return "" if gpu is None else self.workspace.catalog.hardware.gpu(gpu).name

    def _json(self) -> str:
        """Return the output of `gpu-planner cost --json` for this plan."""
        estimate, evaluation = self.cost.estimate, self.workspace.evaluation
        fields: dict[str, object] = {"plan": evaluation.plan, "time": evaluation.time}
        if estimate is not None:
            hybrid = hybrid_of_plan(estimate, evaluation.plan.cost, plan_throughput(evaluation))
            fields |= {"cost": estimate.result, "demand": estimate.demand, "offers": estimate.rows, "hybrid": hybrid}
        if isinstance(evaluation.plan.cost.job, Service):
            fields["batched_service"] = self.batched_service
        if evaluation.plan.cost.buy.owned:
            fields["faster_rental"] = self.faster_rental
        return to_json(fields, indent=2).decode()

    def picture(self) -> QPixmap:
        """Return a picture of the answer with its evidence."""
        last = self.below if self.figures.isVisible() else self.answer
        return self._picture_of(self.answer, last)

    def _fill_column(self) -> None:
        self.below = self._below()
        middle = (
            self.answer,
            self.advice,
            self.serving,
            self.comparison,
            (self.curve, 1),
            self.below,
            (self.offers, 1),
            self.elsewhere,
        )
        add_items(self._column, *middle, (STRETCH, 0))

    def _below(self) -> QWidget:
        """Return the tornado chart beside or above the figures."""
        space = self.theme.spacing
        self.swings = QWidget()
        self._moves = make_label(_WHAT_MOVES, font=self.theme.font(bold=True), wrap=True)
        in_column(
            self._moves,
            self.tornado,
            STRETCH,
            owner=self.swings,
            spacing=space.tiny,
        )
        return SideBySide(self.swings, self.figures, least_width=_BELOW_WIDTH, stretches=(1, 1), spacing=space.large)
