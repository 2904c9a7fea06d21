"""The theme: colors, lengths, fonts, icons and drawings, applied as a palette and a style sheet."""

import math
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator
from functools import cache, lru_cache, partial
from time import thread_time
from typing import Final, Literal

import shiboken6
from PySide6.QtCore import QByteArray, QObject, QRectF, QSize, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QColor, QFont, QIcon, QPainter, QPalette, QPixmap
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtWidgets import QApplication, QProxyStyle, QStyle, QStyleOption, QWidget

from planner.base import Spec
from planner.gui.settings import Scheme
from planner.paths import resources_dir

TypeStep = Literal["small", "body", "title", "answer"]
ICON_PIXELS: Final = 16
_MOMENT_SECONDS: Final = 0.008


class Spacing(Spec):
    """Distances between widgets in logical pixels, from tiny to large."""

    tiny: int
    small: int
    medium: int
    large: int
    huge: int


class Tokens(Spec):
    """Design tokens: the colors of a scheme, and the distances and font sizes shared by all schemes."""

    colors: dict[str, str]
    spacing: Spacing
    radius: int
    hairline: int
    type: dict[TypeStep, float]


@cache
def load_tokens(scheme: Literal["light", "dark"]) -> Tokens:
    """Return the design tokens of a color scheme, with every color role resolved to its color."""
    folder = resources_dir() / "tokens"
    colors = tomllib.loads((folder / f"{scheme}.toml").read_text(encoding="utf-8"))
    common = tomllib.loads((folder / "common.toml").read_text(encoding="utf-8"))
    return Tokens(
        colors={role: colors["base"][base] for role, base in colors["roles"].items()},
        spacing=common["spacing"],
        type=common["type"],
        **common["shape"],
    )


