"""Intervals of estimated speeds, by how many sources measured such work, and calibration with a measured speed."""

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple, TypeVar

from planner.errors import SpecError
from planner.models.architecture import Architecture
from planner.performance.result import TimeResult
from planner.performance.setting import MeasuredSpeed
from planner.workload.defaults import resolve_parallel
from planner.workload.training import Training
from planner.workload.workload import Inference

_Workload = TypeVar("_Workload", Training, Inference)

Kind = Literal["training", "fine-tuning", "decode", "prefill", "requests", "images", "image training"]


class Spreads(NamedTuple):
    """Factors by which a speed may differ, where several sources measured such work, one did, or none.

    Four of five measured speeds lie within the factor; one in ten lies beyond each end.
    """

    several: float
    one: float
    none: float


SPREADS: Final[Mapping[Kind, Spreads]] = {
    "training": Spreads(several=1.15, one=1.22, none=1.6),
    "fine-tuning": Spreads(several=1.18, one=1.2, none=1.6),
    "decode": Spreads(several=1.2, one=1.2, none=1.6),
    "prefill": Spreads(several=1.18, one=1.18, none=1.6),
    "requests": Spreads(several=1.2, one=1.2, none=1.6),
    "images": Spreads(several=1.21, one=1.21, none=1.6),
    "image training": Spreads(several=1.21, one=1.21, none=1.6),
}
"""Factors of the interval of 80 %: the 80th percentile of the error of what was predicted with its source left out.

**Source**: benchmarks/throughput_accuracy.py, "left out". A class with fewer sources has no smaller factor than one
with more; those of prefill are of its rows together, of which three have several. Where none measured such work it is
1.6, the survey's factor for unknown GPUs, or more where rows have more.
"""
ONE_SOURCE: Final = "One source alone measured such work, so the interval is as wide as without it."


def spread_factor(kind: Kind, sources: int) -> float:
    """Return the factor by which a speed of `kind` may differ, measured by `sources` sources on such GPUs."""
    found = SPREADS[kind]
    return found.several if sources > 1 else found.one if sources else found.none


CALIBRATED_SPREAD: Final = 1.1
"""Spread factor after calibration in the same setup, within which four of five steps lie: per-model calibration leaves
2 to 5 %, other nodes of the same kind differ by 4 % (MLPerf) to 11 % (community runs)."""
CARRIED_OVER_SPREAD: Final = 1.15
"""Spread factor after calibration on another GPU: the speed ratio of two GPUs predicts the speed of other models
within 4 to 7 % (timm, 3090 to 5090)."""
_TIMES: Final = ("seconds", "first_token_seconds", "output_token_seconds")
_RATES: Final = ("tokens_per_second", "samples_per_second", "mfu_fraction")


def workload_where_measured(workload: _Workload, architecture: Architecture, number: int) -> _Workload | str:
    """Return `workload` on the `number` GPUs on which it was measured, with all replicas, or why they cannot run it."""
    open_replicas = workload.evolve(parallel=workload.parallel.evolve(data=None))
    try:
        return workload.evolve(parallel=resolve_parallel(open_replicas, architecture, number))
    except SpecError as error:
        return f"The measured speed cannot be transferred: {error.message}"


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
    where = "on these GPUs" if is_same else "on other GPUs, scaled by the ratio of the two estimates"
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
