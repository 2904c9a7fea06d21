"""The bars of the memory in each phase."""

from memory_results import view
from PySide6.QtCore import QPoint
from PySide6.QtGui import QHelpEvent
from PySide6.QtWidgets import QToolTip

from planner.gui.memory.breakdown import PhaseBars


def test_the_peak_is_said_and_each_phase_explains_itself(qtbot, theme, qapp):
    bars = PhaseBars(theme)
    qtbot.addWidget(bars)
    bars.setFixedWidth(180)
    bars.set_view(view())
    bars.show()
    words = bars.accessibleDescription().replace("\u2009", " ")
    assert words == "Load 16.0 GiB; Decode 18.0 GiB, the peak"
    qapp.sendEvent(bars, QHelpEvent(QHelpEvent.Type.ToolTip, QPoint(5, 5), bars.mapToGlobal(QPoint(5, 5))))
    assert "only the weights" in QToolTip.text()
    QToolTip.hideText()
    for scheme in ("dark", "light"):
        theme.apply(scheme)
        assert not bars.grab().isNull()
