"""A step that trains every parameter in Megatron-LM's own layers."""

from functools import partial
from typing import Final

from planner.memory.logits import output_width, predicts_every_token
from planner.memory.phases import Deferred
from planner.memory.precision import training_precision
from planner.memory.result import Term
from planner.memory.software.megatron.saved import saved_by_megatron
from planner.memory.terms import checked, highest, library, lowest, model
from planner.memory.terms import workload as chosen
from planner.memory.training.full import whole_setup
from planner.memory.training.losses import Losses, losses_of
from planner.memory.training.setup import Casts, Setup
from planner.models.architecture import Architecture
from planner.workload.training import Training

_FP32: Final = 4
_SOURCE: Final = (
    "Megatron-LM 0.20 core/tensor_parallel/cross_entropy.py: one fp32 copy of the logits becomes, in place, the "
    "softmax and the gradient"
)
_LOSS: Final = "the derivative of the loss, made in place in fp32, is cast to the format of the logits"
_NOTE: Final = "As Megatron-LM 0.20 with Transformer Engine 2 does it; eager attention is its unfused one."


def is_megatron(workload: Training) -> bool:
    """Return whether every parameter is trained in Megatron-LM's own layers."""
    return workload.profile == "megatron" and not workload.adapts and not workload.trainable


def megatron_setup(architecture: Architecture, workload: Training) -> Setup:
    """Return the setup of full training in Megatron-LM: its own layers, its own loss, and no autocast.

    **Assumes** that gradients of weights are added up in fp32 by the hooks of its own DistributedDataParallel, so that
    none in 16 bits outlive a layer.
    """
    precision = training_precision(workload)
    saved = saved_by_megatron(
        architecture,
        workload.micro_batch,
        workload.sequence_length or 0,
        precision,
        workload.attention,
        workload.activation_checkpointing,
    )
    if workload.loss == "full-logits":
        losses = _losses(architecture, workload, precision.compute_bytes)
    else:
        losses = losses_of(architecture, workload, precision)
    return whole_setup(architecture, workload, precision, saved, losses, Casts((), (), (), ()), (_NOTE,))


def _losses(architecture: Architecture, workload: Training, size: int) -> Losses:
    """Return what is there of the logits: T · V · (w + 4) with the loss and with its derivative, then its cast."""
    tokens = workload.sequence_length or 0 if predicts_every_token(architecture) else 1
    outputs, width = workload.micro_batch * tokens, output_width(architecture)

    def logits(per_logit: int) -> Deferred:
        count = outputs * width * per_logit
        return Deferred("logits", count, lowest(count), highest(count), partial(_term, outputs, width, per_logit))

    both = logits(size + _FP32)
    return Losses(both, both, logits(size), logits(0), _LOSS)


def _term(outputs: int, width: int, per_logit: int) -> Term:
    return checked(
        "logits",
        outputs * width * per_logit,
        "T × V × k",
        (
            chosen("T", outputs, "tokens with an output"),
            model("V", width, "width of the output: a card's share of the vocabulary"),
            library("k", per_logit, "bytes per logit now: of the logits, and of one fp32 copy"),
        ),
        _SOURCE,
    )
