"""What to trace to check the estimate of a plan: the same model, run the same way."""

import json
from typing import Final

from planner.errors import SpecError
from planner.hardware.gpu import Gpu
from planner.models.load import load_config
from planner.plan.catalog import Catalog
from planner.plan.evaluate import architecture_of
from planner.plan.plan import Plan
from planner.plan.traced_training import training_fields
from planner.trace.request import Target, TraceRequest
from planner.workload.defaults import with_defaults
from planner.workload.workload import Inference, Training

_MOST_ANSWERED: Final = 512
_PLAIN: Final = ("fp32", "bf16", "fp16")


def request_of_plan(plan: Plan, catalog: Catalog) -> TraceRequest:
    """Return the request whose trace checks the estimate of `plan`, with every default of its workload filled in.

    Raises:
        SpecError: If PyTorch alone cannot run the plan as it is: quantised weights, an 8-bit optimizer, another
            library's kernels, a very long answer, or a model whose configuration is not at hand.
        ModelFileError: If its configuration cannot be read.
    """
    architecture = architecture_of(plan, catalog)
    workload = with_defaults(plan.workload, architecture, plan.count)
    if isinstance(workload, Training):
        how = training_fields(workload, architecture, plan.count)
    else:
        how = _inference(workload)
    gpu = catalog.hardware.gpu(plan.gpu) if plan.gpu else None
    return TraceRequest.model_validate(
        {"target": _target(plan, catalog), "attention": _attention(workload), **how, **operators_of(gpu)}
    )


def request_of_config(text: str, catalog: Catalog) -> TraceRequest:
    """Return the request whose trace measures the network that `text` names, with a formula or without.

    Raises:
        PlannerError: If its configuration cannot be read.
    """
    name, config = load_config(text, catalog.models)
    return TraceRequest(target=Target(kind="config", place=name, config=json.dumps(config)))


def operators_of(gpu: Gpu | None) -> dict[str, object]:
    """Return the fields of a request that say whose operators are assumed on `gpu`, or on any CUDA card."""
    known = gpu is not None and gpu.vendor == "NVIDIA"
    return {"device": "cuda", "compute_capability": gpu.compute_capability if known and gpu else None}


def _target(plan: Plan, catalog: Catalog) -> Target:
    if plan.model.architecture is None:
        name, config = load_config(plan.model.id, catalog.models)
        return Target(kind="config", place=name, config=json.dumps(config))
    if plan.model.path is None:
        raise SpecError("model", f"the configuration of {plan.model.id} is not at hand", "Open its config.json again.")
    _, config = load_config(plan.model.path, catalog.models)
    return Target(kind="config", place=plan.model.id, config=json.dumps(config))


def _inference(workload: Inference) -> dict[str, object]:
    if workload.weights not in _PLAIN or workload.weights != workload.compute:
        raise SpecError(
            "weights",
            f"weights in {workload.weights} that are computed in {workload.compute} need more than PyTorch alone",
            "Choose the same plain format for both to check the estimate.",
        )
    if workload.kv_cache != workload.compute:
        raise SpecError("kv_cache", "the traced cache is in the computing format", f"Choose {workload.compute} for it.")
    answered = max(0, (workload.context_length or 0) - (workload.prompt_length or 0))
    if answered > _MOST_ANSWERED:
        raise SpecError(
            "prompt_length",
            f"{answered:,} tokens are answered, each of which would be traced",
            f"Let the prompt be at most {_MOST_ANSWERED} tokens shorter than the context.",
        )
    return {
        "task": "inference",
        "batch": workload.batch,
        "sequence_length": workload.prompt_length,
        "decode_tokens": answered,
        "dtype": workload.weights,
    }


def _attention(workload: Training | Inference) -> str:
    return "eager" if workload.attention == "eager" else "sdpa"
