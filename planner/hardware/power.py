"""Power and cooling of a multi-GPU build: power supply, wall power, circuits, heat and airflow.

A build is sized by its worst case: every card at its board power, with a busy CPU.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from typing import Final, Literal

from planner.hardware.gpu import Gpu
from planner.hardware.system import System

CONTINUOUS_LOAD_SHARE: Final = 0.8
"""Maximum share of a circuit's rating for a load of three hours or more. **Source** NEC 210.19 and 210.20: 125 %."""
BTU_PER_HOUR_PER_WATT: Final = 3.412
_CFM_CONSTANT: Final = 1.085
"""Heat in BTU/h that an airflow of 1 CFM removes per degree Fahrenheit of warming.

**Source** https://insidehpc.com/2011/04/calculating-cfms-for-hpc-power-and-cooling/."""
_M3_PER_HOUR_PER_CFM: Final = 1.699
WARMING_F: Final = 20.0
"""Default warming of the air in °F: the lower end of the 20 to 30 °F between intake and exhaust in the same article."""
_NEC: Final = "NEC 210.19 and 210.20; outside North America the 80 % is customary, not a rule"
_AIR: Final = "insidehpc.com 2011-04: air warms by 20 to 30 °F"


@dataclass(frozen=True, slots=True)
class Circuit:
    """An electrical circuit that supplies a machine."""

    name: str
    volts: int
    amperes: float

    @property
    def mains_volts(self) -> int:
        """Return the mains voltage at which power supplies are rated: 120 or 230."""
        return 120 if self.volts < 200 else 230

    @property
    def continuous_watts(self) -> float:
        """Return the maximum continuous load in watts. **Formula** volts × amperes × 0.8."""
        return self.volts * self.amperes * CONTINUOUS_LOAD_SHARE

    def needed_circuits(self, watts: float) -> int:
        """Return the number of circuits of this kind that a continuous load of `watts` needs."""
        return max(1, ceil(watts / self.continuous_watts))


CIRCUITS: Final[dict[str, Circuit]] = {
    "120V-15A": Circuit("15 A at 120 V", 120, 15),
    "120V-20A": Circuit("20 A at 120 V", 120, 20),
    "240V-20A": Circuit("20 A at 240 V", 240, 20),
    "240V-30A": Circuit("30 A at 240 V", 240, 30),
    "230V-16A": Circuit("16 A at 230 V", 230, 16),
    "230V-13A": Circuit("13 A at 230 V", 230, 13),
}
"""Circuits of North America, of most of Europe, and of the United Kingdom, where plugs have a fuse of 13 A."""
DEFAULT_CIRCUIT: Final = CIRCUITS["120V-15A"]
"""Default circuit: the smallest one, so that no overload goes unnoticed."""


@dataclass(frozen=True, slots=True)
class PowerFigure:
    """A power or cooling figure, with its formula in numbers and its source; the value is None if unknown."""

    key: str
    title: str
    value: float | None
    unit: str
    formula: str
    source: str


WALL_TITLES: Final = (
    ("wall", "From the wall", "W"),
    ("current", "Current", "A"),
    ("circuits", "Circuits of this kind", ""),
    ("heat", "Heat", "BTU/h"),
    ("airflow", "Airflow", "CFM"),
    ("airflow-metric", "Airflow", "m³/h"),
)


def wall_figures(
    circuit: Circuit, watts: float, formula: str, source: str, warming_f: float = WARMING_F
) -> tuple[PowerFigure, ...]:
    """Return wall power, current, circuits, heat and airflow for a wall power of `watts`; `formula` explains `watts`.

    `warming_f` is the allowed warming of the air in degrees Fahrenheit. **Assumes** that all power becomes heat.
    """
    heat = watts * BTU_PER_HOUR_PER_WATT
    cfm = heat / (_CFM_CONSTANT * warming_f)
    continuous = f"({circuit.volts} × {circuit.amperes:g} × 0.8)"
    figures = (
        (watts, formula, source),
        (watts / circuit.volts, f"{watts:,.0f} ÷ {circuit.volts}", "P = U × I"),
        (float(circuit.needed_circuits(watts)), f"{watts:,.0f} ÷ {continuous}, rounded up", _NEC),
        (heat, f"{watts:,.0f} × 3.412", "1 W = 3.412 BTU/h"),
        (cfm, f"{heat:,.0f} ÷ (1.085 × {warming_f:g} °F)", _AIR),
        (cfm * _M3_PER_HOUR_PER_CFM, f"{cfm:,.0f} × 1.699", "1 CFM = 1.699 m³/h"),
    )
    return tuple(
        PowerFigure(key, title, value, unit, how, whence)
        for (key, title, unit), (value, how, whence) in zip(WALL_TITLES, figures, strict=True)
    )


