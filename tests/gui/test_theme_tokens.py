"""Colors, fonts and icons of both color schemes."""

import re
from itertools import combinations, product
from pathlib import Path

import pytest
from each_record import for_each
from PySide6.QtGui import QColor, QPalette
from PySide6.QtWidgets import QApplication, QLineEdit, QWidget

import planner.gui
from planner.gui.theme import Theme, contrast, load_tokens
from planner.paths import resources_dir
from planner.present.names import TERM_TITLES

SCHEMES = ("light", "dark")
COMPONENTS = [*TERM_TITLES, "inputs"]
TEXTS = ("text", "muted", "accent", "ok", "warn", "bad")
BACKGROUNDS = ("surface", "raised", "sunken")
# Machado, Oliveira and Fernandes (2009), severity 1.0, on linear RGB.
SIGHTS = {
    "normal": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protan": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deutan": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritan": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}
TO_XYZ = ((0.4124564, 0.3575761, 0.1804375), (0.2126729, 0.7151522, 0.0721750), (0.0193339, 0.1191920, 0.9503041))
WHITE = (0.95047, 1.0, 1.08883)


def times(matrix, vector):
    return [sum(a * b for a, b in zip(row, vector, strict=True)) for row in matrix]


def seen_lab(color: QColor, sight: str) -> tuple[float, float, float]:
    channels = (color.redF(), color.greenF(), color.blueF())
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    seen = [min(1.0, max(0.0, c)) for c in times(SIGHTS[sight], linear)]
    ratios = [c / white for c, white in zip(times(TO_XYZ, seen), WHITE, strict=True)]
    x, y, z = (r ** (1 / 3) if r > 216 / 24389 else (24389 / 27 * r + 16) / 116 for r in ratios)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def color_of(scheme: str, role: str) -> QColor:
    return QColor(load_tokens(scheme).colors[role])


@for_each("case", product(SCHEMES, BACKGROUNDS, TEXTS))
def test_text_is_readable_on_every_background(case):
    scheme, background, role = case
    assert contrast(color_of(scheme, role), color_of(scheme, background)) >= 4.5


@for_each("pair", [("on-fill", "fill"), *((role, "selection") for role in TEXTS), ("text", "hover")])
def test_text_is_readable_on_marked_backgrounds(pair):
    for scheme in SCHEMES:
        assert contrast(color_of(scheme, pair[0]), color_of(scheme, pair[1])) >= 4.5, scheme


@pytest.mark.parametrize("scheme", SCHEMES)
def test_series_and_components_stand_out_from_the_surface(scheme):
    roles = [f"series-{number}" for number in range(1, 9)] + [*COMPONENTS, "other_processes", "focus"]
    weak = [role for role in roles if contrast(color_of(scheme, role), color_of(scheme, "surface")) < 3]
    assert not weak


@for_each("case", product(SCHEMES, ("outline", "accent", "fill"), BACKGROUNDS))
def test_fields_and_boxes_stand_out_from_every_background(case):
    scheme, role, background = case
    assert contrast(color_of(scheme, role), color_of(scheme, background)) >= 3


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("sight", SIGHTS)
def test_components_differ_for_every_kind_of_sight(scheme, sight):
    for roles in (COMPONENTS, [f"series-{number}" for number in range(1, 9)]):
        labs = {role: seen_lab(color_of(scheme, role), sight) for role in roles}
        for one, other in combinations(labs, 2):
            difference = sum((a - b) ** 2 for a, b in zip(labs[one], labs[other], strict=True)) ** 0.5
            assert difference >= 11, f"{one} and {other} look alike"


def test_both_schemes_know_the_same_roles():
    assert load_tokens("light").colors.keys() == load_tokens("dark").colors.keys()


def test_contrast_of_black_and_white_is_21():
    assert contrast(QColor("black"), QColor("white")) == pytest.approx(21)


def test_a_switch_reaches_the_palette_and_is_announced(theme: Theme, qapp: QApplication, qtbot):
    with qtbot.waitSignal(theme.changed):
        theme.apply("dark")
    try:
        assert theme.dark
        assert qapp.palette().color(QPalette.ColorRole.Window) == color_of("dark", "surface")
    finally:
        theme.apply("light")
    assert not theme.dark
    assert qapp.palette().color(QPalette.ColorRole.WindowText) == color_of("light", "text")


def test_the_style_sheet_holds_for_both_schemes(theme: Theme, qtbot):
    """It is set once, since setting it styles every widget again, which takes seconds."""
    place = QWidget()
    qtbot.addWidget(place)
    light = place.styleSheet()
    assert light
    theme.apply("dark")
    try:
        theme.apply_style_sheet(place)
        assert place.styleSheet() == light
    finally:
        theme.apply("light")


def test_a_switch_recolors_what_is_shown_at_once_and_what_is_hidden_soon(theme: Theme, qtbot):
    shown, hidden = QLineEdit(), QLineEdit()
    for field in (shown, hidden):
        qtbot.addWidget(field)
        field.show()
    hidden.hide()
    theme.apply("dark")
    try:
        assert fill_of(shown) == color_of("dark", "raised")
        qtbot.waitUntil(lambda: fill_of(hidden) == color_of("dark", "raised"))
    finally:
        theme.apply("light")
    assert fill_of(shown) == color_of("light", "raised")


def fill_of(field: QLineEdit) -> QColor:
    return field.grab().toImage().pixelColor(field.width() // 2, 4)


def test_the_system_scheme_follows_the_system(theme: Theme, qapp: QApplication):
    theme.apply("system")
    try:
        assert theme.dark == (qapp.styleHints().colorScheme().name == "Dark")
    finally:
        theme.apply("light")


def test_color_on_returns_the_color_with_more_contrast(theme: Theme):
    assert theme.color_on("weights") == theme.color("surface")
    assert theme.color_on("free") == theme.color("text")


def test_icons_take_the_colour_of_their_role(theme: Theme):
    image = theme.icon("check", "bad").pixmap(16, 16).toImage()
    inked = [image.pixelColor(x, y) for x in range(image.width()) for y in range(image.height())]
    solid = [color for color in inked if color.alpha() == 255]
    assert solid
    assert all(color.rgb() == theme.color("bad").rgb() for color in solid)


@for_each("file", sorted((resources_dir() / "icons").glob("*.svg")))
def test_every_icon_draws_something(theme: Theme, file: Path):
    image = theme.icon(file.stem).pixmap(16, 16).toImage()
    assert any(image.pixelColor(x, y).alpha() for x in range(16) for y in range(16))


def test_the_style_sheet_is_short_and_all_tokens_are_known(theme: Theme, qapp: QApplication):
    sheet = (resources_dir() / "tokens" / "style.qss").read_text(encoding="utf-8")
    assert len([line for line in sheet.splitlines() if line.strip()]) <= 80
    assert not re.findall(r"@(?!names)", qapp.styleSheet())


def test_no_colour_is_written_into_the_code():
    literal = re.compile(r"#[0-9a-fA-F]{6}\b|QColor\(\s*[\"\d]|Qt\.GlobalColor\.(?!transparent)")
    folder = Path(planner.gui.__file__).parent
    found = [file.name for file in folder.rglob("*.py") if literal.search(file.read_text(encoding="utf-8"))]
    assert not found
