"""Recommended options as cards side by side, and a plot of all options."""

from math import log10
from typing import ClassVar, Final

import numpy as np
from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal, Slot
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QFrame, QSizePolicy, QWidget

from planner.gui.plot.chart import Chart, ItemStyle, pg
from planner.gui.plot.labels import Floats, NameLayer, PointName
from planner.gui.plot.legend import Legend, LegendEntry
from planner.gui.plot.ticks import Ticks, log_ticks, money_label
from planner.gui.theme import Theme, set_style_role
from planner.gui.widgets.buttons import push_button
from planner.gui.widgets.labels import make_label
from planner.gui.widgets.layout import STRETCH, WidgetPool, in_column, in_row
from planner.plan.recommend.option import Acquisition, sure_options
from planner.present import format as fmt
from planner.present.cost.recommendation import AWARDS, AwardView, Meter, OptionRow

_ROLES: Final[dict[Acquisition, str]] = {"rent": "series-1", "own": "series-2"}
_SYMBOLS: Final[dict[Acquisition, str]] = {"rent": "o", "own": "s"}
_POINT_ALPHA: Final = 150
_POINT_SIZE: Final = 6
_AWARD_SIZE: Final = 12
_MARGIN_FRACTION: Final = 0.06
_LOWEST_USD: Final = 1e-6


class ParetoPlot(Chart):
    """Plot with a point for each option; a line joins the options that no other option beats in both time and cost."""

    PIXELS_PER_TICK: ClassVar = (44, 30)

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, "Speed or time vs. cost; the table shows the same figures")
        self._all: tuple[OptionRow, ...] = ()
        self.rows: tuple[OptionRow, ...] = ()
        self._xs = self._ys = np.zeros(0)
        self._hidden: frozenset[Acquisition] = frozenset()
        self._front = self._add_curve(ItemStyle("accent", 1.5, Qt.PenStyle.DashLine))
        self._points = {
            having: self._add_item(
                pg.ScatterPlotItem(size=_POINT_SIZE, symbol=symbol), ItemStyle(fill=_ROLES[having], alpha=_POINT_ALPHA)
            )
            for having, symbol in _SYMBOLS.items()
        }
        self._named = self._add_item(
            pg.ScatterPlotItem(size=_AWARD_SIZE, symbol="d"), ItemStyle("surface", 1, fill="accent")
        )
        self.names = NameLayer(self._item.getViewBox(), theme)
        # The width of the axes, and so the room for names, is known only after a resize.
        self._item.getViewBox().sigResized.connect(self._place_names)

    def set_data(self, data: tuple[OptionRow, ...]) -> None:
        """Show the options in `data` that may be recommended: others would seem to beat them."""
        sure = {option.key for option in sure_options([row.option for row in data])}
        self._all = tuple(row for row in data if row.id in sure)
        self._set_axis_titles(
            "Hours" if _has_hours(data) else _speed_title(data), f"USD per {data[0].period if data else 'run'}"
        )
        self._draw()

    @Slot(object)
    def hide_acquisitions(self, hidden: frozenset[Acquisition]) -> None:
        """Hide rented or owned options; `hidden` holds the hidden kinds of acquisition."""
        self._hidden = hidden
        self._draw()

    def log_position(self, row: OptionRow) -> tuple[float, float]:
        """Return an option's position on the axes, as base-10 logarithms of time or speed and of cost in USD."""
        slowness = row.option.slowness
        return log10(slowness if row.period == "run" else 1 / slowness), log10(max(row.option.usd, _LOWEST_USD))

    def _draw(self) -> None:
        self.rows = tuple(row for row in self._all if row.option.having not in self._hidden)
        self._xs, self._ys = self._coordinates(self.rows)
        for having, item in self._points.items():
            item.setData(*self._coordinates([row for row in self.rows if row.option.having == having]))
        self._front.setData(*self._coordinates(sorted((r for r in self.rows if r.is_unbeaten), key=self.log_position)))
        self._named.setData(*self._coordinates([row for row in self.rows if row.awards]))
        if self.rows:
            self._set_axis_ranges(_padded_range(self._xs), _padded_range(self._ys))
        self._place_ticks()
        self._place_names()

    def _coordinates(self, rows: "list[OptionRow] | tuple[OptionRow, ...]") -> tuple[Floats, Floats]:
        positions = np.array([self.log_position(row) for row in rows]).reshape(-1, 2)
        return positions[:, 0], positions[:, 1]

    def _axis_ticks(self, x_tick_count: int, y_tick_count: int) -> tuple[Ticks, Ticks] | None:
        if not self.rows:
            return None
        (left, right), (bottom, top) = self._item.getViewBox().viewRange()
        return log_ticks(left, right, x_tick_count), log_ticks(bottom, top, y_tick_count, money_label)

    @Slot()
    def _place_names(self) -> None:
        awarded = [row for row in self.rows if row.awards]
        labels = [PointName(", ".join(row.awards), *self.log_position(row), _AWARD_SIZE / 2) for row in awarded]
        self.names.place(labels, self._xs, self._ys, _POINT_SIZE / 2, needed=len(labels))

    def _point_at(self, position: QPointF) -> OptionRow | None:
        nearest = self._nearest_index(self._xs, self._ys, position)
        return None if nearest is None else self.rows[nearest]

    def _apply_theme(self) -> None:
        super()._apply_theme()
        self.names.update()


