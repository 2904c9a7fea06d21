"""The declared actions of the window."""

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices, QGuiApplication
from PySide6.QtWidgets import QDialog, QGridLayout, QMessageBox

from planner import __version__
from planner.gui.actions import Action, UnboundAction
from planner.gui.catalog.commands import CATALOG_COMMANDS
from planner.gui.monitor.commands import MONITOR_COMMANDS
from planner.gui.settings import Scheme
from planner.gui.tab import START
from planner.gui.widgets.dialogs import closing_buttons, open_once
from planner.gui.widgets.labels import make_label
from planner.gui.widgets.layout import in_column, in_row
from planner.gui.widgets.terms import EXPLAIN_KEY
from planner.paths import state_dir
from planner.present.format import integer

if TYPE_CHECKING:
    from planner.gui.window import MainWindow  # which imports this module

_MOST_SHORTCUT_ROWS: Final = 25
"""Rows of a column of shortcuts, so that the dialog fits a small screen."""


def declare(window: "MainWindow") -> list[Action]:
    """Return the actions of `window` in menu order, with the actions of each tab that the window has."""

    def own_window() -> "MainWindow":
        return window

    tabs = {place.name for place in window.places}
    cost_commands = _COST if "CostTab" in tabs else ()
    return [
        *(
            command.of(own_window)
            for command in (*_FILE, *_EDIT, *_tab_commands(window), *_VIEW, *_PLAN, *cost_commands, *_TAB)
        ),
        *(command.of(window.catalog) for command in CATALOG_COMMANDS if "CatalogTab" in tabs),
        *(command.of(window.monitor) for command in MONITOR_COMMANDS if "MonitorTab" in tabs),
        *(command.of(own_window) for command in _HELP),
    ]


def _undo_or_redo_text(verb: str, step: str) -> str:
    return f"{verb}: {step}" if step else verb


def _lasting_text(text: str) -> str:
    """Return the text of an action without its mnemonic, and without the step that it would undo or redo now."""
    return text.replace("&", "").partition(": ")[0].rstrip("…")


def _can_save(window: "MainWindow") -> bool:
    return window.workspace.path is None or window.workspace.modified


def _is_plan_traced(window: "MainWindow") -> bool:
    return window.workspace.evaluation.traced is not None


def _is_plan_estimated(window: "MainWindow") -> bool:
    return not _is_plan_traced(window)


def _has_pinned_plan(window: "MainWindow") -> bool:
    return window.workspace.pin.plan is not None


def _is_plan_shown(window: "MainWindow") -> bool:
    return window.tab.key != START.key


def _copy_result(window: "MainWindow") -> None:
    QGuiApplication.clipboard().setText(window.tab.copy_result())


def _open_launch_dialog(window: "MainWindow") -> None:
    from planner.gui.memory.launch_dialog import LaunchDialog  # rarely needed, and its programs take a while to load

    open_once(LaunchDialog(window.workspace, window.theme, window))


def _task_switch_text(window: "MainWindow") -> str:
    return "Fine-&tune this model" if window.workspace.plan.workload.task == "inference" else "&Run this model"


def _switch_task(window: "MainWindow") -> None:
    with window.workspace.reporting():
        window.workspace.set_goal("fine-tune" if window.workspace.plan.workload.task == "inference" else "run")


def _show_comparison_tab(window: "MainWindow") -> None:
    """Show a tab that compares the plan with the pinned plan: Cost if it is the current tab, else Memory."""
    if window.tab.key != "cost":
        window.show_tab("memory")


def _pin_plan(window: "MainWindow") -> None:
    _show_comparison_tab(window)
    with window.workspace.reporting():
        window.workspace.pin.put(window.workspace.plan)


def _swap_pinned_plan(window: "MainWindow") -> None:
    _show_comparison_tab(window)
    with window.workspace.reporting():
        window.workspace.pin.swap()


def _open_log_folder(_window: "MainWindow") -> None:
    QDesktopServices.openUrl(QUrl.fromLocalFile(str(state_dir() / "logs")))


def _show_manual(window: "MainWindow") -> None:
    """Open the manual at the page about the current tab."""
    from planner.gui.manual import Manual  # a start of the window does not wait for it

    open_once(Manual(window.theme, _MANUAL_PAGES.get(window.tab.key, "index.md"), window))


def _explain_focused(window: "MainWindow") -> None:
    window.explainer.explain_focused()


def _show_basics(window: "MainWindow") -> None:
    window.explainer.show_basics()


