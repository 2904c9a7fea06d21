"""Readings of cards and of the machine as text and table rows, and the cost of reading them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from planner.monitor.doctor import SetupCheck
from planner.monitor.readings.faults import LINK_FAULTS, Fault
from planner.monitor.readings.inventory import Device, Inventory
from planner.monitor.readings.latest import Latest
from planner.monitor.readings.metrics import slowing_reasons
from planner.monitor.readings.reading import EXPLANATIONS, Cause, Reading
from planner.monitor.readings.sample import SamplingCost
from planner.present import format as fmt
from planner.present.columns import Column, number_column, text_column
from planner.units import GIB

NO_VALUE = "–"
"""Text of a table cell without a value; the tooltip or `monitor --doctor` gives the reason."""

_NOT_READ_TEXTS: Final[Mapping[Cause | None, str]] = {Cause.NO_ANSWER: "no answer", Cause.RELEASED: "disconnected"}


@dataclass(frozen=True, slots=True)
class CardReadings:
    """Table row of a card with its latest readings."""

    device: Device
    latest: Latest

    def reading(self, name: str) -> Reading:
        """Return the card's latest reading of the quantity `name`."""
        return self.latest.reading(self.device.uuid, name)

    @property
    def use(self) -> Reading:
        """Return the card's utilization; in MIG mode, in which there is none, the time that its engine was active."""
        reading = self.reading("utilization_fraction")
        active = self.reading("graphics_active_fraction")
        return active if reading.cause is Cause.MIG and active.value is not None else reading

    def value(self, name: str) -> float | None:
        """Return the card's latest value of the quantity `name`, None if unknown."""
        return self.reading(name).value


def card_rows(latest: Latest) -> tuple[CardReadings, ...]:
    """Return a table row for each card, MIG instances after their card."""
    return tuple(CardReadings(device, latest) for device in latest.inventory.devices)


def card_label(device: Device) -> str:
    """Return a card's number, or a MIG instance's number on its card, indented."""
    return str(device.index) if device.mig_parent is None else f" └ {device.index}"


def short_card_name(device: Device) -> str:
    """Return a card's name without the vendor and its brand: `RTX 4090`."""
    return device.name.removeprefix("NVIDIA ").removeprefix("GeForce ").removeprefix("AMD ").removeprefix("Intel ")


def common_card_name(devices: Sequence[Device]) -> str:
    """Return the number and the name of cards: `8 × H100 80GB HBM3`, or `8 cards` if their names differ."""
    names = {short_card_name(device) for device in devices}
    return fmt.count_of(len(devices), names.pop()) if len(names) == 1 else fmt.plural(len(devices), "GPU")


def card_numbers_text(devices: Sequence[Device]) -> str:
    """Return the numbers of cards and MIG instances as text: `GPUs 0, 1, 4 and instance 2`."""
    cards = _numbered_noun("GPU", [device.index for device in devices if device.mig_parent is None])
    instances = _numbered_noun("instance", [device.index for device in devices if device.mig_parent is not None])
    return fmt.listing(tuple(part for part in (cards, instances) if part))


def _numbered_noun(noun: str, numbers: Sequence[int]) -> str:
    """Return a noun with numbers: `GPUs 0 to 4, 7`; empty without numbers."""
    if not numbers:
        return ""
    return f"{noun}{'s' if len(numbers) > 1 else ''} {', '.join(number_ranges(numbers))}"


def number_ranges(numbers: Sequence[int]) -> list[str]:
    """Return ascending numbers as texts, those of runs together: `0 to 4`, `7`."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return [f"{run[0]} to {run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs]


def card_state(row: CardReadings) -> str:
    """Return a card's state: `busy`, `idle`, a reason for throttling, or why the state is not known."""
    if row.device.state != "running":
        return row.device.state
    cause = row.use.cause
    if cause in _NOT_READ_TEXTS:
        return _NOT_READ_TEXTS[cause]
    use, bits = row.use.value, row.value("clock_reasons")
    reasons = slowing_reasons(int(bits), use) if bits is not None else ()
    if reasons:
        return reasons[0].title.partition(":")[0]
    if row.reading("utilization_fraction").is_implausible:
        return "implausible reading"
    return "" if use is None else "idle" if use == 0 else "busy"


