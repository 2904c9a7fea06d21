"""The rules, as data. The first that holds is the verdict: troubles first, then the narrower before the wider."""

from typing import Final

from planner.monitor.diagnosis import advice, sources
from planner.monitor.diagnosis.rule import (
    ACTIVE,
    IDLE,
    IN_USE,
    LOW_USE,
    MOSTLY_USED,
    NOT_FULL_USE,
    STEADY,
    SWINGS,
    Rule,
)
from planner.monitor.diagnosis.troubles import TROUBLES
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

OF_WORK: Final = (*AT_REST, *HELD_BACK, *FULL_USE)
"""The rules of which one holds: the first."""
RULES: Final = (*TROUBLES, *OF_WORK)
"""All rules, in the order in which they are asked."""
