"""Menus that copy or save a result as text, CSV, JSON or a picture."""

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
    """File format of an export: its name, its file extension, and a function that returns the content of the file."""

    name: str
    ending: str
    content: Content


class ExportMenu(QMenu):
    """Menu that copies and saves content called `noun`; `failed` carries the `PlannerError` of a failed save.

    `copies` maps the text of each copy action to its content. `file_stem` is the suggested file name. The first of
    `formats` is the default; a name with another ending is saved as a picture if that is one of them.
    """

    failed = Signal(object)

    def __init__(
        self,
        noun: str,
        file_stem: str,
        copies: Mapping[str, Copied],
        formats: tuple[FileFormat, ...],
        parent: QWidget,
    ) -> None:
        super().__init__(parent)
        self._noun, self._file_stem, self._formats = noun, file_stem, formats
        for text, copied in copies.items():
            self.addAction(text, partial(copy_to_clipboard, copied))
        self.addSeparator()
        self.addAction("&Save…", self.save)

    @Slot()
    def save(self) -> None:
        """Ask for a file name, and save the content in the format of its extension."""
        kinds = ";;".join(f"{kind.name} (*{kind.ending})" for kind in self._formats)
        default_name = f"{self._file_stem}{self._formats[0].ending}"
        name, _ = QFileDialog.getSaveFileName(self, f"Save the {self._noun}", default_name, kinds)
        if name:
            self.save_to(Path(name))

    def save_to(self, path: Path) -> None:
        """Save the content to `path` in the format of its extension; emit `failed` on an error."""
        known = {kind.ending: kind.content for kind in self._formats}
        try:
            save_as(path, known, ".png" if ".png" in known else self._formats[0].ending)
        except PlannerError as error:
            self.failed.emit(error)


class ResultFormats(NamedTuple):
    """Functions that return a result as text, CSV, JSON and a picture."""

    text: Callable[[], str]
    csv: Callable[[], str]
    json: Callable[[], str]
    picture: Callable[[], QPixmap]


class ResultMenu(ExportMenu):
    """Menu that copies and saves a result as text, CSV, JSON or a picture."""

    def __init__(self, result: ResultFormats, file_stem: str, parent: QWidget) -> None:
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
    """Return a picture of `area` in a widget, with a margin in the background color, at twice the size."""
    pixmap = QPixmap(area.marginsAdded(QMargins(margin, margin, margin, margin)).size() * _PICTURE_SCALE)
    pixmap.setDevicePixelRatio(_PICTURE_SCALE)
    pixmap.fill(widget.palette().color(widget.backgroundRole()))
    widget.render(pixmap, QPoint(margin, margin), QRegion(area))
    return pixmap


def copy_to_clipboard(content: Copied) -> None:
    """Copy a text or a picture to the clipboard."""
    copied = content()
    if isinstance(copied, QPixmap):
        QGuiApplication.clipboard().setPixmap(copied)
    else:
        QGuiApplication.clipboard().setText(copied)


def save_as(path: Path, contents: Mapping[str, Content], default_extension: str) -> None:
    """Write the content for the extension of `path`, or for `default_extension` if that extension has no content.

    Raises:
        PlannerError: If the file cannot be written.
    """
    try:
        _write_content(path, contents.get(path.suffix.lower(), contents[default_extension])())
    except OSError as error:
        hint = f"Choose another folder, or a name that ends in {fmt.listing(tuple(contents), 'or')}."
        raise PlannerError(f"{path} could not be written: {error.strerror or error}", hint) from error


def _write_content(path: Path, content: str | bytes | QPixmap) -> None:
    if not isinstance(content, QPixmap):
        write_atomically(path, content)
    elif not content.save(str(path)):
        raise OSError("the picture could not be written")
