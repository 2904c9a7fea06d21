"""A step that trains every parameter with the operators of PyTorch."""

from functools import lru_cache

from planner.memory.logits import output_width
from planner.memory.losses import losses_of
from planner.memory.precision import Precision, training_precision
from planner.memory.profiles import profile_notes
from planner.memory.result import Term
from planner.memory.saved import Saved, saved_activations
from planner.memory.setup import Casts, Gradients, Setup, cast_term
from planner.memory.tensors import ParameterCounts, parameter_counts
from planner.memory.terms import checked, library, model, number_format
from planner.memory.tuning import tuning_of
from planner.memory.weights import weights_term
from planner.models.architecture import Architecture
from planner.workload.training import Training


def plain_setup(architecture: Architecture, workload: Training) -> Setup:
    """Return the setup of full training as transformers does it."""
    precision = training_precision(workload)
    saved = saved_activations(
        architecture,
        workload.micro_batch,
        workload.sequence_length or 0,
        precision,
        workload.attention,
        workload.activation_checkpointing == "full",
    )
    weights = weights_term(architecture, workload.weights or "fp32")
    counts = parameter_counts(architecture)
    head = head_matrix(architecture)
    return Setup(
        loaded=(weights,),
        kept=(weights,),
        trained=tuning_of(architecture, workload).trained,
        gradients=Gradients(
            head=head,
            last_layer=head + saved.stage.gradients,
            first_layer=_grown_before_first_layer(architecture) + saved.stage.gradients,
            all=counts.total,
            decoder=head + _in_the_decoder(architecture) + saved.stage.gradients if saved.between else 0,
        ),
        gradient_bytes=precision.parameter_bytes,
        state_bytes=precision.parameter_bytes,
        saved=saved,
        casts=_casts(counts, head, saved, precision, workload.activation_checkpointing == "full"),
        losses=losses_of(architecture, workload, precision),
        embedding=tied_gradient_term(architecture, precision),
        notes=profile_notes(architecture, workload),
    )


def head_matrix(architecture: Architecture) -> int:
    """Return the elements of the matrix that makes the output."""
    return output_width(architecture) * architecture.hidden


def _grown_before_first_layer(architecture: Architecture) -> int:
    """Return all parameters but those whose gradients come last: a layer's, and what is before it and no head."""
    counts = parameter_counts(architecture)
    tied = counts.token_embedding if architecture.tied_head else 0
    return counts.total - counts.smallest_layer - counts.before_layers + tied


def _in_the_decoder(architecture: Architecture) -> int:
    """Return the parameters of the main stack's layers but one, and of what stands behind them."""
    main = architecture.main
    layers = [group.layer.parameters * group.count for group in main.groups]
    smallest = min(group.layer.parameters for group in main.groups)
    return sum(layers) - smallest + sum(tensor.parameters for tensor in main.after)


def _casts(counts: ParameterCounts, head: int, saved: Saved, precision: Precision, checkpointed: bool) -> Casts:
    """Return the casts that are held: checkpoints hold the head's only, and those of the layer computed again."""
    if not precision.autocast:
        return Casts((), (), (), ())
    size = precision.compute_bytes
    in_a_layer = counts.cast_in_a_layer - saved.stage.uncast
    return Casts(
        forward=cast_term(counts.cast + head, size),
        loss=cast_term(head + (counts.cast_behind if checkpointed else counts.cast), size),
        last=cast_term(in_a_layer if checkpointed else counts.cast - saved.stage.uncast, size),
        first=cast_term(in_a_layer, size),
    )


@lru_cache(maxsize=256)
def tied_gradient_term(architecture: Architecture, precision: Precision) -> tuple[Term, ...]:
    """Return the gradients of a tied embedding that meet: nothing for one that is not tied."""
    if not architecture.tied_head:
        return ()
    elements = parameter_counts(architecture).token_embedding
    # A gradient that nothing else refers to is added to in place: one cast from autocast's copy, or a sum.
    in_place = precision.autocast or architecture.kind == "encoder-decoder"
    copies = 1 if in_place else 2
    both = checked(
        "temporaries",
        copies * elements * precision.parameter_bytes,
        "n × V × h × w",
        (
            library("n", copies, "gradients: the embedding's own, and the sum where it is not made in place"),
            model("V × h", elements, "elements of the token embedding"),
            number_format("w", precision.parameter_bytes, "bytes per gradient"),
        ),
        "torch/csrc/autograd/input_buffer.cpp: the embedding's dense gradient is added to the tied head's, in place "
        "where that is a tensor of its own to which nothing else refers",
    )
    return (both,)
