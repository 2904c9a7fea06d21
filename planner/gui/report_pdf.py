"""Reports as PDF, by Qt's own writer; `python -m planner.gui.report_pdf` reads a report as JSON and writes its PDF."""

import json
import os
import re
import sys
from typing import TYPE_CHECKING, Final, NamedTuple

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QMarginsF, QRectF, QSizeF, Qt, QUrl, QUuid
from PySide6.QtGui import (
    QAbstractTextDocumentLayout,
    QFont,
    QGuiApplication,
    QImage,
    QPageLayout,
    QPageSize,
    QPainter,
    QPdfWriter,
    QTextBlock,
    QTextCursor,
    QTextDocument,
    QTextFormat,
    QTextTable,
)
from PySide6.QtSvg import QSvgRenderer

if TYPE_CHECKING:  # the process that writes a PDF needs nothing of the planner
    from planner.present.report.html import PrintedFigure, PrintedReport

_DPI: Final = 288
_SCREEN_DPI: Final = 96
_MARGIN_MM: Final = 16.0
_FAMILY: Final = "DejaVu Sans"
_BOTTOM_RIGHT: Final = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignBottom
_METADATA: Final = QByteArray(
    b'<?xpacket begin="" id="W5M0MpCehiHzreSzNTczkc9d"?><x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF '
    b'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Description rdf:about="" '
    b'xmlns:xmp="http://ns.adobe.com/xap/1.0/" xmp:CreatorTool="GPU Planner"/></rdf:RDF></x:xmpmeta><?xpacket end="r"?>'
)
_DATES: Final = re.compile(rb"/(?:CreationDate|ModDate) \(D:[^)]*\)")
_FOOTER: Final = 24.0
_SMALL_PIXELS: Final = 10
_IMAGE: Final = "\N{OBJECT REPLACEMENT CHARACTER}"
"""Text of a paragraph that is a figure."""
_LONG_ROW: Final = 0.4
"""Share of a page of which a row may reach over its end and still be moved as a whole to the next."""
_LESS_THAN_A_LINE: Final = 6.0


def pdf_bytes(report: "PrintedReport") -> bytes:
    """Return `report` as a PDF of A4 pages with numbers, which is the same whenever it is made.

    A QGuiApplication must exist.
    """
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    writer = QPdfWriter(buffer)
    margins = QMarginsF(_MARGIN_MM, _MARGIN_MM, _MARGIN_MM, _MARGIN_MM)
    size = QPageSize(QPageSize.PageSizeId.A4)
    writer.setPageLayout(QPageLayout(size, QPageLayout.Orientation.Portrait, margins, QPageLayout.Unit.Millimeter))
    writer.setResolution(_DPI)
    writer.setTitle(report["title"])
    writer.setCreator("GPU Planner")
    # Qt's own metadata and identifier would change with the time and at random.
    writer.setDocumentXmpMetadata(_METADATA)
    writer.setDocumentId(QUuid.createUuidV5(QUuid(), report["html"].encode()))
    if report["plan"]:
        writer.addFileAttachment("plan.html", QByteArray(report["plan"].encode()), "text/html")
    area = QSizeF(writer.pageLayout().paintRectPixels(_SCREEN_DPI).size())
    text = QSizeF(area.width(), area.height() - _FOOTER)
    document = _document(report, text)
    small = QFont(_FAMILY)
    small.setPixelSize(_SMALL_PIXELS)
    painter = QPainter(writer)
    painter.scale(_DPI / _SCREEN_DPI, _DPI / _SCREEN_DPI)
    for page in range(document.pageCount()):
        if page:
            writer.newPage()
        painter.save()
        painter.translate(0, -page * text.height())
        document.drawContents(painter, QRectF(0, page * text.height(), text.width(), text.height()))
        painter.restore()
        painter.setFont(small)
        number = f"{page + 1} of {document.pageCount()}"
        painter.drawText(QRectF(0, 0, area.width(), area.height()), _BOTTOM_RIGHT, number)
    painter.end()
    return _DATES.sub(_undated, bytes(buffer.data().data()))


def _undated(found: re.Match[bytes]) -> bytes:
    """Return the entry of a date with an equally long fixed one, so that no offset in the file moves."""
    return re.sub(rb"\d", b"0", found[0])


def _document(report: "PrintedReport", page: QSizeF) -> QTextDocument:
    """Return the report laid out on pages of the size `page`, in pixels of a screen."""
    document = QTextDocument()
    document.setUseDesignMetrics(True)
    document.setDocumentMargin(0)
    document.setDefaultFont(QFont(_FAMILY, 9))
    document.setDefaultStyleSheet(report["style"])
    for index, figure in enumerate(report["figures"]):
        image = _image(figure, min(figure["width"], page.width()))
        document.addResource(QTextDocument.ResourceType.ImageResource.value, QUrl(f"figure:{index}"), image)
    document.setHtml(report["html"])
    document.setPageSize(page)
    _keep_together(document, page.height())
    return document