def smallest_circuit(watts: float) -> Circuit:
    """Return the smallest circuit for a continuous load of `watts`, or the largest if a single circuit is too small."""
    by_size = sorted(CIRCUITS.values(), key=lambda circuit: circuit.continuous_watts)
    return next((circuit for circuit in by_size if circuit.continuous_watts >= watts), by_size[-1])


Rating = Literal["bronze", "gold", "platinum", "titanium"]

HOST_WATTS: Final = 450.0
"""Power of the host in watts: 300 for the CPU and 150 for the rest.

**Source** Intel's budget for ATX 3.0 supplies, quoted by https://www.tweaktown.com/news/85717/ (2022-04)."""
CARD_EXCURSION_FACTOR: Final = 3.0
"""Allowed power of a card for 100 µs as a multiple of its board power. **Source** PCIe CEM 5.0, in the same article."""
SUPPLY_EXCURSION_FACTOR: Final = 2.0
"""Power for 100 µs that a supply above 450 W with a 12VHPWR connector tolerates, as a multiple of its rating.

**Source** Intel ATX12VO design guide, table 3-3 (https://www.easymanua.ls/intel/atx12vo/manual?p=23)."""
EFFICIENCY: Final[dict[Rating, dict[int, tuple[float, float]]]] = {
    "bronze": {120: (0.85, 0.82), 230: (0.88, 0.85)},
    "gold": {120: (0.90, 0.87), 230: (0.92, 0.89)},
    "platinum": {120: (0.92, 0.89), 230: (0.94, 0.90)},
    "titanium": {120: (0.94, 0.90), 230: (0.96, 0.94)},
}
"""Minimum efficiency of 80 PLUS supplies at half and at full load, by rating and mains voltage.

**Source** https://www.tomshardware.com/uk/reviews/80-plus-psu-efficiency,4848-2.html (115 V; 230 V EU internal)."""
_SLOT_WATTS: Final = 75.0
_EIGHT_PIN_WATTS: Final = 150.0
_SIXTEEN_PIN_WATTS: Final = 600.0
"""**Source** Intel ATX12VO design guide, 3.2: the auxiliary connectors of PCIe CEM 5.0."""
_BOARD_SLOTS: Final = 7
"""**Source** ATX specification 2.2, 3.2: up to seven expansion slots."""
_SLOTS: Final = {"Single-slot": 1, "Dual-slot": 2, "Triple-slot": 3}
_SUPPLY_STEP_WATTS: Final = 50
_MIN_LIMIT_SHARE: Final = 0.5
NOISE_UNKNOWN: Final = "vendors publish no noise level per GPU, and partner coolers differ"
"""Reason why a build has no noise figure."""


@dataclass(frozen=True, slots=True)
class BuildCards:
    """Identical GPUs of a build, with an optional power limit per GPU."""

    gpu: Gpu
    count: int
    limit_watts: float | None = None

    @property
    def watts_each(self) -> float | None:
        """Return the maximum power of one card in watts: `limit_watts`, else the card's own limit or board power."""
        return self.gpu.drawn_watts if self.limit_watts is None else self.limit_watts


@dataclass(frozen=True, slots=True)
class Build:
    """GPUs in one machine, with its host, power supply and circuit."""

    cards: tuple[BuildCards, ...]
    host_watts: float = HOST_WATTS
    rating: Rating = "gold"
    circuit: Circuit = DEFAULT_CIRCUIT
    warming_f: float = WARMING_F


@dataclass(frozen=True, slots=True)
class PowerAndCooling:
    """Power and cooling figures of a build, its power connectors, and warnings."""

    steps: tuple[PowerFigure, ...]
    connectors: tuple[str, ...]
    warnings: tuple[str, ...]

    def value(self, key: str) -> float | None:
        """Return the value of the figure with the key `key`, or None if unknown."""
        return next(step.value for step in self.steps if step.key == key)


def power_and_cooling(build: Build) -> PowerAndCooling:
    """Compute the power and cooling figures of `build`.

    **Assumes** that all GPUs and the host draw their maximum at the same time, and that all power becomes heat.
    """
    drawn = _cards_watts(build)
    if drawn is None:
        unknown = (f"The board power of {each.gpu.name} is unknown." for each in build.cards if not each.watts_each)
        steps = tuple(PowerFigure(key, title, None, unit, "", "") for key, title, unit in _TITLES)
        return PowerAndCooling(steps, tuple(_connector_texts(build)), (*unknown, *_installation_warnings(build)))
    steps = tuple(_power_steps(build, drawn))
    return PowerAndCooling(
        steps, tuple(_connector_texts(build)), (*_circuit_warnings(build), *_installation_warnings(build))
    )


