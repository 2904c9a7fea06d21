"""What is wrong, each thing with since when and what to do; what only limits the view is folded away."""

from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QVBoxLayout, QWidget

from planner.gui.theme import Theme, mark
from planner.gui.widgets.label import make_label
from planner.gui.widgets.section import Section
from planner.present import format as fmt
from planner.present.monitor.events import FaultView

_TONES: Final = {"error": "", "warning": "warning", "note": "notice"}


class FaultList(QWidget):
    """Errors and warnings as strips, notes under a heading."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._urgent, self._notes = _Stack(theme), _Stack(theme)
        self._section = Section(theme, "", self._notes)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(theme.spacing.tiny)
        layout.addWidget(self._urgent)
        layout.addWidget(self._section)
        self.show_faults(())

    @property
    def texts(self) -> tuple[str, ...]:
        """Return what is shown, the worst first."""
        return self._urgent.texts + self._notes.texts

    def show_faults(self, faults: Sequence[FaultView]) -> None:
        """Show these faults, which come with the worst first."""
        notes = [fault for fault in faults if fault.severity == "note"]
        self._urgent.show_faults([fault for fault in faults if fault.severity != "note"])
        self._urgent.setVisible(len(notes) < len(faults))
        self._notes.show_faults(notes)
        self._section.set_title(fmt.plural(len(notes), "note"))
        self._section.set_summary("; ".join(fault.title for fault in notes))
        self._section.setVisible(bool(notes))
        self.setVisible(bool(faults))


class _Stack(QWidget):
    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._strips: list[_Strip] = []
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(theme.spacing.tiny)

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(strip.text for strip in self._strips)

    def show_faults(self, faults: Sequence[FaultView]) -> None:
        while len(self._strips) < len(faults):
            self._strips.append(_Strip(self._theme))
            self._column.addWidget(self._strips[-1])
        while len(self._strips) > len(faults):
            strip = self._strips.pop()
            self._column.removeWidget(strip)
            strip.deleteLater()
        for strip, fault in zip(self._strips, faults, strict=True):
            strip.show_fault(fault)


class _Strip(QFrame):
    """One fault: its title and since when, and beneath what to do."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        mark(self, "banner")
        self.text = ""
        self._title = make_label(font=theme.font(bold=True), wrap=True)
        self._advice = make_label(role="muted", wrap=True)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(*(theme.spacing.medium, theme.spacing.tiny) * 2)
        layout.setSpacing(0)
        for label in (self._title, self._advice):
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
            layout.addWidget(label)

    def show_fault(self, fault: FaultView) -> None:
        if fault.as_text == self.text:
            return
        self.text = fault.as_text
        mark(self, _TONES[fault.severity], "tone")
        self._title.setText(f"{fault.title}, {fault.since}")
        self._advice.setText(fault.advice)
        self.setAccessibleName(self.text)
