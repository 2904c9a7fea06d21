"""Rules on what is wrong whatever a card does: heat, supply, memory that ends, grows or fails."""

from typing import Final

from planner.monitor.diagnosis import advice, sources
from planner.monitor.diagnosis.rule import Rule
from planner.monitor.diagnosis.verdict import Condition, Kind
from planner.units import GIB

_COOLING: Final = (
    "Clear dust and what blocks the air; see that the fans turn.",
    "Raise the fan's speed, or lower the room's temperature.",
    "Lower the power limit a little (sudo nvidia-smi -pl WATTS): it costs less speed than heat does.",
)


def _now_and_then(metric: str) -> tuple[Condition, ...]:
    """Return that something slows the card now and then, and has not stopped doing so."""
    return (
        Condition(metric, "share", ">", 0.05, sources.NOW_AND_THEN),
        Condition(metric, "lately", ">", 0, sources.NOT_OVER),
    )


TROUBLES: Final = (
    Rule(
        Kind.MEMORY_ERRORS,
        "error",
        "its memory fails",
        "Rows of its memory are broken and could not be replaced.",
        (Condition("remapping_failed", "last", ">", 0, sources.KEMPNER),),
        ("Take it out of use and have it replaced; results may be wrong.",),
        is_of_moment=True,
    ),
    Rule(
        Kind.MEMORY_ERRORS,
        "warning",
        "its memory had errors",
        "Rows of its memory were replaced after errors that could not be corrected.",
        (Condition("remapped_uncorrected", "last", ">", 0, sources.KEMPNER),),
        ("Reset the card if a row still waits for it.", "If the number grows, have the card replaced."),
        is_of_moment=True,
    ),
    Rule(
        Kind.THERMAL,
        "warning",
        "slowed by heat",
        "It lowers its clock because it, or its memory, is too hot.",
        _now_and_then("slowed_by_heat"),
        _COOLING,
        (("temperature_celsius", "most"), ("temperature_margin_celsius", "last"), ("sm_clock_mhz", "median")),
        is_of_moment=True,
    ),
    Rule(
        Kind.POWER_BRAKE,
        "warning",
        "slowed by the power supply",
        "The machine's power supply asks it to slow down.",
        _now_and_then("slowed_by_supply"),
        (
            "See whether the supply is strong enough and all its cables are in.",
            "In a rack, see the power budget of the chassis.",
        ),
        (("power_watts", "median"), ("sm_clock_mhz", "median")),
        is_of_moment=True,
    ),
    Rule(
        Kind.THERMAL,
        "warning",
        "slowed by the card itself",
        "The card halves its clock or more: for heat, for an external brake, or because it draws too much too fast.",
        _now_and_then("slowed_by_card"),
        _COOLING,
        (("temperature_celsius", "most"), ("power_watts", "median"), ("sm_clock_mhz", "median")),
        is_of_moment=True,
    ),
    Rule(
        Kind.LEAK,
        "warning",
        "its memory grows and grows",
        "Memory has grown steadily while it works; at this pace it will end.",
        (
            Condition("memory_long_fraction", "growth", ">", 0.05, sources.MEMORY_INCREASE),
            Condition("memory_long_seconds", "last", ">=", 300, sources.STEADY_GROWTH),
            Condition("use_fraction", "mean", ">=", 0.1, sources.IDLE_AUDIT),
        ),
        (
            "Do not keep tensors with their graph over steps: total += loss.item(), not total += loss.",
            "Clear lists of outputs and metrics; detach what is kept.",
            "If lengths vary, pad to few of them; the allocator keeps a block for each.",
            advice.SEGMENTS,
        ),
        (("memory_full_fraction", "last"),),
    ),
    Rule(
        Kind.NEAR_FULL,
        "warning",
        "nearly out of memory",
        "The next larger batch or longer sequence may fail. An engine that takes all memory at its start (vLLM, JAX) "
        "looks like this too, and is well.",
        (
            Condition("memory_full_fraction", "last", ">=", 0.95, sources.NEAR_FULL),
            Condition("memory_left_bytes", "last", "<=", 2 * GIB, sources.NEAR_FULL),
        ),
        (advice.CHECKPOINTING, advice.SEGMENTS, "See below who else holds memory on this card."),
        is_of_moment=True,
    ),
)
"""What is told beside any other verdict."""
