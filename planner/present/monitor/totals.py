"""Totals over all cards: power, energy and memory, for the last line of the list of cards."""

from collections.abc import Sequence
from dataclasses import dataclass

from planner.monitor.energy import UsedEnergy
from planner.present import format as fmt
from planner.present.monitor.events import duration_text
from planner.present.monitor.readings import CardReadings, common_card_name
from planner.present.monitor.recording import energy_text
from planner.units import GIB


@dataclass(frozen=True, slots=True)
class Totals:
    """Totals as texts; a text is empty if the quantity is unknown for all cards."""

    name: str
    memory: str
    power: str
    energy: str

    @property
    def as_text(self) -> str:
        """Return the totals as one line."""
        return "  ·  ".join(part for part in (self.name, self.memory, self.power, self.energy) if part)


def card_totals(rows: Sequence[CardReadings], energy: UsedEnergy | None, seconds: float) -> Totals:
    """Return the totals of the cards in `rows`, with the energy that they used in the last `seconds`.

    A total that leaves out cards without a reading says how many cards it includes. The memory and power of a MIG
    instance are part of its card's.
    """
    cards = [row for row in rows if row.device.mig_parent is None]
    used = [row.value("memory_used_bytes") for row in cards]
    sizes = [row.device.fact("memory_total_bytes") for row in cards]
    memory = _sum_text(used, sizes, "GiB", GIB)
    power = _sum_text(
        [row.value("power_watts") for row in cards], [row.value("power_limit_watts") for row in cards], "W"
    )
    return Totals(
        common_card_name([row.device for row in cards]),
        memory,
        power,
        energy_in_text(energy, seconds),
    )


def energy_in_text(energy: UsedEnergy | None, seconds: float) -> str:
    """Return an energy and the time in which it was used as text: `45 Wh in 10 min 0 s`; empty if unknown."""
    if energy is None:
        return ""
    return f"{energy_text(energy.joules, is_estimated=energy.is_estimated)} in {duration_text(seconds)}"


def _sum_text(values: Sequence[float | None], limits: Sequence[float | None], unit: str, per_unit: float = 1.0) -> str:
    """Return the sum of the known values, and of the limits if all are known: `22.5 / 48.0 GiB`."""
    known = [value for value in values if value is not None]
    if not known:
        return ""
    known_limits = [limit for limit in limits if limit is not None]
    is_whole = len(known) == len(values)
    limit = f" / {_amount_text(sum(known_limits) / per_unit)}" if is_whole and len(known_limits) == len(limits) else ""
    note = "" if is_whole else f" ({fmt.integer(len(known))} of {fmt.integer(len(values))})"
    return f"{_amount_text(sum(known) / per_unit)}{limit}{fmt.THIN}{unit}{note}"


def _amount_text(amount: float) -> str:
    return fmt.integer(round(amount)) if amount >= 100 else fmt.significant(amount)
