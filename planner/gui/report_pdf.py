"""Reports as PDF, by Qt's own writer; `python -m planner.gui.report_pdf FILE` reads the report from standard input."""

import os
import re
import sys
from pathlib import Path
from typing import Final

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QMarginsF, QRectF, QSizeF, Qt, QUrl, QUuid
from PySide6.QtGui import (
    QFont,
    QGuiApplication,
    QImage,
    QPageLayout,
    QPageSize,
    QPainter,
    QPdfWriter,
    QTextCursor,
    QTextDocument,
    QTextFormat,
)
from PySide6.QtSvg import QSvgRenderer

from planner.present.report.printed import PrintedFigure, PrintedReport
from planner.storage import write_atomically

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


def pdf_bytes(report: PrintedReport) -> bytes:
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
    writer.setTitle(report.title)
    writer.setCreator("GPU Planner")
    # Qt's own metadata and identifier would change with the time and at random.
    writer.setDocumentXmpMetadata(_METADATA)
    writer.setDocumentId(QUuid.createUuidV5(QUuid(), report.html.encode()))
    if report.plan:
        writer.addFileAttachment("plan.html", QByteArray(report.plan.encode()), "text/html")
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


def _document(report: PrintedReport, page: QSizeF) -> QTextDocument:
    """Return the report laid out on pages of the size `page`, in pixels of a screen."""
    document = QTextDocument()
    document.setUseDesignMetrics(True)
    document.setDocumentMargin(0)
    document.setDefaultFont(QFont(_FAMILY, 9))
    document.setDefaultStyleSheet(report.style)
    for index, figure in enumerate(report.figures):
        image = _image(figure, min(figure.width, page.width()))
        document.addResource(QTextDocument.ResourceType.ImageResource.value, QUrl(f"figure:{index}"), image)
    document.setHtml(report.html)
    document.setPageSize(page)
    _keep_headings_with_text(document, page.height())
    return document


def _keep_headings_with_text(document: QTextDocument, page_height: float) -> None:
    """Begin a new page before each heading that would be the last line of a page."""
    layout = document.documentLayout()
    block = document.begin()
    while block.isValid():
        below = block.next()
        if block.blockFormat().headingLevel() and below.isValid():
            places = (layout.blockBoundingRect(each).top() // page_height for each in (block, below))
            if len(set(places)) > 1:
                cursor = QTextCursor(block)
                form = block.blockFormat()
                form.setPageBreakPolicy(QTextFormat.PageBreakFlag.PageBreak_AlwaysBefore)
                cursor.setBlockFormat(form)
        block = block.next()


def _image(figure: PrintedFigure, width: float) -> QImage:
    """Return the figure in the writer's resolution, `width` pixels of a screen wide."""
    scale = _DPI / _SCREEN_DPI
    height = figure.height * width / figure.width
    image = QImage(round(width * scale), round(height * scale), QImage.Format.Format_ARGB32_Premultiplied)
    image.setDevicePixelRatio(scale)
    image.fill(0)
    painter = QPainter(image)
    QSvgRenderer(QByteArray(figure.svg.encode())).render(painter, QRectF(0, 0, width, height))
    painter.end()
    return image


def main(argv: list[str]) -> int:
    """Write the report on standard input, as JSON, to the PDF file named by the first argument."""
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    report = PrintedReport.model_validate_json(sys.stdin.buffer.read())
    app = QGuiApplication.instance() or QGuiApplication(["gpu-planner"])
    try:
        write_atomically(Path(argv[0]), pdf_bytes(report))
    except OSError as error:
        print(error.strerror, file=sys.stderr)  # noqa: T201  # the message of the child process
        return 1
    finally:
        del app
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
