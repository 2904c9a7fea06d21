"""Recordings as text and table rows: their contents, missing parts, and summary."""

from collections.abc import Callable
from datetime import datetime
from typing import Final

from planner.monitor.readings.metrics import CLOCK_REASONS
from planner.monitor.recording.recording import DataLoss, MonitorRecording
from planner.monitor.recording.summary import CardSummary, RecordingSummary
from planner.present import format as fmt
from planner.present.columns import Column, text_column
from planner.present.monitor.events import clock_time, diagnosis_title, duration_text
from planner.present.monitor.readings import NO_VALUE, card_label, card_numbers_text
from planner.units import GIB, JOULES_PER_KWH

_REASONS: Final = {reason.name: reason.title for reason in CLOCK_REASONS}
_JOULES_PER_WH: Final = JOULES_PER_KWH / 1000
_ABOUT: Final = "≈ "
# Smaller gaps change an energy by less than the error of the readings.
_LEAST_GAP_FRACTION: Final = 0.01


def energy_text(joules: float | None, *, is_estimated: bool) -> str:
    """Return an energy as text, `1.23 kWh` or `45 Wh`, with ≈ before an estimate from power readings."""
    if joules is None:
        return NO_VALUE
    about = _ABOUT if is_estimated else ""
    if joules < JOULES_PER_KWH / 10:
        return f"{about}{fmt.plain(joules / _JOULES_PER_WH)}{fmt.THIN}Wh"
    return f"{about}{fmt.plain(joules / JOULES_PER_KWH)}{fmt.THIN}kWh"


def energy_cost_text(usd: float | None) -> str:
    """Return the cost of energy as text, without rounding small amounts to zero: `$2.39`, `$0.0041`."""
    if usd is None:
        return NO_VALUE
    return fmt.money(usd) if usd >= 1 or usd == 0 else f"${fmt.significant(usd, 2)}"


def recording_line(recording: MonitorRecording) -> str:
    """Return the contents of a recording as one line: `run.gpurec: 48 min from 3 January 2026 15:36, 9 samples`."""
    first = recording.first
    if first is None:
        return f"{recording.path.name}: no samples"
    parts = [
        f"{duration_text(recording.seconds)} from {_date_time_text(first.wall_seconds)}",
        fmt.plural(recording.samples, "sample"),
    ]
    if recording.marks:
        parts.append(fmt.plural(len(recording.marks), "mark"))
    return f"{recording.path.name}: {', '.join(parts)}"


def recording_notes(recording: MonitorRecording) -> tuple[str, ...]:
    """Return notes on a recording: which parts are missing, and how an imported log was interpreted."""
    return (*loss_sentences(recording.loss), *recording.notes)


def loss_sentences(loss: DataLoss) -> tuple[str, ...]:
    """Return sentences on the missing parts of a recording, none if the recording is complete."""
    sentences = []
    if loss.is_cut:
        sentences.append("The recording is truncated; its last second may be missing.")
    if loss.places:
        size = fmt.size(loss.lost_bytes)
        sentences.append(f"{fmt.plural(loss.places, 'place')} of the file cannot be read, {size} at most.")
    if loss.bad_lines:
        why = f" (the first: {loss.reason})" if loss.reason else ""
        sentences.append(f"{fmt.plural(loss.bad_lines, 'line')} of the file cannot be parsed{why}.")
    return tuple(sentences)


def energy_summary_text(summary: RecordingSummary) -> str:
    """Return the energy of all cards and its cost as text, empty if the energy is not known."""
    if summary.energy_joules is None:
        return ""
    used = f"{energy_text(summary.energy_joules, is_estimated=summary.is_estimated)} used by the GPUs"
    if summary.usd is not None and summary.usd_per_kwh is not None:
        used += f", {energy_cost_text(summary.usd)} at {energy_cost_text(summary.usd_per_kwh)} per kWh"
    return (
        f"{used} (≈: integrated from power readings where a GPU has no energy counter)"
        if summary.is_estimated
        else used
    )


def summary_lines(recording: MonitorRecording, summary: RecordingSummary) -> tuple[str, ...]:
    """Return the energy of the recorded cards, or that it is not known, and notes on the recording, one per line."""
    used = energy_summary_text(summary)
    answer = fmt.capitalized(used) if used else "No GPU reported its energy or power."
    notes = (gap_sentence(summary, recording.seconds), *recording_notes(recording))
    return tuple(part for part in (answer, diagnosed_text(summary), *notes) if part)


