"""From what is drawn from the wall to circuits, heat and airflow: the same for a build and for a machine as sold."""

from dataclasses import dataclass
from math import ceil
from typing import Final

CONTINUOUS: Final = 0.8
"""The share of a circuit that a load of three hours or more may take. **Source** NEC 210.19 and 210.20: 125 %."""
BTU_PER_HOUR_PER_WATT: Final = 3.412
_CFM_CONSTANT: Final = 1.085
"""Heat that a cubic foot a minute carries by the degree Fahrenheit, BTU/h.

**Source** https://insidehpc.com/2011/04/calculating-cfms-for-hpc-power-and-cooling/."""
_M3_PER_HOUR_PER_CFM: Final = 1.699
WARMING_F: Final = 20.0
"""The lower end of 20 to 30 °F between intake and exhaust that the same article measured."""
_NEC: Final = "NEC 210.19 and 210.20; outside North America the 80 % are a custom, not a rule"
_AIR: Final = "insidehpc.com 2011-04: air warms by 20 to 30 °F"


@dataclass(frozen=True, slots=True)
class Circuit:
    """A circuit that a machine may hang on."""

    name: str
    volts: int
    amperes: float

    @property
    def mains(self) -> int:
        """Return the voltage that supplies are rated at: 120 or 230."""
        return 120 if self.volts < 200 else 230

    @property
    def continuous_watts(self) -> float:
        """Return what may be drawn for hours. **Formula** volts × amperes × 0.8."""
        return self.volts * self.amperes * CONTINUOUS

    def needed(self, watts: float) -> int:
        """Return how many such circuits carry `watts` for hours."""
        return max(1, ceil(watts / self.continuous_watts))


CIRCUITS: Final[dict[str, Circuit]] = {
    "120V-15A": Circuit("15 A at 120 V", 120, 15),
    "120V-20A": Circuit("20 A at 120 V", 120, 20),
    "240V-20A": Circuit("20 A at 240 V", 240, 20),
    "240V-30A": Circuit("30 A at 240 V", 240, 30),
    "230V-16A": Circuit("16 A at 230 V", 230, 16),
    "230V-13A": Circuit("13 A at 230 V", 230, 13),
}
"""Outlets of North America, of most of Europe, and of the United Kingdom (whose plug has a fuse of 13 A)."""
USUAL_CIRCUIT: Final = CIRCUITS["120V-15A"]
"""The smallest one, with which nothing is overlooked."""


@dataclass(frozen=True, slots=True)
class PowerFigure:
    """One figure of a build, with its formula in numbers and its source; none where an input is not known."""

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


def wall_steps(
    circuit: Circuit, watts: float, formula: str, source: str, warming_f: float = WARMING_F
) -> tuple[PowerFigure, ...]:
    """Return what follows from `watts` drawn from the wall, which themselves come from `formula` and `source`.

    `warming_f` is by how many degrees Fahrenheit the air may warm. **Assumes** that all power becomes heat in the air.
    """
    heat = watts * BTU_PER_HOUR_PER_WATT
    cfm = heat / (_CFM_CONSTANT * warming_f)
    continuous = f"({circuit.volts} × {circuit.amperes:g} × 0.8)"
    figures = (
        (watts, formula, source),
        (watts / circuit.volts, f"{watts:,.0f} ÷ {circuit.volts}", "P = U × I"),
        (float(circuit.needed(watts)), f"{watts:,.0f} ÷ {continuous}, rounded up", _NEC),
        (heat, f"{watts:,.0f} × 3.412", "1 W = 3.412 BTU/h"),
        (cfm, f"{heat:,.0f} ÷ (1.085 × {warming_f:g} °F)", _AIR),
        (cfm * _M3_PER_HOUR_PER_CFM, f"{cfm:,.0f} × 1.699", "1 CFM = 1.699 m³/h"),
    )
    return tuple(
        PowerFigure(key, title, value, unit, how, whence)
        for (key, title, unit), (value, how, whence) in zip(WALL_TITLES, figures, strict=True)
    )


def least_circuit(watts: float) -> Circuit:
    """Return the smallest circuit that carries `watts` for hours, or the largest where it takes several."""
    by_size = sorted(CIRCUITS.values(), key=lambda circuit: circuit.continuous_watts)
    return next((circuit for circuit in by_size if circuit.continuous_watts >= watts), by_size[-1])