def _has_hours(rows: tuple[OptionRow, ...]) -> bool:
    """Return whether the options do a run, which takes a time, or work on without an end, at a speed."""
    return not rows or rows[0].period == "run"


def _speed_title(rows: tuple[OptionRow, ...]) -> str:
    return "Samples per second" if rows[0].option.relevant_tokens_per_second is None else "Tokens per second"


def _padded_range(values: Floats) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    margin = _MARGIN_FRACTION * max(high - low, 0.5)
    return low - margin, high + margin


_LEGEND: Final[dict[Acquisition, LegendEntry]] = {
    "rent": LegendEntry("rent", "re&nted", _ROLES["rent"], is_round=True),
    "own": LegendEntry("own", "&owned", _ROLES["own"]),
}
_SMALLEST_WIDTH: Final = 350


class ParetoPanel(QWidget):
    """Plot of time against cost with its legend; `hovered` carries the hovered row or None, `chosen` a clicked row."""

    hovered = Signal(object)
    chosen = Signal(object)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.plot: ParetoPlot | None = None
        self.legend = Legend(theme)
        self.setMinimumWidth(_SMALLEST_WIDTH)
        self._title = make_label(font=theme.font(bold=True))
        about = make_label(
            "Dashed: no other option is both faster and cheaper than these.", "muted", theme.font("small")
        )
        heading = in_row(self._title, (self.legend, 1), spacing=theme.spacing.large)
        self._column = in_column(heading, about, owner=self, spacing=theme.spacing.tiny)

    def set_rows(self, rows: tuple[OptionRow, ...]) -> None:
        """Show the options in `rows`; the first call imports the plotting library."""
        if self.plot is None:
            self.plot = ParetoPlot(self._theme)
            self.plot.hovered.connect(self.hovered)
            self.plot.chosen.connect(self.chosen)
            self.legend.toggled.connect(self.plot.hide_acquisitions)
            self._column.addWidget(self.plot, 1)
        self.legend.set_entries(
            tuple(entry for having, entry in _LEGEND.items() if any(row.option.having == having for row in rows))
        )
        self._title.setText("Time vs. cost" if _has_hours(rows) else "Speed vs. cost")
        self.plot.set_data(rows)


_BAR_HEIGHT: Final = 8
_LEAST_BAR: Final = 3
_NARROWEST: Final = 120
_MOST_CARDS: Final = len(AWARDS)


class AmountBar(QWidget):
    """A bar whose full length is the largest such amount of all cards."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._fraction = 0.0
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self.update)

    def show_fraction(self, fraction: float) -> None:
        """Show a fraction of the largest amount."""
        self._fraction = fraction
        self.update()

    def sizeHint(self) -> QSize:
        """Return the preferred size in pixels."""
        return QSize(_NARROWEST, _BAR_HEIGHT)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the amount on a track as long as the largest one."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        for width, role in ((self.width(), "hover"), (max(self.width() * self._fraction, _LEAST_BAR), "accent")):
            painter.setBrush(self._theme.color(role))
            painter.drawRoundedRect(QRectF(0, 0, width, self.height()), _BAR_HEIGHT / 2, _BAR_HEIGHT / 2)
        painter.end()


class AmountLine(QWidget):
    """An amount with its name, above its bar."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._label, self._text = make_label(role="muted"), make_label(selectable=True)
        self._bar = AmountBar(theme)
        heading = in_row(self._label, STRETCH, self._text, spacing=theme.spacing.small)
        in_column(heading, self._bar, owner=self, spacing=theme.spacing.tiny)

    def show_meter(self, meter: Meter) -> None:
        """Show an amount."""
        self._label.setText(meter.label)
        self._text.setText(meter.text)
        self._bar.show_fraction(meter.fraction)


