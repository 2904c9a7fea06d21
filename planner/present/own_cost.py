"""What the monitor itself costs, as people read it."""

from planner.monitor.readings.sample import Cost
from planner.present import format as fmt


def own_cost(cost: Cost | None, window_fraction: float | None) -> str:
    """Return what watching costs: a look at all cards, the sampler's share of a core and memory, the window's share."""
    parts = []
    if cost is not None:
        parts.append(f"{fmt.significant(cost.sweep_seconds * 1e3, 2)}{fmt.THIN}ms a look")
        memory = fmt.size(cost.memory_bytes)
        parts.append(f"sampler {fmt.precise_percent(cost.cpu_fraction)} of a core, {memory}")
    if window_fraction is not None:
        parts.append(f"window {fmt.precise_percent(window_fraction)}")
    return f"costs {', '.join(parts)}" if parts else ""