def _show_shortcuts(window: "MainWindow") -> None:
    """Show a dialog that lists the keyboard shortcuts by menu, in columns."""
    dialog, theme = QDialog(window), window.theme
    dialog.setWindowTitle("Keyboard shortcuts")
    with_shortcut = (action for action in window.commands.declared if action.shortcut)
    columns: list[QGridLayout] = []
    for menu, actions in groupby(with_shortcut, key=lambda action: action.menu.split("/")[0]):
        rows = [window.commands[action.id] for action in actions]
        if not columns or columns[-1].rowCount() + len(rows) > _MOST_SHORTCUT_ROWS:
            columns.append(QGridLayout())
            columns[-1].setHorizontalSpacing(theme.spacing.huge)
            columns[-1].setVerticalSpacing(theme.spacing.tiny)
        grid = columns[-1]
        grid.addWidget(make_label(menu, font=theme.font(bold=True)), grid.rowCount(), 0)
        for command in rows:
            row = grid.rowCount()
            grid.addWidget(make_label(_lasting_text(command.text())), row, 0)
            keys = ", ".join(key.toString(key.SequenceFormat.NativeText) for key in command.shortcuts())
            grid.addWidget(make_label(keys, "muted"), row, 1)
    for grid in columns:
        grid.setRowStretch(grid.rowCount(), 1)
    in_column(in_row(*columns, spacing=2 * theme.spacing.huge), closing_buttons(dialog), owner=dialog, margins=None)
    open_once(dialog)


def _show_about(window: "MainWindow") -> None:
    """Show the name, the version and the license of the program."""
    catalog = window.workspace.catalog
    box = QMessageBox(QMessageBox.Icon.NoIcon, "About GPU Planner", f"GPU Planner {__version__}", parent=window)
    box.setInformativeText(
        "Which GPU do I need, and does my model fit on it?\n\n"
        f"The catalog holds {integer(len(catalog.hardware.gpus))} accelerators and "
        f"{integer(len(catalog.models.records))} models, each figure with its source.\n\nApache License 2.0"
    )
    open_once(box)


