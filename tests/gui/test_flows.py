"""What people ask the window: each question is walked by the keyboard, and its answer, computed by the core, is shown.

Questions and steps stand in `flows.toml`; the function of a flow's name here computes what the window should say.
"""

import html
import json
import re
import tomllib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from fake_nvml_kit import A, FakeNvml, card
from huggingface_hub import constants
from made_files import TINY
from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QApplication,
    QComboBox,
    QFileDialog,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QWidget,
)
from pytestqt.qtbot import QtBot

from planner.cost.terms import BuyTerms, CostTerms, DailyHours, Run, Service
from planner.gui.app import CardDetector
from planner.gui.monitor.controller import DEMO
from planner.gui.tab import TABS
from planner.gui.window import MainWindow
from planner.gui.workspace import Workspace
from planner.models.load import load_model_file
from planner.monitor.diagnosis.health_rules import HEALTH_RULES
from planner.monitor.diagnosis.verdict import VerdictKind
from planner.monitor.recording.recording import read_recording
from planner.monitor.recording.summary import summarize_recording
from planner.plan.catalog import Catalog
from planner.plan.cost import evaluate_cost
from planner.plan.evaluate import evaluate
from planner.plan.plan import ModelChoice, Plan
from planner.plan.recommend.option import Wish
from planner.plan.recommend.recommend import recommend
from planner.plan.solve import smallest_card
from planner.present import format as fmt
from planner.present.cost.decision_card import decision_view
from planner.present.cost.recommendation import award_views
from planner.present.memory.verdict import verdict_phrase
from planner.present.monitor.recording import summary_lines
from planner.workload.workload import Inference, Training

FLOWS = tomllib.loads(Path(__file__).with_name("flows.toml").read_text(encoding="utf-8"))
TODAY = datetime.now(UTC).date()
LLAMA_8B, LLAMA_70B, MISTRAL_24B = (
    ModelChoice(id=name)
    for name in ("meta-llama/Llama-3.1-8B", "meta-llama/Llama-3.1-70B", "mistralai/Mistral-Small-24B-Instruct-2501")
)
AT_HOME = Plan(model=LLAMA_8B, workload=Inference(), gpu="rtx-4090")
EIGHT_H100 = Plan(model=LLAMA_70B, workload=Inference(), gpu="h100-sxm5-80gb", count=8)
OVERHEATED = 0x40
"""The reason for low clocks that a driver gives a card which is too hot."""
OWN_MODEL, RECORDING = "tiny/config.json", "run.gpurec"
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
        texts += [made.currentText() for made in shown if isinstance(made, QComboBox)]
        texts += [made.toPlainText() for made in shown if isinstance(made, QPlainTextEdit)]
        texts += [made.accessibleName() for made in shown]
        return html.unescape(re.sub(r"<[^>]*>", "", "\n".join(texts))).translate(SPACES)

    def _type(self, words: str) -> None:
        self._press("Ctrl+K")
        self._write(words)
        self._press("Return")

    def _press(self, keys: str) -> None:
        pressed = QKeySequence(keys)[0]
        self._qtbot.keyClick(self._focused(), pressed.key(), pressed.keyboardModifiers())

    def _write(self, text: str) -> None:
        self._qtbot.keyClicks(self._focused(), text[0])  # may open a list, which takes the others
        self._qtbot.keyClicks(self._focused(), text[1:])

    def _see(self, text: str) -> None:
        self._qtbot.waitUntil(lambda: text in self.read())

    def _choose(self, what: str) -> None:
        name, _, value = what.partition(" = ")
        box = self._find(name, QComboBox)
        box.setFocus()
        self._qtbot.keyClicks(box, value)

    def _focused(self) -> QWidget:
        QTest.qWait(1)
        if QApplication.focusWidget() is None:  # after a popup: a window manager would do it
            self.window.activateWindow()
        self._qtbot.waitUntil(lambda: QApplication.focusWidget() is not None)
        focused = QApplication.focusWidget()
        assert focused is not None
        return focused

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

        self._qtbot.waitUntil(lambda: bool(found()))
        return found()[0]


@pytest.fixture
def person(
    qtbot: QtBot, workspace: Workspace, theme, tasks, tmp_path, monkeypatch, own_state_dir, nvml_library
) -> Iterator[Person]:
    """A person at the Start page, without a network, on a machine with a card that is too hot."""
    driver = FakeNvml(tmp_path, nvml_library)
    driver.say(card(0, A, reasons=OVERHEATED, temperature__0=92))
    for name, value in driver.environment.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "tiny").mkdir()
    (tmp_path / OWN_MODEL).write_text(json.dumps(TINY))
    (tmp_path / RECORDING).write_bytes(DEMO.read_bytes())

    def choose_file(_parent: QWidget, title: str, *_others: str) -> tuple[str, str]:
        return str(tmp_path / (RECORDING if title == "Replay" else OWN_MODEL)), ""

    monkeypatch.setattr(QFileDialog, "getOpenFileName", choose_file)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    window = MainWindow(workspace, theme, tasks, TABS, page="start")
    qtbot.addWidget(window, before_close_func=lambda _window: workspace.undo_stack.setClean())
    window.show()
    with qtbot.waitActive(window):
        window.activateWindow()
    CardDetector(workspace, tasks, lambda: (), window).on_tab("start")
    yield Person(window, qtbot)
    workspace.undo_stack.setClean()
    window.close()