def machine_figures(system: System, circuit: Circuit) -> tuple[PowerFigure, ...]:
    """Return the power and cooling figures of a complete system; empty if its power is unknown.

    **Assumes** that the stated maximum power is wall power, and that all of it becomes heat.
    """
    watts = system.max_power_watts
    if watts is None:
        return ()
    return wall_figures(
        circuit, watts, "maximum input power of the system", system.provenance_of("max_power_watts").source
    )


def wall_watts(build: Build) -> float | None:
    """Return the wall power of the build in watts, or None if a card's power is unknown.

    **Formula** (cards + host) ÷ the supply's efficiency at that load.
    """
    drawn = _cards_watts(build)
    return None if drawn is None else (drawn + build.host_watts) / efficiency(build, drawn)


def spikes_watts(cards_watts: float, host_watts: float) -> float:
    """Return the peak power for 100 µs in watts: three times the cards' power plus the host's power."""
    return CARD_EXCURSION_FACTOR * cards_watts + host_watts


def supply_watts(cards_watts: float, host_watts: float) -> float:
    """Return the minimum rating of an ATX 3 supply in watts, for load and spikes, rounded up to a multiple of 50 W.

    The load and the spikes require the same rating if the host draws as much as the cards.

    **Formula** max(cards + host, (3 × cards + host) ÷ 2).
    **Assumes** that all cards may spike at once, which is rare; older supplies (ATX 2) need a higher rating.
    """
    needed = max(cards_watts + host_watts, spikes_watts(cards_watts, host_watts) / SUPPLY_EXCURSION_FACTOR)
    return ceil(needed / _SUPPLY_STEP_WATTS) * float(_SUPPLY_STEP_WATTS)


def efficiency(build: Build, cards_watts: float) -> float:
    """Return the supply's guaranteed efficiency: its half-load value up to half load, else its full-load value."""
    half, full = EFFICIENCY[build.rating][build.circuit.mains_volts]
    rated = supply_watts(cards_watts, build.host_watts)
    return half if cards_watts + build.host_watts <= rated / 2 else full


_TITLES: Final = (
    ("cards", "GPUs", "W"),
    ("load", "GPUs and host", "W"),
    ("spikes", "Maximum spikes of 100 µs", "W"),
    ("supply", "Minimum ATX 3 supply", "W"),
    *WALL_TITLES,
    ("slots", "Slots", ""),
)
_BOARD_POWER: Final = "board power of the GPUs, or their power limit if set"
_EXCURSION_SOURCE: Final = "PCIe CEM 5.0: a card may draw three times its power for 100 µs"
_SUPPLY_SOURCE: Final = "ATX 3: a supply delivers its rating for hours and twice its rating for 100 µs"
_SERVER_SUPPLIES: Final = "the server's own power supplies"
_RATING_SOURCE: Final = "80 PLUS: minimum efficiency at half and at full load"
_FORM: Final = "form factors of the GPUs; slot counts of modules on a baseboard are unknown"


def _power_steps(build: Build, wall_draw: float) -> Iterator[PowerFigure]:
    """Yield the power figures from the cards to the wall, each with its formula in numbers and its source."""
    host, slots = build.host_watts, _occupied_slots(build)
    load, share = wall_draw + host, efficiency(build, wall_draw)
    wall = load / share
    spikes, supply = (
        (None, None) if _slotless_card_names(build) else (spikes_watts(wall_draw, host), supply_watts(wall_draw, host))
    )
    tripled = f"3 × {wall_draw:,.0f} + {host:,.0f} (host)"
    largest = f"max({load:,.0f}, {spikes:,.0f} ÷ 2), rounded up to {_SUPPLY_STEP_WATTS} W" if spikes else ""
    figures: tuple[tuple[float | None, str, str], ...] = (
        (wall_draw, " + ".join(f"{each.count} × {each.watts_each:,.0f}" for each in build.cards), _BOARD_POWER),
        (load, f"{wall_draw:,.0f} + {host:,.0f} (host)", "Intel's budget for ATX 3: 300 W and 150 W"),
        (spikes, tripled if spikes else _SERVER_SUPPLIES, _EXCURSION_SOURCE),
        (supply, largest or _SERVER_SUPPLIES, _SUPPLY_SOURCE),
    )
    for (key, title, unit), (value, formula, source) in zip(_TITLES, figures, strict=False):
        yield PowerFigure(key, title, value, unit, formula, source)
    efficient = f"{load:,.0f} ÷ {share:.2f} (80 PLUS {build.rating})"
    yield from wall_figures(build.circuit, wall, efficient, _RATING_SOURCE, build.warming_f)
    yield PowerFigure("slots", "Slots", None if slots is None else float(slots), "", "", _FORM)


