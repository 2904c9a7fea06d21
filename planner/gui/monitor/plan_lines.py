"""What the plan predicts, drawn into the plots of the cards that it is for."""

from collections.abc import Mapping
from typing import Final

from planner.gui.monitor.plots.grid import PlotGrid
from planner.monitor.readings.inventory import Device
from planner.plan.measured import Expected

_DRAWN: Final = (("memory_used_bytes", "memory_bytes"), ("power_watts", "power_watts"))


class PlanLines:
    """A line a card and quantity; where several cards have the same, it is named once."""

    def __init__(self, plots: PlotGrid, title: str) -> None:
        self._plots, self._title = plots, title
        self._lines: dict[tuple[str, str], tuple[float, str]] = {}

    def draw(self, devices: tuple[Device, ...], expected: Mapping[str, Expected]) -> Mapping[str, float]:
        """Draw what is expected of each card, and return it as a share of the card's memory, by UUID."""
        lines: dict[tuple[str, str], tuple[float, str]] = {}
        shares = {}
        for device in devices:
            if (found := expected.get(device.uuid)) is None:
                continue
            if total := device.fact("memory_total_bytes"):
                shares[device.uuid] = found.memory_bytes / total
            for metric, field in _DRAWN:
                value = getattr(found, field)
                if value is not None:
                    is_named = any(key[0] == metric and line[0] == value for key, line in lines.items())
                    lines[metric, device.uuid] = (value, "" if is_named else self._title)
        self._change_to(lines)
        return shares

    def _change_to(self, lines: dict[tuple[str, str], tuple[float, str]]) -> None:
        before, self._lines = self._lines, lines
        for metric, uuid in before.keys() - lines.keys():
            self._plots.set_line(metric, uuid, None)
        for (metric, uuid), (value, title) in lines.items():
            if before.get((metric, uuid)) != (value, title):
                self._plots.set_line(metric, uuid, value, title)