def _memory_of(plan: Plan, catalog: Catalog) -> tuple[str, ...]:
    memory = evaluate(plan, catalog).memory
    assert memory is not None
    return (verdict_phrase(memory), fmt.size(memory.total_bytes))


def _decision_on(plan: Plan, catalog: Catalog) -> tuple[str, ...]:
    evaluation = evaluate(plan, catalog)
    view = decision_view(evaluate_cost(evaluation, catalog, TODAY), evaluation, catalog, TODAY)
    assert not view.is_blocked
    return (view.headline, view.subject, *(text for row in view.rows for text in (row.renting, row.buying)))


def one_4090_at_home(catalog: Catalog, _folder: Path) -> tuple[str, ...]:
    return _memory_of(AT_HOME.evolve(workload=Inference(context_length=32_768)), catalog)


def qlora_of_8b_under_20_usd(catalog: Catalog, _folder: Path) -> tuple[str, ...]:
    workload = Training(method="qlora", activation_checkpointing="full", micro_batch=1)
    terms = CostTerms(job=Run(amount=50e6, unit="tokens"), buy=BuyTerms(place="desk"))
    plan = AT_HOME.evolve(workload=workload, cost=terms)
    headline = _decision_on(plan, catalog)[0]
    assert float(headline.partition(" ")[0].removeprefix("$")) < 20
    found = recommend(plan, catalog, TODAY, Wish(budget_usd=20.0))
    return (headline, *(text for award in award_views(found, catalog.hardware) for text in (award.title, award.why)))


def eight_h100_for_three_years(catalog: Catalog, _folder: Path) -> tuple[str, ...]:
    always = DailyHours(hours_per_day=24.0, days_per_week=7.0)
    return _decision_on(EIGHT_H100.evolve(cost=CostTerms(job=always, horizon_years=3.0)), catalog)


def serving_70b_to_50_users(catalog: Catalog, _folder: Path) -> tuple[str, ...]:
    plan = EIGHT_H100.evolve(workload=Inference(batch=50, profile="vllm"))
    service = CostTerms(job=Service(requests_per_day=10_000))
    return (*_memory_of(plan, catalog)[:1], *_decision_on(plan.evolve(cost=service), catalog))


def which_card_under_700_usd(catalog: Catalog, _folder: Path) -> tuple[str, ...]:
    plan = Plan(model=MISTRAL_24B, workload=Inference(weights="Q4_K_M"))
    cheap = (gpu for gpu in catalog.hardware.gpus if (gpu.launch_price_usd or 1e9) <= 700)
    fitting = [gpu for gpu in cheap if evaluate(plan.evolve(gpu=gpu.id), catalog).memory.verdict == "fits"]
    cheapest = min(fitting, key=lambda gpu: gpu.launch_price_usd)
    return (f"Cheapest: {cheapest.name}, {fmt.money(cheapest.launch_price_usd)}", "Price up to $700")


def i_own_it(catalog: Catalog, _folder: Path) -> tuple[str, ...]:
    return _decision_on(AT_HOME.evolve(cost=CostTerms(buy=BuyTerms(owned=True, place="desk"))), catalog)


def does_my_own_network_fit(catalog: Catalog, folder: Path) -> tuple[str, ...]:
    read = load_model_file(folder / OWN_MODEL)
    model = ModelChoice.of_file(read.name, read.architecture, read.path)
    return _memory_of(Plan(model=model, workload=Inference(), gpu="rtx-3090"), catalog)


def compare_two_plans(catalog: Catalog, _folder: Path) -> tuple[str, ...]:
    doubled = AT_HOME.evolve(workload=Inference(context_length=8192))
    return (*_memory_of(doubled, catalog), *_memory_of(AT_HOME, catalog)[1:])


def what_is_wrong_with_my_card_now(_catalog: Catalog, _folder: Path) -> tuple[str, ...]:
    rule = next(rule for rule in HEALTH_RULES if rule.kind is VerdictKind.THERMAL)
    advice = rule.advice[0]
    return (f"{fmt.capitalized(rule.title)}.", rule.sentence, f"Try first: {advice[:1].lower()}{advice[1:]}")


def read_a_recording(_catalog: Catalog, folder: Path) -> tuple[str, ...]:
    recording = read_recording(folder / RECORDING)
    return (f"Replay of {RECORDING}", *summary_lines(recording, summarize_recording(recording)))


def offline(_catalog: Catalog, _folder: Path) -> tuple[str, ...]:
    return ("switched off by HF_HUB_OFFLINE", "342 models are built in; or open a config.json")


def a_first_start_without_a_gpu(catalog: Catalog, _folder: Path) -> tuple[str, ...]:
    plan = AT_HOME.evolve(gpu=None)
    smallest = smallest_card(plan, catalog).value
    return (*_memory_of(plan, catalog), catalog.hardware.gpu(smallest).name, "Smallest GPU that fits")


@pytest.mark.parametrize("name", FLOWS)
def test_the_question_is_answered_in_the_window(name, person: Person, catalog: Catalog, qtbot: QtBot, tmp_path):
    expected: Callable[[Catalog, Path], tuple[str, ...]] = globals()[name]
    answers = [text.translate(SPACES) for text in expected(catalog, tmp_path)]
    assert answers
    person.walk(FLOWS[name]["steps"])

    def is_answered() -> None:
        text = person.read()
        assert [answer for answer in answers if answer not in text] == [], FLOWS[name]["question"]

    qtbot.waitUntil(is_answered)
