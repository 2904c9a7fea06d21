"""What a recording is, what it lacks and what it came to, as people read it; shared by the shell and the window."""

from datetime import datetime
from typing import Final

from planner.monitor.readings.clock_reasons import CLOCK_REASONS
from planner.monitor.recording.recording import Loss, Recording
from planner.monitor.recording.summary import JOULES_PER_KWH, CardSummary, Summary
from planner.present import format as fmt
from planner.present.columns import Column, words
from planner.present.monitor.events import lasting
from planner.present.monitor.readings import NOT_TOLD, card_label
from planner.units import GIB

_REASONS: Final = {reason.name: reason.title for reason in CLOCK_REASONS}
_JOULES_PER_WH: Final = JOULES_PER_KWH / 1000
_ABOUT: Final = "≈ "
# What is less changes an energy by less than the readings themselves are off.
_TOLD_GAP: Final = 0.01


def energy(joules: float | None, *, is_estimated: bool) -> str:
    """Return `1.23 kWh`, below a tenth of one `45 Wh`, with ≈ before what is from power alone."""
    if joules is None:
        return NOT_TOLD
    about = _ABOUT if is_estimated else ""
    if joules < JOULES_PER_KWH / 10:
        return f"{about}{fmt.plain(joules / _JOULES_PER_WH)}{fmt.THIN}Wh"
    return f"{about}{fmt.plain(joules / JOULES_PER_KWH)}{fmt.THIN}kWh"


def cost(usd: float | None) -> str:
    """Return what energy costs, small amounts in full: `$2.39`, `$0.0041`."""
    if usd is None:
        return NOT_TOLD
    return fmt.money(usd) if usd >= 1 or usd == 0 else f"${fmt.significant(usd, 2)}"


def recording_line(recording: Recording) -> str:
    """Return what a recording holds, as one line: `run.gpurec: 48 min from 3 January 2026 15:36, 9 samples`."""
    first = recording.first
    if first is None:
        return f"{recording.path.name}: no samples"
    parts = [
        f"{lasting(recording.seconds)} from {_moment(first.wall_seconds)}",
        fmt.plural(recording.samples, "sample"),
    ]
    if recording.marks:
        parts.append(fmt.plural(len(recording.marks), "mark"))
    return f"{recording.path.name}: {', '.join(parts)}"


def recording_notes(recording: Recording) -> tuple[str, ...]:
    """Return what is to be known of a recording: what is lost, and how a log was read."""
    return (*loss_sentences(recording.loss), *recording.notes)


def loss_sentences(loss: Loss) -> tuple[str, ...]:
    """Return what is missing in sentences; none where nothing is."""
    found = []
    if loss.is_cut:
        found.append("It was cut off: its last second may be missing.")
    if loss.places:
        size = fmt.size(loss.lost_bytes)
        found.append(f"{fmt.plural(loss.places, 'place')} of the file cannot be read, {size} at most.")
    if loss.bad_lines:
        found.append(f"{fmt.plural(loss.bad_lines, 'line')} of it cannot be understood.")
    return tuple(found)


def summary_line(summary: Summary) -> str:
    """Return the energy of all cards and what it costs; empty where nothing is known."""
    if summary.energy_joules is None:
        return ""
    used = f"{energy(summary.energy_joules, is_estimated=summary.is_estimated)} on the cards"
    if summary.usd is not None and summary.usd_per_kwh is not None:
        used += f", {cost(summary.usd)} at {cost(summary.usd_per_kwh)} a kWh"
    return f"{used} (≈: from reported power, no counter)" if summary.is_estimated else used


def summary_lines(recording: Recording, found: Summary) -> tuple[str, ...]:
    """Return the answer first, the energy or that it is not known; then what is to be known of it."""
    used = summary_line(found)
    answer = fmt.capitalized(used) if used else "No card told its energy or its power."
    return tuple(part for part in (answer, gap_sentence(found, recording.seconds), *recording_notes(recording)) if part)


def gap_sentence(summary: Summary, seconds: float) -> str:
    """Return how much of a recording of so many seconds an estimated energy leaves out; empty where it is next to none.

    A counter goes on in gaps, what is integrated does not.
    """
    read = min((card.seconds for card in summary.cards if card.is_estimated), default=seconds)
    left_out = seconds - read
    if left_out < _TOLD_GAP * seconds:
        return ""
    return f"Gaps of {lasting(left_out)} are not in the estimated energy."


def slowed(card: CardSummary) -> str:
    """Return for how long what held a card back: `power limit 3 min 2 s`."""
    longest = sorted(card.slowed_seconds.items(), key=lambda item: -item[1])
    return ", ".join(f"{_REASONS[name]} {lasting(seconds)}" for name, seconds in longest)


def _moment(wall_seconds: float) -> str:
    try:
        at = datetime.fromtimestamp(wall_seconds).astimezone()
    except (OverflowError, OSError, ValueError):
        return "an unknown time"
    return f"{fmt.date(f'{at:%Y-%m-%d}')} {at:%H:%M}"


def _statistic(key: str, title: str, name: str, unit: str, per_unit: float) -> Column[CardSummary]:
    def text(card: CardSummary) -> str:
        found = card.statistics.get(name)
        return NOT_TOLD if found is None else f"{found.mean / per_unit:.0f} / {found.peak / per_unit:.0f}"

    return Column(key, title, lambda card: _mean(card, name), text, unit, "right", width=11)


def _mean(card: CardSummary, name: str) -> float | None:
    found = card.statistics.get(name)
    return None if found is None else found.mean


def _memory(card: CardSummary) -> str:
    found = card.statistics.get("memory_used_bytes")
    return NOT_TOLD if found is None else f"{fmt.significant(found.mean / GIB)} / {fmt.significant(found.peak / GIB)}"


SUMMARY_COLUMNS: tuple[Column[CardSummary], ...] = (
    words("number", "Card", lambda card: card_label(card.device), width=6),
    words("name", "Name", lambda card: card.device.name, width=26),
    Column("time", "Time", lambda card: card.seconds, lambda card: lasting(card.seconds), align="right", width=11),
    Column(
        "energy",
        "Energy",
        lambda card: card.energy_joules,
        lambda card: energy(card.energy_joules, is_estimated=card.is_estimated),
        align="right",
        width=11,
    ),
    Column("cost", "Cost", lambda card: card.usd, lambda card: cost(card.usd), align="right", width=9),
    _statistic("utilization", "Use", "utilization_fraction", "%", 0.01),
    Column("memory", "Memory", lambda card: _mean(card, "memory_used_bytes"), _memory, "GiB", "right", width=12),
    _statistic("power", "Power", "power_watts", "W", 1),
    _statistic("temperature", "Temp.", "temperature_celsius", "°C", 1),
    words("slowed", "Held back by", slowed, unknown=NOT_TOLD, width=34),
)
"""What a table shows of a summary; pairs are the average and the peak."""
