"""Dialog that recommends hardware for the plan's job: requirements, all options, and three recommended options."""

from collections.abc import Callable
from datetime import UTC, date, datetime
from functools import partial
from threading import Event
from typing import Final

from PySide6.QtCore import QSize, QTimer, Signal, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QWidget

from planner.gui.cost.recommended_options import AwardCards, ParetoPanel
from planner.gui.tasks import TaskRunner
from planner.gui.theme import Theme
from planner.gui.widgets.buttons import check_box, link_button
from planner.gui.widgets.dialogs import closing_buttons
from planner.gui.widgets.hardware_search import CARD_COUNTS, RENT_OR_OWN_CHOICES, HardwareSearchDialog
from planner.gui.widgets.inputs.choice_field import ChoiceField
from planner.gui.widgets.inputs.labelled_form import LabelledForm
from planner.gui.widgets.inputs.number_field import DecimalField
from planner.gui.widgets.labels import make_label
from planner.gui.widgets.layout import STRETCH, in_column, in_row
from planner.gui.widgets.section import Section
from planner.gui.widgets.tables.record_table import RecordTable
from planner.gui.workspace import Workspace
from planner.numbers import HOURS, MONEY, WATTS
from planner.plan.recommend.option import HardwareOption, Recommendation, Wish
from planner.plan.recommend.recommend import recommend
from planner.plan.recommend.variants import apply_option, counts_tokens
from planner.present import format as fmt
from planner.present.cost.prices import age_phrase
from planner.present.cost.recommendation import (
    OptionRow,
    assumed_use_sentence,
    award_views,
    excluded_sentence,
    no_option_sentence,
    option_columns,
    option_rows,
)

_RENTAL_TYPES: Final = (
    (("on-demand",), "on demand"),
    (("on-demand", "spot"), "on demand or spot"),
    (("on-demand", "spot", "reserved-1y", "reserved-3y"), "any, including reserved"),
)
_COUNTS: Final = (
    *CARD_COUNTS,
    ((1, 2, 4, 8, 16, 32, 64), "up to 64"),
)
_NO_LIMIT: Final = "no limit"
_TIGHT_HINT: Final = "Include GPUs on which the plan probably fits, but in fewer than 19 of 20 cases."
_CHANGES_HINT: Final = "Where the plan does not fit, try checkpointing, an 8-bit optimizer and smaller micro-batches."
_BITS_HINT: Final = "Also try weights in fewer bits, in the plan's program or in llama.cpp, which can cost quality."
LOOK_MS: Final = 60
"""Time between two looks at what a search has found."""
_WIDTH: Final = 1200
_HEIGHT: Final = 620
_OPEN_HEIGHT: Final = 760
_HEIGHT_FOR_ALL: Final = 720
"""From this height the open table leaves room for the recommended options."""
_FRAME: Final = 48
"""Height of the title bar that the screen must hold, too."""
_SMALLEST: Final = QSize(820, 600)


