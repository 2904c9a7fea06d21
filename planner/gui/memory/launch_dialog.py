"""Dialog that shows the files by which another program runs the plan, to be copied or saved."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from PySide6.QtCore import QSize, Qt, Slot
from PySide6.QtGui import QFontDatabase
from PySide6.QtWidgets import QDialog, QFileDialog, QPlainTextEdit, QWidget

from planner.errors import PlannerError, SpecError
from planner.gui.theme import Theme
from planner.gui.widgets.buttons import push_button
from planner.gui.widgets.dialogs import closing_buttons, copy_button
from planner.gui.widgets.inputs.choice_field import ChoiceBox
from planner.gui.widgets.labels import make_label
from planner.gui.widgets.layout import STRETCH, in_column, in_row
from planner.gui.workspace import Workspace
from planner.launch.launch import launch_settings, save_launch_files
from planner.launch.places import PLACES
from planner.launch.places.scripts import SHELL
from planner.launch.settings import Launcher, LaunchSettings, UnexpressedField
from planner.launch.software import LAUNCHERS
from planner.present.plan.settings import setting_title

_SIZE: Final = QSize(860, 640)
_SMALLEST: Final = QSize(560, 420)


class LaunchDialog(QDialog):
    """Dialog with the launch files of the plan for a chosen program and place, and what they do not express."""

    def __init__(self, workspace: Workspace, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._workspace = workspace
        self.settings: LaunchSettings | None = None
        self.program, self.place = ChoiceBox(theme), ChoiceBox(theme)
        launchers = [one for one in LAUNCHERS.values() if one.task == workspace.plan.workload.task]
        launchers.sort(key=self._rank)
        for launcher in launchers:
            self.program.addItem(launcher.title, launcher.name)
        for box in (self.program, self.place):
            box.setSizeAdjustPolicy(ChoiceBox.SizeAdjustPolicy.AdjustToContents)
        for place in PLACES.values():
            self.place.addItem(place.title, place.name)
        self.program.setAccessibleName("Program")
        self.program.setToolTip("Program that runs the plan")
        self.place.setAccessibleName("Place")
        self.place.setToolTip("Place in which the program runs")
        self.problem = make_label(role="bad", wrap=True, selectable=True)
        self.problem.setAlignment(Qt.AlignmentFlag.AlignTop)
        self.preview = QPlainTextEdit(readOnly=True)
        self.preview.setAccessibleName("Files")
        self.preview.setToolTip("Files that run the plan")
        self.preview.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        self.preview.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.unsaid = make_label(role="muted", font=theme.font("small"), wrap=True, selectable=True)
        self.copy = copy_button(self.preview.toPlainText)
        self.save = push_button(
            "&Save to a folder…", "Write these files to a folder; existing files with other contents are not replaced"
        )
        self.save.clicked.connect(self._choose_folder)
        self.setWindowTitle("Launch settings")
        self.setMinimumSize(_SMALLEST)
        program_label, place_label = make_label("&Run with"), make_label("&in")
        program_label.setBuddy(self.program)
        place_label.setBuddy(self.place)
        in_column(
            in_row(program_label, self.program, place_label, self.place, STRETCH, spacing=theme.spacing.small),
            self.problem,
            (self.preview, 1),
            self.unsaid,
            closing_buttons(self, self.copy, self.save),
            owner=self,
            spacing=theme.spacing.medium,
            margins=theme.spacing.large,
        )
        self.resize(_SIZE)
        self.program.currentIndexChanged.connect(self.show_files)
        self.place.currentIndexChanged.connect(self.show_files)
        self.show_files()

    @Slot()
    def show_files(self) -> None:
        """Show the files for the chosen program and place, or why there are none."""
        self.settings, problem = None, ""
        try:
            self.settings = launch_settings(
                self._workspace.plan, self._workspace.catalog, self.program.currentData(), self.place.currentData()
            )
        except SpecError as error:
            problem = error.explanation
        files = () if self.settings is None else self.settings.files
        rows = () if self.settings is None else self.settings.not_expressed
        texts = [file.text if len(files) == 1 else f"# {file.name}\n{file.text}" for file in files]
        self.preview.setPlainText("\n".join(texts))
        self.unsaid.setText("\n".join(_unexpressed_lines(rows)))
        self.problem.setText(problem)
        for part, is_shown in ((self.problem, bool(problem)), (self.preview, bool(files)), (self.unsaid, bool(rows))):
            part.setVisible(is_shown)
        self.copy.setEnabled(bool(files))
        self.save.setEnabled(bool(files))

    def _rank(self, launcher: Launcher) -> tuple[bool, float]:
        """Return whether `launcher` changes the plan, and how many fields it leaves to others: the least is best."""
        workspace = self._workspace
        try:
            settings = launch_settings(workspace.plan, workspace.catalog, launcher.name, SHELL.name)
        except SpecError:
            return True, math.inf
        return settings.plan != workspace.plan, len(settings.not_expressed)

    @Slot()
    def _choose_folder(self) -> None:
        name = QFileDialog.getExistingDirectory(self, "Save to a folder")
        if name:
            self.save_to(Path(name))

    def save_to(self, folder: Path) -> None:
        """Write the files to `folder`; a file with another content is not replaced."""
        assert self.settings is not None
        try:
            save_launch_files(self.settings, folder)
        except PlannerError as error:
            self.problem.setText(f"{error.message}. {error.hint}")
            self.problem.setVisible(True)
        else:
            self.accept()


def _unexpressed_lines(rows: Sequence[UnexpressedField]) -> Iterator[str]:
    """Yield one line for each reason, with all fields that are not in the files for this reason."""
    for reason in dict.fromkeys(row.reason for row in rows):
        fields = [f"{setting_title(row.field)} ({row.value})" for row in rows if row.reason == reason]
        yield f"Not in the files: {', '.join(fields)} – {reason}."
