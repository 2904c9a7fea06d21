"""Icons of Qt's own dialogs, for files and for messages, from the icons of the theme."""

from collections.abc import Callable
from typing import Final

from PySide6.QtGui import QIcon
from PySide6.QtWidgets import QProxyStyle, QStyle, QStyleOption, QWidget

_Standard = QStyle.StandardPixmap
ICONS: Final = {
    _Standard.SP_MessageBoxInformation: ("info", "accent"),
    _Standard.SP_MessageBoxQuestion: ("unknown", "accent"),
    _Standard.SP_MessageBoxWarning: ("tight", "warn"),
    _Standard.SP_MessageBoxCritical: ("does-not-fit", "bad"),
    _Standard.SP_ComputerIcon: ("computer", "muted"),
    _Standard.SP_DesktopIcon: ("computer", "muted"),
    _Standard.SP_DriveHDIcon: ("computer", "muted"),
    _Standard.SP_DirIcon: ("folder", "muted"),
    _Standard.SP_DirClosedIcon: ("folder", "muted"),
    _Standard.SP_DirLinkIcon: ("folder", "muted"),
    _Standard.SP_DirOpenIcon: ("open", "muted"),
    _Standard.SP_DirHomeIcon: ("folder", "muted"),
    _Standard.SP_FileIcon: ("new", "muted"),
    _Standard.SP_FileLinkIcon: ("new", "muted"),
    _Standard.SP_ArrowBack: ("chevron-left", "text"),
    _Standard.SP_ArrowForward: ("chevron-right", "text"),
    _Standard.SP_FileDialogBack: ("chevron-left", "text"),
    _Standard.SP_FileDialogToParent: ("chevron-up", "text"),
    _Standard.SP_FileDialogNewFolder: ("new-folder", "text"),
    _Standard.SP_FileDialogListView: ("list", "text"),
    _Standard.SP_FileDialogDetailedView: ("table", "text"),
}
"""Icon and color role of each of Qt's standard icons that a dialog of the application can show."""


class ThemedIcons(QProxyStyle):
    """The Fusion style with the icons of the theme; `draw` makes an icon of a name and a color role."""

    def __init__(self, draw: Callable[[str, str], QIcon]) -> None:
        super().__init__("Fusion")
        self._draw = draw

    def standardIcon(
        self, standard: QStyle.StandardPixmap, option: QStyleOption | None = None, widget: QWidget | None = None
    ) -> QIcon:
        """Return an icon of the theme, or Fusion's where the theme has none."""
        if standard in ICONS:
            return self._draw(*ICONS[standard])
        return super().standardIcon(standard, option, widget)
