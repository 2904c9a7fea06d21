"""Calibration of a time estimate with a measured speed; all times are scaled by the same factor."""

from typing import Final

from planner.performance.result import TimeResult
from planner.performance.setting import MeasuredSpeed

CALIBRATED_SPREAD: Final = 1.1
"""Spread factor after calibration in the same setup, within which four of five steps lie: per-model calibration leaves
2 to 5 %, other nodes of the same kind differ by 4 % (MLPerf) to 11 % (community runs)."""
CARRIED_OVER_SPREAD: Final = 1.15
"""Spread factor after calibration on another card: the speed ratio of two cards predicts the speed of other models
within 4 to 7 % (timm, 3090 to 5090)."""
_TIMES: Final = ("seconds", "first_token_seconds", "output_token_seconds")
_RATES: Final = ("tokens_per_second", "samples_per_second", "mfu_fraction")


def scale_to_measured(
    estimated: TimeResult, counterpart: TimeResult, measured: MeasuredSpeed, *, is_same: bool
) -> TimeResult:
    """Return `estimated` scaled by the ratio between the measured speed and `counterpart`, the estimate for that setup.

    Tokens per second are those of answers during generation; a step is a whole request.
    """
    ratio = _time_ratio(counterpart, measured)
    spread = CALIBRATED_SPREAD if is_same else CARRIED_OVER_SPREAD
    terms = tuple(
        term.evolve(seconds=term.seconds * ratio, overlapped_seconds=term.overlapped_seconds * ratio)
        for term in estimated.terms
    )
    where = "on these cards" if is_same else "on other cards, scaled by the ratio of the two estimates"
    note = f"Measured {where}; the estimate was {1 / ratio:.2f} times as long; all terms are scaled alike."
    return estimated.evolve(
        **_scaled_figures(estimated, _TIMES, ratio, spread),
        **_scaled_figures(estimated, _RATES, 1 / ratio, spread),
        terms=terms,
        basis="measured",
        notes=(note, *estimated.notes),
    )


def _time_ratio(counterpart: TimeResult, measured: MeasuredSpeed) -> float:
    """Return the measured time relative to the estimated time of `counterpart`."""
    if measured.unit == "seconds/step":
        return measured.value / (counterpart.seconds or measured.value)
    rate = counterpart.tokens_per_second if measured.unit == "tokens/s" else counterpart.samples_per_second
    return (rate or measured.value) / measured.value


def _scaled_figures(estimated: TimeResult, names: tuple[str, ...], factor: float, spread: float) -> dict[str, float]:
    """Return each known figure times `factor`, plus its low and high end where the result has them."""
    found = {}
    for name in names:
        value = getattr(estimated, name)
        if value is not None:
            found[name] = value * factor
            if f"low_{name}" in TimeResult.model_fields:
                found |= {f"low_{name}": value * factor / spread, f"high_{name}": value * factor * spread}
    return found
