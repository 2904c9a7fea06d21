"""Dialog that asks to which experiment tracker, and into which folder, a recording is exported."""

from importlib.util import find_spec
from pathlib import Path
from typing import Final

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QFileDialog,
    QGridLayout,
    QLineEdit,
    QPushButton,
    QWidget,
)

from planner.gui.theme import Theme
from planner.gui.widgets.inputs.choice_field import ChoiceBox
from planner.gui.widgets.labels import make_label
from planner.gui.widgets.layout import in_column, in_row
from planner.installation import extra_command
from planner.present.trackers.run import TrackerName
from planner.present.trackers.tracking import TRACKER_TITLES

_ABOUT: Final[dict[TrackerName, str]] = {
    "tensorboard": "An event file in a folder of its own, with every reading at its true time. Show it with "
    "tensorboard --logdir FOLDER.",
    "mlflow": "A run in the database mlflow.db of the folder, with means of ten seconds under MLflow's own names. Show "
    "it with mlflow ui --backend-store-uri sqlite:///FOLDER/mlflow.db.",
    "wandb": "An offline run. Nothing leaves this machine until you upload it with wandb sync.",
}
_WIDTH: Final = 560


class TrackerDialog(QDialog):
    """Dialog for a run of a tracker, exported or `live`; `chosen` carries the tracker's name and the folder."""

    chosen = Signal(str, object)

    def __init__(self, name: str, folder: Path, theme: Theme, parent: QWidget, *, live: bool = False) -> None:
        super().__init__(parent)
        action = "Track {} while it is recorded" if live else "Export {} to an experiment tracker"
        self.setWindowTitle(action.format(name))
        self.setMinimumWidth(_WIDTH)
        self.trackers = ChoiceBox(theme)
        for tracker, title in TRACKER_TITLES.items():
            self.trackers.addItem(title, tracker)
        self.folder = QLineEdit(str(folder))
        self.browse = QPushButton("&Browse…")
        self.about = make_label(role="muted", wrap=True)
        self.buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Cancel)
        self.export = self.buttons.addButton("&Track" if live else "&Export", QDialogButtonBox.ButtonRole.AcceptRole)
        self._lay_out(theme)
        self.trackers.currentIndexChanged.connect(self._show_about)
        self.trackers.setToolTip("Experiment tracker that shows the readings")
        self.folder.setToolTip("Folder of the tracker's runs; it is made if it does not exist")
        self.browse.setToolTip("Choose the folder")
        self.folder.textChanged.connect(self._show_about)
        self.browse.clicked.connect(self._choose_folder)
        self.buttons.accepted.connect(self.accept)
        self.buttons.rejected.connect(self.reject)
        self._show_about()

    @property
    def tracker(self) -> TrackerName:
        """Return the chosen tracker."""
        tracker: TrackerName = self.trackers.currentData()
        return tracker

    def accept(self) -> None:
        """Close the dialog and tell what was chosen."""
        super().accept()
        self.chosen.emit(self.tracker, Path(self.folder.text().strip()).expanduser())

    @Slot()
    def _show_about(self) -> None:
        tracker = self.tracker
        is_missing = tracker != "tensorboard" and find_spec(tracker) is None
        hint = f"\n\nIts package is not installed. Run: {extra_command(tracker)}" if is_missing else ""  # type: ignore[arg-type]
        self.about.setText(_ABOUT[tracker] + hint)
        self.export.setEnabled(not is_missing and bool(self.folder.text().strip()))
        self.resize(self.width(), max(self.height(), self.heightForWidth(self.width())))

    @Slot()
    def _choose_folder(self) -> None:
        chosen = QFileDialog.getExistingDirectory(self, "Folder of the tracker's runs", self.folder.text())
        if chosen:
            self.folder.setText(chosen)

    def _lay_out(self, theme: Theme) -> None:
        grid = QGridLayout()
        grid.setHorizontalSpacing(theme.spacing.medium)
        grid.setVerticalSpacing(theme.spacing.small)
        for row, (title, field) in enumerate((("&Tracker", self.trackers), ("&Folder", self.folder))):
            label = make_label(title)
            label.setBuddy(field)
            field.setAccessibleName(title.replace("&", ""))
            grid.addWidget(label, row, 0)
        grid.addWidget(self.trackers, 0, 1)
        grid.addLayout(in_row((self.folder, 1), self.browse, spacing=theme.spacing.small), 1, 1)
        in_column(grid, self.about, self.buttons, owner=self, margins=None, spacing=theme.spacing.medium)
