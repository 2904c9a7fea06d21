"""Which input moves the decision: each from its 10th to its 90th percentile, the others at their median."""

from planner.base import Spec
from planner.cost.case import RESALE, Case
from planner.cost.figure import TEN_TO_NINETY


class Swing(Spec):
    """How far one input moves what owning saves over renting."""

    name: str
    low_value: float
    value: float
    high_value: float
    low_saving_usd: float
    high_saving_usd: float
    flips: bool
    """Whether the decision is another at one end than at the other."""
    source: str

    @property
    def width_usd(self) -> float:
        """Return how much the saving moves."""
        return abs(self.high_saving_usd - self.low_saving_usd)


def tornado(case: Case) -> tuple[Swing, ...]:
    """Return the swing of each uncertain input, the widest first."""
    swings = [_swing(case, name) for name in case.uncertain]
    return tuple(sorted((swing for swing in swings if swing.width_usd), key=lambda swing: -swing.width_usd))


def _swing(case: Case, name: str) -> Swing:
    years = case.horizon_years
    low, high = (case.streams({name: sign * TEN_TO_NINETY}).saving_usd(years) for sign in (-1, 1))
    values = [_value(case, name, deviation) for deviation in (-TEN_TO_NINETY, 0.0, TEN_TO_NINETY)]
    return Swing(
        name=name,
        low_value=values[0],
        value=values[1],
        high_value=values[2],
        low_saving_usd=low,
        high_saving_usd=high,
        flips=(low < 0) != (high < 0),
        source=case.resale.source if name == RESALE else case.figures[name].source,
    )


def _value(case: Case, name: str, deviation: float) -> float:
    if name == RESALE:
        return case.resale.share(case.horizon_years, deviation)
    return case.figures[name].quantile(deviation)