def _cards_watts(build: Build) -> float | None:
    watts = [(each.watts_each, each.count) for each in build.cards]
    return None if any(each is None for each, _ in watts) else sum((each or 0.0) * count for each, count in watts)


def _occupied_slots(build: Build) -> int | None:
    wide = [(_slot_count(each.gpu), each.count) for each in build.cards]
    return None if any(slots is None for slots, _ in wide) else sum((slots or 0) * count for slots, count in wide)


def _slot_count(gpu: Gpu) -> int | None:
    form = (gpu.form_factor or "").removeprefix("PCIe ").capitalize()
    return next((slots for name, slots in _SLOTS.items() if form.startswith(name)), None)


def _connector_texts(build: Build) -> Iterator[str]:
    """Yield a sentence on the minimum power connectors of each kind of card; manuals state the actual connectors."""
    for each in build.cards:
        watts = each.gpu.board_power_watts
        if _slot_count(each.gpu) is None:
            yield f"{each.gpu.name}: powered by its baseboard or system, not by cables from the power supply."
        elif watts is not None and watts <= _SLOT_WATTS:
            yield f"{each.gpu.name}: none; the slot supplies 75 W."
        elif watts is not None:
            whose = "for each GPU " if each.count > 1 else ""
            eights = ceil((watts - _SLOT_WATTS) / _EIGHT_PIN_WATTS)
            sixteen = ", or one 16-pin plug (12V-2x6)" if watts <= _SIXTEEN_PIN_WATTS else ""
            yield f"{each.gpu.name}: {whose}{eights} or more 8-pin plugs{sixteen}, each on its own cable."


def _circuit_warnings(build: Build) -> Iterator[str]:
    circuit, wall = build.circuit, wall_watts(build) or 0.0
    if wall <= circuit.continuous_watts:
        return
    named = " and ".join(f"{each.count} × {each.gpu.name}" for each in build.cards)
    draw = "draws" if sum(each.count for each in build.cards) == 1 else "draw"
    limit = _fitting_limit_watts(build)
    instead = f", or a power limit of {limit:,.0f} W on each GPU" if limit else ""
    yield (
        f"{named} {draw} {wall:,.0f} W from the wall; one {circuit.name} circuit supplies "
        f"{circuit.continuous_watts:,.0f} W continuously: use {circuit.needed_circuits(wall)} circuits{instead}."
    )


def _fitting_limit_watts(build: Build) -> float | None:
    """Return the power limit per card in watts with which one circuit suffices, or None if that limit is impractical.

    **Assumes** that limits below half of the board power are impractical: drivers refuse much lower ones.
    """
    _, full = EFFICIENCY[build.rating][build.circuit.mains_volts]
    left = build.circuit.continuous_watts * full - build.host_watts
    each = left / sum(cards.count for cards in build.cards)
    most = max(cards.gpu.board_power_watts or 0.0 for cards in build.cards)
    return float(int(each)) if each >= most * _MIN_LIMIT_SHARE else None


def _installation_warnings(build: Build) -> Iterator[str]:
    """Yield warnings on cards with too many slots for an ATX mainboard, without a slot, and without fans."""
    slots = _occupied_slots(build)
    if slots is not None and slots > _BOARD_SLOTS:
        yield f"The cards occupy {slots} slots, but an ATX board has {_BOARD_SLOTS}: use risers or narrower cards."
    if modules := _slotless_card_names(build):
        host = f"The host's {build.host_watts:,.0f} W is for a PC; a server draws more"
        yield f"{' and '.join(modules)}: not a slot card; sold with a baseboard or system. {host}."
    passive = [each.gpu.name for each in build.cards if each.gpu.segment == "datacenter" and _slot_count(each.gpu)]
    if passive:
        yield f"{' and '.join(passive)}: most data-center cards have no fans and need a server's airflow."


def _slotless_card_names(build: Build) -> list[str]:
    """Return the names of accelerators that are not slot cards: modules on a baseboard, laptop parts, chips."""
    return [each.gpu.name for each in build.cards if _slot_count(each.gpu) is None]
