"""Tables that stand on a page among other things, and scroll with it."""

from typing import Final

from PySide6.QtWidgets import QTableView

_FRAME: Final = 4


def show_rows(table: QTableView, rows: int) -> None:
    """Make `table` as high as its header and so many rows are."""
    header, row = table.horizontalHeader().sizeHint(), table.verticalHeader().defaultSectionSize()
    table.setFixedHeight(header.height() + rows * row + _FRAME)
