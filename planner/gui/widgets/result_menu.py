"""Copy or save a result: as text, as figures for other programs, or as a picture."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from PySide6.QtCore import QMargins, QPoint, QRect, Signal, Slot
from PySide6.QtGui import QGuiApplication, QPixmap, QRegion
from PySide6.QtWidgets import QFileDialog, QMenu, QWidget

from planner.errors import PlannerError
from planner.present import format as fmt
from planner.storage import write_atomically

_PICTURE_SCALE: Final = 2
Copied = Callable[[], str | QPixmap]
Content = Callable[[], str | bytes | QPixmap]


class FileFormat(NamedTuple):
    """A kind of file that something can be saved as: what it is called, how its name ends, and what is written."""

    name: str
    ending: str
    content: Content


class ExportMenu(QMenu):
    """Copies and saves a `what`; `failed` carries a `PlannerError` that saving met.

    `copies` maps the words of each action to what it copies. A file is called `file_stem` unless the person says
    otherwise; the first of `formats` is the usual one, and one of them is a picture.
    """

    failed = Signal(object)

    def __init__(
        self,
        what: str,
        file_stem: str,
        copies: Mapping[str, Copied],
        formats: tuple[FileFormat, ...],
        parent: QWidget,
    ) -> None:
        super().__init__(parent)
        self._what, self._file_stem, self._formats = what, file_stem, formats
        for words, copied in copies.items():
            self.addAction(words, partial(put_on_clipboard, copied))
        self.addSeparator()
        self.addAction("&Save…", self.save)

    @Slot()
    def save(self) -> None:
        """Ask for a file and write in the format that its name ends in."""
        kinds = ";;".join(f"{kind.name} (*{kind.ending})" for kind in self._formats)
        usual = f"{self._file_stem}{self._formats[0].ending}"
        name, _ = QFileDialog.getSaveFileName(self, f"Save the {self._what}", usual, kinds)
        if name:
            self.save_to(Path(name))

    def save_to(self, path: Path) -> None:
        """Write in the format that `path` ends in, a picture if in none of them; what fails is emitted."""
        known = {kind.ending: kind.content for kind in self._formats}
        try:
            save_as(path, known, ".png")
        except PlannerError as error:
            self.failed.emit(error)


class Result(NamedTuple):
    """What a result is in each format; each is asked for when it is wanted."""

    text: Callable[[], str]
    csv: Callable[[], str]
    json: Callable[[], str]
    picture: Callable[[], QPixmap]


class ResultMenu(ExportMenu):
    """Copies and saves a `result`."""

    def __init__(self, result: Result, file_stem: str, parent: QWidget) -> None:
        copies: dict[str, Copied] = {
            "Copy as &text": result.text,
            "Copy as &CSV": result.csv,
            "Copy as &JSON": result.json,
            "Copy as &picture": result.picture,
        }
        formats = (
            FileFormat("Text", ".txt", result.text),
            FileFormat("Table", ".csv", result.csv),
            FileFormat("Record", ".json", result.json),
            FileFormat("Picture", ".png", result.picture),
        )
        super().__init__("result", file_stem, copies, formats, parent)


def picture_of(widget: QWidget, area: QRect, margin: int) -> QPixmap:
    """Return `area` of a widget as it is shown, at twice its size, on the ground that the widget has."""
    pixmap = QPixmap(area.marginsAdded(QMargins(margin, margin, margin, margin)).size() * _PICTURE_SCALE)
    pixmap.setDevicePixelRatio(_PICTURE_SCALE)
    pixmap.fill(widget.palette().color(widget.backgroundRole()))
    widget.render(pixmap, QPoint(margin, margin), QRegion(area))
    return pixmap


def put_on_clipboard(content: Copied) -> None:
    """Copy a text or a picture."""
    copied = content()
    if isinstance(copied, QPixmap):
        QGuiApplication.clipboard().setPixmap(copied)
    else:
        QGuiApplication.clipboard().setText(copied)


def save_as(path: Path, contents: Mapping[str, Content], usual: str) -> None:
    """Write that of `contents` whose ending `path` has, the `usual` one if it has none of them.

    Raises:
        PlannerError: If the file cannot be written.
    """
    try:
        _write(path, contents.get(path.suffix.lower(), contents[usual])())
    except OSError as error:
        hint = f"Choose another folder, or a name that ends in {fmt.listing(tuple(contents), 'or')}."
        raise PlannerError(f"{path} could not be written: {error.strerror or error}", hint) from error


def _write(path: Path, content: str | bytes | QPixmap) -> None:
    if not isinstance(content, QPixmap):
        write_atomically(path, content)
    elif not content.save(str(path)):
        raise OSError("the picture could not be written")
