"""Cards with the recommended options side by side: the machine, the trade-off, and price and time as bars."""

from typing import Final

from PySide6.QtCore import QEvent, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QFrame, QSizePolicy, QWidget

from planner.gui.theme import Theme, set_style_role
from planner.gui.widgets.buttons import push_button
from planner.gui.widgets.labels import make_label
from planner.gui.widgets.layout import STRETCH, WidgetPool, in_column, in_row
from planner.present import format as fmt
from planner.present.cost.recommendation import AWARDS, AwardView, Meter

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
        self.use = push_button("Use this", role="primary")
        self.use.setToolTip("Make this option the plan")
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
