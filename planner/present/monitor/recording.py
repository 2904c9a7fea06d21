"""Recordings as text and table rows: their contents, missing parts, and summary."""

from datetime import datetime
from typing import Final

from planner.monitor.readings.clock_reasons import CLOCK_REASONS
from planner.monitor.recording.recording import DataLoss, MonitorRecording
from planner.monitor.recording.summary import JOULES_PER_KWH, CardSummary, RecordingSummary
from planner.present import format as fmt
from planner.present.columns import Column, text_column
from planner.present.monitor.events import duration_text
from planner.present.monitor.readings import NO_VALUE, card_label
from planner.units import GIB

_REASONS: Final = {reason.name: reason.title for reason in CLOCK_REASONS}
_JOULES_PER_WH: Final = JOULES_PER_KWH / 1000
_ABOUT: Final = "≈ "
# Smaller gaps change an energy by less than the error of the readings.
_TOLD_GAP: Final = 0.01


def energy_text(joules: float | None, *, is_estimated: bool) -> str:
    """Return `1.23 kWh`, below a tenth of a kWh `45 Wh`, with ≈ before an estimate from power readings."""
    if joules is None:
        return NO_VALUE
    about = _ABOUT if is_estimated else ""
    if joules < JOULES_PER_KWH / 10:
        return f"{about}{fmt.plain(joules / _JOULES_PER_WH)}{fmt.THIN}Wh"
    return f"{about}{fmt.plain(joules / JOULES_PER_KWH)}{fmt.THIN}kWh"


def energy_cost_text(usd: float | None) -> str:
    """Return the cost of energy, without rounding small amounts to zero: `$2.39`, `$0.0041`."""
    if usd is None:
        return NO_VALUE
    return fmt.money(usd) if usd >= 1 or usd == 0 else f"${fmt.significant(usd, 2)}"


def recording_line(recording: MonitorRecording) -> str:
    """Return the contents of a recording as one line: `run.gpurec: 48 min from 3 January 2026 15:36, 9 samples`."""
    first = recording.first
    if first is None:
        return f"{recording.path.name}: no samples"
    parts = [
        f"{duration_text(recording.seconds)} from {_moment_text(first.wall_seconds)}",
        fmt.plural(recording.samples, "sample"),
    ]
    if recording.marks:
        parts.append(fmt.plural(len(recording.marks), "mark"))
    return f"{recording.path.name}: {', '.join(parts)}"


def recording_notes(recording: MonitorRecording) -> tuple[str, ...]:
    """Return notes on a recording: what is missing, and how a log was read."""
    return (*loss_sentences(recording.loss), *recording.notes)


def loss_sentences(loss: DataLoss) -> tuple[str, ...]:
    """Return sentences on missing parts of a recording."""
    found = []
    if loss.is_cut:
        found.append("The recording is truncated; its last second may be missing.")
    if loss.places:
        size = fmt.size(loss.lost_bytes)
        found.append(f"{fmt.plural(loss.places, 'place')} of the file cannot be read, {size} at most.")
    if loss.bad_lines:
        found.append(f"{fmt.plural(loss.bad_lines, 'line')} of the file cannot be parsed.")
    return tuple(found)


def summary_line(summary: RecordingSummary) -> str:
    """Return the energy of all cards and its cost, or an empty text if the energy is not known."""
    if summary.energy_joules is None:
        return ""
    used = f"{energy_text(summary.energy_joules, is_estimated=summary.is_estimated)} used by the cards"
    if summary.usd is not None and summary.usd_per_kwh is not None:
        used += f", {energy_cost_text(summary.usd)} at {energy_cost_text(summary.usd_per_kwh)} per kWh"
    return f"{used} (≈: integrated from power readings)" if summary.is_estimated else used


def summary_lines(recording: MonitorRecording, found: RecordingSummary) -> tuple[str, ...]:
    """Return the energy, or that it is not known, and the notes on the recording."""
    used = summary_line(found)
    answer = fmt.capitalized(used) if used else "No card reported its energy or power."
    return tuple(part for part in (answer, gap_sentence(found, recording.seconds), *recording_notes(recording)) if part)


def gap_sentence(summary: RecordingSummary, seconds: float) -> str:
    """Return how much of a recording of `seconds` an estimated energy leaves out, or an empty text if negligible.

    An energy counter includes gaps between readings, an integral of power readings does not.
    """
    read = min((card.seconds for card in summary.cards if card.is_estimated), default=seconds)
    left_out = seconds - read
    if left_out < _TOLD_GAP * seconds:
        return ""
    return f"The estimated energy does not include gaps of {duration_text(left_out)}."


def throttling_text(card: CardSummary) -> str:
    """Return for how long a card was throttled for each reason: `power limit 3 min 2 s`."""
    longest = sorted(card.slowed_seconds.items(), key=lambda item: -item[1])
    return ", ".join(f"{_REASONS[name]} {duration_text(seconds)}" for name, seconds in longest)


def _moment_text(wall_seconds: float) -> str:
    try:
        at = datetime.fromtimestamp(wall_seconds).astimezone()
    except (OverflowError, OSError, ValueError):
        return "an unknown time"
    return f"{fmt.date(f'{at:%Y-%m-%d}')} {at:%H:%M}"


def _statistic(key: str, title: str, name: str, unit: str, per_unit: float) -> Column[CardSummary]:
    def text(card: CardSummary) -> str:
        found = card.statistics.get(name)
        return NO_VALUE if found is None else f"{found.mean / per_unit:.0f} / {found.peak / per_unit:.0f}"

    return Column(key, title, lambda card: _mean(card, name), text, unit, "right", width=11)


def _mean(card: CardSummary, name: str) -> float | None:
    found = card.statistics.get(name)
    return None if found is None else found.mean


def _memory_text(card: CardSummary) -> str:
    found = card.statistics.get("memory_used_bytes")
    return NO_VALUE if found is None else f"{fmt.significant(found.mean / GIB)} / {fmt.significant(found.peak / GIB)}"


SUMMARY_COLUMNS: tuple[Column[CardSummary], ...] = (
    text_column("number", "Card", lambda card: card_label(card.device), width=6),
    text_column("name", "Name", lambda card: card.device.name, width=26),
    Column(
        "time", "Time", lambda card: card.seconds, lambda card: duration_text(card.seconds), align="right", width=11
    ),
    Column(
        "energy",
        "Energy",
        lambda card: card.energy_joules,
        lambda card: energy_text(card.energy_joules, is_estimated=card.is_estimated),
        align="right",
        width=11,
    ),
    Column("cost", "Cost", lambda card: card.usd, lambda card: energy_cost_text(card.usd), align="right", width=9),
    _statistic("utilization", "Use", "utilization_fraction", "%", 0.01),
    Column("memory", "Memory", lambda card: _mean(card, "memory_used_bytes"), _memory_text, "GiB", "right", width=12),
    _statistic("power", "Power", "power_watts", "W", 1),
    _statistic("temperature", "Temp.", "temperature_celsius", "°C", 1),
    text_column("slowed", "Throttled by", throttling_text, unknown=NO_VALUE, width=34),
)
"""Columns of a recording's summary; pairs are the average and the peak."""
