"""Workload rules as data: the first rule that holds gives the verdict, so narrower rules come before wider rules."""

from typing import Final

from planner.monitor.diagnosis import advice, sources
from planner.monitor.diagnosis.health_rules import HEALTH_RULES
from planner.monitor.diagnosis.rule import (
    ACTIVE,
    IDLE,
    IN_USE,
    LOW_USE,
    MOSTLY_USED,
    NOT_FULL_USE,
    STEADY,
    SWINGS,
    DiagnosisRule,
)
from planner.monitor.diagnosis.verdict import Criterion, VerdictKind
from planner.units import GIB

IDLE_RULES: Final = (
    DiagnosisRule(
        VerdictKind.UNEXPLAINED,
        "note",
        "busy, but no process holds memory",
        "The driver reports utilization while no process holds memory, so it may not be a workload: the memory check "
        "at driver start counts as utilization, and so do hidden processes of other users.",
        (MOSTLY_USED, Criterion("memory_used_bytes", "most", "<", 100e6, sources.NO_PROCESS_MEMORY)),
        (
            "Check again in a minute.",
            "Find out who uses it: nvidia-smi or amd-smi as administrator, and the other containers.",
        ),
        (("power_of_limit_fraction", "median"),),
    ),
    DiagnosisRule(
        VerdictKind.MEDIA,
        "good",
        "encoding or decoding video",
        "The video engines are busy; utilization does not include them, so the GPU looks idle although it is not.",
        (Criterion("media_fraction", "median", ">=", 0.1, sources.VIDEO_ENGINES), LOW_USE),
        shown=(("encoder_fraction", "median"), ("decoder_fraction", "median")),
    ),
    DiagnosisRule(
        VerdictKind.INPUT_BOUND,
        "warning",
        "input-bound (the CPU is fully used)",
        "The CPU is fully used while the GPU is idle: the data is not being prepared fast enough.",
        (Criterion("starved_by_cpu", "share", ">", 0.5, sources.CPU_BOTTLENECK), IN_USE),
        advice.BUSY_CPU,
        (("host.cpu_fraction", "median"), ("use_fraction", "mean")),
    ),
    DiagnosisRule(
        VerdictKind.INPUT_BOUND,
        "warning",
        "input-bound (the disks are slow)",
        "Processes wait for disks while the GPU is idle: data is not read fast enough.",
        (Criterion("starved_by_disk", "share", ">", 0.5, sources.IO_BOTTLENECK), IN_USE),
        advice.SLOW_DISKS,
        (("host.io_wait_fraction", "median"), ("use_fraction", "mean")),
    ),
    DiagnosisRule(
        VerdictKind.IDLE_HELD,
        "note",
        "idle, but memory is held",
        "A process holds memory without computing; nobody else can use that memory.",
        (IDLE, Criterion("held_memory_bytes", "last", ">", 100e6, sources.IDLE_AUDIT)),
        (
            "End the process if it is a forgotten notebook or server.",
            "If it is starting or loading data, check what it does first; that can often be done beforehand.",
            "If it serves requests, several models can share the GPU, or use MIG instances.",
        ),
    ),
    DiagnosisRule(
        VerdictKind.IDLE_HELD,
        "note",
        "idle, but memory is held",
        "Memory is in use without computation, and the readings do not say by which process.",
        (IDLE, Criterion("memory_without_graphics_bytes", "last", ">", 2 * GIB, sources.UNSEEN_MEMORY)),
        (
            "Find out which process holds it: nvidia-smi or amd-smi on the host, as administrator for those of others.",
            "End the process if it is a forgotten notebook or server.",
        ),
    ),
    DiagnosisRule(
        VerdictKind.IDLE,
        "note",
        "idle",
        "The GPU is hardly used.",
        (IDLE,),
        shown=(("memory_used_bytes", "last"),),
    ),
    DiagnosisRule(
        VerdictKind.HEALTHY,
        "good",
        "used for graphics",
        "Only programs that draw use the GPU; nothing computes on it.",
        (Criterion("is_graphics_only", "last", ">", 0, sources.DRAWING),),
        shown=(("use_fraction", "mean"), ("memory_used_bytes", "last")),
    ),
)
"""Rules for idle, misreported, video-only and graphics-only GPUs; they come before the rules for working GPUs."""

