"""The question for the file that a report is written to."""

from pathlib import Path
from typing import Final

from PySide6.QtWidgets import QFileDialog, QWidget

_KINDS: Final = "Web page (*.html);;PDF (*.pdf);;Markdown (*.md)"


def choose_report_file(parent: QWidget, suggestion: Path) -> Path | None:
    """Ask for the file of a report, and return it with the ending of its format; None if the question was closed."""
    name, kind = QFileDialog.getSaveFileName(parent, "Write a report", str(suggestion), _KINDS)
    if not name:
        return None
    path = Path(name)
    return path if path.suffix else path.with_suffix(kind.partition("(*")[2].rstrip(")"))
