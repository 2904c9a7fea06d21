"""The plan beside what is measured: a line under the cards, lines in the plots, and the way to plan for these cards."""

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from PySide6.QtCore import QPoint, Signal, Slot
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
from planner.monitor.recording.recording import Recording
from planner.plan.catalog import Catalog
from planner.plan.evaluate import Evaluation, evaluate
from planner.plan.files import parse_plan
from planner.plan.measured import Expected, batch_that_fills, plan_for_card
from planner.plan.solve import Solved
from planner.present import format as fmt
from planner.present.monitor.plan_on_cards import (
    BesidePlan,
    Matches,
    Offer,
    beside_plan,
    fill_sentence,
    matches_of,
    offers,
)

_DRAWN: Final = (("memory_used_bytes", "memory_bytes"), ("power_watts", "power_watts"))
_FILLING = "monitor batch"
_MATCHING = "monitor cards"
_EVALUATING = "monitor recorded plan"


class PlanLines:
    """A line a card and quantity; where several cards have the same, it is named once."""

    def __init__(self, plots: PlotGrid, title: str) -> None:
        self._plots, self._title = plots, title
        self._lines: dict[tuple[str, str], tuple[float, str]] = {}

    def draw(self, devices: tuple[Device, ...], expected: Mapping[str, Expected]) -> Mapping[str, float]:
        """Draw what is expected of each card, and return it as a share of the card's memory, by UUID."""
        lines: dict[tuple[str, str], tuple[float, str]] = {}
        shares = {}
        for device in devices:
            if (found := expected.get(device.uuid)) is None:
                continue
            if total := device.fact("memory_total_bytes"):
                shares[device.uuid] = found.memory_bytes / total
            for metric, field in _DRAWN:
                value = getattr(found, field)
                if value is not None:
                    is_named = any(key[0] == metric and line[0] == value for key, line in lines.items())
                    lines[metric, device.uuid] = (value, "" if is_named else self._title)
        self._change_to(lines)
        return shares

    def _change_to(self, lines: dict[tuple[str, str], tuple[float, str]]) -> None:
        before, self._lines = self._lines, lines
        for metric, uuid in before.keys() - lines.keys():
            self._plots.set_line(metric, uuid, None)
        for (metric, uuid), (value, title) in lines.items():
            if before.get((metric, uuid)) != (value, title):
                self._plots.set_line(metric, uuid, value, title)


