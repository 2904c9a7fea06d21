"""What the tests of the plots share: two cards over ten minutes, and a wheel."""

from datetime import UTC, datetime

from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QApplication, QWidget

from planner.monitor.readings.metrics import CLOCK_REASONS
from planner.monitor.readings.reading import Reading
from planner.monitor.readings.sample import Sample, Xid
from planner.units import GIB

A, B = "GPU-a", "GPU-b"
NOON = datetime(2026, 3, 4, 12, tzinfo=UTC).timestamp()
POWER_CAP = float(next(reason.bit for reason in CLOCK_REASONS if reason.name == "power-cap"))
HOT = float(next(reason.bit for reason in CLOCK_REASONS if reason.name == "hardware-thermal"))
SECONDS = 600
SILENCE = range(200, 260)


def sample_at(second: int) -> Sample:
    """Return what is read at a second."""
    reasons = {A: POWER_CAP if 300 <= second < 330 else 0.0, B: HOT if second >= 590 else 0.0}
    cards = {
        uuid: {
            "utilization_fraction": Reading(0.5 + 0.4 * (second % 2)),
            "memory_used_bytes": Reading((4.0 + place) * GIB),
            "power_watts": Reading(300.0 + place),
            "power_limit_watts": Reading(450.0),
            "temperature_celsius": Reading(60.0),
            "clock_reasons": Reading(reasons[uuid]),
        }
        for place, uuid in enumerate((A, B))
    }
    host = {"cpu_fraction": Reading(0.25), "io_wait_fraction": Reading(0.01), "disk_read_bytes_per_s": Reading(5e6)}
    return Sample(float(second), NOON + second, cards, host, xids=(Xid(B, 31),) if second == 350 else ())


def wheel(surface: QWidget, at: QPoint, turned: int, held: Qt.KeyboardModifier) -> None:
    """Turn the wheel over a widget."""
    none, begun = Qt.MouseButton.NoButton, Qt.ScrollPhase.NoScrollPhase
    where = QPointF(surface.mapToGlobal(at))
    QApplication.sendEvent(
        surface, QWheelEvent(QPointF(at), where, QPoint(), QPoint(0, turned), none, held, begun, False)
    )
