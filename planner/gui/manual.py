"""The manual in a window of its own: the Markdown pages that are installed with GPU Planner, without a network."""

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Final

from PySide6.QtCore import QSignalBlocker, QSize, Qt, QTimer, QUrl, Slot
from PySide6.QtGui import (
    QImage,
    QImageReader,
    QKeyEvent,
    QPixmap,
    QResizeEvent,
    QTextBlock,
    QTextBlockFormat,
    QTextCursor,
    QTextDocument,
)
from PySide6.QtWidgets import (
    QAbstractSlider,
    QDialog,
    QDialogButtonBox,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QSplitter,
    QTextBrowser,
    QWidget,
)

from planner.gui.theme import DRAWING_SIZE, Theme, drawing_pixmap
from planner.gui.widgets.buttons import push_button
from planner.gui.widgets.dialogs import closing_buttons
from planner.gui.widgets.labels import make_label
from planner.gui.widgets.layout import STRETCH, in_column, in_row
from planner.paths import docs_dir

CONTENTS: Final = "index.md"
_SIZE: Final = QSize(1120, 720)
_LIST_WIDTH: Final = 340
_WIDEST_PICTURE: Final = 760
_TALLEST: Final = 10_000
_MARGIN: Final = 18
_SCROLLING: Final = {
    Qt.Key.Key_Up: QAbstractSlider.SliderAction.SliderSingleStepSub,
    Qt.Key.Key_Down: QAbstractSlider.SliderAction.SliderSingleStepAdd,
    Qt.Key.Key_PageUp: QAbstractSlider.SliderAction.SliderPageStepSub,
    Qt.Key.Key_PageDown: QAbstractSlider.SliderAction.SliderPageStepAdd,
}
_LINK: Final = re.compile(r"\[([^\]]+)\]\(((?!https?:)[^)#]+\.md)\)")
_EXAMPLE: Final = re.compile(r"<!-- in your plan: (.*?) -->")
_HEADING: Final = re.compile(r"^#+ +(.+?) *$", re.MULTILINE)
_PAGE_ROLE: Final = Qt.ItemDataRole.UserRole


@cache
def manual_pages(folder: Path) -> dict[str, str]:
    """Return the title of each page by its path below `folder`, in the order in which the contents page links them."""
    contents = (folder / CONTENTS).read_text(encoding="utf-8")
    return {CONTENTS: "Contents"} | {path: title for title, path in _LINK.findall(contents)}


def heading_slug(heading: str) -> str:
    """Return the anchor of a heading in links: `Time and cost` → `time-and-cost`."""
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", heading.strip().lower()))


def _is_drawing(path: Path) -> bool:
    """Return whether `path` is a drawing of a term, which has the theme's colors."""
    return path.suffix == ".svg" and path.parent.name == "basics"


def _no_example(_term: str) -> str:
    return ""


