"""How the training that a plan describes is traced: with PyTorch and transformers alone, or why it cannot be."""

from collections.abc import Iterator
from typing import Final

from planner.dtypes import SCHEMES
from planner.errors import SpecError
from planner.memory.tuned.tuning import matches
from planner.models.architecture import Architecture
from planner.trace.optimizers import torch_optimizer
from planner.workload.optimizers import OPTIMIZERS
from planner.workload.parallel import Parallel
from planner.workload.software.registry import DEFAULT, SOFTWARE
from planner.workload.training import Lora, Training

_TO_CHECK: Final = "to check the estimate."


def training_fields(workload: Training, architecture: Architecture, count: int) -> dict[str, object]:
    """Return the fields of a trace's request for `workload`, its defaults filled in, on `count` cards.

    Raises:
        SpecError: If it needs more than PyTorch and transformers have, by the field that asks for it.
    """
    _check(workload)
    found = torch_optimizer(workload.optimizer, workload.optimizer_step or "fused")
    if found is None:
        kind = OPTIMIZERS[workload.optimizer]
        why = "is two optimizers side by side" if kind.library == "torch" else f"is of {kind.library}, not of PyTorch"
        raise SpecError("optimizer", f"{kind.title} {why}", f"Choose AdamW, SGD or Adafactor {_TO_CHECK}")
    name, arguments = found
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
        "parallel": _ranks(workload.parallel, count),
        **({"lora": _adapters(workload.lora)} if workload.lora else {}),
        **({"freeze": tuple(_frozen(architecture, workload.trainable))} if workload.trainable else {}),
    }


def _check(workload: Training) -> None:
    """Refuse what the traced run would do otherwise."""
    if workload.profile != DEFAULT:
        reason = f"{SOFTWARE[workload.profile].title} has operators of its own; transformers is traced"
        raise SpecError("profile", reason, f"Choose the profile {DEFAULT} {_TO_CHECK}")
    if workload.loss != "full-logits":
        raise SpecError("loss", "transformers computes the loss of all logits", f"Choose full-logits {_TO_CHECK}")
    if SCHEMES[workload.weights or "fp32"].family != "plain":
        reason = f"weights in {workload.weights} need bitsandbytes"
        raise SpecError("weights", reason, f"Choose the method lora on plain weights {_TO_CHECK}")
    if workload.lora is not None and workload.lora.dora:
        raise SpecError("lora.dora", "adapters are traced without their magnitudes", f"Leave DoRA out {_TO_CHECK}")
    if workload.compute == "fp8":
        raise SpecError("compute", "torchao's layers are not traced", f"Choose amp-bf16 {_TO_CHECK}")
    if workload.gradient_clipping:
        raise SpecError("gradient_clipping", "gradients are not clipped in a trace", f"Leave it out {_TO_CHECK}")
    if workload.checkpoint_every > 1:
        raise SpecError("checkpoint_every", "every layer's input is kept in a trace", f"Choose 1 {_TO_CHECK}")


def _adapters(lora: Lora) -> dict[str, object]:
    targets = (lora.targets,) if isinstance(lora.targets, str) else lora.targets
    return {"rank": lora.rank, "targets": targets, "dtype": lora.adapter_dtype, "dropout": lora.dropout}


def _ranks(parallel: Parallel, count: int) -> dict[str, object]:
    if count == 1:
        return {}
    if parallel.is_plain:
        return {"ranks": count, "strategy": "ddp"}
    if parallel.evolve(zero=0).is_plain and parallel.zero == 3:
        return {"ranks": count, "strategy": "fsdp"}
    hint = f"Choose replicas, or ZeRO of stage 3, {_TO_CHECK}"
    raise SpecError("parallel", "one rank of replicas or of fully sharded ones is traced", hint)


def _frozen(architecture: Architecture, trainable: tuple[str, ...]) -> Iterator[str]:
    """Yield the patterns of all parameters that none of `trainable` names.

    Raises:
        SpecError: If a layer's number does not tell its stack.
    """
    if len(architecture.stacks) > 1:
        reason = "layers of an encoder and of a decoder have the same numbers"
        raise SpecError("trainable", reason, f"Train all parameters {_TO_CHECK}")
    stack = architecture.main
    for tensor in (*stack.before, *stack.after, *architecture.head):
        if not _is_met(tensor.name, trainable):
            yield tensor.name
    for group in stack.groups:
        for place in group.places or range(group.count):
            for tensor in group.layer.tensors:
                if not _is_met(f"layers.{place}.{tensor.name}", trainable):
                    yield f"*.{place}.{tensor.name}"


def _is_met(path: str, patterns: tuple[str, ...]) -> bool:
    return any(matches(path, pattern) for pattern in patterns)
