"""The theme: colors, lengths, fonts and icons from `resources/tokens`, applied as a palette and a style sheet."""

import math
import tomllib
from functools import cache
from typing import Final, Literal

from PySide6.QtCore import QByteArray, QObject, QRectF, QSize, Qt, Signal, Slot
from PySide6.QtGui import QColor, QFont, QIcon, QPainter, QPalette, QPixmap
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtWidgets import QApplication, QWidget

from planner.base import Spec
from planner.gui.settings import Scheme
from planner.gui.standard_icons import ThemedIcons
from planner.paths import resources_dir

TypeStep = Literal["small", "body", "title", "answer"]
ICON_PIXELS: Final = 16


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
        app.screenAdded.connect(self._icons.clear)
        self._dressed = False
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
        font = QFont(self._base_font)
        font.setPointSizeF(self._base_font.pointSizeF() * self.tokens.type[step])
        if bold:
            font.setWeight(QFont.Weight.DemiBold)
        return font

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
        side = round(ICON_PIXELS * scale)
        return self.icon(name, role).pixmap(QSize(side, side), ratio)

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

    def dress(self) -> None:
        """Apply the style sheet of the current color scheme; called once, just before the first window is shown.

        Widgets that are created under a style sheet are styled again whenever they get a parent, which doubles the time
        of creating them.
        """
        self._dressed = True
        self._apply_style_sheet()
        self.changed.emit()  # sizes that were measured without the style sheet are measured again

    @Slot()
    def _on_system_scheme_changed(self) -> None:
        if self.scheme == "system":
            self._apply_current_scheme()

    def _apply_current_scheme(self) -> None:
        self.tokens = load_tokens("dark" if self.dark else "light")
        self._icons.clear()
        self._app.setPalette(_qt_palette(self.tokens))
        if self._dressed:
            self._apply_style_sheet()
        self.changed.emit()

    def _apply_style_sheet(self) -> None:
        self._app.setStyleSheet(_style_sheet_text(self.tokens, "dark" if self.dark else "light"))


def set_style_role(widget: QWidget, value: str, name: str = "role") -> None:
    """Set the property `name` of a widget, by which the style sheet selects a role such as `muted` or `primary`."""
    if widget.property(name) != value:
        widget.setProperty(name, value)
        if widget.testAttribute(Qt.WidgetAttribute.WA_WState_Polished):  # otherwise its first show polishes it
            widget.style().unpolish(widget)
            widget.style().polish(widget)


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
    QPalette.ColorRole.Accent: "accent",
    QPalette.ColorRole.Link: "accent",
    QPalette.ColorRole.LinkVisited: "accent",
    QPalette.ColorRole.ToolTipBase: "raised",
    QPalette.ColorRole.ToolTipText: "text",
    QPalette.ColorRole.Light: "hover",
    QPalette.ColorRole.Midlight: "hover",
    QPalette.ColorRole.Mid: "border",
    QPalette.ColorRole.Dark: "border",
    QPalette.ColorRole.Shadow: "border",
}
_TEXT_ROLES: Final = (QPalette.ColorRole.WindowText, QPalette.ColorRole.Text, QPalette.ColorRole.ButtonText)


def _qt_palette(tokens: Tokens) -> QPalette:
    palette = QPalette()
    for role, token in _PALETTE_ROLES.items():
        palette.setColor(role, QColor(tokens.colors[token]))
    for role in _TEXT_ROLES:
        palette.setColor(QPalette.ColorGroup.Disabled, role, QColor(tokens.colors["muted"]))
    return palette


def _style_sheet_text(tokens: Tokens, scheme: str) -> str:
    sheet = (resources_dir() / "tokens" / "style.qss").read_text(encoding="utf-8")
    lengths = {**dict(tokens.spacing), "radius": tokens.radius, "hairline": tokens.hairline}
    values = {**tokens.colors, **lengths, "scheme": scheme, "icons": (resources_dir() / "icons").as_posix()}
    for name in sorted(values, key=len, reverse=True):
        sheet = sheet.replace(f"@{name}", str(values[name]))
    return sheet


@cache
def _icon_svg(name: str) -> str:
    return (resources_dir() / "icons" / f"{name}.svg").read_text(encoding="utf-8")


@cache
def _colored_pixmap(name: str, color: str, density: int) -> QPixmap:
    renderer = QSvgRenderer(QByteArray(_icon_svg(name).replace("currentColor", color).encode()))
    pixmap = QPixmap(ICON_PIXELS * density, ICON_PIXELS * density)
    pixmap.fill(Qt.GlobalColor.transparent)
    painter = QPainter(pixmap)
    renderer.render(painter, QRectF(0, 0, pixmap.width(), pixmap.height()))
    painter.end()
    pixmap.setDevicePixelRatio(density)
    return pixmap
