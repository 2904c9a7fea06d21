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
    from planner.memory.logs.read import read_log
    from planner.models.load import load_model
    from planner.plan.advise import advise
    from planner.plan.catalog import load_catalog
    from planner.plan.evaluate import evaluate, find_fits
    from planner.plan.files import load_plan, save_plan
    from planner.plan.log_comparison import compare_plan
    from planner.plan.plan import ModelChoice, Plan
    from planner.plan.preset import load_presets, plan_of_preset, with_preset
    from planner.plan.recipe_files import load_recipe
    from planner.plan.solve import fewest_cards, largest_that_fits, smallest_card
    from planner.plan.versus import versus
    from planner.plan.warn import warnings_about
    from planner.trace.analysis.conclude import conclude
    from planner.trace.analysis.summary import facts_of
    from planner.trace.files import load_recording, save_recording
    from planner.trace.request import Target, TraceRequest
    from planner.trace.run import start_trace
    from planner.workload.workload import Inference, Training

__version__ = "0.1.0"

__all__ = [
    "Inference",
    "ModelChoice",
    "Plan",
    "PlannerError",
    "Target",
    "TraceRequest",
    "Training",
    "__version__",
    "advise",
    "compare_plan",
    "conclude",
    "estimate_memory",
    "evaluate",
    "facts_of",
    "fewest_cards",
    "find_fits",
    "largest_that_fits",
    "load_catalog",
    "load_model",
    "load_plan",
    "load_presets",
    "load_recipe",
    "load_recording",
    "plan_of_preset",
    "read_log",
    "resolve_gpu",
    "save_plan",
    "save_recording",
    "smallest_card",
    "start_trace",
    "versus",
    "warnings_about",
    "with_preset",
]

_HOMES = {
    "Inference": "planner.workload.workload",
    "ModelChoice": "planner.plan.plan",
    "Plan": "planner.plan.plan",
    "PlannerError": "planner.errors",
    "Target": "planner.trace.request",
    "TraceRequest": "planner.trace.request",
    "Training": "planner.workload.workload",
    "advise": "planner.plan.advise",
    "compare_plan": "planner.plan.log_comparison",
    "conclude": "planner.trace.analysis.conclude",
    "estimate_memory": "planner.memory.estimate",
    "evaluate": "planner.plan.evaluate",
    "facts_of": "planner.trace.analysis.summary",
    "fewest_cards": "planner.plan.solve",
    "find_fits": "planner.plan.evaluate",
    "largest_that_fits": "planner.plan.solve",
    "load_catalog": "planner.plan.catalog",
    "load_model": "planner.models.load",
    "load_plan": "planner.plan.files",
    "load_presets": "planner.plan.preset",
    "load_recipe": "planner.plan.recipe_files",
    "load_recording": "planner.trace.files",
    "plan_of_preset": "planner.plan.preset",
    "read_log": "planner.memory.logs.read",
    "resolve_gpu": "planner.hardware.names",
    "save_plan": "planner.plan.files",
    "save_recording": "planner.trace.files",
    "smallest_card": "planner.plan.solve",
    "start_trace": "planner.trace.run",
    "versus": "planner.plan.versus",
    "warnings_about": "planner.plan.warn",
    "with_preset": "planner.plan.preset",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'planner' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
