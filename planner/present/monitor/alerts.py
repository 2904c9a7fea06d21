"""Alerts in words."""

from planner.monitor.alerts import Alert, AlertKind
from planner.present import format as fmt


def alert_sentence(alert: Alert) -> str:
    """Return what happened: `Card 0 RTX 4090 is at 91 °C`."""
    card = f"Card {alert.device.index} {alert.device.name.removeprefix('NVIDIA ')}"
    seen = alert.seen or 0.0
    if alert.process is not None:
        host = alert.process.host
        name = f" ({host.name})" if host is not None else ""
        return f"{card}: process {alert.process.pid}{name} ended"
    return {
        AlertKind.TEMPERATURE: f"{card} is at {seen:.0f}{fmt.THIN}°C",
        AlertKind.MEMORY: f"{card} uses {fmt.percent(seen)} of its memory",
        AlertKind.LOST: f"{card} is lost",
        AlertKind.IDLE: f"{card} is idle",
    }[alert.kind]
