"""Composition root: creates the application's objects and shuts the objects down."""

import gc
import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final

from planner.gui import preload  # noqa: F401  # ahead of Qt

# isort: split
from PySide6.QtCore import QObject, QTimer, Slot
from PySide6.QtWidgets import QApplication, QMessageBox

from planner import __version__
from planner.errors import PlannerError
from planner.gui.autosave import Autosave, delete_leftovers
from planner.gui.diagnostics import Diagnostics
from planner.gui.monitor.settings import unfinished_message
from planner.gui.settings import SettingsStore
from planner.gui.tab import START
from planner.gui.tasks import TaskRunner
from planner.gui.theme import Theme
from planner.gui.threads import GarbageCollector, import_steps, run_when_idle
from planner.gui.window import MainWindow
from planner.gui.workspace import SAMPLE_PLAN, Workspace
from planner.monitor.settings import Timeouts
from planner.paths import own_hardware_file, prices_dir, state_dir
from planner.plan.catalog import load_catalog_or_bundled

if TYPE_CHECKING:
    from planner.monitor.readings.inventory import Device

_DETECTION: Final = "detection of this machine's GPUs"
_LONGEST_START_SECONDS: Final = 10.0
"""Timeout for opening the GPU driver; for a slower driver, the Monitor tab detects the cards and shows progress."""
CANNOT_START: Final = 3
_log = logging.getLogger(__name__)
_UNDERLINE_AFTER_MS: Final = 300
"""Delay of reading the glossary and underlining its terms, so that the window is drawn and responsive first."""
_DETECT_AFTER_MS: Final = 1500
"""Delay of the detection of cards, so that the window is drawn and responsive first."""
LATER_IMPORTS: Final = (
    "planner.gui.memory.tab",
    "pyqtgraph",
    "planner.plan.editing",
    "planner.memory.software.pytorch",
    "planner.performance.training.estimate",
    "planner.gui.catalog.tab",
    "planner.gui.cost.tab",
    "planner.gui.monitor.tab",
    "planner.gui.monitor.plots.metric_plot",
    "planner.gui.cost.recommend_dialog",
    "planner.gui.cost.prices_dialog",
    "planner.gui.memory.trace.dialog",
    "planner.trace.run",
    "planner.gui.memory.log_dialog",
    "planner.gui.memory.pinned_comparison",
    "planner.gui.catalog.system_page",
    "planner.gui.catalog.scatter_panel",
    "planner.gui.catalog.scatter_plot",
    "planner.gui.manual",
    "planner.gui.start_page",
    "numpy.ma",  # numpy imports it when it is first needed, by the scatter plot
)
"""Modules to import in the background, beginning with those that the user's first clicks are likely to need."""


def read_machine_devices() -> "tuple[Device, ...]":
    """Return the cards of this machine, read in a short-lived process; an empty tuple without a driver."""
    from planner.monitor.supervisor.snapshot import take_snapshot  # the first frame of the window does not need it

    return take_snapshot(Timeouts(start=_LONGEST_START_SECONDS)).inventory.devices


