"""Dialog that recommends hardware for the plan's job: requirements, all options, and three recommended options."""

from collections.abc import Callable
from datetime import UTC, date, datetime
from functools import partial
from threading import Event
from typing import Final

from PySide6.QtCore import QSize, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QCloseEvent, QGuiApplication
from PySide6.QtWidgets import QCheckBox, QDialog, QProgressBar, QPushButton, QWidget

from planner.errors import PlannerError
from planner.gui.recommend.pareto import ParetoPanel
from planner.gui.tasks import TaskRunner
from planner.gui.theme import Theme
from planner.gui.widgets.dialogs import closing_buttons
from planner.gui.widgets.inputs.choice_field import ChoiceField
from planner.gui.widgets.inputs.labelled_form import LabelledForm
from planner.gui.widgets.inputs.number_field import DecimalField
from planner.gui.widgets.labels import make_label
from planner.gui.widgets.layout import in_column, in_row
from planner.gui.widgets.tables.record_model import RecordTableModel
from planner.gui.widgets.tables.record_table import RecordTable
from planner.gui.workspace import Workspace
from planner.plan.recommend.option import HardwareOption, Recommendation, Wish
from planner.plan.recommend.recommend import apply_option, recommend
from planner.present import format as fmt
from planner.present.cost.prices import age_phrase
from planner.present.cost.recommendation import (
    OPTION_COLUMNS,
    AwardView,
    OptionRow,
    award_views,
    excluded_sentence,
    no_option_sentence,
    option_rows,
)
from planner.present.record_text import rows_to_csv

_RENT_OR_OWN_CHOICES: Final = ((("rent", "own"), "rented or owned"), (("rent",), "rented"), (("own",), "owned"))
_RENTAL_TYPES: Final = (
    (("on-demand",), "on demand"),
    (("on-demand", "spot"), "on demand or spot"),
    (("on-demand", "spot", "reserved-1y", "reserved-3y"), "any, including reserved"),
)
_CARD_COUNTS: Final = (
    ((1,), "one"),
    ((1, 2), "up to 2"),
    ((1, 2, 4), "up to 4"),
    ((1, 2, 4, 8), "up to 8"),
    ((1, 2, 4, 8, 16, 32, 64), "up to 64"),
)
_NO_LIMIT: Final = "no limit"
REST_MS: Final = 250
_KEY: Final = "recommend"
_SIZE: Final = QSize(1200, 760)
_SMALLEST: Final = QSize(820, 600)


class RequirementsForm(QWidget):
    """Form for the requirements; `changed` is emitted after each edit."""

    changed = Signal()

    def __init__(self, theme: Theme, period: str, wish: Wish) -> None:
        super().__init__()
        self.budget = DecimalField(0.01, 1e9, placeholder=_NO_LIMIT)
        self.deadline = DecimalField(0.01, 1e6, placeholder=_NO_LIMIT)
        self.power = DecimalField(1, 1e8, placeholder=_NO_LIMIT)
        self.having = ChoiceField(theme, _RENT_OR_OWN_CHOICES)
        self.modes = ChoiceField(theme, _RENTAL_TYPES)
        self.counts = ChoiceField(theme, _CARD_COUNTS)
        self.tight = QCheckBox("Include tight fits")
        left, right = LabelledForm(theme), LabelledForm(theme)
        left.add(f"&Budget, $ per {period}", self.budget, lambda: None, "Maximum cost.")
        left.add("&Deadline, hours", self.deadline, lambda: None, "Maximum duration of a run.")
        left.add("&Power, W", self.power, lambda: None, "Maximum total board power of all cards.")
        right.add("&Rent or own", self.having, lambda: ("rent", "own"), "Consider rented cards, owned cards, or both.")
        right.add("Rental &type", self.modes, lambda: ("on-demand",), "Rental types to consider.")
        right.add("&Cards", self.counts, lambda: (1, 2, 4, 8), "Numbers of cards to consider.")
        left.set_row_visible(self.deadline, period == "run")
        self.set_wish(wish)
        self._lay_out(theme, left, right)
        for field in (self.budget, self.deadline, self.power, self.having, self.modes, self.counts):
            field.edited.connect(self._on_edited)
        self.tight.clicked.connect(self._on_edited)

    @property
    def wish(self) -> Wish:
        """Return the requirements from the form."""
        return Wish.model_validate(
            {
                "budget_usd": self.budget.value,
                "deadline_hours": self.deadline.value,
                "power_limit_watts": self.power.value,
                "having": self.having.value,
                "modes": self.modes.value,
                "counts": self.counts.value,
                "include_tight": self.tight.isChecked(),
            }
        )

    def set_wish(self, wish: Wish) -> None:
        """Show requirements; values that the form does not offer leave their field unchanged."""
        self.budget.set_value(wish.budget_usd)
        self.deadline.set_value(wish.deadline_hours)
        self.power.set_value(wish.power_limit_watts)
        for field, value, known in (
            (self.having, wish.having, _RENT_OR_OWN_CHOICES),
            (self.modes, wish.modes, _RENTAL_TYPES),
            (self.counts, wish.counts, _CARD_COUNTS),
        ):
            if value in [option for option, _ in known]:
                field.set_value(value)
        self.tight.setChecked(wish.include_tight)

    @Slot()
    def _on_edited(self) -> None:
        self.changed.emit()

    def _lay_out(self, theme: Theme, left: LabelledForm, right: LabelledForm) -> None:
        in_column(
            in_row((left, 1), (right, 1), spacing=theme.spacing.large),
            self.tight,
            owner=self,
            spacing=theme.spacing.small,
        )


