"""Rules on cards in full use: what sets their speed."""

from typing import Final

from planner.monitor.diagnosis import advice, sources
from planner.monitor.diagnosis.conditions import ACTIVE, MOSTLY_USED, STEADY
from planner.monitor.diagnosis.rule import Rule
from planner.monitor.diagnosis.verdict import Condition, Kind

FULL_USE: Final = (
    Rule(
        Kind.POWER_CAPPED,
        "note",
        "held by its power limit",
        "It is in full use and lowers its clock to stay within its power limit.",
        (
            MOSTLY_USED,
            Condition("held_by_power_limit", "share", ">", 0.5, sources.CLOCK_REASONS),
            Condition("power_of_limit_fraction", "median", ">=", 0.9, sources.NEAR_LIMIT),
            Condition("clock_of_most_fraction", "median", "<", 0.9, sources.NEAR_LIMIT),
        ),
        (
            "If the limit is below the card's own, raise it (sudo nvidia-smi -pl WATTS).",
            "Cool it better: a cooler chip leaks less and clocks higher within the same power.",
            "Otherwise this is what the card can do; fewer or narrower operations are all that helps.",
        ),
        (("sm_clock_mhz", "median"), ("temperature_celsius", "median")),
    ),
    Rule(
        Kind.MEMORY_BOUND,
        "note",
        "held back by memory bandwidth",
        "Its memory is read and written as much as in practice can be, while multiprocessors wait.",
        (
            Condition("dram_active_fraction", "mean", ">=", 0.5, sources.KEMPNER),
            Condition("sm_active_fraction", "mean", "<", 0.5, sources.KEMPNER),
        ),
        (advice.FEWER_BYTES, advice.COMPILE, advice.LARGER_BATCH),
    ),
    Rule(
        Kind.COMPUTE_BOUND,
        "good",
        "in full use: computes",
        "Its tensor cores are what holds it back: it is used for what it is built for.",
        (
            Condition("tensor_active_fraction", "mean", ">=", 0.5, sources.KEMPNER),
            Condition("sm_active_fraction", "mean", ">=", 0.6, sources.KEMPNER),
        ),
        advice.GOOD,
    ),
    Rule(
        Kind.COMPUTE_BOUND,
        "good",
        "in full use: computes",
        "Nearly all multiprocessors always work.",
        (Condition("sm_active_fraction", "mean", ">=", 0.8, sources.DCGM), STEADY),
        advice.GOOD,
        (("tensor_active_fraction", "mean"),),
    ),
    Rule(
        Kind.SYNC_BOUND,
        "note",
        "busy, but with little",
        "Something always runs on it, but on less than half of its multiprocessors.",
        (MOSTLY_USED, Condition("sm_active_fraction", "mean", "<", 0.5, sources.DCGM)),
        advice.LAUNCHES,
        (("dram_active_fraction", "mean"),),
    ),
    Rule(
        Kind.COMPUTE_BOUND,
        "good",
        "in full use: computes",
        "It always works, and draws the power of a card that computes.",
        (
            MOSTLY_USED,
            STEADY,
            Condition("power_of_limit_fraction", "median", ">=", 0.8, sources.HIGH_POWER),
        ),
        advice.GOOD,
    ),
    Rule(
        Kind.MEMORY_BOUND,
        "note",
        "held back by memory bandwidth",
        "It always works, and accesses its memory most of the time while it draws less than it could.",
        (
            MOSTLY_USED,
            STEADY,
            Condition("memory_controller_fraction", "median", ">=", 0.6, sources.BUSY_BUS),
        ),
        (advice.FEWER_BYTES, advice.COMPILE, advice.LARGER_BATCH),
        (("power_of_limit_fraction", "median"),),
    ),
    Rule(
        Kind.SYNC_BOUND,
        "note",
        "busy, but with little",
        "Something always runs on it, yet it draws little power: kernels are small, or wait for memory or one another. "
        "Utilisation says that something runs, not how much.",
        (
            MOSTLY_USED,
            STEADY,
            Condition("power_of_limit_fraction", "median", "<", 0.4, sources.LOW_POWER),
        ),
        advice.LAUNCHES,
        (("memory_controller_fraction", "median"),),
    ),
    Rule(
        Kind.HEALTHY,
        "good",
        "in steady use",
        "It is used above 70 % and steadily.",
        (MOSTLY_USED, STEADY),
        advice.GOOD,
        (("power_of_limit_fraction", "median"), ("memory_full_fraction", "last")),
    ),
    Rule(
        Kind.UNDER_USED,
        "note",
        "not in full use",
        "It is used for part of the time; what it waits for does not show in what is measured.",
        (ACTIVE,),
        advice.WAITING,
        (("use_fraction", "mean"),),
    ),
)
"""What holds of cards that do not wait; the last of them holds of any that works."""
