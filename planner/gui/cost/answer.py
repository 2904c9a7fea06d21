"""The cost answer: its sentence, the dates of its prices, the break-even, the duration, and notes."""

from datetime import date
from typing import NamedTuple

from PySide6.QtWidgets import QWidget

from planner.cost.estimate import CostEstimate, hybrid_of_plan
from planner.cost.result import CostResult
from planner.gui.theme import Theme, set_style_role
from planner.gui.widgets.labels import make_label
from planner.gui.widgets.layout import in_column
from planner.gui.widgets.section import Section
from planner.gui.widgets.status_icons import AGE_ROLES
from planner.plan.catalog import Catalog
from planner.plan.evaluate import Evaluation
from planner.plan.money import PlanCost, plan_throughput
from planner.present import format as fmt
from planner.present.cost.prices import Age, age_of, days_since
from planner.present.cost.rent_or_buy import rent_or_buy_rows
from planner.present.cost.summary import (
    answer_sentence,
    break_even_sentence,
    cost_terms,
    dates_sentence,
    flip_sentence,
    hybrid_sentence,
    own_sentence,
    rent_sentence,
)
from planner.present.cost.time import time_view
from planner.present.memory.verdict import hypothetical_note


class AnswerText(NamedTuple):
    """The texts of the answer: the sentence with its origin, the dates, further lines, and notes."""

    sentence: str
    origin: str = ""
    dates: str = ""
    age: Age = "undated"
    lines: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """Return all texts, one per line."""
        texts = (self.sentence, self.dates, *self.lines, *(f"- {note}" for note in self.notes))
        return "\n".join(filter(None, texts))


class CostAnswer(QWidget):
    """The answer's sentence, dates and lines, with its notes in a section; `add` appends a later line."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._sentence = make_label(selectable=True, font=theme.font("title", bold=True), wrap=True)
        self._dates = make_label(selectable=True, font=theme.font("small"), wrap=True)
        self._lines = make_label(selectable=True, wrap=True)
        self._note_lines = make_label(selectable=True, role="muted", wrap=True)
        self._notes = Section(theme, "Notes", self._note_lines)
        self._shown = AnswerText("")
        self._later = ""
        in_column(self._sentence, self._dates, self._lines, self._notes, owner=self, spacing=theme.spacing.tiny)

    @property
    def text(self) -> str:
        """Return all texts, one per line."""
        return "\n".join(filter(None, (self._shown.text, self._later)))

    @property
    def sentence(self) -> str:
        """Return the answer in one sentence."""
        return self._shown.sentence

    @property
    def age(self) -> Age:
        """Return the age class of the oldest price."""
        return self._shown.age

    def show_answer(self, answer: AnswerText) -> None:
        """Replace the displayed answer with `answer`."""
        self._shown, self._later = answer, ""
        self._sentence.setText(answer.sentence)
        self._sentence.setToolTip(answer.origin)
        self._dates.setText(answer.dates)
        self._dates.setVisible(bool(answer.dates))
        set_style_role(self._dates, AGE_ROLES[answer.age])
        self._show_lines()
        self._note_lines.setText("\n".join(answer.notes))
        self._notes.set_summary(" · ".join(answer.notes))
        self._notes.setVisible(bool(answer.notes))
        self.setAccessibleName(answer.sentence)

    def add(self, sentence: str) -> None:
        """Append a sentence to the shown answer."""
        self._later = sentence
        self._show_lines()

    def _show_lines(self) -> None:
        text = "\n".join(filter(None, (*self._shown.lines, self._later)))
        self._lines.setText(text)
        self._lines.setVisible(bool(text))


def answer_text(cost: PlanCost, evaluation: Evaluation, catalog: Catalog, today: date) -> AnswerText:
    """Return the texts about `cost` as of `today`; without an estimate, the reason."""
    time = (*hypothetical_note(evaluation.memory), *_time_lines(evaluation))
    if cost.estimate is None:
        return AnswerText(cost.reason, lines=time)
    estimate = cost.estimate
    result, gpu = estimate.result, evaluation.plan.gpu
    card = "" if gpu is None else catalog.hardware.gpu(gpu).name
    notes = (*(result.rent.notes if result.rent else ()), *(result.own.notes if result.own else ()), *result.notes)
    if result.answer is None:
        first, *more = (fmt.sentence(note) for note in result.notes) if result.notes else ("",)
        return AnswerText(first, lines=(*more, *time, *_rent_and_own_lines(result, estimate)))
    # The reason for a missing break-even is part of the answer's sentence.
    even = "" if result.answer.break_even_gpu_hours is None else break_even_sentence(result.break_even)
    flip = flip_sentence(result.answer, result.rent, result.own)
    rented, *owned = _rent_and_own_lines(result, estimate)
    lines = (" ".join(filter(None, (flip, even))), *time, rented, *_hybrid_lines(estimate, evaluation))
    return AnswerText(
        answer_sentence(result.answer, card),
        "\n".join(cell.origin for cell in rent_or_buy_rows(estimate)[0].cells),
        dates_sentence(result.answer, today, cost_terms(result)),
        _price_age(result.answer.oldest_price_date, today),
        tuple(filter(None, lines)),
        tuple(dict.fromkeys((*owned, *map(fmt.sentence, notes)))),
    )


def _time_lines(evaluation: Evaluation) -> tuple[str, ...]:
    """Return the time of a step or a request, or why it is unknown."""
    if evaluation.time is None:
        return ()
    view = time_view(evaluation.time)
    return (f"{view.answer} {view.reason}".strip(),)


def _rent_and_own_lines(result: CostResult, estimate: CostEstimate) -> tuple[str, ...]:
    rented = (rent_sentence(result.rent),) if result.rent else ()
    return (*rented, *((own_sentence(result.own, estimate.demand),) if result.own else ()))


def _hybrid_lines(estimate: CostEstimate, evaluation: Evaluation) -> tuple[str, ...]:
    terms = evaluation.plan.cost
    hybrid = hybrid_of_plan(estimate, terms, plan_throughput(evaluation))
    return () if hybrid is None else (hybrid_sentence(hybrid, terms.horizon_years),)


def _price_age(day: str | None, today: date) -> Age:
    return age_of(days_since(day, today))
