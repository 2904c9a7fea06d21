"""Overview of the Monitor tab: one sentence on all cards with the first advice, and one line per card."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from planner.monitor.diagnosis.verdict import Verdict, VerdictKind
from planner.monitor.readings.faults import LINK_FAULTS, SILENCING_FAULTS, FaultKind
from planner.monitor.readings.inventory import Device, Inventory
from planner.monitor.readings.metrics import slowing_reasons
from planner.monitor.readings.reading import Cause
from planner.present import format as fmt
from planner.present.monitor.diagnosis import Tone, severity_tone, verdict_sentence
from planner.present.monitor.readings import (
    CardReadings,
    card_numbers_text,
    card_state,
    common_card_name,
    memory_text,
    missing_reason_text,
    power_text,
    short_card_name,
)
from planner.units import GIB

# Verdicts that require no action.
_QUIET: Final = frozenset({VerdictKind.TOO_EARLY, VerdictKind.UNKNOWN, VerdictKind.ASLEEP, VerdictKind.IDLE})
_ATTENTION, _IMPROVABLE, _GOOD, _CALM = range(4)
_CLAUSES: Final = {_ATTENTION: ("needs attention", "need attention"), _IMPROVABLE: ("could do more", "could do more")}


@dataclass(frozen=True, slots=True)
class Headline:
    """Headline on all cards: a sentence, further sentences, the first advice, and the UUID of the worst card.

    Without a `uuid` there is no diagnosis to open.
    """

    sentence: str
    more: str = ""
    advice: str = ""
    tone: Tone = "muted"
    uuid: str | None = None


def machine_headline(verdicts: Mapping[str, Verdict], inventory: Inventory, *, is_released: bool) -> Headline:
    """Return the headline on the monitored machine, including when no card is read or detected yet."""
    if is_released:
        return Headline("Disconnected from the driver; the GPUs are not being read.")
    cut_off = next((fault for fault in inventory.faults if fault.kind in SILENCING_FAULTS), None)
    if inventory.devices and cut_off is not None:
        sentence = f"{fmt.capitalized(cut_off.description.title)}; its GPUs are not being read."
        return Headline(sentence, tone="bad" if cut_off.description.severity == "error" else "warn")
    if inventory.devices:
        return cards_headline(verdicts, inventory.devices)
    if inventory.faults:
        return _headline_without_cards(inventory)
    if inventory.machine and not inventory.driver_version:
        return Headline(f"Connecting to {inventory.machine}…")
    return Headline("No GPU was found here." if inventory.driver_version else "Looking for GPUs…")


def _headline_without_cards(inventory: Inventory) -> Headline:
    """Return what is missing to read cards as one plain sentence; the details of the faults say more."""
    worst = min(inventory.faults, key=lambda fault: fault.description.severity != "error")
    if worst.kind in LINK_FAULTS:
        return Headline(f"{fmt.capitalized(worst.description.title)}.", worst.description.advice, tone="bad")
    if worst.kind in (FaultKind.NO_DRIVER, FaultKind.NO_LIBRARY):
        return Headline(f"No GPU of NVIDIA, AMD, Intel or Apple was found on {inventory.machine or 'this machine'}.")
    where = f"on {inventory.machine}" if inventory.machine else "here"
    return Headline(f"No GPU can be monitored {where}: {worst.description.title}.")


def cards_headline(verdicts: Mapping[str, Verdict], devices: Sequence[Device]) -> Headline:
    """Return the headline on the cards `devices`; cards without a verdict are ignored."""
    judged_cards = [(device, verdicts[device.uuid]) for device in devices if device.uuid in verdicts]
    if not judged_cards:
        return Headline("")
    worst, verdict = min(judged_cards, key=lambda pair: (_attention_rank(pair[1]), pair[1].severity != "error"))
    kinds = {(card_verdict.kind, card_verdict.title) for _device, card_verdict in judged_cards}
    sentence, more = (
        _same_verdict_sentences(verdict, [device for device, _verdict in judged_cards])
        if len(kinds) == 1
        else _mixed_verdict_sentences(judged_cards, _attention_rank(verdict))
    )
    # The advice about a lost card is shown with its fault.
    is_to_do = _attention_rank(verdict) in _CLAUSES and verdict.kind is not VerdictKind.LOST
    advice = verdict.advice[0] if is_to_do and verdict.advice else ""
    return Headline(sentence, more, advice, severity_tone(verdict), worst.uuid)


def _attention_rank(verdict: Verdict) -> int:
    """Return how much attention a verdict needs: a problem, room for improvement, nothing to do, or good use."""
    if verdict.severity in ("error", "warning"):
        return _ATTENTION
    if verdict.severity == "good":
        return _GOOD
    return _CALM if verdict.kind in _QUIET else _IMPROVABLE


def _same_verdict_sentences(verdict: Verdict, devices: Sequence[Device]) -> tuple[str, str]:
    """Return headline and explanation for one card, or for several cards with the same verdict."""
    title = fmt.capitalized(verdict.title)
    if len(devices) == 1:
        return f"{title}.", verdict_sentence(verdict).removeprefix(f"{title}.").strip()
    return f"{common_card_name(devices)}: {verdict.title}.", verdict.sentence


def _mixed_verdict_sentences(judged_cards: Sequence[tuple[Device, Verdict]], rank: int) -> tuple[str, str]:
    """Return a sentence on the cards with the most severe verdicts, and a sentence on all other cards."""
    ranked_cards = [pair for pair in judged_cards if _attention_rank(pair[1]) == rank]
    others = [pair for pair in judged_cards if _attention_rank(pair[1]) != rank]
    if rank not in _CLAUSES:
        return f"Nothing needs attention: {_verdicts_text(judged_cards)}.", ""
    clause = _CLAUSES[rank][len(ranked_cards) > 1]
    counts = f"{fmt.integer(len(ranked_cards))} of {_card_count_text(judged_cards)}"
    sentence = f"{counts} {clause}: {_verdicts_text(ranked_cards)}."
    if all(verdict.kind is VerdictKind.LOST for _device, verdict in ranked_cards):
        is_lost = "are lost" if len(ranked_cards) > 1 else "is lost"
        sentence = f"{counts} {is_lost}: {card_numbers_text([device for device, _verdict in ranked_cards])}."
    more = _verdicts_text(others)
    return sentence, f"{fmt.capitalized(more)}." if more else ""


def _card_count_text(judged_cards: Sequence[tuple[Device, Verdict]]) -> str:
    has_instances = any(device.mig_parent is not None for device, _verdict in judged_cards)
    return f"{fmt.integer(len(judged_cards))} GPUs{' and instances' if has_instances else ''}"


def _verdicts_text(judged_cards: Sequence[tuple[Device, Verdict]]) -> str:
    """Return the verdicts with their cards as text: `idle (cards 5, 6), slowed because of heat (card 3)`."""
    cards: dict[str, list[Device]] = {}
    for device, verdict in judged_cards:
        cards.setdefault(verdict.title, []).append(device)
    commonest = sorted(cards.items(), key=lambda item: -len(item[1]))
    return ", ".join(f"{title} ({card_numbers_text(devices)})" for title, devices in commonest)


_SHOWN_READINGS: Final = (
    ("utilization_fraction", "Utilization"),
    ("memory_used_bytes", "Memory"),
    ("power_watts", "Power"),
    ("temperature_celsius", "Temperature"),
    ("sm_clock_mhz", "SM clock"),
)


@dataclass(frozen=True, slots=True)
class CardLine:
    """Texts of a card's line in the Monitor tab; `tooltip` explains unknown readings."""

    uuid: str
    name: str
    use: str
    memory: str
    power: str
    temperature: str
    clock: str
    state: str
    tone: Tone
    tooltip: str

    @property
    def accessible_text(self) -> str:
        """Return the texts of the line joined into one, for screen readers and the clipboard."""
        parts = (self.name, self.state, self.use, self.memory, self.power, self.temperature, self.clock)
        return ", ".join(part for part in parts if part)


