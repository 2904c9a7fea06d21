"""What people ask the window: each question is walked by the keyboard, and its answer, computed by the core, is shown.

Questions and steps stand in `flows.toml`; the function of a flow's name here computes what the window should say.
"""

import html
import json
import re
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from huggingface_hub import constants
from made_files import TINY
from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QApplication,
    QFileDialog,
    QInputDialog,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QWidget,
)
from pytestqt.qtbot import QtBot

from planner.gui.tab import TABS
from planner.gui.window import MainWindow
from planner.gui.workspace import SAMPLE_PLAN, Workspace
from planner.models.load import load_model_file
from planner.plan.catalog import Catalog
from planner.plan.evaluate import evaluate
from planner.plan.plan import ModelChoice, Plan
from planner.present import format as fmt
from planner.present.memory.verdict import verdict_phrase

FLOWS = tomllib.loads(Path(__file__).with_name("flows.toml").read_text(encoding="utf-8"))
LLAMA_70B = SAMPLE_PLAN.evolve(model=ModelChoice(id="meta-llama/Llama-3.1-70B"), gpu="h100-sxm5-80gb")
LONGEST_MS = 20_000
SPACES = str.maketrans({fmt.THIN: " ", "\u00a0": " "})


class Person:
    """Somebody with a keyboard in front of the window, who reads what stands in it."""

    def __init__(self, window: MainWindow, qtbot: QtBot) -> None:
        self.window, self._qtbot = window, qtbot

    def walk(self, steps: list[str]) -> None:
        """Take each step, in the form that `flows.toml` explains."""
        for step in steps:
            kind, _, what = step.partition(": ")
            getattr(self, f"_{kind}")(what)

    def read(self) -> str:
        """Return every text that is visible now, and what a screen reader says."""
        shown = [made for made in self.window.findChildren(QWidget) if made.isVisible()]
        texts = [made.text() for made in shown if isinstance(made, QLabel | QAbstractButton | QLineEdit)]
        texts += [made.toPlainText() for made in shown if isinstance(made, QPlainTextEdit)]
        texts += [made.accessibleName() for made in shown]
        return html.unescape(re.sub(r"<[^>]*>", "", "\n".join(texts))).translate(SPACES)

    def _type(self, words: str) -> None:
        self._press("Ctrl+K")
        field = QApplication.focusWidget()
        assert field is not None
        self._qtbot.keyClicks(field, words)
        self._qtbot.keyClick(field, Qt.Key.Key_Return)

    def _press(self, keys: str) -> None:
        QTest.keySequence(self.window, QKeySequence(keys))

    def _set(self, what: str) -> None:
        name, _, value = what.partition(" = ")
        field = self._find(name, QLineEdit)
        field.setFocus()
        field.selectAll()
        self._qtbot.keyClicks(field, value)
        self._qtbot.keyClick(field, Qt.Key.Key_Return)

    def _push(self, name: str) -> None:
        button = self._find(name, QAbstractButton)
        button.setFocus()
        self._qtbot.keyClick(button, Qt.Key.Key_Space)

    def _find(self, name: str, kind: type) -> QWidget:
        def found() -> list[QWidget]:
            named = (made for made in self.window.findChildren(kind) if made.accessibleName().startswith(name))
            return [made for made in named if made.isVisible()]

        self._qtbot.waitUntil(lambda: bool(found()), timeout=LONGEST_MS)
        return found()[0]


@pytest.fixture
def person(
    qtbot: QtBot, workspace: Workspace, theme, tasks, unstyled, tmp_path, monkeypatch, own_state_dir
) -> Iterator[Person]:
    """A person at the window with its own tabs, on a machine without cards and without a network."""
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (str(tmp_path / "config.json"), ""))
    (tmp_path / "config.json").write_text(json.dumps(TINY))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(QInputDialog, "getText", lambda *_: ("someone/model", True))
    with unstyled():
        window = MainWindow(workspace, theme, tasks, TABS)
    qtbot.addWidget(window, before_close_func=lambda _window: workspace.undo_stack.setClean())
    window.show()
    yield Person(window, qtbot)
    workspace.undo_stack.setClean()
    window.close()


def _memory_of(plan: Plan, catalog: Catalog) -> tuple[str, ...]:
    memory = evaluate(plan, catalog).memory
    assert memory is not None
    return (verdict_phrase(memory), fmt.size(memory.total_bytes))


def one_4090_at_home(catalog: Catalog, _folder: Path) -> tuple[str, ...]:
    longer = SAMPLE_PLAN.workload.evolve(context_length=32_768)
    return _memory_of(SAMPLE_PLAN.evolve(workload=longer, gpu="rtx-4090"), catalog)


def eight_h100(catalog: Catalog, _folder: Path) -> tuple[str, ...]:
    return _memory_of(LLAMA_70B.evolve(count=8), catalog)


def serving_70b_to_50_users(catalog: Catalog, _folder: Path) -> tuple[str, ...]:
    return _memory_of(LLAMA_70B.evolve(workload=SAMPLE_PLAN.workload.evolve(batch=50)), catalog)


def does_my_own_network_fit(catalog: Catalog, folder: Path) -> tuple[str, ...]:
    read = load_model_file(folder / "config.json")
    model = ModelChoice.of_file(read.name, read.architecture, read.path)
    return _memory_of(SAMPLE_PLAN.evolve(model=model), catalog)


def compare_two_plans(catalog: Catalog, _folder: Path) -> tuple[str, ...]:
    doubled = SAMPLE_PLAN.evolve(workload=SAMPLE_PLAN.workload.evolve(context_length=8192))
    return (*_memory_of(doubled, catalog), *_memory_of(SAMPLE_PLAN, catalog)[1:])


def offline(_catalog: Catalog, _folder: Path) -> tuple[str, ...]:
    return ("switched off by HF_HUB_OFFLINE", "Check the connection, or download the model")


@pytest.mark.parametrize("name", FLOWS)
def test_the_question_is_answered_in_the_window(name, person: Person, catalog: Catalog, qtbot: QtBot, tmp_path):
    expected: Callable[[Catalog, Path], tuple[str, ...]] = globals()[name]
    answers = [text.translate(SPACES) for text in expected(catalog, tmp_path)]
    assert answers
    person.walk(FLOWS[name]["steps"])

    def is_answered() -> None:
        text = person.read()
        assert [answer for answer in answers if answer not in text] == [], FLOWS[name]["question"]

    qtbot.waitUntil(is_answered, timeout=LONGEST_MS)
