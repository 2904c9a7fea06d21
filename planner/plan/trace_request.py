"""Trace requests that check a plan's estimate by tracing the same model with the same settings."""

import json
from collections.abc import Iterator
from typing import Final

from planner.dtypes import AS_STORED, SCHEMES
from planner.errors import SpecError
from planner.hardware.gpu import Gpu
from planner.memory.training.adapters.trained import matches_pattern
from planner.models.architecture import Architecture, Tensor
from planner.models.load import load_config
from planner.models.readers.config_fields import ConfigFields
from planner.models.readers.config_json import stored_dtype
from planner.performance.kernels.gpu_figures import cores_per_multiprocessor
from planner.plan.catalog import Catalog
from planner.plan.evaluate import architecture_of, with_resolved_sharing
from planner.plan.plan import Plan
from planner.trace.request import Target, TracedCard, TraceRequest, torch_optimizer
from planner.workload.defaults import default_weight_format, with_defaults
from planner.workload.optimizers import OPTIMIZERS
from planner.workload.parallel import Parallel
from planner.workload.software.registry import DEFAULT, SOFTWARE
from planner.workload.training import Lora
from planner.workload.workload import Inference, Training, Workload

_TO_CHECK: Final = "for a trace."


def training_fields(workload: Training, architecture: Architecture | None, count: int) -> dict[str, object]:
    """Return the trace-request fields for a training workload with defaults filled in, on `count` GPUs.

    `architecture` is None for a model without formulas, whose parameters can be frozen only by name patterns.

    Raises:
        SpecError: If the workload needs more than PyTorch and transformers; the error names the field.
    """
    _check_traceable(workload)
    optimizer = torch_optimizer(workload.optimizer, workload.optimizer_step or "fused")
    if optimizer is None:
        kind = OPTIMIZERS[workload.optimizer]
        why = "combines two optimizers" if kind.library == "torch" else f"is from {kind.library}, not from PyTorch"
        raise SpecError("optimizer", f"{kind.title} {why}", f"Choose AdamW, SGD or Adafactor {_TO_CHECK}")
    name, arguments = optimizer
    return {
        "task": "training",
        "batch": workload.micro_batch,
        "sequence_length": workload.sequence_length,
        "dtype": workload.weights,
        "autocast": workload.compute.removeprefix("amp-") if workload.compute.startswith("amp-") else None,
        "optimizer": name,
        "optimizer_arguments": arguments,
        "gradient_accumulation": workload.gradient_accumulation,
        "checkpointing": workload.activation_checkpointing,
        "parallel": _rank_fields(workload.parallel, count),
        **({"lora": _adapter_fields(workload.lora)} if workload.lora else {}),
        **_freeze_fields(architecture, workload.trainable),
    }


def _freeze_fields(architecture: Architecture | None, trainable: tuple[str, ...]) -> dict[str, object]:
    """Return the trace-request fields that freeze all parameters that `trainable` does not match; empty without it."""
    if not trainable:
        return {}
    if architecture is None:
        hint = "Trace it with frozen parameters: gpu-planner trace TARGET --freeze PATTERN."
        raise SpecError("trainable", "the names of this model's parameters are not known", hint)
    return {"freeze": tuple(_frozen_patterns(architecture, trainable))}


def _check_traceable(workload: Training) -> None:
    """Reject training settings that a trace would ignore."""
    if workload.profile != DEFAULT:
        reason = f"{SOFTWARE[workload.profile].title} has its own operators; only transformers can be traced"
        raise SpecError("profile", reason, f"Choose the profile {DEFAULT} {_TO_CHECK}")
    if workload.images:
        raise SpecError("images", "a trace gives a vision-language model text alone", f"Leave out images {_TO_CHECK}")
    if workload.loss != "full-logits":
        raise SpecError("loss", "transformers computes the loss from full logits", f"Choose full-logits {_TO_CHECK}")
    if SCHEMES[workload.weights or "fp32"].family != "plain":
        reason = f"weights in {workload.weights} need bitsandbytes"
        raise SpecError("weights", reason, f"Choose the method lora on plain weights {_TO_CHECK}")
    if workload.lora is not None and workload.lora.dora:
        raise SpecError("lora.dora", "DoRA's magnitudes are not traced", f"Leave DoRA out {_TO_CHECK}")
    if workload.compute == "fp8":
        raise SpecError("compute", "torchao's fp8 layers cannot be traced", f"Choose amp-bf16 {_TO_CHECK}")
    if workload.gradient_clipping:
        raise SpecError(
            "gradient_clipping", "a trace does not clip gradients", f"Leave out gradient clipping {_TO_CHECK}"
        )
    if workload.checkpoint_every > 1:
        raise SpecError("checkpoint_every", "a trace checkpoints every layer", f"Choose 1 {_TO_CHECK}")


