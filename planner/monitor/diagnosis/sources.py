"""Sources of the rules' thresholds: publications, and reasons for unpublished heuristics."""

from typing import Final

from planner.monitor.diagnosis.verdict import ThresholdSource


def _sagemaker_debugger(rule: str) -> ThresholdSource:
    return ThresholdSource(f"AWS SageMaker Debugger, {rule} (smdebug_rulesconfig 1.0.1)")


LOW_USE: Final = _sagemaker_debugger("LowGPUUtilization")
CPU_BOTTLENECK: Final = _sagemaker_debugger("CPUBottleneck")
IO_BOTTLENECK: Final = _sagemaker_debugger("IOBottleneck")
BATCH_SIZE: Final = _sagemaker_debugger("BatchSize")
MEMORY_INCREASE: Final = _sagemaker_debugger("GPUMemoryIncrease")
LOAD_BALANCING: Final = _sagemaker_debugger("LoadBalancing")
IDLE_AUDIT: Final = ThresholdSource("gpu-usage-audit: below 10 % is not active, above 100 MB is held")
KEMPNER: Final = ThresholdSource("KempnerPulse, docs/classification.md")
DCGM: Final = ThresholdSource(
    "NVIDIA DCGM user guide: 0.8 of the SMs active is needed for effective use, below 0.5 it is unlikely"
)
CLOCK_REASONS: Final = ThresholdSource("nvml.h, nvmlClocksEventReasons")


def heuristic(reason: str) -> ThresholdSource:
    """Return the source of an unpublished threshold, which is the reason for the threshold."""
    return ThresholdSource(reason, is_heuristic=True)


MEDIAN_USE: Final = heuristic("AWS's 70 %, compared with the median, which describes half of the time")
STEADY: Final = heuristic("at AWS's 70 % or more for three quarters of the time")
SWINGS: Final = heuristic("a start and an end make one fall; a saw-tooth pattern makes many")
RECURRING: Final = heuristic("during more than 5 % of the time, not only for a moment")
STILL_PRESENT: Final = heuristic("a problem that ended half a minute ago no longer matters")
NEAR_POWER_LIMIT: Final = heuristic("the power limit matters only near the limit; the bit is set at idle too")
HIGH_POWER: Final = heuristic("H100 and H200 in full use draw 90 % of their limit (nvidia_gpu_exporter, captures)")
LOW_POWER: Final = heuristic("busy, yet far from the power limit; no published threshold")
MEMORY_ACCESS_TIME: Final = heuristic(
    "NVML reports the time with memory accesses, not the bandwidth; no published threshold"
)
NEAR_FULL: Final = heuristic("the remaining memory is less than one large tensor")
STEADY_GROWTH: Final = heuristic("AWS's 5 points, spread over all sixths of the time: loading is a single step")
NEAR_LINK_BANDWIDTH: Final = heuristic("packet headers take a tenth or more of a link, and it is sampled briefly")
ONE_CORE: Final = heuristic("one always busy thread, in a process that uses the GPU")
DISK_WAIT: Final = heuristic("at least one core waits for disks at any time")
CPU_AND_GPU_LOW: Final = heuristic(
    "neither the CPU nor the GPU is busy: they wait for each other, or for something else"
)
VIDEO_ENGINES: Final = heuristic(
    "an encoder or decoder at work uses little else (captures: 60 to 100 % at 7 to 9 % utilization)"
)
PEER_LAG: Final = heuristic("histograms of 98 and 100 % differ too, so the means must also differ")
CPU_SHARE: Final = heuristic("AWS's CPU threshold, with GPU utilization below AWS's 70 %")
NO_PROCESS_MEMORY: Final = heuristic("gpu-usage-audit's 100 MB: no process works with less")
