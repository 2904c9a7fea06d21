"""The file that is dragged onto a widget."""

from pathlib import Path

from PySide6.QtGui import QDropEvent


def dropped_path(event: QDropEvent) -> Path | None:
    """Return the only local file or folder that is dragged, or None."""
    urls = event.mimeData().urls()
    return Path(urls[0].toLocalFile()) if len(urls) == 1 and urls[0].isLocalFile() else None