_FILE: Final[tuple[UnboundAction["MainWindow"], ...]] = (
    UnboundAction("file.new", "&New plan", "File/1", lambda w: w.documents.new(), "Ctrl+N", "new"),
    UnboundAction("file.open", "&Open plan…", "File/1", lambda w: w.documents.choose_plan(), "Ctrl+O", "open"),
    UnboundAction(
        "file.open-model", "Open &model…", "File/1", lambda w: w.documents.choose_model(), "Ctrl+Shift+O", "model"
    ),
    UnboundAction(
        "file.open-folder", "Open model's &folder…", "File/1", lambda w: w.documents.choose_model_folder(), "Ctrl+Alt+M"
    ),
    UnboundAction(
        "file.open-hub", "Open from &Hugging Face…", "File/1", lambda w: w.documents.choose_hub_model(), "Ctrl+Alt+H"
    ),
    UnboundAction(
        "file.open-trace", "Open &trace…", "File/1", lambda w: w.documents.choose_trace(), "Ctrl+Alt+O", "trace"
    ),
    UnboundAction("file.save", "&Save", "File/2", lambda w: w.documents.save(), "Ctrl+S", "save", _can_save),
    UnboundAction("file.save-as", "Save &as…", "File/2", lambda w: w.documents.save_as(), "Ctrl+Shift+S"),
    UnboundAction(
        "file.save-trace",
        "Save trac&e…",
        "File/2",
        lambda w: w.documents.save_trace(),
        "Ctrl+Alt+S",
        "",
        _is_plan_traced,
    ),
    UnboundAction("file.recover", "Reco&ver plans…", "File/2", lambda w: w.recover_plans(), "Ctrl+Alt+B"),
    UnboundAction(
        "file.report",
        lambda w: "&Write report on both plans…" if _has_pinned_plan(w) else "&Write report…",
        "File/2",
        lambda w: w.documents.choose_report(),
        "Ctrl+Alt+E",
        "table",
        words="print PDF HTML Markdown export",
    ),
    UnboundAction(
        "file.start", "Start &page", "File/3", lambda w: _show_tab(START.key, w), "Ctrl+0", START.icon, _is_plan_shown
    ),
    UnboundAction("file.quit", "&Quit", "File/4", lambda w: w.close(), "Ctrl+Q"),
)
_EDIT: Final[tuple[UnboundAction["MainWindow"], ...]] = (
    UnboundAction(
        "edit.undo",
        lambda w: _undo_or_redo_text("&Undo", w.workspace.undo_stack.undoText()),
        "Edit/1",
        lambda w: w.workspace.undo_stack.undo(),
        "Ctrl+Z",
        "undo",
        lambda w: w.workspace.undo_stack.canUndo(),
    ),
    UnboundAction(
        "edit.redo",
        lambda w: _undo_or_redo_text("&Redo", w.workspace.undo_stack.redoText()),
        "Edit/1",
        lambda w: w.workspace.undo_stack.redo(),
        "Ctrl+Shift+Z; Ctrl+Y",
        "redo",
        lambda w: w.workspace.undo_stack.canRedo(),
    ),
    UnboundAction("edit.copy-result", "&Copy result", "Edit/2", _copy_result, "Ctrl+Shift+C", "copy"),
    UnboundAction("edit.search", "&Search", "Edit/2", lambda w: w.tab.focus_search(), "Ctrl+F", "search"),
)
_VIEW: Final[tuple[UnboundAction["MainWindow"], ...]] = (
    UnboundAction("view.palette", "Command &palette…", "View/3", lambda w: w.open_palette(), "Ctrl+K", "search"),
    UnboundAction("view.next-pane", "Ne&xt pane", "View/3", lambda w: w.go_to_next_pane(), "F6"),
)
_PLAN: Final[tuple[UnboundAction["MainWindow"], ...]] = (
    UnboundAction(
        "plan.model", "Choose &model…", "Plan/1", lambda w: w.plan_bar.pick_model(), "Ctrl+M", "model", _is_plan_shown
    ),
    UnboundAction(
        "plan.workload",
        "Change &workload…",
        "Plan/1",
        lambda w: w.plan_bar.edit_workload(),
        "Ctrl+L",
        "",
        _is_plan_shown,
    ),
    UnboundAction(
        "plan.card", "&Choose a GPU…", "Plan/1", lambda w: w.plan_bar.pick_card(), "Ctrl+G", "card", _is_plan_shown
    ),
    UnboundAction(
        "plan.preset", "Start from a rec&ipe…", "Plan/1", lambda w: w.navigator.start_from_recipe(), "Ctrl+Shift+R"
    ),
    UnboundAction("plan.swap-task", _task_switch_text, "Plan/2", _switch_task, "Ctrl+T", "swap", _is_plan_estimated),
    UnboundAction("plan.trace", "Trace a mo&dule…", "Plan/3", lambda w: w.navigator.trace(), "Ctrl+Shift+T", "trace"),
    UnboundAction(
        "plan.trace-script",
        "Tr&ace a script…",
        "Plan/3",
        lambda w: w.navigator.trace_script(),
        "Ctrl+Shift+Y",
        "trace",
        words="train.py torchrun accelerate Trainer Lightning",
    ),
    UnboundAction(
        "plan.check-estimate",
        "Chec&k the estimate with a trace",
        "Plan/3",
        lambda w: w.navigator.check_estimate(),
        "Ctrl+Shift+E",
        "check",
        _is_plan_estimated,
    ),
    UnboundAction(
        "plan.beside",
        "Share the GPUs with another &plan…",
        "Plan/3",
        lambda w: w.documents.choose_neighbour(),
        enabled_when=_is_plan_estimated,
        words="several models share one GPU fraction time slicing",
    ),
    UnboundAction(
        "plan.launch",
        "Launch &settings…",
        "Plan/3",
        _open_launch_dialog,
        enabled_when=_is_plan_estimated,
        words="run with vLLM llama-server Slurm Kubernetes files script command",
    ),
    UnboundAction(
        "plan.compare-log",
        "&Verify…",
        "Plan/3",
        lambda w: w.navigator.compare_with_log(),
        "Ctrl+Shift+L",
        "table",
        words="compare with a log, measure, benchmark, llama-bench, nvidia-smi",
    ),
    UnboundAction(
        "plan.trace-again",
        "Trace a&gain",
        "Plan/3",
        lambda w: w.navigator.trace_again(),
        "F5",
        "trace",
        _is_plan_traced,
    ),
    UnboundAction(
        "plan.trace-cancel",
        "Cance&l the trace",
        "Plan/3",
        lambda w: w.navigator.trace_cancel_requested.emit(),
        "Ctrl+.",
        "close",
        lambda w: w.workspace.is_tracing,
    ),
    UnboundAction("plan.pin", "Pin t&his plan to compare", "Plan/4", _pin_plan, "Ctrl+D"),
    UnboundAction(
        "plan.swap-pinned",
        "Swap with the pi&nned plan",
        "Plan/4",
        _swap_pinned_plan,
        "Ctrl+Shift+D",
        "swap",
        _has_pinned_plan,
    ),
    UnboundAction(
        "plan.unpin", "&Unpin the plan", "Plan/4", lambda w: w.workspace.pin.put(None), enabled_when=_has_pinned_plan
    ),
)
_COST: Final[tuple[UnboundAction["MainWindow"], ...]] = (
    UnboundAction(
        "plan.recommend",
        "Ch&oose hardware…",
        "Plan/6",
        lambda w: w.cost().choose_hardware(),
        "Ctrl+Shift+G",
        "card",
        lambda w: not w.workspace.plan.workload.gpus,
        words="which GPU card to rent or buy, recommend, cheapest",
    ),
    UnboundAction(
        "plan.prices",
        "Pric&es…",
        "Plan/6",
        lambda w: w.cost().show_prices(),
        "Ctrl+Shift+P",
        "cost",
        words="rental offers",
    ),
)
_TAB: Final[tuple[UnboundAction["MainWindow"], ...]] = (
    UnboundAction(
        "plan.find-cards",
        "&Find GPUs that fit",
        "Plan/5",
        lambda w: w.show_fitting_cards(),
        "Ctrl+Shift+F",
        "filter",
        words="which GPU card does it fit",
    ),
    UnboundAction(
        "plan.primary",
        lambda w: w.tab.primary_action or "Main action of the tab",
        "Plan/5",
        lambda w: w.tab.run_primary_action(),
        "Ctrl+Return",
        enabled_when=lambda w: bool(w.tab.primary_action),
    ),
)
_HELP: Final[tuple[UnboundAction["MainWindow"], ...]] = (
    UnboundAction("help.manual", "&Manual", "Help/1", _show_manual, "F1", "info", words="help offline internet"),
    UnboundAction("help.explain", "&Explain the focused term", "Help/1", _explain_focused, EXPLAIN_KEY),
    UnboundAction("help.basics", "GPU &basics", "Help/1", _show_basics, "", "card"),
    UnboundAction("help.shortcuts", "&Keyboard shortcuts", "Help/1", _show_shortcuts, "Ctrl+/", "keyboard"),
    UnboundAction("help.logs", "Open &log folder", "Help/1", _open_log_folder),
    UnboundAction("help.about", "&About GPU Planner", "Help/2", _show_about, icon="info"),
)
_MANUAL_PAGES: Final = {
    START.key: "first-steps.md",
    "catalog": "hardware.md",
    "memory": "memory.md",
    "cost": "cost.md",
    "monitor": "monitor.md",
}
"""Manual page about each tab, by the tab's key."""
_SCHEMES: Final[tuple[tuple[Scheme, str], ...]] = (("system", "&System"), ("light", "&Light"), ("dark", "&Dark"))