class Theme(QObject):
    """Colors, fonts and icons of the current color scheme; `changed` is emitted after a switch of the scheme."""

    changed = Signal()

    def __init__(self, app: QApplication, scheme: Scheme = "system") -> None:
        super().__init__(app)
        self._app = app
        self._base_font = QFont(app.font())
        app.setStyle(ThemedIcons(self._dialog_icon))
        app.styleHints().colorSchemeChanged.connect(self._on_system_scheme_changed)
        self.scheme: Scheme = scheme
        self.tokens = load_tokens("light")
        # A start uses forty icons, each more than twice: caching them saves a hundredth of its time.
        self._icons: dict[tuple[str, str], QIcon] = {}
        self._fonts: dict[tuple[TypeStep, bool], QFont] = {}
        app.screenAdded.connect(self._icons.clear)
        self._unpolished: list[QWidget] = []
        self._is_behind = False
        self.apply(scheme)

    @property
    def dark(self) -> bool:
        """Return whether the dark scheme is active."""
        if self.scheme != "system":
            return self.scheme == "dark"
        return self._app.styleHints().colorScheme() == Qt.ColorScheme.Dark

    @property
    def spacing(self) -> Spacing:
        """Return the distances between widgets."""
        return self.tokens.spacing

    def color(self, role: str) -> QColor:
        """Return the color of a role, such as `text`, `bad`, `series-1` or the name of a memory term."""
        return QColor(self.tokens.colors[role])

    def color_on(self, role: str) -> QColor:
        """Return the color for text on the color of `role`: the text or the surface color, whichever contrasts more."""
        background = self.color(role)
        inks = (self.color("text"), self.color("surface"))
        return max(inks, key=lambda ink: contrast(ink, background))

    def font(self, step: TypeStep = "body", bold: bool = False) -> QFont:
        """Return the system font in the size of the type step `step`, such as `small`."""
        font = self._fonts.get((step, bold))
        if font is None:
            font = self._fonts[step, bold] = QFont(self._base_font)
            font.setPointSizeF(self._base_font.pointSizeF() * self.tokens.type[step])
            if bold:
                font.setWeight(QFont.Weight.DemiBold)
        return QFont(font)  # which shares what Qt has found out about it

    @property
    def icon_side(self) -> int:
        """Return the side length of a small icon, in logical pixels."""
        return ICON_PIXELS

    def icon(self, name: str, role: str = "text") -> QIcon:
        """Return an icon of `resources/icons` in the color of `role`, which is outdated after `changed`."""
        icon = self._icons.get((name, role))
        if icon is None:
            icon = self._icons[name, role] = QIcon()
            for density in sorted({math.ceil(screen.devicePixelRatio()) for screen in self._app.screens()}):
                icon.addPixmap(_colored_pixmap(name, self.tokens.colors[role], density))
        return icon

    def pixmap(self, name: str, role: str, ratio: float, scale: float = 1.0) -> QPixmap:
        """Return the pixmap of an icon for a device pixel ratio, `scale` times as large as a small icon."""
        pixmap = QPixmap(_colored_pixmap(name, self.tokens.colors[role], scale * ratio))
        pixmap.setDevicePixelRatio(ratio)
        return pixmap

    def _dialog_icon(self, name: str, role: str) -> QIcon:
        """Return an icon for one of Qt's own dialogs, whose message boxes show it twice as large."""
        icon = QIcon(self.icon(name, role))
        for density in sorted({math.ceil(screen.devicePixelRatio()) for screen in self._app.screens()}):
            large = QPixmap(_colored_pixmap(name, self.tokens.colors[role], density * 2))
            large.setDevicePixelRatio(density)
            icon.addPixmap(large)
        return icon

    def apply(self, scheme: Scheme) -> None:
        """Switch to a color scheme; `system` follows the desktop."""
        self.scheme = scheme
        hints = {"system": Qt.ColorScheme.Unknown, "light": Qt.ColorScheme.Light, "dark": Qt.ColorScheme.Dark}
        self._app.styleHints().setColorScheme(hints[scheme])
        self._apply_current_scheme()

    def apply_style_sheet(self, place: QWidget | QApplication) -> None:
        """Apply the style sheet to a window with its dialogs, just before it is shown.

        Widgets without a window have no style sheet, so that they are created fast: one that is created under a style
        sheet is styled again whenever it gets a parent.
        """
        place.setStyleSheet(_style_sheet_text(self.tokens))
        self.changed.emit()  # sizes that were measured without the style sheet are measured again

    @Slot()
    def _on_system_scheme_changed(self) -> None:
        if self.scheme == "system":
            self._apply_current_scheme()

    def _apply_current_scheme(self) -> None:
        self.tokens = load_tokens("dark" if self.dark else "light")
        self._icons.clear()
        self._app.setPalette(_qt_palette(self.tokens))
        self._is_behind = True
        # A polished widget keeps the colors that the palette had then.
        polished = set(_visible_widgets(self._app.topLevelWidgets()))
        for widget in polished:
            _polish_again(widget)
        self.changed.emit()
        QTimer.singleShot(0, self, partial(self._polish_others, polished))

    def _polish_others(self, polished: set[QWidget]) -> None:
        """Polish all widgets but those in `polished` again; even to list so many would block the switch."""
        self._unpolished = list(set(self._app.allWidgets()) - polished)
        QTimer.singleShot(0, self, self._polish_hidden_widgets)

    def catch_up(self, place: QWidget) -> None:
        """Give a hidden place the colors of a recent switch before it is shown: its turn may not have come."""
        if self._is_behind:
            for widget in (place, *place.findChildren(QWidget)):
                if (widget is place or widget.isVisibleTo(place)) and _is_polished(widget):
                    _polish_again(widget)

    @Slot()
    def _polish_hidden_widgets(self) -> None:
        """Polish hidden widgets again for a moment, and the others later."""
        until = thread_time() + _MOMENT_SECONDS
        # They are taken from the end: first those that have been shown since, such as a scroll bar by a new layout.
        self._unpolished = sorted(filter(shiboken6.isValid, self._unpolished), key=QWidget.isVisible)
        while self._unpolished and thread_time() < until:
            widget = self._unpolished.pop()
            if shiboken6.isValid(widget) and _is_polished(widget):
                _polish_again(widget)
        self._is_behind = bool(self._unpolished)
        if self._is_behind:
            QTimer.singleShot(0, self, self._polish_hidden_widgets)