def missing_reason_text(reading: Reading) -> str:
    """Return why a reading has no value, or an empty text if it has a value."""
    return EXPLANATIONS[reading.cause] if reading.cause is not None else ""


def memory_text(row: CardReadings) -> str:
    """Return a card's used and total memory in GiB as text: `17.4 / 24.0`."""
    used, total = row.value("memory_used_bytes"), row.device.fact("memory_total_bytes")
    if used is None and total is None:
        return NO_VALUE
    return " / ".join(NO_VALUE if value is None else fmt.significant(value / GIB) for value in (used, total))


def power_text(row: CardReadings) -> str:
    """Return a card's power draw and power limit in watts as text: `312 / 350`."""
    drawn, limit = row.value("power_watts"), row.value("power_limit_watts")
    if drawn is None:
        return NO_VALUE
    return f"{drawn:.0f}" if limit is None else f"{drawn:.0f} / {limit:.0f}"


def _reading_column(
    key: str, title: str, name: str, unit: str, per_unit: float = 1, about: str = ""
) -> Column[CardReadings]:
    return number_column(
        key,
        title,
        lambda row: row.value(name),
        unit=unit,
        per_unit=per_unit,
        show=lambda value: f"{value:.0f}",
        unknown=NO_VALUE,
        tooltip=lambda row: missing_reason_text(row.reading(name)),
        about=about,
    )


CARD_COLUMNS: tuple[Column[CardReadings], ...] = (
    text_column("number", "GPU", lambda row: card_label(row.device), about="Number of the GPU in the driver"),
    text_column("name", "Name", lambda row: row.device.name, about="Name of the GPU"),
    number_column(
        "utilization",
        "Use",
        lambda row: row.use.value,
        unit="%",
        per_unit=0.01,
        show=lambda value: f"{value:.0f}",
        unknown=NO_VALUE,
        tooltip=lambda row: missing_reason_text(row.use),
        about="Share of time in which at least one kernel runs",
    ),
    Column(
        "memory",
        "Memory",
        lambda row: row.value("memory_used_bytes"),
        memory_text,
        "GiB",
        "right",
        help="GPU memory in use and in all",
    ),
    _reading_column(
        "controller",
        "Mem. controller",
        "memory_controller_fraction",
        "%",
        0.01,
        about="Share of time in which GPU memory is read or written",
    ),
    Column(
        "power",
        "Power",
        lambda row: row.value("power_watts"),
        power_text,
        "W",
        "right",
        help="Power drawn now, and the limit",
    ),
    _reading_column("temperature", "Temp.", "temperature_celsius", "°C", about="Temperature of the chip"),
    _reading_column("clock", "SM clock", "sm_clock_mhz", "MHz", about="Clock of the streaming multiprocessors"),
    _reading_column("fan", "Fan", "fan_fraction", "%", 0.01, about="Fan speed as a share of the fastest"),
    text_column("state", "State", card_state, unknown=NO_VALUE, about="What the GPU is doing, or what slows it"),
)
"""Columns of the card table on the command line."""


_BAR_CELLS: Final = 10
_PARTS_OF_CELL: Final = " ▏▎▍▌▋▊▉"


def bar_text(fraction: float | None) -> str:
    """Return a fraction as a bar of ten characters, in steps of an eighth; empty if unknown."""
    if fraction is None:
        return ""
    whole, eighths = divmod(round(min(max(fraction, 0.0), 1.0) * _BAR_CELLS * 8), 8)
    return f"{'█' * whole}{_PARTS_OF_CELL[eighths] if eighths else ''}".ljust(_BAR_CELLS)


def _memory_fraction(row: CardReadings) -> float | None:
    used, total = row.value("memory_used_bytes"), row.device.fact("memory_total_bytes")
    return None if used is None or not total else used / total


_BARS: Final[Mapping[str, Column[CardReadings]]] = {
    "utilization": text_column("use_bar", "", lambda row: bar_text(row.use.value), unknown=""),
    "memory": text_column("memory_bar", "", lambda row: bar_text(_memory_fraction(row)), unknown=""),
}
_SHORT_NAME: Final[Column[CardReadings]] = text_column("name", "Name", lambda row: short_card_name(row.device))
BARRED_CARD_COLUMNS: tuple[Column[CardReadings], ...] = tuple(
    shown
    for column in CARD_COLUMNS
    for shown in (_SHORT_NAME if column.key == "name" else column, _BARS.get(column.key))
    if shown is not None
)
"""Columns of the card table in a terminal: utilization and memory have bars, and names are short."""


