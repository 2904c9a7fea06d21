"""Copy or save a result: as text, as figures for other programs, or as a picture."""

from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from PySide6.QtCore import QMargins, QPoint, QRect, Signal, Slot
from PySide6.QtGui import QGuiApplication, QPixmap, QRegion
from PySide6.QtWidgets import QFileDialog, QMenu, QWidget

from planner.errors import PlannerError
from planner.storage import write_atomically

_FORMATS: Final = "Text (*.txt);;Table (*.csv);;Record (*.json);;Picture (*.png)"
_PICTURE_SCALE: Final = 2
_NAMES: Final = "Choose another folder, or a name that ends in .txt, .csv, .json or .png."


class Result(NamedTuple):
    """What a result is in each format; each is asked for when it is wanted."""

    text: Callable[[], str]
    csv: Callable[[], str]
    json: Callable[[], str]
    picture: Callable[[], QPixmap]


class ResultMenu(QMenu):
    """Acts on `result`; `failed` carries a `PlannerError` that saving met. `file_stem` is what its file is called."""

    failed = Signal(object)

    def __init__(self, result: Result, file_stem: str, parent: QWidget) -> None:
        super().__init__(parent)
        self._result, self._file_stem = result, file_stem
        self.addAction("Copy as &text", lambda: _copy(result.text()))
        self.addAction("Copy as &CSV", lambda: _copy(result.csv()))
        self.addAction("Copy as &JSON", lambda: _copy(result.json()))
        self.addAction("Copy as &picture", lambda: QGuiApplication.clipboard().setPixmap(result.picture()))
        self.addSeparator()
        self.addAction("&Save…", self.save)

    @Slot()
    def save(self) -> None:
        """Ask for a file and write the result in the format that its name ends in."""
        name, _ = QFileDialog.getSaveFileName(self, "Save the result", f"{self._file_stem}.txt", _FORMATS)
        if name:
            self.save_to(Path(name))

    def save_to(self, path: Path) -> None:
        """Write the result in the format that `path` ends in; what fails is emitted."""
        texts = {".txt": self._result.text, ".csv": self._result.csv, ".json": self._result.json}
        ending = path.suffix.lower()
        try:
            if ending in texts:
                write_atomically(path, texts[ending]())
            elif ending != ".png" or not self._result.picture().save(str(path)):
                raise OSError("the result could not be written")
        except OSError as error:
            self.failed.emit(PlannerError(f"{path}: {error.strerror or error}", _NAMES))


def picture_of(widget: QWidget, area: QRect, margin: int) -> QPixmap:
    """Return `area` of a widget as it is shown, at twice its size, on the ground that the widget has."""
    pixmap = QPixmap(area.marginsAdded(QMargins(margin, margin, margin, margin)).size() * _PICTURE_SCALE)
    pixmap.setDevicePixelRatio(_PICTURE_SCALE)
    pixmap.fill(widget.palette().color(widget.backgroundRole()))
    widget.render(pixmap, QPoint(margin, margin), QRegion(area))
    return pixmap


def _copy(text: str) -> None:
    QGuiApplication.clipboard().setText(text)