def card_line(row: CardReadings) -> CardLine:
    """Return the texts of a card's line for its latest readings."""
    use, used = row.use.value, row.value("memory_used_bytes")
    is_running = row.device.state == "running"
    return CardLine(
        uuid=row.device.uuid,
        name=numbered_card_name(row),
        use="" if use is None else fmt.percent(use),
        memory="" if used is None else f"{memory_text(row)}{fmt.THIN}GiB",
        power="" if row.value("power_watts") is None else f"{power_text(row)}{fmt.THIN}W",
        temperature=_rounded_text(row.value("temperature_celsius"), "°C"),
        clock=_rounded_text(row.value("sm_clock_mhz"), "MHz"),
        state=card_state(row) or _unknown_state(row),
        tone=card_tone(row),
        tooltip=_missing_readings_text(row) if is_running else "",
    )


def _unknown_state(row: CardReadings) -> str:
    """Return why it is not known what a card is doing."""
    cause = row.use.cause
    if cause in (None, Cause.NOT_YET):
        return "no readings yet" if row.value("memory_used_bytes") is None else "utilization unknown"
    return "not reported" if cause is Cause.NOT_SUPPORTED else "utilization unknown"


def numbered_card_name(row: CardReadings) -> str:
    """Return a card's number and its name without the vendor: `0  RTX 4090`; MIG instances are indented."""
    device = row.device
    # Of an instance, its card's name is in the line above.
    short = f"MIG {device.mig_profile}" if device.mig_profile else short_card_name(device)
    return f"{device.index}  {short}" if device.mig_parent is None else f"└ {device.index}  {short}"


def used_memory_exact_text(row: CardReadings) -> str:
    """Return the used memory of a card in bytes as text, for a tooltip."""
    used = row.value("memory_used_bytes")
    return fmt.exact_bytes(None if used is None else int(used))


def _rounded_text(value: float | None, unit: str) -> str:
    return "" if value is None else f"{fmt.integer(round(value))}{fmt.THIN}{unit}"


def card_tone(row: CardReadings) -> Tone:
    """Return the tone (color) of a card's line: lost, slowed down, idle, or normal."""
    if row.device.state != "running":
        return "bad" if row.device.state == "lost" else "muted"
    use, bits = row.use.value, row.value("clock_reasons")
    if (bits is not None and slowing_reasons(int(bits), use)) or row.reading("utilization_fraction").is_implausible:
        return "warn"
    return "" if use else "muted"


def _missing_readings_text(row: CardReadings) -> str:
    lines = [
        f"{title}: {missing_reason_text(row.reading(name))}"
        for name, title in _SHOWN_READINGS
        if row.value(name) is None
    ]
    bits = row.value("clock_reasons")
    slowing = () if bits is None else slowing_reasons(int(bits), row.use.value)
    lines += [fmt.capitalized(reason.title) for reason in slowing]
    reserved = row.value("memory_reserved_bytes")
    if row.value("memory_used_bytes") is not None:
        lines.append(f"Memory used: {used_memory_exact_text(row)}")
    if reserved:
        lines.append(f"Reserved by the driver: {fmt.significant(reserved / GIB)}{fmt.THIN}GiB")
    return "\n".join(lines)
