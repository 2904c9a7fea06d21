"""Phases of image pipelines of the catalog, for tests."""

from planner.memory.software.diffusers import diffusion_timeline
from planner.workload.defaults import with_defaults
from planner.workload.workload import Inference


def phases(architecture, **asked):
    """Return the bytes of each phase at its highest snapshot, the framework's overhead aside."""
    found = diffusion_timeline(architecture, with_defaults(Inference(**asked), architecture, 1))
    return {name: max(one.total for one in found.snapshots if one.name == name) for name in _names(found)}


def _names(found):
    return dict.fromkeys(snapshot.name for snapshot in found.snapshots)
