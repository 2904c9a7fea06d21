"""Drawings of `resources/drawings` in the colors of the theme."""

import re
from functools import cache

from PySide6.QtCore import QByteArray, QSize, Qt
from PySide6.QtGui import QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer

from planner.gui.theme import Theme
from planner.paths import resources_dir

DRAWING_SIZE = QSize(320, 140)


def drawing_pixmap(theme: Theme, name: str, ratio: float, scale: float = 1.0) -> QPixmap:
    """Return the drawing `name` for a device pixel ratio, `scale` times as large as it is drawn."""
    size = DRAWING_SIZE * scale
    pixmap = QPixmap(size * ratio)
    pixmap.fill(Qt.GlobalColor.transparent)
    painter = QPainter(pixmap)
    QSvgRenderer(QByteArray(_in_colors(theme, _drawing_svg(name)).encode())).render(painter)
    painter.end()
    pixmap.setDevicePixelRatio(ratio)
    return pixmap


@cache
def _drawing_svg(name: str) -> str:
    return (resources_dir() / "drawings" / f"{name}.svg").read_text(encoding="utf-8")


def _in_colors(theme: Theme, svg: str) -> str:
    return re.sub(r"@([\w-]+)", lambda role: theme.color(role[1]).name(), svg)