def diagnosed_text(summary: RecordingSummary) -> str:
    """Return how long each diagnosis lasted: `Diagnosed: input-bound 2 min 30 s (from 08:01:00), …`.

    The seconds are the mean over all cards; the cards are named if it was not all of them. Empty without a diagnosis.
    """
    devices = [card.device for card in summary.cards if card.device.mig_parent is None]
    parts = []
    for found in summary.diagnoses:
        cards = [device for device in devices if device.uuid in found.uuids]
        where = "" if len(cards) == len(devices) else f"{card_numbers_text(cards)}, "
        lasted = duration_text(found.seconds / max(1, len(cards)))
        parts.append(f"{diagnosis_title(found.kind)} {lasted} ({where}from {clock_time(found.first_wall_seconds)})")
    return f"Diagnosed: {', '.join(parts)}" if parts else ""


def gap_sentence(summary: RecordingSummary, seconds: float) -> str:
    """Return a sentence on the gaps that the estimated energy leaves out, empty if the gaps are negligible.

    An energy counter includes gaps between readings, an integral of power readings does not.
    """
    read = min((card.seconds for card in summary.cards if card.is_estimated), default=seconds)
    left_out = seconds - read
    if left_out < _LEAST_GAP_FRACTION * seconds:
        return ""
    return f"The estimated energy does not include gaps of {duration_text(left_out)}."


def throttling_text(card: CardSummary) -> str:
    """Return the reasons for which a card was throttled, and for how long: `power limit 3 min 2 s`."""
    longest = sorted(card.slowed_seconds.items(), key=lambda item: -item[1])
    return ", ".join(f"{_REASONS[name]} {duration_text(seconds)}" for name, seconds in longest)


def _date_time_text(wall_seconds: float) -> str:
    at = datetime.fromtimestamp(wall_seconds).astimezone()
    return f"{fmt.date(f'{at:%Y-%m-%d}')} {at:%H:%M}"


def _statistic_column(
    key: str, title: str, name: str, unit: str, show: Callable[[float], str], about: str
) -> Column[CardSummary]:
    """Return a column with the mean and the peak of the statistic `name`, each written by `show`."""

    def mean(card: CardSummary) -> float | None:
        return card.statistics[name].mean if name in card.statistics else None

    def mean_and_peak_text(card: CardSummary) -> str:
        statistic = card.statistics.get(name)
        return NO_VALUE if statistic is None else f"{show(statistic.mean)} / {show(statistic.peak)}"

    return Column(key, title, mean, mean_and_peak_text, unit, "right", width=9, help=f"{about}: mean / peak")


SUMMARY_COLUMNS: tuple[Column[CardSummary], ...] = (
    text_column(
        "number", "GPU", lambda card: card_label(card.device), width=6, about="Number of the GPU in the driver"
    ),
    text_column("name", "Name", lambda card: card.device.name, width=22, about="Name of the GPU"),
    Column(
        "time",
        "Time",
        lambda card: card.seconds,
        lambda card: duration_text(card.seconds),
        align="right",
        width=10,
        help="Time recorded for the GPU",
    ),
    Column(
        "energy",
        "Energy",
        lambda card: card.energy_joules,
        lambda card: energy_text(card.energy_joules, is_estimated=card.is_estimated),
        align="right",
        width=10,
        help="Electrical energy that the GPU used",
    ),
    Column(
        "cost",
        "Cost",
        lambda card: card.usd,
        lambda card: energy_cost_text(card.usd),
        align="right",
        width=7,
        help="Cost of that energy",
    ),
    _statistic_column(
        "utilization",
        "Use",
        "utilization_fraction",
        "%",
        lambda fraction: f"{100 * fraction:.0f}",
        "Share of time in which a kernel ran",
    ),
    _statistic_column(
        "memory",
        "Memory",
        "memory_used_bytes",
        "GiB",
        lambda size: fmt.significant(size / GIB),
        "GPU memory in use",
    ),
    _statistic_column("power", "Power", "power_watts", "W", "{:.0f}".format, "Power drawn"),
    _statistic_column("temperature", "Temp.", "temperature_celsius", "°C", "{:.0f}".format, "Temperature of the chip"),
    text_column(
        "slowed",
        "Throttled by",
        throttling_text,
        unknown=NO_VALUE,
        width=34,
        about="Share of time in which the clock was lowered, and why",
    ),
)
"""Columns of a recording's summary; pairs are the average and the peak."""