BUSY_RULES: Final = (
    DiagnosisRule(
        VerdictKind.POWER_CAPPED,
        "note",
        "limited by power",
        "The GPU is fully used and lowers its clock to stay within its power limit.",
        (
            MOSTLY_USED,
            Criterion("held_by_power_limit", "share", ">", 0.5, sources.CLOCK_REASONS),
            Criterion("power_of_limit_fraction", "median", ">=", 0.9, sources.NEAR_POWER_LIMIT),
            Criterion("clock_of_most_fraction", "median", "<", 0.9, sources.NEAR_POWER_LIMIT),
        ),
        (
            f"If the limit is below the GPU's maximum, raise it as administrator ({advice.SET_POWER_LIMIT}).",
            "Improve cooling: a cooler chip leaks less and clocks higher at the same power.",
            "Otherwise this is the GPU's limit; only fewer or narrower operations help.",
        ),
        (("sm_clock_mhz", "median"), ("temperature_celsius", "median")),
    ),
    DiagnosisRule(
        VerdictKind.MEMORY_BOUND,
        "note",
        "limited by memory bandwidth",
        "Memory traffic is near its practical limit while multiprocessors wait.",
        (
            Criterion("dram_active_fraction", "mean", ">=", 0.5, sources.KEMPNER),
            Criterion("sm_active_fraction", "mean", "<", 0.5, sources.KEMPNER),
        ),
        (advice.FEWER_BYTES, advice.COMPILE, advice.LARGER_BATCH),
    ),
    DiagnosisRule(
        VerdictKind.COMPUTE_BOUND,
        "good",
        "limited by compute",
        "The tensor cores are the bottleneck: the GPU is used as intended.",
        (
            Criterion("tensor_active_fraction", "mean", ">=", 0.5, sources.KEMPNER),
            Criterion("sm_active_fraction", "mean", ">=", 0.6, sources.KEMPNER),
        ),
        advice.WELL_USED,
    ),
    DiagnosisRule(
        VerdictKind.COMPUTE_BOUND,
        "good",
        "limited by compute",
        "Nearly all multiprocessors are always busy.",
        (Criterion("sm_active_fraction", "mean", ">=", 0.8, sources.DCGM), STEADY),
        advice.WELL_USED,
        (("tensor_active_fraction", "mean"),),
    ),
    DiagnosisRule(
        VerdictKind.SYNC_BOUND,
        "note",
        "busy, but with little work",
        "Kernels always run, but on less than half of the multiprocessors.",
        (MOSTLY_USED, Criterion("sm_active_fraction", "mean", "<", 0.5, sources.DCGM)),
        advice.FEWER_LAUNCHES,
        (("dram_active_fraction", "mean"),),
    ),
    DiagnosisRule(
        VerdictKind.COMPUTE_BOUND,
        "good",
        "limited by compute",
        "The GPU is always busy, and its power draw is typical of heavy computation.",
        (
            MOSTLY_USED,
            STEADY,
            Criterion("power_of_limit_fraction", "median", ">=", 0.8, sources.HIGH_POWER),
        ),
        advice.WELL_USED,
    ),
    DiagnosisRule(
        VerdictKind.MEMORY_BOUND,
        "note",
        "limited by memory bandwidth",
        "The GPU is always busy and accesses memory most of the time, at a moderate power draw.",
        (
            MOSTLY_USED,
            STEADY,
            Criterion("memory_controller_fraction", "median", ">=", 0.6, sources.MEMORY_ACCESS_TIME),
        ),
        (advice.FEWER_BYTES, advice.COMPILE, advice.LARGER_BATCH),
        (("power_of_limit_fraction", "median"),),
    ),
    DiagnosisRule(
        VerdictKind.SYNC_BOUND,
        "note",
        "busy, but with little work",
        "Kernels always run, yet the power draw is low: they are small, or wait for memory or one another. "
        "Utilization shows that something runs, not how much.",
        (
            MOSTLY_USED,
            STEADY,
            Criterion("power_of_limit_fraction", "median", "<", 0.4, sources.LOW_POWER),
        ),
        advice.FEWER_LAUNCHES,
        (("memory_controller_fraction", "median"),),
    ),
    DiagnosisRule(
        VerdictKind.HEALTHY,
        "good",
        "steadily used",
        "Utilization is steadily above 70 %.",
        (MOSTLY_USED, STEADY),
        advice.WELL_USED,
        (("power_of_limit_fraction", "median"), ("memory_full_fraction", "last")),
    ),
    DiagnosisRule(
        VerdictKind.UNDER_USED,
        "note",
        "not fully used",
        "The GPU is used part of the time; the measurements do not show what it waits for.",
        (ACTIVE,),
        advice.WAITING_GPU,
        (("use_fraction", "mean"),),
    ),
)
"""Rules for GPUs that do not wait; the last rule holds for any GPU that works."""

_BALANCE_ADVICE: Final = (
    "Balance the load: batches, sequence lengths and pipeline stages of equal cost.",
    "Move work of the first rank (logging, evaluation, checkpoints) out of the step.",
)
_HANG_ADVICE: Final = (
    "Look for a rank that ended, failed, or makes a different number of steps: the others wait for it.",
    "Find the call: py-spy dump --pid PID for each rank, or NCCL's flight recorder in PyTorch.",
)


