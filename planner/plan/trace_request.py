"""What to trace to check the estimate of a plan: the same model, run the same way."""

import json
from collections.abc import Mapping
from typing import Final

from planner.errors import SpecError
from planner.hardware.gpu import Gpu
from planner.models.load import load_config
from planner.plan.catalog import Catalog
from planner.plan.evaluate import architecture_of
from planner.plan.plan import Plan
from planner.trace.request import Target, TraceRequest
from planner.workload.defaults import with_defaults
from planner.workload.workload import Inference, Training

_MOST_ANSWERED: Final = 512
# As the estimate assumes, and as transformers chooses; without it, each step copies the parameters.
_FUSED: Final = {"name": "fused", "value": True}
# Whatever its momentum is, as long as it is not zero: SGD then keeps one buffer for each parameter.
_MOMENTUM: Final = {"name": "momentum", "value": 0.9}
_OPTIMIZERS: Final[Mapping[str, dict[str, object]]] = {
    "adamw": {"optimizer": "AdamW", "optimizer_arguments": (_FUSED,)},
    "sgd": {"optimizer": "SGD", "optimizer_arguments": (_FUSED,)},
    "sgd-momentum": {"optimizer": "SGD", "optimizer_arguments": (_MOMENTUM, _FUSED)},
}
_PLAIN: Final = ("fp32", "bf16", "fp16")


def request_of_plan(plan: Plan, catalog: Catalog) -> TraceRequest:
    """Return the request whose trace checks the estimate of `plan`, with every default of its workload filled in.

    Raises:
        SpecError: If PyTorch alone cannot run the plan as it is: quantised weights, an 8-bit optimizer, a very long
            answer, or a model whose configuration is not at hand.
        ModelFileError: If its configuration cannot be read.
    """
    workload = with_defaults(plan.workload, architecture_of(plan, catalog), plan.count)
    how = _training(workload, plan.count) if isinstance(workload, Training) else _inference(workload)
    gpu = catalog.hardware.gpu(plan.gpu) if plan.gpu else None
    return TraceRequest.model_validate({"target": _target(plan, catalog), **how, **operators_of(gpu)})


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


def _training(workload: Training, count: int) -> dict[str, object]:
    if workload.optimizer not in _OPTIMIZERS:
        raise SpecError("optimizer", "8-bit AdamW is not part of PyTorch", "Choose AdamW or SGD to check the estimate.")
    autocast = workload.compute.removeprefix("amp-") if workload.compute.startswith("amp-") else None
    return {
        "task": "training",
        "batch": workload.micro_batch,
        "sequence_length": workload.sequence_length,
        "dtype": workload.weights,
        "autocast": autocast,
        "attention": _attention(workload),
        **_OPTIMIZERS[workload.optimizer],
        "gradient_accumulation": workload.gradient_accumulation,
        "checkpointing": workload.activation_checkpointing,
        "parallel": {"ranks": count, "strategy": "ddp"} if count > 1 else {},
    }


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
        "attention": _attention(workload),
    }


def _attention(workload: Training | Inference) -> str:
    return "eager" if workload.attention == "eager" else "sdpa"
