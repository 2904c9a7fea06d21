"""The figures and amounts of renting and owning, and their comparison with the pinned plan."""

from html import escape
from typing import Final, NamedTuple

from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QLabel, QToolButton, QWidget

from planner.cost.estimate import CostEstimate
from planner.cost.result import MoneyTerm
from planner.cost.terms import Job
from planner.gui.tab import PinButtons
from planner.gui.theme import Theme, set_style_role
from planner.gui.widgets.buttons import link_button
from planner.gui.widgets.labels import colored, fact_rows, make_label, table_row
from planner.gui.widgets.layout import STRETCH, in_column, in_grid, in_row
from planner.gui.workspace import Workspace
from planner.plan.plan import Plan
from planner.present import format as fmt
from planner.present.cost.amounts import MoneyRow, money_rows
from planner.present.cost.decision import side_rows
from planner.present.cost.rent_or_buy import ComparedPlan, FigureRow, rent_or_buy_rows, scenario_rows
from planner.present.cost.summary import running_period

_RIGHT: Final = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_TITLE, _AMOUNT, _CERTAINTY = range(3)


class FigureGrid(QWidget):
    """Grid of figures: a header, and rows with a title and right-aligned figures."""

    def __init__(self, theme: Theme, columns: tuple[str, ...]) -> None:
        super().__init__()
        self._columns = columns
        self._rows: tuple[FigureRow, ...] = ()
        self._lines: list[tuple[QLabel, ...]] = []
        self._grid = in_grid(self, across=theme.spacing.large, down=theme.spacing.tiny, stretched=0)
        self._headings = [make_label(name, font=theme.font(bold=True)) for name in columns]
        for index, heading in enumerate(self._headings, start=1):
            self._grid.addWidget(heading, 0, index, _RIGHT)

    @property
    def rows(self) -> tuple[FigureRow, ...]:
        """Return the displayed rows of figures."""
        return self._rows

    def set_columns(self, columns: tuple[str, ...]) -> None:
        """Change the texts of the column headings; the number of columns stays the same."""
        self._columns = columns
        for heading, name in zip(self._headings, columns, strict=True):
            heading.setText(name)

    def show_rows(self, rows: tuple[FigureRow, ...]) -> None:
        """Replace the rows of figures."""
        self._rows = rows
        while len(self._lines) < len(rows):
            self._add_row_labels()
        for index, line in enumerate(self._lines):
            row = rows[index] if index < len(rows) else None
            for label in line:
                label.setVisible(row is not None)
            if row is not None:
                line[0].setText(row.title)
                for label, cell in zip(line[1:], row.cells, strict=True):
                    label.setText(cell.text)
                    label.setToolTip(cell.origin)
        self.setAccessibleName("; ".join(_row_description(row, self._columns) for row in rows))

    def _add_row_labels(self) -> None:
        index = len(self._lines) + 1
        line = (make_label(role="muted", selectable=True), *(make_label(selectable=True) for _ in self._columns))
        for column, label in enumerate(line):
            self._grid.addWidget(label, index, column, _RIGHT if column else Qt.AlignmentFlag.AlignLeft)
        self._lines.append(line)


def _row_description(row: FigureRow, columns: tuple[str, ...]) -> str:
    figures = (f"{name.lower()} {cell.text}" for name, cell in zip(columns, row.cells, strict=True) if cell.text)
    return f"{row.title}: {', '.join(figures)}"


class AmountGroup(NamedTuple):
    """Group of amounts, such as the costs of buying, with a heading and their total as text."""

    heading: str
    total: str
    rows: tuple[MoneyRow, ...]


class _AmountLine(NamedTuple):
    """Widgets that show one amount: the button with its title, and labels."""

    button: QToolButton
    amount: QLabel
    certainty: QLabel
    detail: QLabel


