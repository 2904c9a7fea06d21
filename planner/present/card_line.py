"""One card as a line: what stands in each place of it, and how it is read out."""

from dataclasses import dataclass
from typing import Final, Literal

from planner.monitor.readings.clock_reasons import slowing
from planner.monitor.readings.reading import Reading
from planner.present import format as fmt
from planner.present.monitor import CardRow, card_state, memory_text, power_text, why_missing
from planner.units import GIB

Tone = Literal["", "muted", "warn", "bad"]

_SHOWN: Final = (
    ("utilization_fraction", "Utilisation"),
    ("memory_used_bytes", "Memory"),
    ("power_watts", "Power"),
    ("temperature_celsius", "Temperature"),
    ("sm_clock_mhz", "SM clock"),
)


@dataclass(frozen=True, slots=True)
class CardLine:
    """What a card's line says; a missing share has no bar. `tooltip` says what is not known, and why."""

    uuid: str
    name: str
    use: str
    use_share: float | None
    memory: str
    memory_share: float | None
    power: str
    temperature: str
    clock: str
    state: str
    tone: Tone
    tooltip: str

    @property
    def spoken(self) -> str:
        """Return the line as it is read out and copied."""
        parts = (self.name, self.state, self.use, self.memory, self.power, self.temperature, self.clock)
        return ", ".join(part for part in parts if part)


def card_line(row: CardRow) -> CardLine:
    """Return what the line of a card says now."""
    use, used = row.value("utilization_fraction"), row.value("memory_used_bytes")
    total, is_running = row.device.fact("memory_total_bytes"), row.device.state == "running"
    return CardLine(
        uuid=row.device.uuid,
        name=card_name(row),
        use="" if use is None else fmt.percent(use),
        use_share=_share(row.reading("utilization_fraction")),
        memory="" if used is None else f"{memory_text(row)}{fmt.THIN}GiB",
        memory_share=None if used is None or not total else min(used / total, 1.0),
        power="" if row.value("power_watts") is None else f"{power_text(row)}{fmt.THIN}W",
        temperature=_rounded(row.value("temperature_celsius"), "°C"),
        clock=_rounded(row.value("sm_clock_mhz"), "MHz"),
        state=card_state(row) or ("no readings yet" if used is None else "use not told"),
        tone=_tone(row),
        tooltip=_missing(row) if is_running else "",
    )


def card_name(row: CardRow) -> str:
    """Return a card's number and name without its maker's: `0  RTX 4090`; instances are indented."""
    device = row.device
    short = device.name.removeprefix("NVIDIA ").removeprefix("GeForce ")
    return f"{device.index}  {short}" if device.mig_parent is None else f"└ {device.index}  {short}"


def exact_memory(row: CardRow) -> str:
    """Return every byte of the memory that is used, for a tooltip."""
    used = row.value("memory_used_bytes")
    return fmt.exact_bytes(None if used is None else int(used))


def _share(reading: Reading) -> float | None:
    return None if reading.value is None or reading.is_implausible else min(max(reading.value, 0.0), 1.0)


def _rounded(value: float | None, unit: str) -> str:
    return "" if value is None else f"{fmt.integer(round(value))}{fmt.THIN}{unit}"


def _tone(row: CardRow) -> Tone:
    if row.device.state != "running":
        return "bad" if row.device.state == "lost" else "muted"
    use, bits = row.value("utilization_fraction"), row.value("clock_reasons")
    if (bits is not None and slowing(int(bits), use)) or row.reading("utilization_fraction").is_implausible:
        return "warn"
    return "" if use else "muted"


def _missing(row: CardRow) -> str:
    lines = [f"{title}: {why_missing(row.reading(name))}" for name, title in _SHOWN if row.value(name) is None]
    reserved = row.value("memory_reserved_bytes")
    if row.value("memory_used_bytes") is not None:
        lines.append(f"Memory used: {exact_memory(row)}")
    if reserved:
        lines.append(f"Reserved by the driver: {fmt.significant(reserved / GIB)}{fmt.THIN}GiB")
    return "\n".join(lines)