class RequirementsForm(QWidget):
    """Form for the requirements; `changed` is emitted after each edit."""

    changed = Signal()

    def __init__(self, theme: Theme, period: str, wish: Wish, *, counts_tokens: bool, has_copies: bool) -> None:
        super().__init__()
        self.budget = DecimalField(0.01, 1e9, placeholder=_NO_LIMIT, kind=MONEY)
        self.max_price = DecimalField(0.01, 1e9, placeholder=_NO_LIMIT, kind=MONEY)
        self.deadline = DecimalField(0.01, 1e6, placeholder=_NO_LIMIT, kind=HOURS)
        self.power = DecimalField(1, 1e8, placeholder=_NO_LIMIT, kind=WATTS)
        self.speed = DecimalField(0.001, 1e12, placeholder=_NO_LIMIT)
        self.having = ChoiceField(theme, RENT_OR_OWN_CHOICES)
        self.modes = ChoiceField(theme, _RENTAL_TYPES)
        self.counts = ChoiceField(theme, _COUNTS)
        self.tight = check_box("Include &tight fits", _TIGHT_HINT)
        self.change = check_box("&Allow changes that keep the weights' precision", _CHANGES_HINT)
        self.quantize = check_box("Allow &quantized weights", _BITS_HINT)
        self._counts_tokens = counts_tokens
        limits, choices = LabelledForm(theme), LabelledForm(theme)
        unit = "tokens/s" if counts_tokens else "samples/s"
        per = " of an answer" if period == "month" and counts_tokens else ""
        limits.add(
            f"&Budget, $ per {period}", self.budget, lambda: None, f"Maximum cost per {period}, rented or owned."
        )
        limits.add("&Deadline, hours", self.deadline, lambda: None, "Maximum duration of a run.")
        limits.add(f"&Speed, {unit}", self.speed, lambda: None, f"Minimum speed{per}.")
        limits.add("&Power, W", self.power, lambda: None, "Maximum total board power of all GPUs.")
        choices.add("&Rent or own", self.having, lambda: ("rent", "own"), "Consider rented GPUs, owned GPUs, or both.")
        choices.add("Re&ntal type", self.modes, lambda: ("on-demand",), "Rental types to consider.")
        gpus = "&GPUs per copy" if has_copies else "&GPUs"
        choices.add(gpus, self.counts, lambda: (1, 2, 4, 8), "Numbers of GPUs to consider.")
        hint = "Maximum purchase price of all GPUs together, without the computers. It limits owned GPUs only."
        choices.add("Pri&ce if bought, $", self.max_price, lambda: None, hint)
        limits.set_row_visible(self.deadline, period == "run")
        for shown in (Wish(), wish):  # what the form does not offer stays at its default
            self.set_wish(shown)
        changes = in_column(self.change, self.quantize, self.tight, STRETCH, spacing=theme.spacing.small)
        columns = (in_column(form, STRETCH) for form in (limits, choices))
        in_row(*((column, 1) for column in columns), changes, owner=self, spacing=theme.spacing.huge)
        for field in (
            self.budget,
            self.max_price,
            self.deadline,
            self.speed,
            self.power,
            self.having,
            self.modes,
            self.counts,
        ):
            field.edited.connect(self._on_edited)
        for box in (self.tight, self.change, self.quantize):
            box.clicked.connect(self._on_edited)

    @property
    def wish(self) -> Wish:
        """Return the requirements from the form."""
        return Wish.model_validate(
            {
                "budget_usd": self.budget.value,
                "max_price_usd": self.max_price.value,
                "deadline_hours": self.deadline.value,
                "power_limit_watts": self.power.value,
                "having": self.having.value,
                "modes": self.modes.value,
                "counts": self.counts.value,
                "include_tight": self.tight.isChecked(),
                self._speed_field: self.speed.value,
                "change_plan": self.change.isChecked(),
                "quantize": self.quantize.isChecked(),
            }
        )

    @property
    def _speed_field(self) -> str:
        return "min_tokens_per_second" if self._counts_tokens else "min_samples_per_second"

    def set_wish(self, wish: Wish) -> None:
        """Show requirements; values that the form does not offer leave their field unchanged."""
        self.budget.set_value(wish.budget_usd)
        self.max_price.set_value(wish.max_price_usd)
        self.deadline.set_value(wish.deadline_hours)
        self.power.set_value(wish.power_limit_watts)
        for field, value, known in (
            (self.having, wish.having, RENT_OR_OWN_CHOICES),
            (self.modes, wish.modes, _RENTAL_TYPES),
            (self.counts, wish.counts, _COUNTS),
        ):
            if value in [option for option, _ in known]:
                field.set_value(value)
        self.speed.set_value(getattr(wish, self._speed_field))
        self.tight.setChecked(wish.include_tight)
        self.change.setChecked(wish.change_plan)
        self.quantize.setChecked(wish.quantize)

    @Slot()
    def _on_edited(self) -> None:
        self.quantize.setEnabled(self.change.isChecked())
        self.changed.emit()


class SearchProgress:
    """Results so far of a search in the background; the dialog reads them, since a worker must not use Qt."""

    def __init__(self) -> None:
        self.stop = Event()
        self.done, self.all = 0, 0
        self._found: Recommendation | None = None

    def count(self, done: int, total: int) -> None:
        """Note how much is searched."""
        self.done, self.all = done, total

    def find(self, found: Recommendation) -> None:
        """Note the options so far."""
        self._found = found

    def take(self) -> Recommendation | None:
        """Return the options so far, if there are more than at the last call."""
        found, self._found = self._found, None
        return found