class AwardList(QWidget):
    """Three recommended options with their reasons; `use_requested` carries the option to use."""

    use_requested = Signal(object)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._views: tuple[AwardView, ...] = ()
        self._rows: list[tuple[QWidget, object]] = []
        self._column = in_column(owner=self, spacing=theme.spacing.small)

    @property
    def texts(self) -> tuple[str, ...]:
        """Return the recommended options as text."""
        return tuple(f"{view.award.capitalize()}: {view.sentence} {view.reason} {view.change}" for view in self._views)

    def show_views(self, views: tuple[AwardView, ...]) -> None:
        """Replace the recommended options."""
        self._views = views
        while self._column.count():
            item = self._column.takeAt(0)
            widget = item.widget() if item is not None else None
            if widget is not None:
                widget.deleteLater()
        for view in views:
            self._column.addWidget(self._award_row(view))

    def _award_row(self, view: AwardView) -> QWidget:
        line = QWidget()
        title = f"{view.award.capitalize()}: {view.sentence}"
        reason = " ".join(part for part in (view.reason, view.change) if part)
        words = in_column(
            make_label(title, font=self._theme.font(bold=True), wrap=True),
            make_label(reason, "muted", wrap=True),
            spacing=0,
        )
        use = QPushButton("Use this")
        use.setAccessibleName(f"Use the {view.award} one")
        option: HardwareOption = view.row.option
        use.clicked.connect(lambda: self.use_requested.emit(option))
        in_row((words, 1), (use, 0, Qt.AlignmentFlag.AlignTop), owner=line, spacing=self._theme.spacing.medium)
        return line