class PlanStrip(QWidget):
    """Hidden while there is no card. Beside a recording that holds a plan it lays that one, else the window's.

    `found` says that more is known by now than was shown, `speed_wanted` that a measured speed is to be written down.
    """

    found = Signal()
    speed_wanted = Signal()

    def __init__(self, workspace: Workspace, theme: Theme, tasks: TaskRunner) -> None:
        super().__init__()
        self._workspace, self._tasks = workspace, tasks
        self._fill: str | None = None
        self._recorded: Evaluation | None = None
        self._devices: tuple[Device, ...] = ()
        self._matches: Matches = {}
        self._found = BesidePlan()
        self._offers: tuple[Offer, ...] = ()
        self.sentence = ElidedLabel()
        self.plan = link_button(
            "Plan for this card",
            "Let the plan be for the cards of this machine; Ctrl+Z takes it back.",
        )
        self.speed = link_button(
            "Use measured speed…",
            "Put the speed that your run prints in the place of the estimate.",
        )
        self.menu = QMenu(self)
        self.plan.clicked.connect(self.offer)
        self.speed.clicked.connect(self.speed_wanted)
        in_row((self.sentence, 1), self.speed, self.plan, owner=self, spacing=theme.spacing.small)
        self.hide()

    @property
    def expected(self) -> Mapping[str, Expected]:
        """Return what the plan predicts of which cards, by UUID."""
        return self._found.expected

    def forget(self) -> None:
        """The plan is another: what was found out about its batch holds no more."""
        self._fill = None
        self._tasks.cancel(_FILLING)

    def cancel(self) -> None:
        """Wait for nothing any more."""
        for key in (_FILLING, _MATCHING, _EVALUATING):
            self._tasks.cancel(key)

    def set_recording(self, recording: Recording | None) -> None:
        """Take the plan of this recording, if it holds one that can be read here; none is for what is live."""
        self._recorded = None
        self.forget()
        self._tasks.cancel(_EVALUATING)
        if recording is not None and recording.plan is not None:
            work = partial(_evaluated, recording.plan, recording.path, self._workspace.catalog)
            self._tasks.run(_EVALUATING, work, self._on_evaluated, self._on_unreadable)

    def show_beside(self, latest: Latest, *, is_under_filled: bool) -> None:
        """Lay the plan beside what is measured now; of a card that is under-filled, say how far the batch can go."""
        if latest.inventory.devices != self._devices:
            self._devices = latest.inventory.devices
            self._find_matches()
        is_known = all(device.uuid in self._matches for device in self._devices)
        self._found = beside_plan(self._evaluation, self._matches, latest) if is_known else BesidePlan()
        asks = is_under_filled and bool(self._found.expected)
        if asks and self._fill is None:
            self._find_fill()
        is_recorded = self._recorded is not None and bool(self._found.sentence)
        whose = "This is the plan that was recorded." if is_recorded else ""
        words = (self._found.sentence, whose, (self._fill or "") if asks else "")
        self.sentence.setText(" ".join(filter(None, words)))
        self.speed.setVisible(bool(self._found.expected) and self._recorded is None)
        self.plan.setVisible(bool(self._offers))
        self.plan.setText("Plan for these cards…" if len(self._offers) > 1 else "Plan for this card")
        self.setVisible(bool(self._found.sentence or self._offers))

    @property
    def _evaluation(self) -> Evaluation:
        return self._recorded or self._workspace.evaluation

    def _on_evaluated(self, evaluation: Evaluation) -> None:
        self._recorded = evaluation
        self.found.emit()

    def _on_unreadable(self, error: BaseException) -> None:
        reason = error.message if isinstance(error, PlannerError) else str(error)
        told = "The recording's plan cannot be read here, so yours stands beside it."
        self._workspace.noticed.emit(told, reason)

    def _find_matches(self) -> None:
        """Look the cards up in the catalog; the first name takes a tenth of a second."""
        work = partial(matches_of, self._workspace.catalog.hardware, self._devices)
        self._tasks.run(_MATCHING, work, self._on_matched, lambda _error: None)

    def _on_matched(self, matches: Matches) -> None:
        self._matches, self._offers = matches, offers(matches)
        self.found.emit()

    def _find_fill(self) -> None:
        """Find out how far the batch can go; that takes a moment, and is said once it is known."""
        self._fill = ""
        evaluation = self._evaluation
        work = partial(batch_that_fills, evaluation.plan, self._workspace.catalog)
        self._tasks.run(_FILLING, work, partial(self._on_filled, evaluation), lambda _error: None)

    def _on_filled(self, evaluation: Evaluation, solved: tuple[Solved, Solved] | None) -> None:
        self._fill = fill_sentence(evaluation.plan, solved)
        self.found.emit()

    @Slot()
    def offer(self) -> None:
        """Plan for the card of this machine; where there are several, or it can be several, ask for which."""
        self.menu.clear()
        for offer in self._offers:
            self.menu.addAction(fmt.count_of(offer.cards, offer.gpu.name), partial(self._plan_for, offer))
        if len(self._offers) == 1:
            self._plan_for(self._offers[0])
        elif self._offers:
            self.menu.popup(self.plan.mapToGlobal(QPoint(0, self.plan.height())))
        else:
            self._workspace.noticed.emit("There is no card here that the catalog knows.", "")

    def _plan_for(self, offer: Offer) -> None:
        workspace = self._workspace
        with workspace.step():
            planned = plan_for_card(workspace.plan, offer.gpu, offer.cards)
            workspace.apply("card", gpu=planned.gpu, count=planned.count, workload=planned.workload)


def _evaluated(plan: Mapping[str, Any], path: Path, catalog: Catalog) -> Evaluation:
    """Return what a recorded plan comes to.

    Raises:
        PlannerError: If it is of a newer version, or names what this catalog does not have.
    """
    return evaluate(parse_plan(json.dumps(plan), path), catalog)