def _tab_commands(window: "MainWindow") -> Iterator[UnboundAction["MainWindow"]]:
    """Yield a command for each tab of `window` and for each color scheme."""
    titles = _with_mnemonics(place.title for place in window.places)
    for number, (place, text) in enumerate(zip(window.places, titles, strict=True), start=1):
        show, is_shown = partial(_show_tab, place.key), partial(_is_tab_shown, place.key)
        words = "rent or buy, price" if place.key == "cost" else ""
        yield UnboundAction(
            f"view.{place.key}", text, "View/1", show, f"Ctrl+{number}", place.icon, None, is_shown, words
        )
    for scheme, title in _SCHEMES:
        choose, is_chosen = partial(_choose_scheme, scheme), partial(_is_scheme_chosen, scheme)
        yield UnboundAction(f"view.theme-{scheme}", title, "View/Theme/1", choose, "", "theme", None, is_chosen)


def _show_tab(key: str, window: "MainWindow") -> None:
    window.show_tab(key)


def _is_tab_shown(key: str, window: "MainWindow") -> bool:
    return window.tab.key == key


def _choose_scheme(scheme: Scheme, window: "MainWindow") -> None:
    window.choose_scheme(scheme)


def _is_scheme_chosen(scheme: Scheme, window: "MainWindow") -> bool:
    return window.theme.scheme == scheme


def _with_mnemonics(titles: Iterable[str]) -> Iterator[str]:
    """Yield each title with `&` before its mnemonic: its first letter that no earlier title uses."""
    taken: set[str] = set()
    for title in titles:
        at = next(at for at, letter in enumerate(title) if letter.lower() not in taken)
        taken.add(title[at].lower())
        yield f"{title[:at]}&{title[at:]}"
