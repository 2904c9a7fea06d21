"""Where the thresholds of rules come from, each named once."""

from typing import Final

from planner.monitor.diagnosis.verdict import Source


def _debugger(rule: str) -> Source:
    return Source(f"AWS SageMaker Debugger, {rule} (smdebug_rulesconfig 1.0.1)")


LOW_USE: Final = _debugger("LowGPUUtilization")
CPU_BOTTLENECK: Final = _debugger("CPUBottleneck")
IO_BOTTLENECK: Final = _debugger("IOBottleneck")
BATCH_SIZE: Final = _debugger("BatchSize")
MEMORY_INCREASE: Final = _debugger("GPUMemoryIncrease")
LOAD_BALANCING: Final = _debugger("LoadBalancing")
IDLE_AUDIT: Final = Source("gpu-usage-audit: below 10 % is not active, above 100 MB is held")
KEMPNER: Final = Source("KempnerPulse, docs/classification.md")
DCGM: Final = Source(
    "NVIDIA DCGM user guide: 0.8 of the SMs active is needed for effective use, below 0.5 it is unlikely"
)
CLOCK_REASONS: Final = Source("nvml.h, nvmlClocksEventReasons")


def heuristic(reason: str) -> Source:
    """Return a source of our own, with why the threshold is what it is."""
    return Source(reason, is_heuristic=True)


HALF_THE_TIME: Final = heuristic("AWS's 70 %, held against the middle value: it says how the half of the time goes")
STEADY: Final = heuristic("three quarters of the time at AWS's 70 % or more")
SWINGS: Final = heuristic("a start and an end make one fall; a saw-tooth makes many")
NOW_AND_THEN: Final = heuristic("longer than a moment")
NOT_OVER: Final = heuristic("what is over for half a minute is no trouble any more")
NEAR_LIMIT: Final = heuristic("the power limit holds a card back near the limit only; at rest its bit is set as well")
HIGH_POWER: Final = heuristic("H100 and H200 in full use draw 90 % of their limit (nvidia_gpu_exporter, captures)")
LOW_POWER: Final = heuristic("busy, yet far from the limit: nothing published says where that begins")
BUSY_BUS: Final = heuristic("NVML tells the time that memory was accessed, not the bandwidth; nothing published")
NEAR_FULL: Final = heuristic("what is left is less than one large tensor")
STEADY_GROWTH: Final = heuristic("AWS's 5 points, in each sixth of the time a little: loading is one step")
NEAR_LINK: Final = heuristic("packets' heads take a tenth or more of a link, and it is looked at in spots")
ONE_CORE: Final = heuristic("one thread that never rests, in a process that drives the card")
WAITS: Final = heuristic("at least one core waits for disks at any time")
BOTH_LOW: Final = heuristic("neither the processor nor the card is in use: they wait for one another, or for others")
ENCODES: Final = heuristic("an encoder or decoder at work uses little else (captures: 60 to 100 % beside 7 to 9 %)")
LAGS: Final = heuristic("histograms of 98 and 100 % differ too: the means must differ as well")
PLAIN_SHARE: Final = heuristic("AWS's level for the CPU, beside less than its 70 % of the card")
NO_MEMORY: Final = heuristic("gpu-usage-audit's 100 MB: no process works in less")
