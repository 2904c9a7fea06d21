"""Cards that the driver found on this machine, matched with the catalog."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from planner.hardware.catalog import HardwareCatalog
from planner.hardware.gpu import Gpu
from planner.monitor.readings.inventory import Device
from planner.plan.measured import matching_gpus
from planner.present import format as fmt


@dataclass(frozen=True, slots=True)
class DetectedCards:
    """Cards found by the driver: a label for each catalog record that matches, and one sentence about all cards.

    `details` lists what the driver reports about cards that are not in the catalog, one fact per line.
    """

    words: Mapping[str, str]
    sentence: str
    details: str


@dataclass(frozen=True, slots=True)
class FoundKind:
    """Cards of this machine of one kind; `gpu` is the catalog id, None for a card that is not in the catalog."""

    gpu: str | None
    name: str
    count: int

    @property
    def text(self) -> str:
        """Return `RTX 4090`, or `2 × RTX 4090` for several."""
        return self.name if self.count == 1 else fmt.count_of(self.count, self.name)


NO_CARDS: Final = DetectedCards({}, "", "")


def detect_cards(hardware: HardwareCatalog, devices: Iterable[Device]) -> DetectedCards:
    """Match the cards of this machine with the catalog, by name and memory.

    MIG instances do not count as cards. Without any card everything is empty.
    """
    found = [(device, matching_gpus(hardware, device)) for device in devices if device.mig_parent is None]
    if not found:
        return NO_CARDS
    sure = Counter(gpus[0].id for _, gpus in found if len(gpus) == 1)
    unsure = {gpu.id for _, gpus in found if len(gpus) > 1 for gpu in gpus}
    words = dict.fromkeys(unsure, "Perhaps here") | {
        name: "Here" if count == 1 else f"{fmt.integer(count)} here" for name, count in sure.items()
    }
    counts = Counter(_matched_card_text(device, gpus) for device, gpus in found)
    sentence = "; ".join(f"{fmt.integer(count)} × {text}" if count > 1 else text for text, count in counts.items())
    unknown = ("\n".join((device.name, *fact_lines(device))) for device, gpus in found if not gpus)
    return DetectedCards(words, f"This machine: {sentence}.", "\n\n".join(dict.fromkeys(unknown)))


def found_kinds(hardware: HardwareCatalog, devices: Iterable[Device]) -> tuple[FoundKind, ...]:
    """Return the kinds of cards of this machine, the most numerous first.

    Of several records that match a card, the first stands for it. MIG instances do not count as cards.
    """
    matches = [(device.name, matching_gpus(hardware, device)) for device in devices if device.mig_parent is None]
    counted = Counter((gpus[0].id, gpus[0].name) if gpus else (None, name) for name, gpus in matches)
    return tuple(FoundKind(gpu, name, count) for (gpu, name), count in counted.most_common())


def fact_lines(device: Device) -> Iterator[str]:
    """Yield what the driver reports about a card, one fact per line."""
    for name, reading in device.facts.items():
        yield f"{name}: {fmt.UNKNOWN if reading.value is None else f'{reading.value:,.0f}'}"


def _matched_card_text(device: Device, gpus: tuple[Gpu, ...]) -> str:
    """Return which catalog records match a detected card, as text."""
    if len(gpus) == 1:
        return gpus[0].name
    if gpus:
        return f"{device.name}, one of {', '.join(gpu.id for gpu in gpus)}"
    total = device.fact("memory_total_bytes")
    size = "" if total is None else f", {fmt.size(int(total))}"
    return f"{device.name}{size}, not in the catalog under this name and memory"