def _adapter_fields(lora: Lora) -> dict[str, object]:
    targets = ("all-linear",) if isinstance(lora.targets, str) else lora.targets
    return {"rank": lora.rank, "targets": targets, "dtype": lora.adapter_dtype, "dropout": lora.dropout}


def _rank_fields(parallel: Parallel, count: int) -> dict[str, object]:
    """Return the trace-request fields for `count` data-parallel ranks; empty for one GPU."""
    if count == 1:
        return {}
    if parallel.is_plain:
        return {"ranks": count, "strategy": "ddp"}
    if parallel.evolve(zero=0).is_plain and parallel.zero == 3:
        return {"ranks": count, "strategy": "fsdp"}
    hint = f"Choose data parallelism or ZeRO stage 3 {_TO_CHECK}"
    raise SpecError("parallel", "only data parallelism and full sharding can be traced", hint)


def _frozen_patterns(architecture: Architecture, trainable: tuple[str, ...]) -> Iterator[str]:
    """Yield name patterns of all parameters that `trainable` does not match."""
    if len(architecture.stacks) > 1:
        reason = "layers of the encoder and the decoder have the same numbers"
        raise SpecError("trainable", reason, f"Train all parameters {_TO_CHECK}")
    stack = architecture.main
    for tensor in (*stack.before, *stack.after, *architecture.head):
        if not _matches_any(tensor.name, trainable):
            yield tensor.name
    for group in stack.groups:
        for place in group.places or range(group.count):
            tensors = group.layer.tensors
            trained = [one for one in tensors if _matches_any(f"layers.{place}.{one.name}", trainable)]
            whole = not any(one.role in ("expert", "router") for one in trained)
            names = (_name_in_network(one) if whole else one.name for one in tensors if one not in trained)
            yield from (f"*.{place}.{name}" for name in dict.fromkeys(names))


def _name_in_network(tensor: Tensor) -> str:
    """Return the pattern of the parameter's name in a layer of transformers 5.

    Its networks hold all experts of a layer as one tensor, and name blocks of experts otherwise than checkpoints do.

    **Source**: transformers 5.23 `conversion_mapping.py`.
    """
    if tensor.role == "expert":
        return "*experts.*"
    if tensor.role == "router":
        return f"*.{'router' if 'router' in tensor.name.split('.') else 'gate'}.*weight"
    return tensor.name


def _matches_any(path: str, patterns: tuple[str, ...]) -> bool:
    return any(matches_pattern(path, pattern) for pattern in patterns)


_MAX_DECODED: Final = 512
_PLAIN: Final = ("fp32", "bf16", "fp16")


def request_of_plan(plan: Plan, catalog: Catalog) -> TraceRequest:
    """Return the trace request that checks the estimate of `plan`, with every default filled in.

    Raises:
        SpecError: If PyTorch alone cannot run the plan: quantized weights, an 8-bit optimizer, another library's
            kernels, a very long output, or a model without a configuration.
        ModelFileError: If the model's configuration cannot be read.
    """
    architecture = architecture_of(plan, catalog)
    workload = with_defaults(with_resolved_sharing(plan, catalog).workload, architecture, plan.count)
    if isinstance(workload, Training):
        fields = training_fields(workload, architecture, plan.count)
    else:
        fields = _inference_fields(workload)
    gpu = catalog.hardware.gpu(plan.gpu) if plan.gpu else None
    return TraceRequest.model_validate(
        {
            "target": _trace_target(plan, catalog),
            "attention": _attention_name(workload),
            **fields,
            **operator_fields(gpu),
        }
    )


def request_of_config(text: str, catalog: Catalog) -> TraceRequest:
    """Return the trace request for the model named in `text`, even if its memory cannot be estimated.

    Raises:
        PlannerError: If its configuration cannot be read.
    """
    name, config = load_config(text, catalog.models)
    return TraceRequest(target=Target(kind="config", place=name, config=json.dumps(config)))


def request_of_unread_model(
    text: str, workload: Workload, count: int, gpu: Gpu | None, catalog: Catalog
) -> TraceRequest:
    """Return the trace request that answers for the model named in `text`, which has no formulas, on `count` GPUs.

    Unset fields: weights in the format that the configuration states, else bf16; a prompt that fills the context, and
    lengths as a trace chooses them. Training has the defaults that it has with formulas.

    Raises:
        SpecError: If PyTorch alone cannot run the workload; the error names the field.
        PlannerError: If the model's configuration cannot be read.
    """
    request = request_of_config(text, catalog)
    if isinstance(workload, Training):
        settled = workload.evolve(
            weights=workload.weights or default_weight_format(workload),
            lora=workload.lora or (Lora() if workload.adapts else None),
            optimizer_step=workload.optimizer_step or OPTIMIZERS[workload.optimizer].steps[0],
            loss=workload.loss or "full-logits",
        )
        fields = training_fields(settled, None, count)
    else:
        _check_traced_inference(workload)
        fields = _inference_fields(_settled_inference(workload, request.target))
    names = {"attention": _attention_name(workload), **fields, **operator_fields(gpu)}
    return TraceRequest.model_validate({"target": request.target, **names})


