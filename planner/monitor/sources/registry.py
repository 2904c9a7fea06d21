"""Every source of cards beside NVIDIA's driver, in the order in which they are asked."""

from pathlib import Path

from planner.monitor.host.environment import HostEnvironment
from planner.monitor.host.processes import HostProcesses
from planner.monitor.sources.amd_smi import AmdSmiSource
from planner.monitor.sources.drm import DrmSource
from planner.monitor.sources.level_zero import LevelZeroSource
from planner.monitor.sources.programs import apple_source, jetson_source
from planner.monitor.sources.source import CardSource


def card_sources(root: Path, environment: HostEnvironment) -> tuple[CardSource, ...]:
    """Return the sources; `root` is the root of the file system.

    What the kernel shows comes first, since it names the cards and their processes; vendors' libraries add to it.
    """
    drm = DrmSource(root, HostProcesses(), sees_same_pids=not environment.is_wsl)
    return drm, AmdSmiSource(root), LevelZeroSource(root), jetson_source(root), apple_source()