class RecommendDialog(QDialog):
    """Non-modal dialog that searches again when the requirements change; `search_finished` follows each search."""

    search_finished = Signal()

    def __init__(
        self,
        workspace: Workspace,
        theme: Theme,
        tasks: TaskRunner,
        parent: QWidget,
        wish: Wish | None = None,
        today: Callable[[], date] = lambda: datetime.now(UTC).date(),
    ) -> None:
        super().__init__(parent)
        self._today = today
        self._workspace, self._theme, self._tasks = workspace, theme, tasks
        self.recommendation: Recommendation | None = None
        self._rows: tuple[OptionRow, ...] = ()
        self.pareto = ParetoPanel(theme)
        self._period = "run" if workspace.plan.cost.job.kind == "run" else "month"
        self.form = RequirementsForm(theme, self._period, wish or Wish())
        self.nothing = make_label(role="bad", wrap=True)
        self.awards = AwardList(theme)
        self.model = RecordTableModel(OPTION_COLUMNS, lambda row: row.id, self)
        self.table = RecordTable(self.model, theme, name="All options within the limits, cheapest first")
        self.about = make_label(role="muted", font=theme.font("small"), wrap=True)
        self.progress = QProgressBar()
        self.progress.setRange(0, 0)
        self.progress.setTextVisible(False)
        self.progress.setAccessibleName("Searching")
        self.stop = QPushButton("&Stop")
        self._use = QPushButton("&Use the selected option")
        self._copy = QPushButton("Co&py")
        self._rest = QTimer(self, singleShot=True, interval=REST_MS)
        self.setWindowTitle("Choose for me")
        self.setMinimumSize(_SMALLEST)
        self._lay_out()
        self.resize(_SIZE)
        self._rest.timeout.connect(self.search)
        self.form.changed.connect(self._rest.start)
        self.awards.use_requested.connect(self.use)
        self.pareto.hovered.connect(self._describe)
        self.pareto.chosen.connect(lambda row: self.table.choose(row.id))
        self.stop.clicked.connect(self.end)
        self.table.record_activated.connect(lambda row: self.use(row.option))
        self.table.current_changed.connect(lambda row: self._use.setEnabled(row is not None))
        self._use.clicked.connect(self._use_selected)
        self._copy.clicked.connect(self.copy)
        self.search()

    @Slot()
    def search(self) -> None:
        """Search all options again in the background."""
        stop = Event()
        plan, catalog, today = self._workspace.plan, self._workspace.catalog, self._today()
        work = partial(recommend, plan, catalog, today, self.form.wish, stop.is_set)
        self._set_busy(busy=True)
        self._tasks.run(_KEY, work, self._show_recommendation, self._show_error, stop.set)

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
    def copy(self) -> None:
        """Copy the recommended options and the table to the clipboard."""
        columns = self.table.visible_columns
        rows = [tuple(column.header for column in columns)]
        rows += [tuple(column.text(row) for column in columns) for row in self.model.records]
        QGuiApplication.clipboard().setText("\n".join((*self.awards.texts, self.nothing.text(), rows_to_csv(rows))))

    def closeEvent(self, event: QCloseEvent) -> None:
        """Cancel the search."""
        self.end()
        super().closeEvent(event)

    def done(self, result: int) -> None:
        """Cancel the search."""
        self.end()
        super().done(result)

    @Slot()
    def end(self) -> None:
        """Cancel the search; the previous results stay."""
        self._rest.stop()
        self._tasks.cancel(_KEY)
        self._set_busy(busy=False)

    def _set_busy(self, *, busy: bool) -> None:
        for part in (self.progress, self.stop):
            part.setVisible(busy)

    def _show_recommendation(self, recommendation: Recommendation | None) -> None:
        if recommendation is None:
            return
        hardware = self._workspace.catalog.hardware
        self.recommendation, self._rows = recommendation, option_rows(recommendation, hardware)
        self._set_busy(busy=False)
        self.nothing.setText(no_option_sentence(recommendation, hardware))
        self.nothing.setVisible(bool(self.nothing.text()))
        self.awards.show_views(award_views(recommendation, self._rows))
        self.model.set_records(self._rows)
        self.pareto.set_rows(self._rows)
        self._describe(None)
        self.search_finished.emit()

    def _show_error(self, error: BaseException) -> None:
        self._set_busy(busy=False)
        if not isinstance(error, PlannerError):
            raise error
        self.nothing.setText(f"{error.message} {error.hint}".strip())
        self.nothing.setVisible(True)
        self.search_finished.emit()

    @Slot(object)
    def _describe(self, row: OptionRow | None) -> None:
        """Describe the hovered option; without an option, what was excluded and the age of the prices."""
        if row is not None:
            parts = (f"{row.cards}, {row.how}", *(column.text(row) for column in OPTION_COLUMNS[2:4]))
            self.about.setText(", ".join((*parts, fmt.date(row.option.price_date, fmt.NO_DATE))))
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

    @Slot()
    def _use_selected(self) -> None:
        row = self.model.find(self.table.current_id)
        if row is not None:
            self.use(row.option)

    def _lay_out(self) -> None:
        space = self._theme.spacing
        self._use.setEnabled(False)
        self._middle = in_row((self.table, 3), (self.pareto, 2), spacing=space.medium)
        buttons = closing_buttons(self, self._use, self._copy)
        in_column(
            self.form,
            in_row((self.progress, 1), self.stop),
            self.nothing,
            self.awards,
            (self._middle, 1),
            self.about,
            buttons,
            owner=self,
            margins=None,
            spacing=space.medium,
        )
