"""The simulated service below the decision of the Cost tab: whether it meets its latency targets, and why."""

from functools import partial
from pathlib import Path
from typing import Final

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QFileDialog, QFrame, QSizePolicy

from planner.cost.terms import Service
from planner.gui.cost.figures import FigureGrid
from planner.gui.cost.serving_plots import MinutePanel, RateCurvePanel, ServedMinute
from planner.gui.tasks import TaskRunner
from planner.gui.theme import Theme, set_style_role
from planner.gui.widgets.buttons import link_button, push_button
from planner.gui.widgets.dialogs import dropped_path
from planner.gui.widgets.labels import make_label
from planner.gui.widgets.layout import STRETCH, in_column, in_row
from planner.gui.widgets.section import Section
from planner.gui.workspace import Workspace
from planner.plan.catalog import Catalog
from planner.plan.evaluate import Evaluation
from planner.plan.plan import Plan
from planner.plan.serving.service_simulation import in_groups, job_targets, job_traffic, serving_curve, simulate_serving
from planner.present import format as fmt
from planner.present.cost.rent_or_buy import FigureCell, FigureRow
from planner.present.serving.options import program_title
from planner.present.serving.simulation import Outcome, ServingView, serving_view
from planner.present.serving.traffic import trace_sentence, traffic_sentence
from planner.serving.result import RatePoint, ServingSimulation
from planner.serving.simulate import DEFAULT_REQUESTS
from planner.serving.targets import Targets
from planner.serving.traffic import Traffic, TrafficTrace, load_traffic_presets
from planner.serving.traffic_files import load_traffic
from planner.workload.workload import Inference

_SIMULATION: Final = "serving simulation"
_CURVE: Final = "serving curve"
_TRACE: Final = "serving trace"
_TRACE_ENDINGS: Final = (".csv", ".jsonl")
_TRACES: Final = f"Traces of requests ({' '.join(f'*{ending}' for ending in _TRACE_ENDINGS)});;All files (*)"
_ROLES: Final[dict[Outcome, str]] = {"yes": "good", "probably": "", "probably-not": "warn", "no": "bad"}
_RIGHT: Final = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_NO_GPU: Final = "Choose a GPU, or let the search below find one."
_WAITING: Final = "Simulating…"


