"""Memory of training the denoiser of an image pipeline as the example scripts of diffusers do.

The other networks are frozen: the autoencoder and the text encoders run before the denoiser, without a graph.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from planner.dtypes import ELEMENT_BYTES
from planner.memory.precision import Precision
from planner.memory.result import PhaseName, Term
from planner.memory.software.diffusers.components import (
    pipeline_weights_term,
    prompt_length,
    text_encoding_bytes,
    text_tokens,
    training_components,
)
from planner.memory.software.diffusers.denoisers import denoiser_inputs, denoiser_pass, image_encoder_pass
from planner.memory.software.pytorch import TrainingMemory
from planner.memory.terms import format_symbol, measured_term, model_symbol, workload_symbol
from planner.memory.training.adapters.trained import tune_tensors
from planner.memory.training.losses import WITHOUT_HEAD
from planner.memory.training.optimizer_states import parameter_count
from planner.memory.training.optimizer_steps import optimizer_terms
from planner.memory.training.partial import adapters_term
from planner.memory.training.saved import BackwardPoint, SavedActivations, SavedBytes
from planner.memory.training.step import (
    AutocastCopies,
    GradientCounts,
    Moment,
    StepMoments,
    TrainingSetup,
    optimizer_step_moments,
)
from planner.memory.training.tape import Load, PassLoads, Tape, TapeFormats
from planner.models.architecture import Architecture
from planner.models.diffusion import Component, ImageDecoder, find_networks
from planner.workload.formats import autocasts, product_format
from planner.workload.training import Training

_SOURCE: Final = (
    "diffusers 0.42 modules, operator by operator, with the tensors that PyTorch 2.13 saves for the backward pass and "
    "those that the code still refers to"
)
_CASTS: Final = (
    "torch.autocast caches the cast of each fp32 weight until the forward pass ends, and the graph those it reads"
)
_NO_COPIES: Final = AutocastCopies((), (), (), ())
_NOTES: Final = (
    "The denoiser is trained as in the example scripts of diffusers; a moving average of its weights (--use_ema), "
    "images for validation and trained text encoders are not counted.",
)


class DiffusersTraining(TrainingMemory):
    """Training of a pipeline's denoiser with diffusers, and with PEFT for adapters."""

    def step(self, architecture: Architecture, workload: Training) -> StepMoments:
        """Return the moments of one optimizer step of `workload` on a GPU."""
        setup = self.setup(architecture, workload)
        loads = _denoiser_loads(*_denoiser_key(architecture, workload))
        gradient_bytes = 0 if workload.gradient_accumulation > 1 else setup.gradient_bytes
        forward, backward = (_highest(one, workload, gradient_bytes) for one in (loads.forward, loads.backward))
        moments = (
            *_encoding_moments(architecture, workload),
            _moment("denoise", forward, workload, "the denoiser runs, with what its backward pass needs kept"),
            _moment("loss", loads.kept, workload, "the prediction is compared with the noise or velocity"),
            _moment("backward", backward, workload, "the backward pass runs the denoiser's blocks in reverse order"),
            *optimizer_step_moments(setup, workload),
        )
        return StepMoments(setup, moments, 0)

    def setup(self, architecture: Architecture, workload: Training) -> TrainingSetup:
        """Return the memory inputs of one training step of `workload` (defaults filled in).

        Raises:
            SpecError: If no linear layer of the denoiser has the name of an adapter's target.
        """
        denoiser = _denoiser(architecture)
        trained, _ = tune_tensors(denoiser.tensors, workload.lora)
        lora, each = workload.lora, ELEMENT_BYTES[_trained_format(workload)]
        kept = workload.micro_batch * _denoiser_loads(*_denoiser_key(architecture, workload)).kept.per_image
        return TrainingSetup(
            weights=pipeline_weights_term(training_components(architecture, workload), None, "none"),
            optimizer=optimizer_terms(trained, workload.optimizer, workload.optimizer_step, each),
            gradients=GradientCounts(0, 0, 0, parameter_count(trained)),
            gradient_bytes=each,
            saved=SavedActivations(SavedBytes(attention=kept), 0, BackwardPoint(0), 0, 0, (), 0),
            casts=_NO_COPIES,
            losses=WITHOUT_HEAD,
            embedding=None,
            adapters=adapters_term(trained, lora, each) if lora else None,
            notes=_NOTES,
        )


def _denoiser(architecture: Architecture) -> Component:
    return next(one for one in architecture.components if one.part == "denoiser")


def _trained_format(workload: Training) -> str:
    """Return the format of the trained parameters and of their gradients."""
    return workload.lora.adapter_dtype if workload.lora else workload.weights or product_format(workload.compute)


