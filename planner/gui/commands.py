"""The declared list of everything the window can do."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QDesktopServices, QGuiApplication
from PySide6.QtWidgets import QDialog, QGridLayout, QMessageBox, QWidget

from planner import __version__
from planner.gui.actions import Action, ActionSet
from planner.gui.catalog import commands as catalog
from planner.gui.monitor import commands as monitor
from planner.gui.settings import Scheme
from planner.gui.theme import Theme
from planner.gui.widgets.dialogs import closing_buttons
from planner.gui.widgets.labels import make_label
from planner.gui.widgets.layout import in_column
from planner.gui.workspace import Workspace
from planner.paths import state_dir
from planner.present.format import integer

if TYPE_CHECKING:
    from planner.gui.window import Window

_SCHEMES: tuple[tuple[Scheme, str], ...] = (("system", "&System"), ("light", "&Light"), ("dark", "&Dark"))


def show_shortcuts(actions: ActionSet, theme: Theme, parent: QWidget) -> QDialog:
    """Show every action that has a key, menu by menu."""
    dialog = QDialog(parent)
    dialog.setWindowTitle("Keyboard shortcuts")
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    grid = QGridLayout()
    grid.setHorizontalSpacing(theme.spacing.huge)
    grid.setVerticalSpacing(theme.spacing.tiny)
    menu = ""
    for action in actions.declared:
        if not action.shortcut:
            continue
        if (heading := action.menu.split("/")[0]) != menu:
            menu = heading
            grid.addWidget(make_label(menu, font=theme.font(bold=True)), grid.rowCount(), 0)
        row = grid.rowCount()
        made = actions[action.id]
        grid.addWidget(make_label(made.text().replace("&", "").rstrip("…")), row, 0)
        keys = ", ".join(key.toString(key.SequenceFormat.NativeText) for key in made.shortcuts())
        grid.addWidget(make_label(keys, "muted"), row, 1)
    _finish(dialog, grid)
    return dialog


def show_about(cards: int, models: int, parent: QWidget) -> QMessageBox:
    """Show what the program is and which version this is."""
    text = (
        "Which GPU do I need, and does my model fit it?\n\n"
        f"The catalog holds {integer(cards)} accelerators and {integer(models)} models, "
        "each figure with its source.\n\nApache License 2.0"
    )
    box = QMessageBox(QMessageBox.Icon.NoIcon, "About GPU Planner", f"GPU Planner {__version__}", parent=parent)
    box.setInformativeText(text)
    box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    box.open()
    return box


def _finish(dialog: QDialog, grid: QGridLayout) -> None:
    in_column(grid, closing_buttons(dialog), owner=dialog, margins=None)
    dialog.open()


def declare(window: "Window") -> list[Action]:
    """Return the actions of `window`, menu by menu."""
    return [
        *_file(window),
        *_edit(window),
        *_view(window),
        *_plan(window),
        *catalog.declare(window),
        *monitor.declare(window),
        *_help(window),
    ]


def _file(window: "Window") -> list[Action]:
    files, workspace = window.documents, window.workspace
    return [
        Action("file.new", "&New plan", files.new, "File/1", "Ctrl+N", "new"),
        Action("file.open", "&Open plan…", files.choose_plan, "File/1", "Ctrl+O", "open"),
        Action("file.open-model", "Open &model…", files.choose_model, "File/1", "Ctrl+Shift+O", "model"),
        Action("file.open-hub", "Open from &Hugging Face…", files.choose_hub_model, "File/1", "Ctrl+Alt+H"),
        Action("file.open-trace", "Open &trace…", files.choose_trace, "File/1", "Ctrl+Alt+O", "trace"),
        Action("file.save", "&Save", files.save, "File/2", "Ctrl+S", "save", lambda: _has_news(workspace)),
        Action("file.save-as", "Save &as…", files.save_as, "File/2", "Ctrl+Shift+S"),
        Action(
            "file.save-trace",
            "Save trac&e…",
            files.save_trace,
            "File/2",
            "Ctrl+Alt+S",
            enabled_when=lambda: workspace.evaluation.traced is not None,
        ),
        Action("file.quit", "&Quit", window.close, "File/4", "Ctrl+Q"),
    ]


def _edit(window: "Window") -> list[Action]:
    stack = window.workspace.undo_stack
    return [
        Action(
            "edit.undo", lambda: _named("&Undo", stack.undoText), stack.undo, "Edit/1", "Ctrl+Z", "undo", stack.canUndo
        ),
        Action(
            "edit.redo",
            lambda: _named("&Redo", stack.redoText),
            stack.redo,
            "Edit/1",
            "Ctrl+Shift+Z; Ctrl+Y",
            "redo",
            stack.canRedo,
        ),
        Action("edit.copy-result", "&Copy result", partial(_copy_result, window), "Edit/2", "Ctrl+Shift+C", "copy"),
        Action("edit.search", "&Search", lambda: window.tab.focus_search(), "Edit/2", "Ctrl+F", "search"),
    ]


def _view(window: "Window") -> list[Action]:
    tabs = [
        Action(
            f"view.{place.key}",
            text,
            partial(window.show_tab, place.key),
            "View/1",
            f"Ctrl+{number}",
            place.icon,
            checked_when=partial(_is_shown, window, place.key),
        )
        for number, (place, text) in enumerate(
            zip(window.places, _with_keys(place.title for place in window.places), strict=True), start=1
        )
    ]
    schemes = [
        Action(
            f"view.theme-{scheme}",
            title,
            partial(window.choose_scheme, scheme),
            "View/Theme/1",
            icon="theme",
            checked_when=partial(_is_scheme, window, scheme),
        )
        for scheme, title in _SCHEMES
    ]
    return [
        *tabs,
        *schemes,
        Action("view.palette", "Command &palette…", window.open_palette, "View/3", "Ctrl+K", "search"),
    ]


def _with_keys(titles: Iterable[str]) -> Iterator[str]:
    """Yield each title with a mark before its first letter that no title before it is found by."""
    taken: set[str] = set()
    for title in titles:
        at = next(at for at, letter in enumerate(title) if letter.lower() not in taken)
        taken.add(title[at].lower())
        yield f"{title[:at]}&{title[at:]}"


def _plan(window: "Window") -> list[Action]:
    bar = window.plan_bar
    return [
        Action("plan.model", "Choose &model…", bar.pick_model, "Plan/1", "Ctrl+M", "model"),
        Action("plan.workload", "Change &workload…", bar.edit_workload, "Plan/1", "Ctrl+L"),
        Action("plan.card", "Choose &card…", bar.pick_card, "Plan/1", "Ctrl+G", "card"),
        Action("plan.preset", "Start from a rec&ipe…", window.start_from_recipe, "Plan/1", "Ctrl+Shift+R"),
        *_tracing(window),
        *_comparing(window),
        *_paying(window),
        Action(
            "plan.find-cards", "&Find cards that fit", window.show_fitting_cards, "Plan/5", "Ctrl+Shift+F", "filter"
        ),
        Action(
            "plan.primary",
            lambda: window.tab.primary_action or "No main action here",
            lambda: window.tab.run_primary_action(),
            "Plan/5",
            "Ctrl+Return",
            enabled_when=lambda: bool(window.tab.primary_action),
        ),
    ]


def _tracing(window: "Window") -> list[Action]:
    workspace = window.workspace

    def traced() -> bool:
        return workspace.evaluation.traced is not None

    def estimated() -> bool:
        return not traced()

    return [
        Action(
            "plan.swap-task",
            lambda: _swap_text(workspace),
            partial(_swap_task, workspace),
            "Plan/2",
            "Ctrl+T",
            "swap",
            enabled_when=estimated,
        ),
        Action("plan.trace", "Trace a mo&dule…", window.trace_module, "Plan/3", "Ctrl+Shift+T", "trace"),
        Action(
            "plan.check-estimate",
            "Chec&k the estimate by a trace",
            window.check_estimate,
            "Plan/3",
            "Ctrl+Shift+E",
            "check",
            enabled_when=estimated,
        ),
        Action(
            "plan.compare-log",
            "Com&pare with a log…",
            window.compare_with_log,
            "Plan/3",
            "Ctrl+Shift+L",
            "table",
        ),
        Action("plan.trace-again", "Trace a&gain", window.trace_again, "Plan/3", "F5", "trace", enabled_when=traced),
        Action(
            "plan.trace-cancel", "Cance&l the trace", workspace.trace_cancel_requested.emit, "Plan/3", "Ctrl+.", "close"
        ),
    ]


def _comparing(window: "Window") -> list[Action]:
    pin = window.workspace.pin

    def pinned() -> bool:
        return pin.plan is not None

    return [
        Action("plan.pin", "Pin t&his plan to compare", partial(_pin_plan, window), "Plan/4", "Ctrl+D"),
        Action(
            "plan.swap-pinned",
            "Swap with the pi&nned plan",
            partial(_swap_pinned, window),
            "Plan/4",
            "Ctrl+Shift+D",
            "swap",
            enabled_when=pinned,
        ),
        Action("plan.unpin", "&Unpin the plan", partial(pin.put, None), "Plan/4", enabled_when=pinned),
    ]


def _paying(window: "Window") -> list[Action]:
    if not any(place.key == "cost" for place in window.places):
        return []
    return [
        Action(
            "plan.recommend",
            "Ch&oose hardware for me…",
            lambda: window.cost().choose_hardware(),
            "Plan/6",
            "Ctrl+Shift+G",
            "card",
            enabled_when=lambda: not window.workspace.plan.workload.gpus,
        ),
        Action("plan.prices", "Pric&es…", lambda: window.cost().show_prices(), "Plan/6", "Ctrl+Shift+P", "cost"),
    ]


def _help(window: "Window") -> list[Action]:
    return [
        Action("help.shortcuts", "&Keyboard shortcuts", window.show_shortcuts, "Help/1", "F1", "keyboard"),
        Action("help.logs", "Open &log folder", _open_logs, "Help/1"),
        Action("help.about", "&About GPU Planner", window.show_about, "Help/2", icon="info"),
    ]


def _named(verb: str, step: Callable[[], str]) -> str:
    return f"{verb} {step()}".strip()


def _has_news(workspace: Workspace) -> bool:
    return workspace.path is None or workspace.modified


def _is_shown(window: "Window", key: str) -> bool:
    return window.tab.key == key


def _is_scheme(window: "Window", scheme: Scheme) -> bool:
    return window.theme.scheme == scheme


def _copy_result(window: "Window") -> None:
    QGuiApplication.clipboard().setText(window.tab.copy_result())


def _swap_text(workspace: Workspace) -> str:
    return "&Train this model" if workspace.plan.workload.task == "inference" else "&Run this model"


def _swap_task(workspace: Workspace) -> None:
    task = "training" if workspace.plan.workload.task == "inference" else "inference"
    with workspace.reporting():
        workspace.answer("task", {"workload.task": task})


def _pin_plan(window: "Window") -> None:
    _show_pinned(window)
    with window.workspace.reporting():
        window.workspace.pin.put(window.workspace.plan)


def _show_pinned(window: "Window") -> None:
    """Show a tab that sets the plan beside the pinned one; two do."""
    if window.tab.key != "cost":
        window.show_tab("memory")


def _swap_pinned(window: "Window") -> None:
    _show_pinned(window)
    with window.workspace.reporting():
        window.workspace.pin.swap()


def _open_logs() -> None:
    QDesktopServices.openUrl(QUrl.fromLocalFile(str(state_dir() / "logs")))
