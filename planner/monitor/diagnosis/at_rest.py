"""Rules on cards that compute little or nothing, whether or not they should."""

from typing import Final

from planner.monitor.diagnosis import advice, sources
from planner.monitor.diagnosis.conditions import IDLE, IN_USE, LOW_USE, MOSTLY_USED
from planner.monitor.diagnosis.rule import Rule
from planner.monitor.diagnosis.verdict import Condition, Kind

AT_REST: Final = (
    Rule(
        Kind.UNEXPLAINED,
        "note",
        "busy, but nothing holds its memory",
        "The driver reports work while no process holds memory, so its figure cannot be taken for a workload: the "
        "check of memory at the driver's start counts as work, and so do processes of others that are hidden.",
        (MOSTLY_USED, Condition("memory_used_bytes", "most", "<", 100e6, sources.NO_MEMORY)),
        ("Look again in a minute.", "See who uses it: nvidia-smi as administrator, and the other containers."),
        (("power_of_limit_fraction", "median"),),
    ),
    Rule(
        Kind.MEDIA,
        "good",
        "encodes or decodes video",
        "Its video engines work; they are apart from what utilisation measures, so that it looks idle and is not.",
        (Condition("media_fraction", "median", ">=", 0.1, sources.ENCODES), LOW_USE),
        shown=(("encoder_fraction", "median"), ("decoder_fraction", "median")),
    ),
    Rule(
        Kind.INPUT_BOUND,
        "warning",
        "waits for data: the processor is full",
        "The processor is full while the card has nothing to do: data are not prepared fast enough.",
        (Condition("starved_by_cpu", "share", ">", 0.5, sources.CPU_BOTTLENECK), IN_USE),
        advice.DATA,
        (("host.cpu_fraction", "median"), ("use_fraction", "mean")),
    ),
    Rule(
        Kind.INPUT_BOUND,
        "warning",
        "waits for data: the disks are slow",
        "Processes wait for disks while the card has nothing to do: data are not read fast enough.",
        (Condition("starved_by_disk", "share", ">", 0.5, sources.IO_BOTTLENECK), IN_USE),
        advice.DISKS,
        (("host.io_wait_fraction", "median"), ("use_fraction", "mean")),
    ),
    Rule(
        Kind.IDLE_HELD,
        "note",
        "idle, but its memory is held",
        "A process holds memory and computes nothing; nobody else can use that memory.",
        (IDLE, Condition("held_memory_bytes", "last", ">", 100e6, sources.IDLE_AUDIT)),
        (
            "End the process if it is a forgotten notebook or server.",
            "If it is starting or loads data, look at what it does first; that part can often be done beforehand.",
            "If it serves requests, several models can share the card, or an instance of it (MIG).",
        ),
    ),
    Rule(Kind.IDLE, "note", "idle", "Nothing runs on it.", (IDLE,), shown=(("memory_used_bytes", "last"),)),
)
"""What is asked before anything that holds of cards at work."""