class RecommendDialog(HardwareSearchDialog):
    """Non-modal dialog that compares all hardware for the job, and again when the requirements change."""

    task_key = "recommend"

    def __init__(
        self,
        workspace: Workspace,
        theme: Theme,
        tasks: TaskRunner,
        parent: QWidget,
        wish: Wish | None = None,
        today: Callable[[], date] = lambda: datetime.now(UTC).date(),
    ) -> None:
        job = workspace.plan.cost.job
        self._period = "run" if job.kind == "run" else "month"
        name = "All options within the limits, cheapest first"
        super().__init__(workspace, theme, tasks, parent, today, option_columns(self._period), name)
        self.recommendation: Recommendation | None = None
        self._listed: Recommendation | None = None
        self._rows: tuple[OptionRow, ...] = ()
        self.pareto = ParetoPanel(theme)
        self.assumed_use = make_label(assumed_use_sentence(workspace.plan.cost), font=theme.font(bold=True))
        self.change_job = link_button("Change the job", "Close, and enter the job in the Cost tab.")
        has_tokens = counts_tokens(workspace.plan, workspace.catalog)
        self.form = RequirementsForm(
            theme, self._period, wish or Wish(), counts_tokens=has_tokens, has_copies=job.kind == "service"
        )
        self.awards = AwardCards(theme)
        self.options = Section(theme, "All options", _in_frame(self.table, self.pareto, theme))
        self.options.hide()
        self._search = SearchProgress()
        self._look = QTimer(self, interval=LOOK_MS)
        self.setWindowTitle("Choose hardware")
        self.setMinimumSize(_SMALLEST)
        self._lay_out()
        self._look.timeout.connect(self._show_progress)
        self.form.changed.connect(self._rest.start)
        self.awards.use_requested.connect(self.use)
        self.options.toggled.connect(self._on_options_toggled)
        self.pareto.hovered.connect(self._describe)
        self.pareto.chosen.connect(lambda row: self.table.choose(row.id))
        self.change_job.clicked.connect(self._go_to_job)
        self._on_options_toggled(is_open=False)
        self._keep_enter_from_buttons()
        self.search()

    @Slot()
    def search(self) -> None:
        """Search all options again in the background; what is found is shown as it comes."""
        search = self._search = SearchProgress()
        plan, catalog, today = self._workspace.plan, self._workspace.catalog, self._today()
        stop, count, find = search.stop.is_set, search.count, search.find
        work = partial(recommend, plan, catalog, today, self.form.wish, stop=stop, progress=count, found=find)
        self._set_busy(busy=True)
        self._tasks.run(self.task_key, work, self._show_result, self._show_error, search.stop.set)

    @Slot(object)
    def use(self, option: HardwareOption) -> None:
        """Apply an option to the plan as one undo step, and close."""
        with self._workspace.step():
            plan = apply_option(option, self._workspace.plan, self._workspace.catalog)
            self._workspace.apply(
                "chosen hardware", gpu=plan.gpu, count=plan.count, workload=plan.workload, cost=plan.cost
            )
        self.accept()

    @Slot()
    def _go_to_job(self) -> None:
        self.reject()
        self._workspace.navigator.tab_requested.emit("cost")

    def texts(self) -> tuple[str, ...]:
        """Return the recommended options, or why there are none."""
        return self.sentence.text(), *self.awards.texts

    @property
    def has_found(self) -> bool:
        """Return whether the search has found anything so far."""
        return self.recommendation is not None

    @Slot()
    def end(self) -> None:
        """Cancel the search, and list what was found."""
        super().end()
        if self.recommendation is not None and self.recommendation is not self._listed:
            self._list_options(self.recommendation)

    def _set_busy(self, *, busy: bool) -> None:
        super()._set_busy(busy=busy)
        if busy:
            self._look.start()
        else:
            self._look.stop()
        if busy and self.recommendation is None:
            self._tell("Searching the first options…", "muted")

    @Slot()
    def _show_progress(self) -> None:
        self.progress.setRange(0, self._search.all)
        self.progress.setValue(self._search.done)
        found = self._search.take()
        if found is not None and found.cheapest is not None:
            self._show_awards(found)

    def _show_result(self, recommendation: Recommendation | None) -> None:
        if recommendation is not None:
            self._set_busy(busy=False)
            self._show_awards(recommendation)
            self._list_options(recommendation)

    def _list_options(self, recommendation: Recommendation) -> None:
        """Show all options in the table, whose texts for thousands of options take long."""
        self._listed = recommendation
        work = partial(option_rows, recommendation, self._workspace.catalog.hardware)
        self._tasks.run(self.task_key, work, self._show_options)

    def _show_options(self, rows: tuple[OptionRow, ...]) -> None:
        self._rows = rows
        self.options.set_title(f"All {fmt.integer(len(rows))} options")
        self.model.set_records(rows)
        if self.options.is_open:
            self.pareto.set_rows(rows)
        self.search_finished.emit()

    def _show_awards(self, recommendation: Recommendation) -> None:
        """Show the recommended options; the table of all options waits for the end of the search."""
        self.recommendation = recommendation
        self._tell(no_option_sentence(recommendation), "bad")
        self.awards.show_views(award_views(recommendation, self._workspace.catalog.hardware))
        self.options.setVisible(bool(recommendation.options))
        self._describe(None)

    @Slot(bool)
    def _on_options_toggled(self, is_open: bool) -> None:
        self._use.setVisible(is_open)
        self.awards.set_brief(is_open)
        self._make_room_for_options()
        self.resize(self.width() if self.isVisible() else _WIDTH, _OPEN_HEIGHT if is_open else _HEIGHT)
        self._stay_above_bottom()
        self._column.setStretchFactor(self.options, int(is_open))
        self._column.setStretch(self._column.indexOf(self.options) + 1, int(not is_open))
        if is_open:
            self.pareto.set_rows(self._rows)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Leave the table of all options, which has the recommended ones, too, the room that it needs."""
        super().resizeEvent(event)
        self._make_room_for_options()

    def _make_room_for_options(self) -> None:
        self.awards.setVisible(not self.options.is_open or self.height() >= _HEIGHT_FOR_ALL)

    def _stay_above_bottom(self) -> None:
        """Move up as far as the dialog reaches below the screen, and shrink it to the screen."""
        screen = self.screen().availableGeometry()
        self.resize(self.width(), min(self.height(), screen.height() - _FRAME))
        below = self.geometry().bottom() - screen.bottom()
        if self.isVisible() and below > 0:
            self.move(self.x(), max(self.y() - below, screen.top()))

    @Slot(object)
    def _describe(self, row: OptionRow | None) -> None:
        """Describe the hovered option; without an option, what was excluded and the age of the prices."""
        if row is not None:
            amounts = (column.text(row) for column in self.model.columns if column.key in ("usd", "hours", "pace"))
            self.about.setText(", ".join((row.cards, row.how, *amounts, fmt.date(row.option.price_date, fmt.NO_DATE))))
        elif self.recommendation is not None:
            self.about.setText(
                " ".join((excluded_sentence(self.recommendation), self._oldest_price_text(self.recommendation))).strip()
            )

    def _oldest_price_text(self, recommendation: Recommendation) -> str:
        oldest = recommendation.oldest_price_date
        if oldest is None:
            return ""
        days = (self._today() - date.fromisoformat(oldest)).days
        return f"Oldest price used: {fmt.date(oldest)}, {age_phrase(days)}."

    def _lay_out(self) -> None:
        space = self._theme.spacing
        self._column = in_column(
            in_row(self.assumed_use, self.change_job, STRETCH, spacing=space.medium),
            self.form,
            in_row((self.progress, 1), self.stop),
            self.sentence,
            self.awards,
            self.options,
            STRETCH,
            self.about,
            closing_buttons(self, self._use, self._copy),
            owner=self,
            margins=None,
            spacing=space.medium,
        )
        self.form.budget.setFocus()


def _in_frame(table: RecordTable, pareto: ParetoPanel, theme: Theme) -> QWidget:
    """Return the table beside the plot."""
    body = QWidget()
    in_row((table, 5), (pareto, 2), owner=body, spacing=theme.spacing.medium)
    return body
