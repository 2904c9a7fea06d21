"""Every numeric field of the window reads forty spellings of numbers as the one parser does."""

from collections.abc import Iterator
from contextlib import suppress
from datetime import date
from pathlib import Path

import pytest
from PySide6.QtCore import QSignalBlocker
from PySide6.QtWidgets import QAbstractSpinBox, QApplication, QLineEdit, QWidget

import planner.gui
from planner.errors import SpecError
from planner.gui.catalog.own_cards import ChangeDialog, NewCardDialog
from planner.gui.cost.recommend_dialog import RecommendDialog
from planner.gui.memory.trace.dialog import TraceDialog
from planner.gui.monitor.settings import MonitorSettings
from planner.gui.monitor.settings_dialog import SettingsDialog
from planner.gui.plan_bar import PlanBar
from planner.gui.widgets.inputs.number_field import TypedNumber
from planner.gui.window import MainWindow
from planner.numbers import parse_number

SPELLINGS = (
    *("7", "128k", "32K", "30M", "1.2k", "1e5", "1E3", "1.5e2", "2048", "4,096", "4 096", "4\u2009096", "4_096"),
    *("4'096", "4\u2019096", "1,500", "1.500", "1.500.000", "1,500.5", "1.500,5", "1,5", "0,5", ".5", "5.", "-3"),
    *("\u22123", "+8", "½", "10²", "１２８", "٣٢", "8x2048", "8 × 2k", "2 GiB", "2GB", "2 g", "$1,200", "1.2k USD"),
    *("50 %", "450 W", "24h", "32k tokens", "2024", "1 50", "1,50,000", "4-8", "nan", "1e999", "many", "0x10"),
)
PLANS = (
    {"workload.task": "inference", "workload.profile": "vllm"},
    {"workload.task": "inference", "workload.profile": "llama.cpp"},
    {"workload.task": "training", "workload.method": "qlora"},
    {"count": 8, "workload.parallel.sharing": "manual"},
)


@pytest.fixture
def shown_window(qtbot, workspace, theme, tasks) -> MainWindow:
    window = MainWindow(workspace, theme, tasks)
    qtbot.addWidget(window, before_close_func=lambda _window: workspace.undo_stack.setClean())
    window.show()
    for key in ("memory", "catalog", "cost"):
        window.commands[f"view.{key}"].trigger()
    for changes in PLANS:
        workspace.answer("a plan", changes)
        window.commands["view.memory"].trigger()
    bar = window.findChild(PlanBar)
    bar.edit_workload()
    bar.pick_card()
    return window


def dialogs(window, workspace, theme, tasks) -> Iterator[QWidget]:
    gpu = workspace.catalog.hardware.gpus[0]
    yield ChangeDialog(theme, gpu, None, lambda _change: None, "2026-01-01", window)
    yield NewCardDialog(theme, gpu, lambda _gpu: None, "2026-01-01", window)
    yield TraceDialog(workspace, theme, window)
    yield SettingsDialog(MonitorSettings(), theme, window)
    yield RecommendDialog(workspace, theme, tasks, window, today=lambda: date(2026, 7, 1))


def numeric_fields(window: QWidget) -> list[TypedNumber]:
    return [field for field in window.findChildren(QWidget) if isinstance(field, TypedNumber)]


def answer_of_the_parser(field: TypedNumber, text: str) -> float | None:
    with suppress(SpecError):
        return parse_number(text, field.kind, field.minimum, field.maximum) * field.scale
    return None


def test_forty_spellings_in_every_numeric_field(shown_window, workspace, theme, tasks):
    opened = list(dialogs(shown_window, workspace, theme, tasks))
    fields = numeric_fields(shown_window)
    assert len(SPELLINGS) >= 40
    assert len(fields) > 60
    assert shown_window.findChildren(QAbstractSpinBox) == []
    for field in fields:
        edit, before = field.findChild(QLineEdit), field.value
        with QSignalBlocker(field):
            for text in SPELLINGS:
                edit.setText(text)
                edit.textEdited.emit(text)
                expected = answer_of_the_parser(field, text)
                case = (field.name, text)
                assert field.value == (before if expected is None else expected), case
                assert bool(field.problem) == (expected is None), case
                assert not field.problem or (field.name and field.problem.startswith(f"{field.name}: ")), case
                assert not field.problem or "Type " in field.problem, case
            field.set_value(before)
    for dialog in opened:
        dialog.close()
    QApplication.processEvents()


def test_no_other_widget_takes_numbers():
    sources = [path.read_text() for path in Path(planner.gui.__file__).parent.rglob("*.py")]
    assert not [text for text in sources if "SpinBox" in text or "IntValidator" in text or "DoubleValidator" in text]