def host_line(latest: Latest) -> str:
    """Return this machine's use of CPU, RAM, disks and network as one line."""
    values = {name: reading.value for name, reading in latest.host.items()}
    cpu, waiting = values.get("cpu_fraction"), values.get("io_wait_fraction")
    used, available = values.get("memory_used_bytes"), values.get("memory_available_bytes")
    parts = [
        "" if cpu is None else f"CPU {fmt.percent(cpu)}",
        "" if not waiting or waiting < 0.005 else f"I/O wait {fmt.percent(waiting)}",
        "" if used is None or available is None else f"RAM {fmt.size(int(used))} of {fmt.size(int(used + available))}",
        _traffic_text("disk", values.get("disk_read_bytes_per_s"), values.get("disk_write_bytes_per_s")),
        _traffic_text("network", values.get("network_receive_bytes_per_s"), values.get("network_transmit_bytes_per_s")),
    ]
    return " · ".join(part for part in parts if part)


def fault_line(fault: Fault, latest: Latest) -> str:
    """Return a fault as one line: the card, the fault's title and details."""
    names = {device.uuid: f"GPU {device.index}" for device in latest.inventory.devices}
    title, detail = fault.description.title, f" ({fault.detail})" if fault.detail else ""
    if fault.uuid not in names:
        return f"{title}{detail}"
    predicate = title.removeprefix("the GPU ")
    return f"{names[fault.uuid]}{' ' if predicate != title else ': '}{predicate}{detail}"


def driver_line(inventory: Inventory) -> str:
    """Return the driver and CUDA versions as one line; nothing of a machine that is not connected."""
    if any(fault.kind in LINK_FAULTS for fault in inventory.faults):
        return ""
    drivers = dict.fromkeys(name for device in inventory.devices for name in device.driver.split(", ") if name)
    if not inventory.driver_version:
        return f"driver {', '.join(drivers)}" if drivers else "no driver"
    cuda = f" · CUDA {inventory.cuda_version}" if inventory.cuda_version else ""
    others = "".join(f" · {name}" for name in drivers)
    return f"driver {inventory.driver_version}{cuda}{others}"


def _traffic_text(name: str, inbound: float | None, outbound: float | None) -> str:
    """Return two rates in bytes per second as text, such as `disks 12.0 / 3.4 MB/s`; empty if one is unknown."""
    if inbound is None or outbound is None:
        return ""
    return f"{name} {inbound / 1e6:.1f} / {outbound / 1e6:.1f}{fmt.THIN}MB/s"


def monitoring_cost_text(cost: SamplingCost | None, window_fraction: float | None) -> str:
    """Return the cost of monitoring as text: time per reading, and the CPU of the sampler and of the window."""
    parts = []
    if cost is not None:
        parts.append(f"{fmt.significant(cost.sweep_seconds * 1e3, 2)}{fmt.THIN}ms per reading")
        parts.append(f"sampler {fmt.precise_percent(cost.cpu_fraction)} of a core")
    if window_fraction is not None:
        parts.append(f"window {fmt.precise_percent(window_fraction)}")
    return f"monitoring: {', '.join(parts)}" if parts else ""


_OUTCOME_SIGNS: Final = {"works": "✓", "partly": "!", "fails": "✗", "note": "·"}


def setup_check_text(checks: Iterable[SetupCheck]) -> str:
    """Return the results of the setup checks as text, each with its advice; equal results are combined."""
    equal_checks = (list(group) for _, group in groupby(checks, key=lambda check: check[1:]))
    return "\n".join(map(_setup_check_line, equal_checks))


def _setup_check_line(equal_checks: list[SetupCheck]) -> str:
    first, *others = equal_checks
    more = f" and {fmt.integer(len(others))} more" if others else ""
    advice = f"\n    {first.advice}" if first.advice else ""
    return f"{_OUTCOME_SIGNS[first.outcome]} {first.subject}{more}: {first.found}{advice}"
