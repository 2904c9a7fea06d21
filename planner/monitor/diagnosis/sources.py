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
IDLE_AUDIT: Final = ThresholdSource(
    "gpu-usage-audit: a GPU below 10 % utilization is inactive, and holds memory if it has more than 100 MB"
)
KEMPNER: Final = ThresholdSource("KempnerPulse, docs/classification.md")
DCGM: Final = ThresholdSource(
    "NVIDIA DCGM user guide: effective use needs 0.8 of the SMs active, and is unlikely below 0.5"
)
CLOCK_REASONS: Final = ThresholdSource("nvml.h, nvmlClocksEventReasons")


def heuristic(reason: str) -> ThresholdSource:
    """Return the source of an unpublished threshold, which is the reason for the threshold."""
    return ThresholdSource(reason, is_heuristic=True)


MEDIAN_USE: Final = heuristic(
    "AWS's utilization threshold of 70 %, here for the median: the GPU is below it half of the time"
)
STEADY: Final = heuristic("utilization of 70 % (AWS's threshold) or more for three quarters of the time")
SWINGS: Final = heuristic("the end of a run makes utilization fall once; a saw-tooth pattern makes it fall many times")
RECURRING: Final = heuristic("a slow-down during more than 5 % of the time, not only for a moment")
SLOW_FANS: Final = heuristic("fans below 70 % of their speed can cool considerably more")
STILL_PRESENT: Final = heuristic("a problem that ended half a minute ago no longer matters")
NEAR_POWER_LIMIT: Final = heuristic(
    "a power limit matters only if the power draw is near it; NVML's bit for it is set at idle too"
)
HIGH_POWER: Final = heuristic("H100 and H200 in full use draw 90 % of their limit (nvidia_gpu_exporter, captures)")
LOW_POWER: Final = heuristic("a busy GPU draws power far below its limit; no threshold is published")
MEMORY_ACCESS_TIME: Final = heuristic(
    "NVML reports the share of time with memory accesses, not the bandwidth; no threshold is published"
)
NEAR_FULL: Final = heuristic("the remaining memory is less than one large tensor")
STEADY_GROWTH: Final = heuristic(
    "AWS's growth of 5 percentage points, spread over all sixths of the window, while loading is a single step"
)
NEAR_LINK_BANDWIDTH: Final = heuristic(
    "packet headers take a tenth or more of a link's bandwidth, and NVML samples the link only briefly"
)
ONE_CORE: Final = heuristic("one thread of a process that uses the GPU is always busy")
DISK_WAIT: Final = heuristic("at least one core waits for disks at any time")
CPU_AND_GPU_LOW: Final = heuristic(
    "neither the CPU nor the GPU is busy: they wait for each other, or for something else"
)
VIDEO_ENGINES: Final = heuristic(
    "video work hardly uses the SMs (in captures, video engines at 60 to 100 % with GPU utilization of 7 to 9 %)"
)
DRAWING: Final = heuristic("the driver lists programs that draw apart from those that compute")
PEER_LAG: Final = heuristic("histograms at 98 % and at 100 % utilization differ too, so the means must also differ")
CPU_SHARE: Final = heuristic("AWS's CPU threshold, with GPU utilization below AWS's 70 %")
SLOW_GROWTH: Final = heuristic(
    "half a gibibyte in half an hour fills a GPU within days; growth that levels off is a cache that fills"
)
OLD_LINK: Final = heuristic(
    "70 % of a PCIe 3.0 link with 16 lanes, the slowest that recent GPUs have, since this link's speed is not known"
)
PEER_POWER: Final = heuristic("a GPU that waits in a collective is busy, but draws far less than one that computes")
SPINNING: Final = heuristic("kernels that only wait keep a GPU busy without memory traffic and at a low power draw")
UNSEEN_MEMORY: Final = heuristic("the driver and a desktop use less; no log says which process holds the rest")
TENSOR_CORES: Final = heuristic("tensor cores that are active a tenth of the time are in use")
NO_PROCESS_MEMORY: Final = heuristic("gpu-usage-audit's threshold of 100 MB: no process computes with less memory")
