"""Comparison of the plan with the readings: a sentence, lines in the plots, and planning for the cards shown."""

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from PySide6.QtCore import QPoint, QTimer, Signal, Slot
from PySide6.QtWidgets import QMenu, QWidget

from planner.errors import PlannerError
from planner.gui.monitor.plots.grid import PlotGrid
from planner.gui.tasks import TaskRunner
from planner.gui.theme import Theme
from planner.gui.widgets.buttons import link_button
from planner.gui.widgets.labels import ElidedLabel
from planner.gui.widgets.layout import in_row
from planner.gui.workspace import Workspace
from planner.monitor.readings.inventory import Device
from planner.monitor.readings.latest import Latest
from planner.monitor.recording.recording import MonitorRecording
from planner.plan.catalog import Catalog
from planner.plan.evaluate import Evaluation, evaluate
from planner.plan.files import parse_plan
from planner.plan.measured import CardPrediction, largest_batches, plan_for_card
from planner.plan.plan import Plan
from planner.plan.solve import SolveResult
from planner.present import format as fmt
from planner.present.monitor.plan_on_cards import (
    CardMatches,
    PlannableCards,
    PlanOnCards,
    compare_plan_with_cards,
    largest_batch_sentence,
    match_cards,
    plannable_cards,
)
from planner.present.plan.phrase import hardware_phrase

_DRAWN: Final = (("memory_used_bytes", "memory_bytes"), ("power_watts", "power_watts"))
_FILLING = "monitor batch"
_MATCHING = "monitor cards"
_EVALUATING = "monitor recorded plan"
_MATCHING_DELAY_MS: Final = 50


class PlanLines:
    """Draws the plan's predictions as horizontal lines in the plots; of several lines at one value, one has a title."""

    def __init__(self, plots: PlotGrid, title: str) -> None:
        self._plots, self._title = plots, title
        self._lines: dict[tuple[str, str], tuple[float, str]] = {}

    def draw(self, devices: tuple[Device, ...], expected: Mapping[str, CardPrediction]) -> Mapping[str, float]:
        """Draw each card's predictions, and return the predicted fraction of each card's memory, by UUID."""
        lines: dict[tuple[str, str], tuple[float, str]] = {}
        shares = {}
        for device in devices:
            if (prediction := expected.get(device.uuid)) is None:
                continue
            if total := device.fact("memory_total_bytes"):
                shares[device.uuid] = prediction.memory_bytes / total
            for metric, field in _DRAWN:
                value = getattr(prediction, field)
                if value is not None:
                    is_named = any(key[0] == metric and line[0] == value for key, line in lines.items())
                    lines[metric, device.uuid] = (value, "" if is_named else self._title)
        self._update_lines(lines)
        return shares

    def _update_lines(self, lines: dict[tuple[str, str], tuple[float, str]]) -> None:
        before, self._lines = self._lines, lines
        for metric, uuid in before.keys() - lines.keys():
            self._plots.set_limit_line(metric, uuid, None)
        for (metric, uuid), (value, title) in lines.items():
            if before.get((metric, uuid)) != (value, title):
                self._plots.set_limit_line(metric, uuid, value, title)