class ServingPanel(QFrame):
    """Card with the simulated latencies of the plan's service; `search_requested` asks for hardware that meets them.

    The simulation runs in the background once the plan has not changed for a moment; the curve over the rate only while
    its section is open. The requests of a trace file, chosen or dropped here, take the place of the plan's traffic
    until they are taken back: they are no part of the plan.
    """

    search_requested = Signal()

    def __init__(self, workspace: Workspace, theme: Theme, tasks: TaskRunner) -> None:
        super().__init__()
        set_style_role(self, "card")
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)
        self._workspace, self._theme, self._tasks = workspace, theme, tasks
        self.simulation: ServingSimulation | None = None
        self._view = ServingView("", "yes")
        self._plan: Plan | None = None
        self._traffic: Traffic | None = None
        self.traced: Traffic | None = None
        self._trace_name = ""
        self._asked: tuple[Evaluation, int] | None = None
        self._targets, self._percent = Targets(), 95.0
        self._points: tuple[RatePoint, ...] = ()
        self._title = make_label("Simulated service", font=theme.font(bold=True))
        self._subject = make_label(role="muted", wrap=True, selectable=True)
        self._sentence = make_label(wrap=True, selectable=True)
        self.rows = _LatencyGrid(theme)
        self._load = make_label(wrap=True, selectable=True)
        self._sample = make_label(role="muted", font=theme.font("small"), wrap=True, selectable=True)
        self.find_gpus = push_button(
            "Find GPUs for these tar&gets…", "Simulate this service on all GPUs, and list those that meet its targets."
        )
        self.open_trace = link_button(
            "Requests from a file…",
            "Simulate the recorded requests of a CSV or JSON Lines file: arrival, input and output tokens of each. The "
            "file can also be dropped here.",
        )
        self.close_trace = link_button("Back to the plan's traffic", "Simulate the traffic of the plan again.")
        self.close_trace.hide()
        self.setAcceptDrops(True)
        self.minute, self.curve = MinutePanel(theme), RateCurvePanel(theme)
        self.minute_section = Section(theme, "One simulated minute", self.minute, "each request, and the cache in use")
        self.curve_section = Section(
            theme, "Latency over the request rate", self.curve, "and where the service stops keeping up"
        )
        self._lay_out()
        self.find_gpus.clicked.connect(self.search_requested)
        self.open_trace.clicked.connect(self._choose_trace)
        self.close_trace.clicked.connect(lambda: self._use_trace("", None))
        self.minute_section.toggled.connect(self._show_minute)
        self.curve_section.toggled.connect(self._simulate_curve)
        for part in (self.minute, self.curve):
            part.failed.connect(workspace.failed)

    @property
    def text(self) -> str:
        """Return the answer as lines of text."""
        return "\n".join(filter(None, (self._subject.text(), self._view.text)))

    def simulate(self, evaluation: Evaluation, groups: int) -> None:
        """Simulate the service of an evaluated plan on `groups` groups of its cards in the background."""
        job = evaluation.plan.cost.job
        self.cancel()
        self._plan, self._asked = None, (evaluation, groups)
        if not isinstance(job, Service) or not isinstance(evaluation.workload, Inference):
            return
        self._traffic, self._targets = self.traced or job_traffic(job, load_traffic_presets()), job_targets(job)
        self._percent = job.latency_percentile
        phrase = f"a peak load of {traffic_sentence(self._traffic)}"
        if self.traced is not None:
            phrase = trace_sentence(self.traced, self._trace_name, DEFAULT_REQUESTS)
        if evaluation.gpu is None:
            self._subject.setText(fmt.sentence(phrase))
            self._show(ServingView(_NO_GPU, "probably"))
            return
        plan = self._plan = in_groups(evaluation, groups)
        card = fmt.count_of(plan.count, evaluation.gpu.name)
        replicas = fmt.plural(plan.workload.parallel.data or 1, "replica")
        self._subject.setText(f"{card} ({replicas}) with {program_title(plan)}, for {phrase}")
        if self.simulation is None:
            self._sentence.setText(_WAITING)
        catalog, targets, percent = self._workspace.catalog, self._targets, self._percent
        work = partial(_simulated, plan, catalog, self._traffic, targets, percent)
        self._tasks.run(_SIMULATION, work, self._take)
        self._simulate_curve()

    def load_trace(self, path: Path) -> None:
        """Read the requests of a trace file in the background, and simulate them; report a file that cannot be read."""
        self._tasks.run(
            _TRACE, partial(load_traffic, path), partial(self._use_trace, path.name), self._workspace.report
        )

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Accept a single trace file; the window takes any other."""
        if _dropped_trace(event) is None:
            event.ignore()
        else:
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        """Simulate the requests of the dropped trace file."""
        path = _dropped_trace(event)
        if path is not None:
            event.acceptProposedAction()
            self.load_trace(path)

    @Slot()
    def _choose_trace(self) -> None:
        name, _ = QFileDialog.getOpenFileName(self, "Requests from a file", "", _TRACES)
        if name:
            self.load_trace(Path(name))

    def _use_trace(self, name: str, trace: TrafficTrace | None) -> None:
        """Simulate the requests of `trace` from the file `name`, or the plan's traffic without one."""
        self.traced, self._trace_name = None if trace is None else Traffic.of_trace(trace), name
        self.close_trace.setVisible(trace is not None)
        if self._asked is not None:
            self.simulate(*self._asked)

    def cancel(self) -> None:
        """Discard what is being simulated."""
        for key in (_SIMULATION, _CURVE):
            self._tasks.cancel(key)

    def _take(self, found: tuple[ServingSimulation, ServingView]) -> None:
        self.simulation, view = found
        self._show(view)
        self._show_minute()

    def _show(self, view: ServingView) -> None:
        self._view = view
        self._sentence.setText(view.sentence)
        set_style_role(self._sentence, _ROLES[view.outcome])
        self.rows.show_view(view)
        for label, text in ((self._load, view.load), (self._sample, view.sample)):
            label.setText(text)
            label.setVisible(bool(text))
        for section in (self.minute_section, self.curve_section):
            section.setVisible(bool(view.rows))

    @Slot()
    def _show_minute(self) -> None:
        minute = None if self.simulation is None else self.simulation.minute
        if minute is not None and self.minute_section.is_open:
            self.minute.set_data(ServedMinute.counted_from_zero(minute))

    @Slot()
    def _simulate_curve(self) -> None:
        plan = self._plan
        if plan is None or self._traffic is None or not self.curve_section.is_open:
            return
        self._points = ()
        work = partial(serving_curve, plan, self._workspace.catalog, self._traffic)
        self._tasks.run_in_rounds(_CURVE, lambda stop: work(stop=stop), self._add_point, lambda _: None)

    def _add_point(self, point: RatePoint) -> None:
        self._points = (*self._points, point)
        rate = None if self._traffic is None else self._traffic.requests_per_second
        self.curve.show_points(self._points, self._targets, self._percent, rate)

    def _lay_out(self) -> None:
        space = self._theme.spacing
        in_column(
            in_row(self._title, STRETCH, self.open_trace, self.close_trace, self.find_gpus, spacing=space.medium),
            self._subject,
            self._sentence,
            in_row(self.rows, STRETCH),
            self._load,
            self._sample,
            self.curve_section,
            self.minute_section,
            owner=self,
            margins=space.large,
            spacing=space.small,
        )


def _simulated(
    plan: Plan, catalog: Catalog, traffic: Traffic, targets: Targets, percent: float
) -> tuple[ServingSimulation, ServingView]:
    found = simulate_serving(plan, catalog, traffic, targets)
    assert found is not None  # nothing stops it
    return found, serving_view(found, targets, percent)


class _LatencyGrid(FigureGrid):
    """Grid with a row for each time of a request: its median, its percentile with a range, and its target."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, ("Median", "p95", "Target"))

    def show_view(self, view: ServingView) -> None:
        """Show the rows of `view`, with the targets in the colors of their outcomes."""
        self.setVisible(bool(view.rows))
        self.set_columns(("Median", view.percent, "Target" if any(row.target for row in view.rows) else ""))
        texts = ((row.title, (row.median, row.percentile, row.target)) for row in view.rows)
        self.show_rows(tuple(FigureRow(title, tuple(FigureCell(text) for text in cells)) for title, cells in texts))
        for line, row in zip(self._lines, view.rows, strict=False):
            set_style_role(line[-1], "" if row.outcome is None else _ROLES[row.outcome])
        self.setAccessibleName(view.text)


def _dropped_trace(event: QDropEvent) -> Path | None:
    path = dropped_path(event)
    return path if path is not None and path.suffix.lower() in _TRACE_ENDINGS else None