class AwardCard(QFrame):
    """A recommended option; `use_requested` carries the option to use."""

    use_requested = Signal(object)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        set_style_role(self, "card")
        self.view: AwardView | None = None
        self._title = make_label(role="muted")
        self._cards = make_label(font=theme.font("title", bold=True), wrap=True, selectable=True)
        self._how = make_label(wrap=True, selectable=True)
        self._why = make_label(wrap=True, selectable=True)
        self._meters = [AmountLine(theme) for _ in range(2)]
        self._facts = make_label(role="muted", font=theme.font("small"), wrap=True, selectable=True)
        self._warnings = make_label(role="warn", font=theme.font("small"), wrap=True, selectable=True)
        self.use = push_button("Use this", "Make this option the plan", "primary")
        self.use.setAutoDefault(False)
        self.use.clicked.connect(self._on_used)
        space = theme.spacing
        heading = in_column(self._title, self._cards, spacing=space.tiny)
        in_column(
            in_row((heading, 1), (self.use, 0, Qt.AlignmentFlag.AlignTop), spacing=space.small),
            self._how,
            self._why,
            *self._meters,
            self._facts,
            self._warnings,
            STRETCH,
            owner=self,
            margins=(space.large, space.medium),
            spacing=space.small,
        )

    def set_brief(self, is_brief: bool) -> None:
        """Hide or show the trade-off, which the table tells, too."""
        self._why.setVisible(not is_brief)

    def show_view(self, view: AwardView) -> None:
        """Replace the option."""
        self.view = view
        self._title.setText(view.title)
        self._cards.setText(view.row.headline)
        self._how.setText(fmt.capitalized("; ".join(filter(None, (view.row.how, view.row.arrangement)))))
        self._why.setText(view.why)
        for line, meter in zip(self._meters, view.meters, strict=True):
            line.show_meter(meter)
        self._facts.setText("\n".join(view.facts))
        self._warnings.setText("\n".join(view.warnings))
        for label in (self._facts, self._warnings):
            label.setVisible(bool(label.text()))
        self.use.setAccessibleName(f"Use the {view.title.lower()} option")
        self.setAccessibleName(view.text)

    def _on_used(self) -> None:
        if self.view is not None:
            self.use_requested.emit(self.view.row.option)


class AwardCards(QWidget):
    """The recommended options side by side; `use_requested` carries the option to use."""

    use_requested = Signal(object)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._views: tuple[AwardView, ...] = ()
        self._is_brief = False
        self.cards: tuple[AwardCard, ...] = ()
        self._row = in_row(STRETCH, owner=self, spacing=theme.spacing.medium)
        self._pool = WidgetPool(self._row, self._make_card)

    @property
    def texts(self) -> tuple[str, ...]:
        """Return the recommended options as text."""
        return tuple(view.text for view in self._views)

    def show_views(self, views: tuple[AwardView, ...]) -> None:
        """Replace the recommended options."""
        if views == self._views:
            return
        self._views, self.cards = views, self._pool.show(len(views))
        for card, view in zip(self.cards, views, strict=True):
            card.show_view(view)
            card.set_brief(self._is_brief)
            self._row.setStretchFactor(card, 1)
        self._row.setStretch(self._row.count() - 1, _MOST_CARDS - len(views))  # each card is a third of the width

    def set_brief(self, is_brief: bool) -> None:
        """Show less of each option, to make room for the table of all of them."""
        self._is_brief = is_brief
        for card in self.cards:
            card.set_brief(is_brief)

    def event(self, event: QEvent) -> bool:
        """Take the height that the texts need whenever they or the width change."""
        is_done = super().event(event)
        if event.type() in (QEvent.Type.LayoutRequest, QEvent.Type.Resize) and self.cards:
            self.setFixedHeight(self._row.totalHeightForWidth(self.width()))
        return is_done

    def _make_card(self) -> AwardCard:
        card = AwardCard(self._theme)
        card.use_requested.connect(self.use_requested)
        return card