def _straggler_rule(title: str, sentence: str, metric: str) -> DiagnosisRule:
    """Return the rule for a busy GPU whose power differs from that of its peers by `metric`."""
    return DiagnosisRule(
        VerdictKind.IMBALANCE,
        "warning",
        title,
        sentence,
        (MOSTLY_USED, Criterion(metric, "last", ">=", 0.25, sources.PEER_POWER)),
        _BALANCE_ADVICE,
        (("power_of_limit_fraction", "median"),),
    )


BOTTLENECK_RULES: Final = (
    DiagnosisRule(
        VerdictKind.HANGING,
        "error",
        "a collective hangs",
        "All GPUs of the job are busy without memory traffic and at a low power draw: they wait for each other.",
        (
            Criterion("job_least_use_fraction", "last", ">=", 0.95, sources.SPINNING),
            Criterion("job_most_memory_controller_fraction", "last", "<=", 0.02, sources.SPINNING),
            Criterion("job_most_power_fraction", "last", "<=", 0.45, sources.SPINNING),
        ),
        (*_HANG_ADVICE, "If all ranks are in the same collective, check the network and NCCL (NCCL_DEBUG=INFO)."),
    ),
    DiagnosisRule(
        VerdictKind.HANGING,
        "warning",
        "waiting for an idle GPU of its job",
        "The GPU is busy without memory traffic and at a low power draw: it waits in a collective for a rank whose "
        "GPU is idle.",
        (
            Criterion("job_least_use_fraction", "last", "<", 0.1, sources.IDLE_AUDIT),
            Criterion("use_fraction", "lately", ">=", 0.95, sources.SPINNING),
            Criterion("memory_controller_fraction", "lately", "<=", 0.02, sources.SPINNING),
            Criterion("power_of_limit_fraction", "lately", "<=", 0.45, sources.SPINNING),
        ),
        (*_HANG_ADVICE, "If that rank evaluates or writes a checkpoint, let all ranks share the work."),
    ),
    _straggler_rule(
        "slower than its peers",
        "All GPUs of the job are busy, but this one draws far more power: the others wait for it.",
        "power_beyond_peers_fraction",
    ),
    _straggler_rule(
        "waiting for a slower GPU",
        "The GPU is busy, but draws far less power than another GPU of the same job: it waits in a collective.",
        "power_behind_peers_fraction",
    ),
    DiagnosisRule(
        VerdictKind.IMBALANCE,
        "warning",
        "less busy than its peers",
        "The GPUs of one job are used unevenly: in each step the others wait for the slowest.",
        (
            Criterion("peer_distance", "last", ">", 0.5, sources.LOAD_BALANCING),
            Criterion("peer_lag", "last", ">=", 0.2, sources.PEER_LAG),
        ),
        (
            *_BALANCE_ADVICE,
            "Use DistributedDataParallel instead of DataParallel, which gathers everything on the first GPU.",
        ),
    ),
    DiagnosisRule(
        VerdictKind.TRANSFER_BOUND,
        "warning",
        "limited by PCIe transfers",
        "The PCIe link is nearly saturated: the GPU waits for copies.",
        (Criterion("pcie_of_link_fraction", "mean", ">=", 0.7, sources.NEAR_LINK_BANDWIDTH),),
        (
            "Copy less: use narrower types, process on the GPU, and keep reused data there.",
            advice.PINNED_MEMORY,
            "If weights or optimizer states are offloaded, keep more of them on the GPU.",
            "Check that the GPU's slot provides all its lanes.",
        ),
        (("pcie_bytes_per_s", "mean"), ("pcie_generation", "last"), ("pcie_width", "last")),
    ),
    DiagnosisRule(
        VerdictKind.TRANSFER_BOUND,
        "warning",
        "limited by PCIe transfers",
        "Much data is copied while the GPU is not fully used. The link's speed is not known.",
        (NOT_FULL_USE, Criterion("pcie_of_unknown_link_bytes_per_s", "mean", ">=", 11e9, sources.OLD_LINK)),
        (advice.PINNED_MEMORY, "Keep reused data on the GPU.", "Check that the GPU's slot provides all its lanes."),
    ),
    DiagnosisRule(
        VerdictKind.TRANSFER_BOUND,
        "warning",
        "transfers dominate computation",
        "Much data is copied to or from the GPU while its multiprocessors are mostly idle.",
        (
            Criterion("pcie_bytes_per_s", "mean", ">=", 1e9, sources.KEMPNER),
            Criterion("sm_active_fraction", "mean", "<", 0.3, sources.KEMPNER),
            ACTIVE,
        ),
        (advice.PINNED_MEMORY, "Keep reused data on the GPU.", advice.LARGER_BATCH),
    ),
    DiagnosisRule(
        VerdictKind.INPUT_BOUND,
        "warning",
        "probably input-bound (the CPU is fully used)",
        "The CPU is fully used while the GPU is not: the data is probably not being prepared fast enough.",
        (NOT_FULL_USE, ACTIVE, Criterion("job_cpu_fraction", "median", ">=", 0.9, sources.CPU_SHARE)),
        advice.BUSY_CPU,
    ),
    DiagnosisRule(
        VerdictKind.INPUT_BOUND,
        "warning",
        "probably input-bound (the disks are slow)",
        "The GPU is not fully used while processes wait for disks.",
        (NOT_FULL_USE, ACTIVE, Criterion("waiting_cores", "median", ">=", 1, sources.DISK_WAIT)),
        advice.SLOW_DISKS,
    ),
    DiagnosisRule(
        VerdictKind.HOST_BOUND,
        "warning",
        "limited by one CPU thread",
        "One thread of the program is always busy while the GPU is not: it cannot launch work fast enough.",
        (NOT_FULL_USE, ACTIVE, Criterion("busiest_process_cores", "last", ">=", 0.9, sources.ONE_CORE)),
        (advice.COMPILE, advice.NO_SYNCHRONIZATION, advice.WORKERS, advice.LARGER_BATCH, advice.PROFILE),
    ),
    DiagnosisRule(
        VerdictKind.FLUCTUATING,
        "warning",
        "used in bursts",
        "The GPU alternates between work and waiting: batches, or requests, arrive more slowly than it processes them.",
        (
            Criterion("use_fraction", "p95", ">", 0.7, sources.LOW_USE),
            Criterion("use_fraction", "p25", "<", 0.7, sources.STEADY),
            SWINGS,
        ),
        advice.WAITING_GPU,
        (("use_fraction", "mean"), ("host.cpu_fraction", "median")),
    ),
    DiagnosisRule(
        VerdictKind.FLUCTUATING,
        "note",
        "used, with repeated pauses",
        "The GPU works most of the time with pauses, such as for an evaluation, a checkpoint, or a late batch.",
        (
            Criterion("use_fraction", "p95", ">", 0.7, sources.LOW_USE),
            Criterion("use_fraction", "p5", "<", 0.1, sources.LOW_USE),
            SWINGS,
        ),
        (advice.NO_SYNCHRONIZATION, advice.WORKERS, advice.PINNED_MEMORY, advice.PROFILE),
        (("use_fraction", "mean"), ("host.cpu_fraction", "median")),
    ),
    DiagnosisRule(
        VerdictKind.UNDER_FILLED,
        "note",
        "has spare capacity",
        "GPU, CPU and memory are all used little: larger batches would use the GPU better.",
        (
            LOW_USE,
            ACTIVE,
            Criterion("host.cpu_fraction", "p95", "<", 0.7, sources.BATCH_SIZE),
            Criterion("memory_full_fraction", "p95", "<", 0.7, sources.BATCH_SIZE),
        ),
        (
            advice.LARGER_BATCH,
            advice.WORKERS,
            "Run several jobs at once on it, or use a smaller GPU.",
            advice.PROFILE,
        ),
    ),
    DiagnosisRule(
        VerdictKind.SYNC_BOUND,
        "warning",
        "limited by small kernels or synchronization",
        "Kernels always run, but on few multiprocessors: they are small, or wait for one another.",
        (
            Criterion("graphics_active_fraction", "mean", ">=", 0.4, sources.KEMPNER),
            Criterion("sm_active_fraction", "mean", "<", 0.25, sources.KEMPNER),
        ),
        advice.FEWER_LAUNCHES,
    ),
    DiagnosisRule(
        VerdictKind.SYNC_BOUND,
        "warning",
        "waiting, but not for the CPU",
        "Neither GPU nor CPU is fully used: the program waits for each kernel launch, for other GPUs or "
        "for the network.",
        (LOW_USE, ACTIVE, Criterion("host.cpu_fraction", "p95", "<", 0.7, sources.CPU_AND_GPU_LOW)),
        (
            advice.NO_SYNCHRONIZATION,
            advice.COMPILE,
            advice.WORKERS,
            "Check how long collectives take (NCCL_DEBUG=INFO, a profile).",
        ),
    ),
    DiagnosisRule(
        VerdictKind.UNDER_USED,
        "note",
        "lightly used",
        "The GPU could do more; the measurements do not show what it waits for.",
        (LOW_USE, ACTIVE),
        advice.WAITING_GPU,
    ),
)
"""Rules for GPUs that wait for data, the program, copies or other GPUs; narrower rules come first."""

WORKLOAD_RULES: Final = (*IDLE_RULES, *BOTTLENECK_RULES, *BUSY_RULES)
"""Rules on the workload; the first rule that holds gives the verdict."""
RULES: Final = (*HEALTH_RULES, *WORKLOAD_RULES)
"""All rules, in the order in which they are checked."""