class CardDetector(QObject):
    """Detects the cards of this machine when a page that shows them is first shown, unless the Monitor did before.

    `detect` runs in the background.
    """

    def __init__(
        self,
        workspace: Workspace,
        tasks: TaskRunner,
        detect: "Callable[[], tuple[Device, ...]]" = read_machine_devices,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._workspace, self._tasks, self._detect = workspace, tasks, detect
        self._has_started = False

    @Slot(str)
    def on_tab(self, key: str) -> None:
        """Start the detection if the catalog or the Start page is shown and the cards are unknown."""
        if key in ("catalog", START.key) and not self._has_started and not self._workspace.devices:
            self._has_started = True
            self._tasks.run(_DETECTION, self._detect, self._take_devices, self._take_failure)

    def _take_devices(self, devices: "tuple[Device, ...]") -> None:
        self._workspace.note_devices(devices)
        self._workspace.end_detection("done")

    def _take_failure(self, error: BaseException) -> None:
        """Note that the detection failed; the Monitor tab shows why."""
        self._workspace.end_detection("failed")
        if not isinstance(error, PlannerError | OSError):
            raise error


def create(argv: Sequence[str]) -> tuple[QApplication, MainWindow]:
    """Create the application and show its window; `argv` may name a file to open.

    Raises:
        CatalogError: If the catalog cannot be read.
    """
    with _frozen_objects():
        return _create_application_and_window(argv)


def _create_application_and_window(argv: Sequence[str]) -> tuple[QApplication, MainWindow]:
    app = _qt_application(argv)
    catalog, unread = load_catalog_or_bundled(prices_dir(), own_hardware_file())
    home = state_dir()
    diagnostics = Diagnostics(home / "logs")
    diagnostics.install()
    settings = SettingsStore(home / "settings.json", app)
    theme = Theme(app, settings.current.scheme)
    tasks = TaskRunner()
    workspace = Workspace(catalog, settings, parent=app)
    autosave = Autosave(workspace, home / "autosave", app)
    diagnostics.save_work = autosave.flush
    has_no_plan_yet = workspace.plan == SAMPLE_PLAN and workspace.path is None and len(argv) < 2
    window = MainWindow(workspace, theme, tasks, page=START.key if has_no_plan_yet else None)
    for step in (tasks.shutdown, autosave.close, settings.flush, diagnostics.uninstall, GarbageCollector(app).close):
        app.aboutToQuit.connect(step)
    window.fit_to_screen()
    theme.apply_style_sheet(window)
    window.show()
    QTimer.singleShot(_UNDERLINE_AFTER_MS, window, window.explainer.underline_terms)
    _show_start_messages(window, diagnostics)
    if len(argv) > 1:
        QTimer.singleShot(0, window, lambda: window.documents.open(Path(argv[1])))
    problems = [
        error for error in (unread, settings.unread, *autosave.unrestored, autosave.failure) if error is not None
    ]
    autosave.failed.connect(window.show_error)
    if problems:
        window.show_error(_combined_error(problems))
    _recover_and_clean(window, autosave, home)
    return app, window


def _recover_and_clean(window: MainWindow, autosave: Autosave, home: Path) -> None:
    """Offer the plans that crashed windows left, and delete what interrupted saves left."""
    window.documents.autosave = autosave
    window.documents.check_file()
    left = autosave.unsaved_plans()
    if any(not one.session.closed for one in left):
        QTimer.singleShot(0, window, window.recover_plans)
    recent = window.workspace.settings.current.recent
    named = (*recent, *(one.session.path for one in left), window.workspace.path)
    files = {Path(name) for name in named if name is not None}
    window.tasks.run("leftovers", partial(delete_leftovers, home, files), lambda _done: None, _log_failure)


def _log_failure(error: BaseException) -> None:
    _log.warning("Leftovers of interrupted saves could not be deleted: %s", error)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the window until it is closed, and return the exit status."""
    try:
        app, window = create(sys.argv if argv is None else argv)
    except PlannerError as error:
        QMessageBox.critical(None, "GPU Planner", f"{error.message}\n\n{error.hint}".strip())
        return CANNOT_START
    # The first event is handled once the window is on the screen.
    QTimer.singleShot(0, app, partial(finish_start, window))
    return app.exec()


def finish_start(window: MainWindow) -> None:
    """Prepare in the background what the window's first frame does not need."""
    hardware = window.workspace.catalog.hardware
    steps = chain(
        import_steps(LATER_IMPORTS),
        window.prepare_tabs(),
        map(hardware.usable_memory, hardware.gpus),  # which the first choice of a card needs of all
    )
    run_when_idle(_frozen_steps(steps), window)
    QTimer.singleShot(_DETECT_AFTER_MS, window, partial(_detect_cards_when_needed, window))


def _frozen_steps(steps: Iterator[object]) -> Iterator[None]:
    """Exempt what each step creates from garbage collection, too, which would look at it again and again."""
    for _ in steps:
        gc.freeze()
        yield


@contextmanager
def _frozen_objects() -> Iterator[None]:
    """Exempt objects created in this `with` block from garbage collection, because they live as long as the window.

    Later objects are left to the `GarbageCollector`.
    """
    gc.disable()
    try:
        yield
    except BaseException:
        gc.enable()
        raise
    gc.freeze()


def _detect_cards_when_needed(window: MainWindow) -> None:
    detector = CardDetector(window.workspace, window.tasks, parent=window)
    window.tab_shown.connect(detector.on_tab)
    detector.on_tab(window.tab.key)


def _qt_application(argv: Sequence[str]) -> QApplication:
    existing = QApplication.instance()
    app = existing if isinstance(existing, QApplication) else QApplication(list(argv[:1]))
    app.setApplicationName("gpu-planner")
    app.setApplicationDisplayName("GPU Planner")
    app.setApplicationVersion(__version__)
    app.setDesktopFileName("gpu-planner")
    return app


def _combined_error(problems: Sequence[PlannerError]) -> PlannerError:
    """Return the errors that occurred at start as a single error, because the banner shows only one."""
    return PlannerError(
        "\n".join(problem.message for problem in problems),
        "\n".join(problem.hint for problem in problems if problem.hint),
    )


def _show_start_messages(window: MainWindow, diagnostics: Diagnostics) -> None:
    """Report a crash of the last run, and a recording that the crash left unfinished."""
    if diagnostics.crashed_before:
        hint = "The reason is in crash-last.log; see Help › Open log folder."
        window.show_error(PlannerError("GPU Planner crashed the last time. Your plan is as you left it.", hint))
    for recording in window.workspace.settings.current.monitor.interrupted_recordings[:1]:
        window.banner.show_notice(*unfinished_message(recording))
