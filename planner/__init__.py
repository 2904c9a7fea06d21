"""GPU Planner: which GPU a model needs, and whether it fits the one you have.

The names below are the public API. They load on first use, so `import planner` costs next to nothing and brings in
neither Qt nor torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from planner.errors import PlannerError
    from planner.hardware.names import resolve_gpu
    from planner.memory.estimate import estimate_memory
    from planner.models.load import load_model
    from planner.plan.catalog import load_catalog
    from planner.plan.evaluate import evaluate, find_fits
    from planner.plan.files import load_plan, save_plan
    from planner.plan.plan import ModelChoice, Plan
    from planner.workload.workload import Inference, Training

__version__ = "0.1.0"

__all__ = [
    "Inference",
    "ModelChoice",
    "Plan",
    "PlannerError",
    "Training",
    "__version__",
    "estimate_memory",
    "evaluate",
    "find_fits",
    "load_catalog",
    "load_model",
    "load_plan",
    "resolve_gpu",
    "save_plan",
]

_HOMES = {
    "Inference": "planner.workload.workload",
    "ModelChoice": "planner.plan.plan",
    "Plan": "planner.plan.plan",
    "PlannerError": "planner.errors",
    "Training": "planner.workload.workload",
    "estimate_memory": "planner.memory.estimate",
    "evaluate": "planner.plan.evaluate",
    "find_fits": "planner.plan.evaluate",
    "load_catalog": "planner.plan.catalog",
    "load_model": "planner.models.load",
    "load_plan": "planner.plan.files",
    "resolve_gpu": "planner.hardware.names",
    "save_plan": "planner.plan.files",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'planner' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
