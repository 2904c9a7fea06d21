"""One line under the answer: whose log corrects the estimate, and how to switch that off."""

from PySide6.QtCore import Slot
from PySide6.QtWidgets import QHBoxLayout, QWidget

from planner.gui.theme import Theme
from planner.gui.widgets.label import make_label
from planner.gui.widgets.link_button import link_button
from planner.gui.workspace import Workspace
from planner.memory.corrections import correction_note
from planner.plan.evaluate import Evaluation
from planner.plan.logs.corrected import counting
from planner.present import format as fmt


class CorrectionStrip(QWidget):
    """Shown as long as a correction is in the estimate."""

    def __init__(self, workspace: Workspace, theme: Theme) -> None:
        super().__init__()
        self._workspace = workspace
        self.words = make_label(role="warn", wrap=True)
        self.off = link_button("Switch off", "Estimate without what your log showed.")
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(theme.spacing.small)
        layout.addWidget(self.words, 1)
        layout.addWidget(self.off)
        self.off.clicked.connect(self._switch_off)
        self.hide()

    def refresh(self, evaluation: Evaluation) -> None:
        """Say which corrections are in `evaluation`."""
        found = counting(evaluation)
        sentences = [f"Corrected by your log of {fmt.date(item.date)}: {item.changes}." for item in found]
        self.words.setText(" ".join(sentences))
        self.words.setToolTip("\n".join(map(correction_note, found)))
        self.setVisible(bool(found))

    @Slot()
    def _switch_off(self) -> None:
        used = counting(self._workspace.evaluation)
        others = tuple(item for item in self._workspace.plan.corrections if item not in used)
        self._workspace.end_gesture()
        with self._workspace.reporting():
            self._workspace.apply("correction", corrections=others)