def _visible_widgets(widgets: Iterable[QWidget]) -> Iterator[QWidget]:
    """Yield those of `widgets` that are visible, with the visible widgets in them."""
    for widget in widgets:
        if widget.isVisible():
            yield widget
            inner = widget.findChildren(QWidget, options=Qt.FindChildOption.FindDirectChildrenOnly)
            yield from _visible_widgets(inner)


def _is_polished(widget: QWidget) -> bool:
    """Return whether a widget was shown with a style."""
    return widget.testAttribute(Qt.WidgetAttribute.WA_WState_Polished)


def _polish_again(widget: QWidget) -> None:
    style = widget.style()
    style.unpolish(widget)
    style.polish(widget)


def set_style_role(widget: QWidget, value: str, name: str = "role") -> None:
    """Set the property `name` of a widget, by which the style sheet selects a role such as `muted` or `primary`."""
    if widget.property(name) != value:
        widget.setProperty(name, value)
        if _is_polished(widget):  # otherwise its first show polishes it
            _polish_again(widget)


def contrast(first: QColor, second: QColor) -> float:
    """Return the contrast ratio of two opaque colors, from 1 to 21.

    **Source**: WCAG 2.2, definition of contrast ratio and relative luminance.
    """
    lighter, darker = sorted((_relative_luminance(first), _relative_luminance(second)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _relative_luminance(color: QColor) -> float:
    channels = (color.redF(), color.greenF(), color.blueF())
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


_PALETTE_ROLES: Final = {
    QPalette.ColorRole.Window: "surface",
    QPalette.ColorRole.WindowText: "text",
    QPalette.ColorRole.Base: "raised",
    QPalette.ColorRole.AlternateBase: "sunken",
    QPalette.ColorRole.Text: "text",
    QPalette.ColorRole.PlaceholderText: "muted",
    QPalette.ColorRole.Button: "raised",
    QPalette.ColorRole.ButtonText: "text",
    QPalette.ColorRole.BrightText: "bad",
    QPalette.ColorRole.Highlight: "selection",
    QPalette.ColorRole.HighlightedText: "text",
    QPalette.ColorRole.Accent: "focus",
    QPalette.ColorRole.Link: "accent",
    QPalette.ColorRole.LinkVisited: "warn",
    QPalette.ColorRole.ToolTipBase: "raised",
    QPalette.ColorRole.ToolTipText: "text",
    QPalette.ColorRole.Light: "hover",
    QPalette.ColorRole.Midlight: "ok",
    QPalette.ColorRole.Mid: "border",
    QPalette.ColorRole.Dark: "outline",
    QPalette.ColorRole.Shadow: "fill",
}
"""The palette holds every color that differs between the schemes and that the style sheet uses."""
_TEXT_ROLES: Final = (QPalette.ColorRole.WindowText, QPalette.ColorRole.Text, QPalette.ColorRole.ButtonText)


def _qt_palette(tokens: Tokens) -> QPalette:
    palette = QPalette()
    for role, token in _PALETTE_ROLES.items():
        palette.setColor(role, QColor(tokens.colors[token]))
    for role in _TEXT_ROLES:
        palette.setColor(QPalette.ColorGroup.Disabled, role, QColor(tokens.colors["muted"]))
    return palette


def _style_sheet_text(tokens: Tokens) -> str:
    """Return the style sheet, which takes its colors from the palette and so is the same for all color schemes."""
    sheet = (resources_dir() / "tokens" / "style.qss").read_text(encoding="utf-8")
    lengths = {**dict(tokens.spacing), "radius": tokens.radius, "hairline": tokens.hairline}
    colors = tokens.colors | {token: f"palette({_keyword(role)})" for role, token in _PALETTE_ROLES.items()}
    values = {**colors, **lengths, "icons": (resources_dir() / "icons").as_posix()}
    for name in sorted(values, key=len, reverse=True):
        sheet = sheet.replace(f"@{name}", str(values[name]))
    return sheet


def _keyword(role: QPalette.ColorRole) -> str:
    """Return what style sheets call a role of the palette, such as `window-text`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "-", role.name).lower()


@cache
def _icon_svg(name: str) -> str:
    return (resources_dir() / "icons" / f"{name}.svg").read_text(encoding="utf-8")


@cache
def _colored_pixmap(name: str, color: str, density: float) -> QPixmap:
    renderer = QSvgRenderer(QByteArray(_icon_svg(name).replace("currentColor", color).encode()))
    side = round(ICON_PIXELS * density)
    pixmap = QPixmap(side, side)
    pixmap.fill(Qt.GlobalColor.transparent)
    painter = QPainter(pixmap)
    renderer.render(painter, QRectF(0, 0, pixmap.width(), pixmap.height()))
    painter.end()
    pixmap.setDevicePixelRatio(density)
    return pixmap


_Standard = QStyle.StandardPixmap
ICONS: Final = {
    _Standard.SP_MessageBoxInformation: ("info", "accent"),
    _Standard.SP_MessageBoxQuestion: ("unknown", "accent"),
    _Standard.SP_MessageBoxWarning: ("tight", "warn"),
    _Standard.SP_MessageBoxCritical: ("does-not-fit", "bad"),
    _Standard.SP_ComputerIcon: ("computer", "muted"),
    _Standard.SP_DesktopIcon: ("computer", "muted"),
    _Standard.SP_DriveHDIcon: ("computer", "muted"),
    _Standard.SP_DirIcon: ("folder", "muted"),
    _Standard.SP_DirClosedIcon: ("folder", "muted"),
    _Standard.SP_DirLinkIcon: ("folder", "muted"),
    _Standard.SP_DirOpenIcon: ("open", "muted"),
    _Standard.SP_DirHomeIcon: ("folder", "muted"),
    _Standard.SP_FileIcon: ("new", "muted"),
    _Standard.SP_FileLinkIcon: ("new", "muted"),
    _Standard.SP_ArrowBack: ("chevron-left", "text"),
    _Standard.SP_ArrowForward: ("chevron-right", "text"),
    _Standard.SP_FileDialogBack: ("chevron-left", "text"),
    _Standard.SP_FileDialogToParent: ("chevron-up", "text"),
    _Standard.SP_FileDialogNewFolder: ("new-folder", "text"),
    _Standard.SP_FileDialogListView: ("list", "text"),
    _Standard.SP_FileDialogDetailedView: ("table", "text"),
}
"""Icon and color role of each of Qt's standard icons that a dialog of the application can show."""


class ThemedIcons(QProxyStyle):
    """The Fusion style with the icons of the theme; `draw` makes an icon of a name and a color role."""

    def __init__(self, draw: Callable[[str, str], QIcon]) -> None:
        super().__init__("Fusion")
        self._draw = draw

    def standardIcon(
        self, standard: QStyle.StandardPixmap, option: QStyleOption | None = None, widget: QWidget | None = None
    ) -> QIcon:
        """Return an icon of the theme, or Fusion's where the theme has none."""
        if standard in ICONS:
            return self._draw(*ICONS[standard])
        return super().standardIcon(standard, option, widget)


DRAWING_SIZE = QSize(320, 140)


def drawing_pixmap(theme: Theme, name: str, ratio: float) -> QPixmap:
    """Return the drawing `name` in the theme's colors, for a device pixel ratio."""
    svg = re.sub(r"@([\w-]+)", lambda role: theme.tokens.colors[role[1]], _drawing_svg(name))
    return _painted(svg, ratio)


@cache
def _drawing_svg(name: str) -> str:
    return (resources_dir() / "drawings" / f"{name}.svg").read_text(encoding="utf-8")


@lru_cache(maxsize=64)
def _painted(svg: str, ratio: float) -> QPixmap:
    pixmap = QPixmap(DRAWING_SIZE * ratio)
    pixmap.fill(Qt.GlobalColor.transparent)
    painter = QPainter(pixmap)
    QSvgRenderer(QByteArray(svg.encode())).render(painter)
    painter.end()
    pixmap.setDevicePixelRatio(ratio)
    return pixmap
