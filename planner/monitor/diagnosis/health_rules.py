"""Rules for problems that matter under any workload: heat, power supply, and memory that is full, leaks or fails."""

from typing import Final

from planner.monitor.diagnosis import advice, sources
from planner.monitor.diagnosis.rule import DiagnosisRule
from planner.monitor.diagnosis.verdict import Criterion, VerdictKind
from planner.units import GIB

_AIRFLOW: Final = "Remove dust and whatever blocks the airflow; check that the fans turn."
_LOWER_LIMIT: Final = (
    f"Lower the power limit a little, as administrator ({advice.SET_POWER_LIMIT}): it costs less speed than "
    "overheating."
)
_COOLING_ADVICE: Final = (_AIRFLOW, "Raise the fan speed, or lower the room temperature.", _LOWER_LIMIT)
_HEAT_EVIDENCE: Final = (
    ("temperature_celsius", "most"),
    ("temperature_margin_celsius", "last"),
    ("sm_clock_mhz", "median"),
    ("clock_of_most_fraction", "median"),
)


def _recurring_criteria(metric: str) -> tuple[Criterion, ...]:
    """Return the criteria for a slow-down, given by its indicator `metric`, that recurs and has not ended."""
    return (
        Criterion(metric, "share", ">", 0.05, sources.RECURRING),
        Criterion(metric, "lately", ">", 0, sources.STILL_PRESENT),
    )


_LEAK_ADVICE: Final = (
    "Do not keep tensors with their graph across steps: total += loss.item(), not total += loss.",
    "Clear lists of outputs and metrics; detach tensors that are kept.",
    "If sequence lengths vary, pad to a few lengths; the allocator caches blocks for each.",
    advice.EXPANDABLE_SEGMENTS,
)

HEALTH_RULES: Final = (
    DiagnosisRule(
        VerdictKind.MEMORY_ERRORS,
        "error",
        "memory failure",
        "Memory rows are defective and could not be remapped.",
        (Criterion("remapping_failed", "last", ">", 0, sources.KEMPNER),),
        ("Stop using the GPU and have it replaced; results may be wrong.",),
        is_instant=True,
    ),
    DiagnosisRule(
        VerdictKind.MEMORY_ERRORS,
        "warning",
        "memory errors",
        "Memory rows were remapped after uncorrectable errors.",
        (Criterion("remapped_uncorrected", "last", ">", 0, sources.KEMPNER),),
        ("Reset the GPU if a remapping is pending.", "If the number grows, have the GPU replaced."),
        is_instant=True,
    ),
    DiagnosisRule(
        VerdictKind.THERMAL,
        "warning",
        "slowed because of heat: the fans run slowly",
        "The GPU lowers its clock because it is at its target temperature, although its fans could turn faster.",
        (*_recurring_criteria("slowed_by_heat"), Criterion("fan_fraction", "p95", "<", 0.7, sources.SLOW_FANS)),
        ("Raise the fan speed, or choose a steeper fan curve.", _AIRFLOW, _LOWER_LIMIT),
        _HEAT_EVIDENCE,
        is_instant=True,
    ),
    DiagnosisRule(
        VerdictKind.THERMAL,
        "warning",
        "slowed because of heat",
        "The GPU lowers its clock because its chip or its memory has reached its target temperature, which lies below "
        "the hardware's own limit.",
        _recurring_criteria("slowed_by_heat"),
        _COOLING_ADVICE,
        _HEAT_EVIDENCE,
        is_instant=True,
    ),
    DiagnosisRule(
        VerdictKind.POWER_BRAKE,
        "warning",
        "slowed by the power supply",
        "The machine's power supply makes the GPU slow down.",
        _recurring_criteria("slowed_by_supply"),
        (
            "Check that the power supply is strong enough and that all power cables are plugged in.",
            "In a rack, check the power budget of the chassis.",
        ),
        (("power_watts", "median"), ("sm_clock_mhz", "median")),
        is_instant=True,
    ),
    DiagnosisRule(
        VerdictKind.THERMAL,
        "warning",
        "slowed by the GPU's hardware",
        "The GPU at least halves its clock: due to heat, an external power brake, or a power draw rising too fast.",
        _recurring_criteria("slowed_by_card"),
        _COOLING_ADVICE,
        (("temperature_celsius", "most"), ("power_watts", "median"), ("sm_clock_mhz", "median")),
        is_instant=True,
    ),
    DiagnosisRule(
        VerdictKind.LEAK,
        "warning",
        "memory keeps growing",
        "Memory in use has grown steadily during the work; at this rate the GPU will run out of memory.",
        (
            Criterion("memory_long_fraction", "growth", ">", 0.05, sources.MEMORY_INCREASE),
            Criterion("memory_long_seconds", "last", ">=", 300, sources.STEADY_GROWTH),
            Criterion("use_fraction", "mean", ">=", 0.1, sources.IDLE_AUDIT),
        ),
        _LEAK_ADVICE,
        (("memory_full_fraction", "last"),),
    ),
    DiagnosisRule(
        VerdictKind.LEAK,
        "warning",
        "memory grows slowly",
        "Memory in use has grown without a break for 25 minutes or more; at this rate the GPU will run out of memory.",
        (
            Criterion("memory_hour_bytes", "unending growth", ">=", 0.5 * GIB, sources.SLOW_GROWTH),
            Criterion("memory_hour_seconds", "last", ">=", 1_500, sources.SLOW_GROWTH),
            Criterion("use_fraction", "mean", ">=", 0.1, sources.IDLE_AUDIT),
        ),
        _LEAK_ADVICE,
        (("memory_full_fraction", "last"),),
    ),
    DiagnosisRule(
        VerdictKind.NEAR_FULL,
        "warning",
        "nearly out of memory",
        "A larger batch or longer sequence may fail. An engine that reserves all memory at start (vLLM, JAX) "
        "looks the same without being in trouble.",
        (
            Criterion("memory_full_fraction", "last", ">=", 0.95, sources.NEAR_FULL),
            Criterion("memory_left_bytes", "last", "<=", 2 * GIB, sources.NEAR_FULL),
        ),
        (
            advice.CHECKPOINTING,
            advice.EXPANDABLE_SEGMENTS,
            "Check in the list of processes which other processes hold memory on this GPU.",
        ),
        is_instant=True,
    ),
)
"""Rules with verdicts that are reported in addition to the workload verdict."""
