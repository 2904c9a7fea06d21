"""The composition root: everything is made here, once, and put away here."""

import gc
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, QTimer, Slot
from PySide6.QtWidgets import QApplication, QMessageBox

from planner import __version__
from planner.errors import PlannerError
from planner.gui.autosave import Autosave
from planner.gui.diagnostics import Diagnostics
from planner.gui.monitor.settings import unfinished_words
from planner.gui.settings import SettingsStore
from planner.gui.tasks import TaskRunner
from planner.gui.theme import Theme
from planner.gui.threads import Collector, import_soon
from planner.gui.window import Window
from planner.gui.workspace import Workspace
from planner.paths import own_hardware_file, prices_dir, state_dir
from planner.plan.catalog import load_catalog_or_bundled

if TYPE_CHECKING:
    from planner.monitor.readings.inventory import Device

_KEY: Final = "machine"
_LONGEST_START_SECONDS: Final = 10.0
"""A driver that takes longer to open is left to the Monitor, which shows what it waits for."""
CANNOT_START: Final = 3
_LOOK_AFTER_MS: Final = 1500
"""What is asked of the machine waits until the window is drawn and ready."""
_NEXT: Final = (
    "planner.gui.memory.curves.plot",
    "planner.plan.answers.conflicts",
    "planner.memory.software.pytorch",
    "planner.performance.training.estimate",
    "planner.gui.catalog.tab",
    "planner.gui.monitor.tab",
    "planner.gui.monitor.plots.metric_plot",
)
"""What the first clicks are likely to need, in this order."""


def look_here() -> "tuple[Device, ...]":
    """Return the cards of this machine after one look by a process that ends at once; none without a driver."""
    from planner.monitor.settings import Timeouts
    from planner.monitor.supervisor.gathering import look_once  # the first picture of the window does without them

    return look_once(Timeouts(start=_LONGEST_START_SECONDS)).inventory.devices


class Machine(QObject):
    """Looks when the catalog is first shown, unless the Monitor has told by then; `look` does it in the background."""

    def __init__(
        self,
        workspace: Workspace,
        tasks: TaskRunner,
        look: "Callable[[], tuple[Device, ...]]" = look_here,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._workspace, self._tasks, self._look = workspace, tasks, look
        self._has_looked = False

    @Slot(str)
    def on_tab(self, key: str) -> None:
        """Look if the tab that is shown says which cards are here, and nobody has looked."""
        if key == "catalog" and not self._has_looked and not self._workspace.devices:
            self._has_looked = True
            self._tasks.run(_KEY, self._look, self._workspace.note_devices, _pass_over)


def _pass_over(error: BaseException) -> None:
    """Know nothing of this machine where it cannot be looked at: the Monitor says why."""
    if not isinstance(error, PlannerError | OSError):
        raise error


def create(argv: Sequence[str]) -> tuple[QApplication, Window]:
    """Return the application and its window, shown; `argv` may name a plan or a model's file to open.

    Raises:
        CatalogError: If the catalog cannot be read.
    """
    with _everything_kept():
        return _create(argv)


def _create(argv: Sequence[str]) -> tuple[QApplication, Window]:
    app = _application(argv)
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
    window = Window(workspace, theme, tasks)
    _tidy_at_the_end(app, tasks, autosave, settings, diagnostics, Collector(app))
    theme.dress()
    window.show()
    _greet(window, diagnostics, argv)
    problems = [*([] if unread is None else [unread]), *autosave.unrestored]
    if problems:
        window.show_error(_as_one(problems))
    return app, window


def main(argv: Sequence[str] | None = None) -> int:
    """Run the window until it is closed; return the exit status."""
    try:
        app, window = create(sys.argv if argv is None else argv)
    except PlannerError as error:
        QMessageBox.critical(None, "GPU Planner", f"{error.message}\n\n{error.hint}".strip())
        return CANNOT_START
    # Once the window is on the screen, which it is when the first event is handled after it was shown.
    QTimer.singleShot(0, app, partial(import_soon, _NEXT, app))
    QTimer.singleShot(_LOOK_AFTER_MS, window, partial(_watch_for_cards, window))
    return app.exec()


@contextmanager
def _everything_kept() -> Iterator[None]:
    """Look for no unreachable cycles in what is made inside: it lives as long as the window, and is never looked at.

    What is made afterwards is the `Collector`'s.
    """
    gc.disable()
    try:
        yield
    except BaseException:
        gc.enable()
        raise
    gc.freeze()


def _watch_for_cards(window: Window) -> None:

    machine = Machine(window.workspace, window.tasks, parent=window)
    window.tab_shown.connect(machine.on_tab)
    machine.on_tab(window.tab.key)


def _application(argv: Sequence[str]) -> QApplication:
    existing = QApplication.instance()
    app = existing if isinstance(existing, QApplication) else QApplication(list(argv[:1]))
    app.setApplicationName("gpu-planner")
    app.setApplicationDisplayName("GPU Planner")
    app.setApplicationVersion(__version__)
    app.setDesktopFileName("gpu-planner")
    return app


def _tidy_at_the_end(
    app: QApplication,
    tasks: TaskRunner,
    autosave: Autosave,
    settings: SettingsStore,
    diagnostics: Diagnostics,
    collector: Collector,
) -> None:
    for step in (tasks.shutdown, autosave.close, settings.flush, diagnostics.uninstall, collector.close):
        app.aboutToQuit.connect(step)


def _as_one(problems: Sequence[PlannerError]) -> PlannerError:
    """Return what went wrong at the start as one error, as there is room for one across the window."""
    if len(problems) == 1:
        return problems[0]
    return PlannerError(
        "\n".join(problem.message for problem in problems),
        "\n".join(problem.hint for problem in problems if problem.hint),
    )


def _greet(window: Window, diagnostics: Diagnostics, argv: Sequence[str]) -> None:
    """Open what the command line names; say so if the last run broke off."""
    if diagnostics.crashed_before:
        window.show_error(
            PlannerError(
                "GPU Planner broke off the last time. Your plan is as you left it.",
                "Help › Open log folder has the reason, in crash-last.log.",
            )
        )
    unfinished = window.workspace.settings.current.monitor.unfinished
    if unfinished is not None and unfinished.left_over is not None:
        window.banner.show_notice(*unfinished_words(unfinished.left_over))
    if len(argv) > 1:
        QTimer.singleShot(0, window, lambda: window.documents.open(Path(argv[1])))
