"""Drawings of `resources/drawings` in the colors of the theme."""

import re
from functools import cache, lru_cache

from PySide6.QtCore import QByteArray, QSize, Qt
from PySide6.QtGui import QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer

from planner.gui.theme import Theme
from planner.paths import resources_dir

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