class PlanStrip(QWidget):
    """Compares the readings with the replayed recording's plan, or else the window's plan; hidden without known cards.

    `updated` is emitted when a background result arrives, `speed_wanted` when the user wants to enter a measured speed.
    """

    updated = Signal()
    speed_wanted = Signal()

    def __init__(self, workspace: Workspace, theme: Theme, tasks: TaskRunner) -> None:
        super().__init__()
        self._workspace, self._tasks = workspace, tasks
        self._batch_sentence: str | None = None
        self._recorded: Evaluation | None = None
        self._devices: tuple[Device, ...] = ()
        self._matches: CardMatches = {}
        self._comparison = PlanOnCards()
        self._offers: tuple[PlannableCards, ...] = ()
        self.sentence = ElidedLabel()
        self.plan = link_button(
            "Plan for this GPU",
            "Set the plan's GPUs to those shown here; undo with Ctrl+Z.",
        )
        self.speed = link_button(
            "Use measured speed…",
            "Replace the estimate with the speed that your run reports.",
        )
        self.take = link_button("Use this plan", "Replace your plan with the recorded one; undo with Ctrl+Z.")
        self.menu = QMenu(self)
        # Matching competes with the drawing of new cards for the interpreter, so that it starts afterwards.
        self._match_timer = QTimer(self, singleShot=True, interval=_MATCHING_DELAY_MS)
        self._match_timer.timeout.connect(self._find_matches)
        self.plan.clicked.connect(self.plan_for_these_cards)
        self.speed.clicked.connect(self.speed_wanted)
        self.take.clicked.connect(self.use_recorded_plan)
        in_row((self.sentence, 1), self.take, self.speed, self.plan, owner=self, spacing=theme.spacing.small)
        self.hide()

    @property
    def expected(self) -> Mapping[str, CardPrediction]:
        """Return the plan's predictions for each card, by UUID."""
        return self._comparison.expected

    def discard_batch_size(self) -> None:
        """Discard the largest batch size that fits, which was found for the previous plan."""
        self._batch_sentence = None
        self._tasks.cancel(_FILLING)

    def cancel(self) -> None:
        """Cancel the background work: matching cards, evaluating a recorded plan, finding a batch size."""
        self._match_timer.stop()
        for key in (_FILLING, _MATCHING, _EVALUATING):
            self._tasks.cancel(key)

    def set_recording(self, recording: MonitorRecording | None) -> None:
        """Use the plan in `recording`, if it contains a readable one; None stands for live readings."""
        self._recorded = None
        self.discard_batch_size()
        self._tasks.cancel(_EVALUATING)
        if recording is not None and recording.plan is not None:
            work = partial(_recorded_evaluation, recording.plan, recording.path, self._workspace.catalog)
            self._tasks.run(_EVALUATING, work, self._on_plan_evaluated, self._on_plan_unreadable)

    def compare(self, latest: Latest, *, is_under_filled: bool) -> None:
        """Compare the plan with the readings; with `is_under_filled` also say how far the batch size can grow."""
        if latest.inventory.devices != self._devices:
            self._devices = latest.inventory.devices
            self._match_timer.start()
        is_known = all(device.uuid in self._matches for device in self._devices)
        # Nobody asked what the sample plan would need here.
        is_compared = is_known and (self._recorded is not None or not self._workspace.is_sample)
        shown = compare_plan_with_cards(self._evaluation, self._matches, latest) if is_compared else PlanOnCards()
        self._comparison = shown
        shows_batch = is_under_filled and bool(shown.expected)
        if shows_batch and self._batch_sentence is None:
            self._find_largest_batch()
        recorded = self._recorded if shown.sentence else None
        origin = "" if recorded is None else _origin_sentence(recorded, self._workspace.catalog)
        sentences = (shown.sentence, (self._batch_sentence or "") if shows_batch else "", origin)
        self.sentence.setText(" ".join(filter(None, sentences)))
        self.take.setVisible(recorded is not None and recorded.plan != self._workspace.plan)
        self.speed.setVisible(bool(shown.expected) and self._recorded is None)
        plan = self._workspace.plan
        is_other = any((offer.gpu.id, offer.cards) != (plan.gpu, plan.count) for offer in self._offers)
        self.plan.setVisible(recorded is None and (is_other or (self._workspace.is_sample and bool(self._offers))))
        self.plan.setText("Plan for these GPUs…" if len(self._offers) > 1 else "Plan for this GPU")
        self.setVisible(bool(shown.sentence or self._offers))

    @property
    def _evaluation(self) -> Evaluation:
        return self._recorded or self._workspace.evaluation

    def _on_plan_evaluated(self, evaluation: Evaluation) -> None:
        self._recorded = evaluation
        self.updated.emit()

    def _on_plan_unreadable(self, error: BaseException) -> None:
        reason = error.message if isinstance(error, PlannerError) else str(error)
        message = "The recorded plan cannot be read; the readings are compared with your current plan."
        self._workspace.noticed.emit(message, reason)

    @Slot()
    def _find_matches(self) -> None:
        """Match the cards with the catalog in the background; the first match takes a tenth of a second."""
        work = partial(match_cards, self._workspace.catalog.hardware, self._devices)
        self._tasks.run(_MATCHING, work, self._on_matched, lambda _error: None)

    def _on_matched(self, matches: CardMatches) -> None:
        self._matches, self._offers = matches, plannable_cards(matches)
        self.updated.emit()

    def _find_largest_batch(self) -> None:
        """Find the largest batch size that fits, in the background."""
        self._batch_sentence = ""
        evaluation = self._evaluation
        work = partial(largest_batches, evaluation.plan, self._workspace.catalog)
        self._tasks.run(_FILLING, work, partial(self._on_batches_found, evaluation), lambda _error: None)

    def _on_batches_found(self, evaluation: Evaluation, solved: tuple[SolveResult, SolveResult] | None) -> None:
        self._batch_sentence = largest_batch_sentence(evaluation.plan, solved)
        self.updated.emit()

    @Slot()
    def plan_for_these_cards(self) -> None:
        """Set the plan's cards to those shown here; show a menu if there are several options."""
        self.menu.clear()
        for offer in self._offers:
            self.menu.addAction(fmt.count_of(offer.cards, offer.gpu.name), partial(self._set_plan_cards, offer))
        if len(self._offers) == 1:
            self._set_plan_cards(self._offers[0])
        elif self._offers:
            self.menu.popup(self.plan.mapToGlobal(QPoint(0, self.plan.height())))
        else:
            self._workspace.noticed.emit("None of these GPUs is in the catalog.", "")

    @Slot()
    def use_recorded_plan(self) -> None:
        """Make the replayed recording's plan the window's plan, in one undo step."""
        if self._recorded is not None:
            plan = self._recorded.plan
            with self._workspace.step():
                self._workspace.apply("recorded plan", **{name: getattr(plan, name) for name in Plan.model_fields})

    def _set_plan_cards(self, offer: PlannableCards) -> None:
        workspace = self._workspace
        with workspace.step():
            planned = plan_for_card(workspace.plan, offer.gpu, offer.cards)
            workspace.apply("card", gpu=planned.gpu, count=planned.count, workload=planned.workload)


def _origin_sentence(recorded: Evaluation, catalog: Catalog) -> str:
    cards = hardware_phrase(recorded, catalog)
    return f"Recorded plan: {recorded.plan.model.id}{f' on {cards}' if cards else ''}."


def _recorded_evaluation(plan: Mapping[str, Any], path: Path, catalog: Catalog) -> Evaluation:
    """Return the evaluation of a recorded plan.

    Raises:
        PlannerError: If the plan is of a newer version, or its card or model is not in this catalog.
    """
    return evaluate(parse_plan(json.dumps(plan), path), catalog)