class Manual(QDialog):
    """Window of the manual, opened at `page`: a searchable list of the pages, and the text of the current page.

    `example` returns what a term of the glossary is in the person's plan, or an empty text.
    """

    def __init__(
        self, theme: Theme, page: str, parent: QWidget | None = None, example: Callable[[str], str] = _no_example
    ) -> None:
        super().__init__(parent)
        self.setWindowTitle("GPU Planner manual")
        self.resize(_SIZE)
        self.setModal(False)
        self._folder = docs_dir()
        self.search = QLineEdit()
        self.search.setToolTip("Find pages that contain these words; Enter goes to the next match")
        self.search.setPlaceholderText("Search the manual")
        self.search.setClearButtonEnabled(True)
        self.search.textChanged.connect(self._show_matching_pages)
        self.search.returnPressed.connect(self._find_next_match)
        self.pages = QListWidget()
        self.pages.setAccessibleName("Pages of the manual")
        self.pages.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        for path, title in manual_pages(self._folder).items():
            item = QListWidgetItem(title, self.pages)
            item.setData(_PAGE_ROLE, path)
        self._nothing_found = make_label(role="muted", wrap=True)
        self._nothing_found.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._nothing_found.hide()
        self.text = _Page(self._folder, theme, example)
        self.text.sourceChanged.connect(self._select_page_in_list)
        back = push_button("&Back")
        back.setToolTip("Go to the previous page")
        back.setEnabled(False)
        back.clicked.connect(self.text.backward)
        self.text.backwardAvailable.connect(back.setEnabled)
        forward = push_button("&Forward")
        forward.setToolTip("Go forward again")
        forward.setEnabled(False)
        forward.clicked.connect(self.text.forward)
        self.text.forwardAvailable.connect(forward.setEnabled)
        closing = closing_buttons(self)
        for button in (back, forward, closing.button(QDialogButtonBox.StandardButton.Close)):
            button.setAutoDefault(False)  # Return finds the next place
        side, body = QWidget(), QSplitter()
        in_column(
            self.search,
            (self.pages, 1),
            owner=side,
            margins=(0, 0, theme.spacing.small, 0),
            spacing=theme.spacing.small,
        )
        body.addWidget(side)
        result = QWidget()
        in_column((self._nothing_found, 1), (self.text, 1), owner=result, spacing=0)
        body.addWidget(result)
        body.setStretchFactor(1, 1)
        body.setSizes([_LIST_WIDTH, _SIZE.width() - _LIST_WIDTH])
        in_column((body, 1), in_row(back, forward, STRETCH, closing), owner=self, margins=None)
        self.open_page(page)
        self.pages.currentItemChanged.connect(self._open_list_item)
        self.search.setFocus()

    def open_page(self, path: str) -> None:
        """Show the page at `path` below the manual's folder."""
        self.text.setSource(QUrl(path))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Scroll the text by the keys that the search field has no use for."""
        scrolling = _SCROLLING.get(Qt.Key(event.key()))
        if scrolling is None:
            super().keyPressEvent(event)
        else:
            self.text.verticalScrollBar().triggerAction(scrolling)

    @Slot(QListWidgetItem)
    def _open_list_item(self, item: QListWidgetItem | None) -> None:
        if item is not None and item.data(_PAGE_ROLE) != self.text.source().path():
            self.open_page(item.data(_PAGE_ROLE))

    @Slot(QUrl)
    def _select_page_in_list(self, source: QUrl) -> None:
        """Select the current page in the list, after a link or Back has changed the page."""
        blocker = QSignalBlocker(self.pages)  # or selecting it would open it again, without its heading
        for row in range(self.pages.count()):
            item = self.pages.item(row)
            if item.data(_PAGE_ROLE) == source.path():
                self.pages.setCurrentItem(item)
        blocker.unblock()

    @Slot(str)
    def _show_matching_pages(self, text: str) -> None:
        """List the pages that contain every word of `text`, and go to the first match in the current page."""
        words = text.lower().split()
        for row in range(self.pages.count()):
            item = self.pages.item(row)
            content = f"{item.text()} {self.text.markdown(item.data(_PAGE_ROLE))}".lower()
            item.setHidden(not all(word in content for word in words))
        is_found = any(not self.pages.item(row).isHidden() for row in range(self.pages.count()))
        self._nothing_found.setText(f"Nothing found for “{text.strip()}”.")
        self._nothing_found.setVisible(not is_found)
        self.text.setVisible(is_found)
        if heading := self._heading_called(text):
            self.open_page(heading)
        else:
            self.text.moveCursor(QTextCursor.MoveOperation.Start)
            self._find_next_match()

    def _heading_called(self, text: str) -> str:
        """Return the link to a heading `text` of any page, or to one of the current page that contains it, or ""."""
        current, wanted = self.text.source().path(), text.strip().lower()
        if not wanted:
            return ""
        for path in (current, *(self.pages.item(row).data(_PAGE_ROLE) for row in range(self.pages.count()))):
            headings = _HEADING.findall(self.text.markdown(path))
            found = [heading for heading in headings if heading.lower() == wanted]
            if path == current:
                found += [heading for heading in headings if wanted in heading.lower()]
            if found:
                return f"{path}#{heading_slug(found[0])}"
        return ""

    @Slot()
    def _find_next_match(self) -> None:
        """Go to the next match of the search; after a page's last match, to the first match of the next listed page."""
        wanted = self.search.text()
        if not wanted or self.text.find_below(wanted):
            return
        rows = [row for row in range(self.pages.count()) if not self.pages.item(row).isHidden()]
        later = [row for row in rows if row > self.pages.currentRow()] + rows
        for row in later:
            if wanted.lower() in self.text.markdown(self.pages.item(row).data(_PAGE_ROLE)).lower():
                self.pages.setCurrentRow(row)
                self.text.moveCursor(QTextCursor.MoveOperation.Start)
                self.text.find_below(wanted)
                return


