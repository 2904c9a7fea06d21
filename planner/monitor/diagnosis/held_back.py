"""Rules on cards that work, but wait."""

from typing import Final

from planner.monitor.diagnosis import advice, sources
from planner.monitor.diagnosis.conditions import ACTIVE, LOW_USE, NOT_FULL_USE, SWINGS
from planner.monitor.diagnosis.rule import Rule
from planner.monitor.diagnosis.verdict import Condition, Kind

HELD_BACK: Final = (
    Rule(
        Kind.IMBALANCE,
        "warning",
        "works less than the cards beside it",
        "Cards that work at the same task are used unevenly: the others wait for the slowest at each step.",
        (
            Condition("peer_distance", "last", ">", 0.5, sources.LOAD_BALANCING),
            Condition("peer_lag", "last", ">=", 0.2, sources.LAGS),
        ),
        (
            "Give each card as much: batches, sequence lengths and pipeline stages of equal cost.",
            "Keep what only the first card does (logging, evaluation, checkpoints) out of the step.",
            "Use DistributedDataParallel in place of DataParallel, which gathers everything on the first card.",
        ),
    ),
    Rule(
        Kind.TRANSFER_BOUND,
        "warning",
        "held back by copies over PCIe",
        "The link to the machine is nearly full: the card waits for copies.",
        (Condition("pcie_of_link_fraction", "mean", ">=", 0.7, sources.NEAR_LINK),),
        (
            "Copy less: narrower numbers, work on the card, keep what is used again there.",
            advice.PINNED,
            "If weights or optimizer states are offloaded, keep more of them on the card.",
            "See whether the card sits in a slot with all its lanes.",
        ),
        (("pcie_bytes_per_s", "mean"), ("pcie_generation", "last"), ("pcie_width", "last")),
    ),
    Rule(
        Kind.TRANSFER_BOUND,
        "warning",
        "copies more than it computes",
        "Much is copied to or from the card while its multiprocessors do little.",
        (
            Condition("pcie_bytes_per_s", "mean", ">=", 1e9, sources.KEMPNER),
            Condition("sm_active_fraction", "mean", "<", 0.3, sources.KEMPNER),
            ACTIVE,
        ),
        (advice.PINNED, "Keep on the card what is used again.", advice.LARGER_BATCH),
    ),
    Rule(
        Kind.INPUT_BOUND,
        "warning",
        "waits for data: the processor is full",
        "The card is not in full use while the processor is: data are hardly prepared fast enough.",
        (NOT_FULL_USE, ACTIVE, Condition("host.cpu_fraction", "median", ">=", 0.9, sources.PLAIN_SHARE)),
        advice.DATA,
    ),
    Rule(
        Kind.INPUT_BOUND,
        "warning",
        "waits for data: the disks are slow",
        "The card is not in full use while processes wait for disks.",
        (NOT_FULL_USE, ACTIVE, Condition("waiting_cores", "median", ">=", 1, sources.WAITS)),
        advice.DISKS,
    ),
    Rule(
        Kind.HOST_BOUND,
        "warning",
        "waits for its program",
        "One thread of the program never rests while the card does: it cannot start work fast enough.",
        (NOT_FULL_USE, ACTIVE, Condition("busiest_process_cores", "last", ">=", 0.9, sources.ONE_CORE)),
        (advice.COMPILE, advice.NO_SYNC, advice.WORKERS, advice.LARGER_BATCH, advice.PROFILE),
    ),
    Rule(
        Kind.FLUCTUATING,
        "warning",
        "used in bursts",
        "It works, then waits or does little, again and again: batches, or requests, arrive more slowly than it takes "
        "them.",
        (
            Condition("use_fraction", "p95", ">", 0.7, sources.LOW_USE),
            Condition("use_fraction", "p25", "<", 0.7, sources.STEADY),
            SWINGS,
        ),
        advice.WAITING,
        (("use_fraction", "mean"), ("host.cpu_fraction", "median")),
    ),
    Rule(
        Kind.FLUCTUATING,
        "note",
        "in use, but stops again and again",
        "It works most of the time and stops in between: for an evaluation, a checkpoint, or a batch that is late.",
        (
            Condition("use_fraction", "p95", ">", 0.7, sources.LOW_USE),
            Condition("use_fraction", "p5", "<", 0.1, sources.LOW_USE),
            SWINGS,
        ),
        (advice.NO_SYNC, advice.WORKERS, advice.PINNED, advice.PROFILE),
        (("use_fraction", "mean"), ("host.cpu_fraction", "median")),
    ),
    Rule(
        Kind.UNDER_FILLED,
        "note",
        "has room for more",
        "Card, processor and memory are all used little: larger batches would use the card better.",
        (
            LOW_USE,
            ACTIVE,
            Condition("host.cpu_fraction", "p95", "<", 0.7, sources.BATCH_SIZE),
            Condition("memory_full_fraction", "p95", "<", 0.7, sources.BATCH_SIZE),
        ),
        (
            advice.LARGER_BATCH,
            advice.WORKERS,
            "Run several jobs at once on it, or take a smaller card.",
            advice.PROFILE,
        ),
    ),
    Rule(
        Kind.SYNC_BOUND,
        "warning",
        "held back by small kernels or by waiting",
        "Something always runs, but on few of the multiprocessors: kernels are small, or wait for one another.",
        (
            Condition("graphics_active_fraction", "mean", ">=", 0.4, sources.KEMPNER),
            Condition("sm_active_fraction", "mean", "<", 0.25, sources.KEMPNER),
        ),
        advice.LAUNCHES,
    ),
    Rule(
        Kind.SYNC_BOUND,
        "warning",
        "waits, and not for the processor",
        "Neither card nor processor is in full use: kernels are launched one by one and waited for, or other cards or "
        "the network are waited for.",
        (LOW_USE, ACTIVE, Condition("host.cpu_fraction", "p95", "<", 0.7, sources.BOTH_LOW)),
        (advice.NO_SYNC, advice.COMPILE, advice.WORKERS, "See how long collectives take (NCCL_DEBUG=INFO, a profile)."),
    ),
    Rule(
        Kind.UNDER_USED,
        "note",
        "used little",
        "It could do more; what it waits for does not show in what is measured.",
        (LOW_USE, ACTIVE),
        advice.WAITING,
    ),
)
"""What waits for data, the program, copies or other cards; the narrower before the wider."""