class AmountList(QWidget):
    """List of amounts in groups; a click expands an amount to its details, which stay open when the plan changes."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._open: set[str] = set()
        self._lines: list[_AmountLine] = []
        self._headings: list[tuple[QLabel, QLabel]] = []
        self._shown: list[tuple[str, MoneyRow]] = []
        self._grid = in_grid(self, across=theme.spacing.medium, down=0, stretched=_TITLE)
        theme.changed.connect(self._apply_theme)

    @property
    def rows(self) -> tuple[MoneyRow, ...]:
        """Return the shown amounts as rows."""
        return tuple(row for _, row in self._shown)

    def show_groups(self, groups: tuple[AmountGroup, ...]) -> None:
        """Show the groups in `groups` that have any amounts."""
        groups = tuple(group for group in groups if group.rows)
        self._shown = [(f"{group.heading}·{row.name}", row) for group in groups for row in group.rows]
        self._create_missing_widgets(len(groups))
        grid_row = index = 0
        for heading, group in zip(self._headings, groups, strict=False):
            self._show_heading(heading, group, grid_row)
            grid_row += 1
            for _ in group.rows:
                self._show_amount(index, grid_row)
                index, grid_row = index + 1, grid_row + 2
        for line in self._lines[index:]:
            for widget in line:
                widget.hide()
        for heading in self._headings[len(groups) :]:
            for label in heading:
                label.hide()

    def open_amount(self, name: str) -> str:
        """Expand the amount called `name`, and return its details."""
        index = next(index for index, (_, row) in enumerate(self._shown) if row.name == name)
        if not self._lines[index].button.isChecked():
            self._lines[index].button.click()
        return self._lines[index].detail.text()

    def _create_missing_widgets(self, group_count: int) -> None:
        while len(self._headings) < group_count:
            bold = self._theme.font(bold=True)
            self._headings.append((make_label(font=bold), make_label(font=bold)))
        while len(self._lines) < len(self._shown):
            self._lines.append(self._make_amount_line(len(self._lines)))

    def _show_heading(self, heading: tuple[QLabel, QLabel], group: AmountGroup, grid_row: int) -> None:
        for column, (label, text) in enumerate(zip(heading, (group.heading, group.total), strict=True)):
            label.setText(text)
            label.setContentsMargins(0, self._theme.spacing.small if grid_row else 0, 0, 0)
            self._grid.addWidget(label, grid_row, column, _RIGHT if column else Qt.AlignmentFlag.AlignLeft)
            label.show()

    def _show_amount(self, index: int, grid_row: int) -> None:
        key, row = self._shown[index]
        line = self._lines[index]
        self._grid.addWidget(line.button, grid_row, _TITLE, Qt.AlignmentFlag.AlignLeft)
        self._grid.addWidget(line.amount, grid_row, _AMOUNT, _RIGHT)
        self._grid.addWidget(line.certainty, grid_row, _CERTAINTY)
        self._grid.addWidget(line.detail, grid_row + 1, 0, 1, 3)
        line.button.setText(row.title)
        line.button.setChecked(key in self._open)
        line.button.setAccessibleName(f"{row.title}, {row.text}, {row.certainty}")
        origin = "\n".join(part for part in (row.range_text, row.date or "no date", row.source) if part)
        line.amount.setText(row.text)
        line.certainty.setText(row.certainty)
        for widget in (line.button, line.amount, line.certainty):
            widget.setToolTip(origin)
            widget.show()
        self._update_chevron(line.button)
        line.detail.setText(_amount_details_html(row, self._theme.color("muted").name()))
        line.detail.setVisible(key in self._open)

    def _make_amount_line(self, index: int) -> _AmountLine:
        button = QToolButton()
        button.setCheckable(True)
        button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        set_style_role(button, "section")
        button.clicked.connect(lambda opened: self._show_or_hide_details(index, opened))
        detail = QLabel(wordWrap=True, textFormat=Qt.TextFormat.RichText)
        detail.setFont(self._theme.font("small"))
        detail.setContentsMargins(self._theme.spacing.large, 0, 0, self._theme.spacing.small)
        detail.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        return _AmountLine(button, make_label(), make_label(role="muted"), detail)

    def _show_or_hide_details(self, index: int, opened: bool) -> None:
        (self._open.add if opened else self._open.discard)(self._shown[index][0])
        self._update_chevron(self._lines[index].button)
        self._lines[index].detail.setVisible(opened)

    def _update_chevron(self, button: QToolButton) -> None:
        button.setIcon(self._theme.icon("chevron-down" if button.isChecked() else "chevron-right", "muted"))

    @Slot()
    def _apply_theme(self) -> None:
        for line, (_, row) in zip(self._lines, self._shown, strict=False):
            self._update_chevron(line.button)
            line.detail.setText(_amount_details_html(row, self._theme.color("muted").name()))


def _amount_details_html(row: MoneyRow, muted: str) -> str:
    """Return an amount's formula, inputs and sources as rich text, with captions in the color `muted`."""
    facts = [("Formula", row.how), ("Range", row.range_text), ("Source", row.source), ("Date", row.date or "none")]
    symbols = [
        table_row(escape(name), escape(value), f"{escape(meaning)}<br>{colored(source, muted)}")
        for name, value, meaning, source in row.symbols
    ]
    return f"<table>{fact_rows(facts, muted)}</table><table>{''.join(symbols)}</table>"