class _DenoiserKey(NamedTuple):
    """Network, formats, adapters, checkpointing and image size, on which the loads of an image depend."""

    architecture: Architecture
    formats: TapeFormats
    adapted: frozenset[str] | None
    checkpointed: bool
    size: tuple[int, int]


def _denoiser_key(architecture: Architecture, workload: Training) -> _DenoiserKey:
    lora, compute = workload.lora, ELEMENT_BYTES[product_format(workload.compute)]
    adapted = None
    formats = TapeFormats(ELEMENT_BYTES[workload.weights or "fp32"], compute, autocasts(workload.compute))
    if lora is not None:
        _, names = tune_tensors(_denoiser(architecture).tensors, lora)
        adapted = frozenset(name.removesuffix(".weight") for name in names)
        formats = formats._replace(adapter=ELEMENT_BYTES[lora.adapter_dtype], rank=lora.rank, dropout=lora.dropout > 0)
    checkpointed = workload.activation_checkpointing == "full"
    return _DenoiserKey(architecture, formats, adapted, checkpointed, _image_size(workload))


def _image_size(workload: Training) -> tuple[int, int]:
    assert workload.image_size is not None  # a workload with its defaults states it
    return workload.image_size


@lru_cache(maxsize=256)
def _denoiser_loads(
    architecture: Architecture,
    formats: TapeFormats,
    adapted: frozenset[str] | None,
    checkpointed: bool,
    size: tuple[int, int],
) -> PassLoads:
    """Return the loads of one image in the forward and backward pass through the denoiser."""
    network, decoder = find_networks(architecture.components)
    width, height = (side // decoder.scale for side in size)
    inputs = denoiser_inputs(_denoiser(architecture), height, width, text_tokens(architecture, network))
    tape = Tape(formats, adapted, checkpointed=checkpointed)
    return tape.run(lambda: denoiser_pass(tape, network, inputs))


def _highest(loads: tuple[Load, ...], workload: Training, gradient_bytes: int) -> Load:
    """Return the highest of `loads` for the images of the workload, at `gradient_bytes` for each gradient so far."""
    images = workload.micro_batch
    return max(loads, key=lambda one: images * one.per_image + one.fixed + one.gradients * gradient_bytes)


def _moment(phase: PhaseName, load: Load, workload: Training, explanation: str) -> Moment:
    terms = [_activations_term(load, workload.micro_batch)]
    if load.fixed:
        terms.append(_casts_term(load, ELEMENT_BYTES[product_format(workload.compute)]))
    return Moment(phase, load.gradients, terms, explanation)


def _activations_term(load: Load, images: int) -> Term:
    return measured_term(
        "activations",
        images * load.per_image,
        "B × a",
        (
            workload_symbol("B", images, "images per GPU and forward pass"),
            model_symbol("a", load.per_image, "bytes of the activations of an image, and of their gradients"),
        ),
        _SOURCE,
    )


def _casts_term(load: Load, element_bytes: int) -> Term:
    return measured_term(
        "temporaries",
        load.fixed,
        "P_c × w",
        (
            model_symbol("P_c", load.fixed // element_bytes, "parameters, and gradients of parameters, in the format"),
            format_symbol("w", element_bytes, "bytes per element of the format of products"),
        ),
        _CASTS,
    )


def _encoding_moments(architecture: Architecture, workload: Training) -> Iterator[Moment]:
    """Yield the moments in which the text encoders and the autoencoder on the GPU run."""
    images, size = workload.micro_batch, ELEMENT_BYTES[product_format(workload.compute)]
    precision = Precision(size, size, size, autocast=False, half=product_format(workload.compute) == "fp16")
    for stored in training_components(architecture, workload):
        if stored.component.part == "text":
            tokens = prompt_length(stored.component)
            needed = text_encoding_bytes(stored.component, images, tokens, precision, workload.attention)
            load, explanation = Load(needed // images, 0, 0), f"{stored.component.name} reads the prompts"
            yield Moment("encode-text", 0, [_activations_term(load, images)], explanation)
        elif isinstance(stored.component.network, ImageDecoder):
            load = _encoder_load(stored.component.network, ELEMENT_BYTES[stored.format], _image_size(workload))
            yield Moment(
                "encode-image", 0, [_activations_term(load, images)], "the autoencoder turns images into latents"
            )


@lru_cache(maxsize=256)
def _encoder_load(network: ImageDecoder, element_bytes: int, size: tuple[int, int]) -> Load:
    """Return the highest load of one image in the autoencoder's encoder, which keeps nothing."""
    tape = Tape(TapeFormats(element_bytes, element_bytes, autocast=False), frozenset())
    loads = tape.run(lambda: image_encoder_pass(tape, network, size[1], size[0]))
    return max(loads.forward, key=lambda one: one.per_image)


TRAINING: Final = DiffusersTraining()