def _keep_together(document: QTextDocument, page_height: float) -> None:
    """Begin a new page before each row or figure that would be torn, and before a heading at the end of a page.

    To a figure belong its caption below and a heading just above.
    """
    pages = _Pages(document.documentLayout(), page_height)
    block, table = document.begin(), None
    while block.isValid():
        above, table, below = table, QTextCursor(block).currentTable(), block.next()
        if table is not None and table != above:
            _keep_rows_whole(table, pages)
        if block.blockFormat().headingLevel() and below.isValid():
            first, last = pages.of(below)
            if pages.of(block)[0] != (last if below.text() == _IMAGE else first):
                _break_before(block)
        if block.text() == _IMAGE and below.isValid() and pages.of(block)[0] != pages.of(below)[1]:
            above_figure = block.previous()
            _break_before(above_figure if above_figure.blockFormat().headingLevel() else block)
        block = below


class _Pages(NamedTuple):
    """The pages of a document, each `height` high, on which its blocks stand."""

    layout: QAbstractTextDocumentLayout
    height: float

    def of(self, block: QTextBlock) -> tuple[int, int]:
        """Return the first and the last page of `block`."""
        place = self.layout.blockBoundingRect(block)
        return int(place.top() // self.height), int((place.bottom() - 1) // self.height)

    def edges(self, table: QTextTable, row: int) -> tuple[float, float]:
        """Return where the text of a row begins and ends."""
        cells = (table.cellAt(row, column) for column in range(table.columns()))
        places = [self.layout.blockBoundingRect(cell.firstCursorPosition().block()) for cell in cells]
        return min(place.top() for place in places), max(place.bottom() for place in places)


def _break_before(block: QTextBlock) -> None:
    form = block.blockFormat()
    form.setPageBreakPolicy(QTextFormat.PageBreakFlag.PageBreak_AlwaysBefore)
    QTextCursor(block).setBlockFormat(form)
    _lay_out_again(block)


def _lay_out_again(start: QTextBlock) -> None:
    """Lay out what follows `start`: Qt moves only some of it after a change of a table or a page's end."""
    document = start.document()
    document.markContentsDirty(start.position(), document.characterCount() - start.position())


def _keep_rows_whole(table: QTextTable, pages: _Pages) -> None:
    """Let each row that would be torn begin the next page, unless it is long; with its heading if it is the first.

    Qt itself moves a row of which not even the first line fits, and repeats the heading above it: for this the row
    before is made higher.
    """
    for row in range(1, table.rows()):
        top, bottom = pages.edges(table, row)
        left = pages.height - top % pages.height
        is_torn = left < bottom - top < left + pages.height * _LONG_ROW
        if row == 1 and (is_torn or int(pages.edges(table, 0)[0] // pages.height) != int(top // pages.height)):
            above = table.firstCursorPosition().block().previous()
            if above.blockFormat().headingLevel():
                _break_before(above)
            else:
                form = table.format().toTableFormat()
                form.setPageBreakPolicy(QTextFormat.PageBreakFlag.PageBreak_AlwaysBefore)
                table.setFormat(form)
                _lay_out_again(above)
        elif is_torn:
            for column in range(table.columns()):
                cell = table.cellAt(row - 1, column)
                padded = cell.format().toTableCellFormat()
                padded.setBottomPadding(padded.bottomPadding() + left - _LESS_THAN_A_LINE)
                cell.setFormat(padded)
            _lay_out_again(table.firstCursorPosition().block())


def _image(figure: "PrintedFigure", width: float) -> QImage:
    """Return the figure in the writer's resolution, `width` pixels of a screen wide."""
    scale = _DPI / _SCREEN_DPI
    height = figure["height"] * width / figure["width"]
    image = QImage(round(width * scale), round(height * scale), QImage.Format.Format_ARGB32_Premultiplied)
    image.setDevicePixelRatio(scale)
    image.fill(0)
    painter = QPainter(image)
    QSvgRenderer(QByteArray(figure["svg"].encode())).render(painter, QRectF(0, 0, width, height))
    painter.end()
    return image


def main() -> None:
    """Write the report on standard input, as JSON, to standard output as a PDF."""
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    report: PrintedReport = json.load(sys.stdin.buffer)
    app = QGuiApplication(["gpu-planner"])
    sys.stdout.buffer.write(pdf_bytes(report))
    del app


if __name__ == "__main__":
    main()