class _Page(QTextBrowser):
    """Text view of a manual page; pictures fit its width, and links to headings work."""

    def __init__(self, folder: Path, theme: Theme, example: Callable[[str], str]) -> None:
        super().__init__()
        self._folder, self._theme, self._example = folder, theme, example
        self._unread: dict[str, QUrl] = {}
        self.setOpenExternalLinks(True)
        # always there, or a picture scaled before the bar appears would be wider than the page
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOn)
        self.document().setDocumentMargin(_MARGIN)
        self.sourceChanged.connect(self._format_and_scroll)

    def find_below(self, words: str) -> bool:
        """Select the next `words`, in the upper part of the view; return whether there are any."""
        if not self.find(words):
            return False
        bar = self.verticalScrollBar()
        bar.setValue(bar.value() + self.cursorRect().top() - self.viewport().height() // 4)
        return True

    def markdown(self, path: str) -> str:
        """Return the Markdown text of the page at `path`, without comments that only scripts read."""
        text = _EXAMPLE.sub(self._example_text, (self._folder / path).read_text(encoding="utf-8"))
        return re.sub(r"<!--.*?-->\n?", "", text).replace("<br>", " ")

    def _example_text(self, comment: re.Match[str]) -> str:
        text = self._example(comment[1])
        return f"*{text}*" if text else ""

    def loadResource(self, kind: int, name: QUrl | str) -> object:
        """Return the Markdown text of a page, or in place of a picture a blank one until it is read."""
        path = self._folder / QUrl(name).path()
        if _is_drawing(path):
            return self._read_later(QUrl(name), DRAWING_SIZE * self.devicePixelRatioF())
        if kind == QTextDocument.ResourceType.ImageResource.value:
            return self._read_later(QUrl(name), self._picture_reader(QUrl(name)).scaledSize())
        if path.suffix == ".md" and path.is_file():
            return self.markdown(QUrl(name).path())
        return super().loadResource(kind, name)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Scale the pictures to the new width."""
        before = self._picture_width_limit()
        super().resizeEvent(event)
        if self._picture_width_limit() != before and self.source().isValid():
            place = self.verticalScrollBar().value()
            self.reload()
            self.verticalScrollBar().setValue(place)

    def _read_later(self, name: QUrl, size: QSize) -> QImage:
        """Return a transparent picture of `size` in place of the picture `name`, which is read in a later turn."""
        blank = QImage(size, QImage.Format.Format_ARGB32_Premultiplied)
        blank.fill(Qt.GlobalColor.transparent)
        blank.setDevicePixelRatio(self.devicePixelRatioF())
        if not self._unread:
            QTimer.singleShot(0, self, self._read_picture)
        self._unread[name.path()] = name
        return blank

    @Slot()
    def _read_picture(self) -> None:
        """Read the uppermost unread picture, since reading all of them at once would block the window."""
        name = self._unread.pop(next(iter(self._unread)))
        picture = self._read(name)
        self.document().addResource(QTextDocument.ResourceType.ImageResource.value, name, picture)
        self.viewport().update()
        if self._unread:
            QTimer.singleShot(0, self, self._read_picture)

    def _read(self, name: QUrl) -> QImage | QPixmap:
        """Return a drawing in the theme's colors, or the picture of a file."""
        path = Path(name.path())
        if _is_drawing(path):
            return drawing_pixmap(self._theme, path.stem, self.devicePixelRatioF())
        picture = self._picture_reader(name).read()
        picture.setDevicePixelRatio(self.devicePixelRatioF())
        return picture

    def _picture_reader(self, name: QUrl) -> QImageReader:
        """Return a reader of the picture `name`, which scales the picture to the width of the page."""
        reader = QImageReader(str(self._folder / "pictures" / Path(name.path()).name))
        width = max(round(min(self._picture_width_limit(), _WIDEST_PICTURE) * self.devicePixelRatioF()), 1)
        reader.setScaledSize(reader.size().scaled(width, _TALLEST, Qt.AspectRatioMode.KeepAspectRatio))
        return reader

    def _picture_width_limit(self) -> int:
        return self.viewport().width() - round(2 * self.document().documentMargin())

    @Slot(QUrl)
    def _format_and_scroll(self, source: QUrl) -> None:
        """Format the headings and the code of the page, and scroll to the heading that the link to the page names."""
        cursor = QTextCursor(self.document())
        headings: dict[str, QTextBlock] = {}
        cursor.beginEditBlock()  # or each heading would lay the page out again
        block = self.document().begin()
        while block.isValid():
            if level := block.blockFormat().headingLevel():
                spaced = QTextBlockFormat()
                spaced.setTopMargin(_MARGIN if level > 1 else 0)
                spaced.setBottomMargin(_MARGIN / 3)
                cursor.setPosition(block.position())
                cursor.mergeBlockFormat(spaced)
                headings.setdefault(heading_slug(block.text()), block)
            elif block.blockFormat().nonBreakableLines():  # code, whose long lines would be cut
                wrapped = QTextBlockFormat()
                wrapped.setNonBreakableLines(False)
                cursor.setPosition(block.position())
                cursor.mergeBlockFormat(wrapped)
            block = block.next()
        cursor.endEditBlock()
        if found := headings.get(source.fragment()):
            self.setTextCursor(QTextCursor(found))
            self.verticalScrollBar().setValue(round(self.document().documentLayout().blockBoundingRect(found).y()))