class CostFigures(QWidget):
    """Figures of renting and owning that the decision does not show; below them, the amounts paid for both."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.summary = FigureGrid(theme, ("Rented", "Owned"))
        self.amounts = AmountList(theme)
        in_column(in_row(self.summary, STRETCH), self.amounts, STRETCH, owner=self, spacing=theme.spacing.medium)

    def show_estimate(self, estimate: CostEstimate) -> None:
        """Show the figures and amounts of `estimate`."""
        rent, own = estimate.result.rent, estimate.result.own
        rented = f"Rented, per {estimate.demand.period}"
        answer = estimate.result.answer
        above = set() if answer is None else {row.title for row in side_rows(answer)}
        self.summary.show_rows(tuple(row for row in rent_or_buy_rows(estimate) if row.title not in above))
        self.amounts.show_groups(
            (
                _amount_group(rented, rent.terms if rent else (), rent.usd if rent else 0),
                _amount_group("Bought", own.upfront if own else (), own.upfront_usd if own else 0),
                _amount_group(
                    f"Owned, per {running_period(estimate.demand)}",
                    own.monthly if own else (),
                    own.monthly_cash_usd if own else 0,
                ),
            )
        )


def _amount_group(heading: str, terms: tuple[MoneyTerm, ...], usd: float) -> AmountGroup:
    return AmountGroup(heading, fmt.money(usd), money_rows(terms))


class PinnedComparison(QWidget):
    """Comparison of the plan's cost with the pinned plan's; hidden while no plan is pinned."""

    def __init__(self, workspace: Workspace, theme: Theme) -> None:
        super().__init__()
        self.figures = FigureGrid(theme, ("This plan", "Pinned", "Difference"))
        self.subject = make_label(wrap=True)
        self.sentence = make_label(role="muted", wrap=True, selectable=True)
        self.copy = link_button("Copy", "Copy the comparison with the pinned plan as a table.")
        self.pin_buttons = PinButtons(workspace, theme, self.copy)
        self._workspace = workspace
        self.use_job = link_button("Use this job for both", "Give the pinned plan this plan's job and years.")
        self._unlike = QWidget()
        in_row(
            make_label("The jobs differ.", role="warn"),
            self.use_job,
            STRETCH,
            owner=self._unlike,
            spacing=theme.spacing.small,
        )
        self.use_job.clicked.connect(self._give_job_to_pinned)
        self.copy.clicked.connect(self.copy_table)
        in_column(
            in_row(
                (make_label("Comparison with the pinned plan", font=theme.font(bold=True)), 1),
                (self.pin_buttons, 0, Qt.AlignmentFlag.AlignVCenter),
                spacing=theme.spacing.small,
            ),
            self.subject,
            self.sentence,
            self._unlike,
            in_row(self.figures, STRETCH),
            owner=self,
            spacing=theme.spacing.tiny,
        )
        self.hide()

    def show_scenarios(self, current: ComparedPlan, pinned: ComparedPlan, subject: str, sentence: str) -> None:
        """Compare the current with the pinned plan, which `subject` describes and whose answer is `sentence`."""
        self.subject.setText(subject)
        self.sentence.setText(sentence)
        self.figures.show_rows(scenario_rows(current, pinned))
        self.pin_buttons.refresh()
        pinned_plan, plan = self._workspace.pin.plan, self._workspace.plan
        self._unlike.setVisible(pinned_plan is not None and _job(pinned_plan) != _job(plan))
        self.show()

    @Slot()
    def _give_job_to_pinned(self) -> None:
        """Give the pinned plan the current plan's job, for as many years."""
        pin, terms = self._workspace.pin, self._workspace.plan.cost
        if pin.plan is not None:
            cost = pin.plan.cost.evolve(job=terms.job, horizon_years=terms.horizon_years)
            with self._workspace.reporting():
                pin.put(pin.plan.evolve(cost=cost))

    @Slot()
    def copy_table(self) -> None:
        """Copy the figures of both plans, separated by tabs, to the clipboard."""
        rows = ((row.title, *(cell.text for cell in row.cells)) for row in self.figures.rows)
        header = ("", "This plan", "Pinned", "Difference")
        QGuiApplication.clipboard().setText("\n".join("\t".join(row) for row in (header, *rows)))


def _job(plan: Plan) -> tuple[Job, float]:
    """Return the job of a plan and for how many years it is compared."""
    return plan.cost.job, plan.cost.horizon_years