_TRACED_INFERENCE: Final = frozenset(
    (
        *("task", "weights", "compute", "kv_cache", "batch", "context_length", "prompt_length"),
        *("attention", "profile", "parallel", "gpus", "other_processes_bytes"),
    )
)


def _check_traced_inference(workload: Inference) -> None:
    """Reject inference settings that a trace would ignore."""
    unheeded = sorted(workload.model_fields_set - _TRACED_INFERENCE)
    if unheeded:
        raise SpecError(unheeded[0], "cannot be set for a model that is traced", f"Leave it out {_TO_CHECK}")
    if workload.profile not in (None, DEFAULT):
        reason = f"{SOFTWARE[workload.profile].title} has its own operators; only transformers can be traced"
        raise SpecError("profile", reason, f"Choose the profile {DEFAULT} {_TO_CHECK}")
    if not workload.parallel.is_plain:
        raise SpecError("parallel", "a trace for inference runs on one GPU", f"Leave the GPUs as replicas {_TO_CHECK}")


def _settled_inference(workload: Inference, target: Target) -> Inference:
    """Return the workload with formats and lengths filled in for the model whose configuration `target` has."""
    stated = workload.model_fields_set
    dtype = workload.weights
    if dtype in (None, AS_STORED):
        stored = stored_dtype(ConfigFields(json.loads(target.config or "{}"), target.place))
        dtype = workload.compute if "compute" in stated else stored or workload.compute
    return workload.evolve(
        weights=dtype,
        compute=workload.compute if "compute" in stated or dtype not in _PLAIN else dtype,
        kv_cache=workload.kv_cache if "kv_cache" in stated or dtype not in _PLAIN else dtype,
        prompt_length=workload.prompt_length or workload.context_length,
    )


def is_traced_for_other_card(request: TraceRequest, gpu: Gpu | None) -> bool:
    """Return whether the trace assumed the operators of a CUDA GPU whose compute capability is not that of `gpu`."""
    assumed = request.compute_capability
    return gpu is not None and assumed not in (None, operator_fields(gpu)["compute_capability"])


def operator_fields(gpu: Gpu | None) -> dict[str, object]:
    """Return the trace-request fields that select the operators of `gpu`, or of any CUDA GPU if it is None."""
    if gpu is None or gpu.vendor != "NVIDIA":
        return {"device": "cuda", "compute_capability": None, "card": None}
    card = TracedCard(
        name=gpu.name if gpu.name.startswith("NVIDIA") else f"NVIDIA {gpu.name}",
        memory_bytes=gpu.usable_memory_bytes or gpu.device_memory_bytes,
        multiprocessors=_multiprocessors(gpu),
    )
    return {"device": "cuda", "compute_capability": gpu.compute_capability, "card": card}


def _multiprocessors(gpu: Gpu) -> int | None:
    """Return how many multiprocessors an NVIDIA GPU has, by its shader cores."""
    if gpu.shader_cores is None or gpu.compute_capability is None:
        return None
    return gpu.shader_cores // gpu.device_count // cores_per_multiprocessor(gpu)


def _trace_target(plan: Plan, catalog: Catalog) -> Target:
    """Return the trace target: the configuration of the plan's model."""
    if plan.model.architecture is None:
        name, config = load_config(plan.model.id, catalog.models)
        return Target(kind="config", place=name, config=json.dumps(config))
    if plan.model.path is None:
        raise SpecError(
            "model", f"the configuration of {plan.model.id} is not available", "Open its config.json again."
        )
    _, config = load_config(plan.model.path, catalog.models)
    return Target(kind="config", place=plan.model.id, config=json.dumps(config))


def _inference_fields(workload: Inference) -> dict[str, object]:
    if workload.weights not in _PLAIN or workload.weights != workload.compute:
        raise SpecError(
            "weights",
            f"weights in {workload.weights} computed in {workload.compute} need more than PyTorch alone",
            f"Choose the same plain format for both {_TO_CHECK}",
        )
    if workload.kv_cache != workload.compute:
        raise SpecError("kv_cache", "a trace keeps the cache in the compute precision", f"Choose {workload.compute}.")
    answered = max(0, (workload.context_length or 0) - (workload.prompt_length or 0))
    if answered > _MAX_DECODED:
        raise SpecError(
            "prompt_length",
            f"{answered:,} output tokens are too many to trace one by one",
            f"Choose a prompt at most {_MAX_DECODED} tokens shorter than the context.",
        )
    return {
        "task": "inference",
        "batch": workload.batch,
        "sequence_length": workload.prompt_length,
        "decode_tokens": answered,
        "dtype": workload.weights,
    }


def _attention_name(workload: Training | Inference) -> str:
    """Return the attention implementation of transformers: `eager` or `sdpa`."""
    return "eager" if workload.attention == "eager" else "sdpa"
