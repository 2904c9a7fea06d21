"""What is fixed about a card, or about an instance of a card in MIG mode."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from planner.monitor.reading import Reading

DeviceState = Literal["running", "lost", "asleep"]


@dataclass(frozen=True, slots=True)
class Device:
    """A card, known by its UUID however the driver numbers it.

    `facts` holds the quantities of `metrics.FACTS`. An instance names its card in `mig_parent`. `name` is one that can
    be shown, `raw_name` what the driver said where that is no text. `state` says why a card has no readings.
    """

    uuid: str
    name: str
    index: int
    pci_bus_id: str = ""
    mig_parent: str | None = None
    mig_instance: tuple[int, int] | None = None
    raw_name: str | None = None
    state: DeviceState = "running"
    facts: Mapping[str, Reading] = field(default_factory=dict)

    def fact(self, name: str) -> float | None:
        """Return a fixed quantity, none where it is not known."""
        reading = self.facts.get(name)
        return None if reading is None else reading.value
