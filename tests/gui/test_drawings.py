"""Drawings of the glossary, painted in the colors of each scheme."""

from PySide6.QtCore import QByteArray
from PySide6.QtGui import QColor, QImage
from PySide6.QtSvg import QSvgRenderer

from planner.gui.theme import DRAWING_SIZE, drawing_pixmap, load_tokens
from planner.paths import resources_dir

FILES = sorted((resources_dir() / "drawings").glob("*.svg"))


def colors_of(image: QImage) -> set[str]:
    return {QColor(image.pixel(x, y)).name() for x in range(0, image.width(), 2) for y in range(0, image.height(), 2)}


def test_a_drawing_can_be_painted_in_both_schemes(theme):
    for scheme in ("light", "dark"):
        theme.apply(scheme)
        for file in FILES:
            assert QSvgRenderer(QByteArray(file.read_bytes())).isValid(), file
            drawn = drawing_pixmap(theme, file.stem, 1.0)
            assert drawn.size() == DRAWING_SIZE, file
            assert colors_of(drawn.toImage()) & set(load_tokens(scheme).colors.values()), file
    theme.apply("light")


def test_a_drawing_is_sharp_on_a_dense_screen(theme):
    assert drawing_pixmap(theme, "roofline", 2.0).size() == DRAWING_SIZE * 2
