"""Architecture of a neural network: its tensors, and the properties of each kind of layer.

An `Architecture` has a few `Stack`s (a decoder, an encoder, a vision tower) of `LayerGroup`s, which are a number of
identical layers, so that estimates take the same time for 2 layers as for 200. A diffusion pipeline has components
instead, each with its own network.
"""

from functools import lru_cache
from math import isqrt
from typing import Final, Literal, Self

from pydantic import Field, model_validator

from planner.base import Spec
from planner.dtypes import AS_STORED
from planner.errors import SpecError
from planner.models.diffusion import Component
from planner.models.layers import (
    Activation,
    Attention,
    Grouping,
    LatentAttention,
    Layer,
    LayerGroup,
    LossInput,
    Mixer,
    Mlp,
    Moe,
    Norm,
    Role,
    Stack,
    StateMixer,
    StoredLayer,
    StoredTensors,
    Tensor,
)
from planner.units import ceil_div

__all__ = [
    "Activation",
    "Architecture",
    "Attention",
    "Grouping",
    "LatentAttention",
    "Layer",
    "LayerGroup",
    "LossInput",
    "Mixer",
    "Mlp",
    "ModelKind",
    "Moe",
    "Norm",
    "Role",
    "Stack",
    "StateMixer",
    "StoredLayer",
    "StoredTensors",
    "Tensor",
]

ModelKind = Literal["decoder", "encoder", "encoder-decoder", "vision-encoder", "vision-language", "diffusion"]

VOCABULARY_NAMES: Final = ("embed_tokens", "lm_head")
"""Names of embedding and output head, as targets of adapters."""
_PLAIN_FORMATS: Final = {"BF16": "bf16", "F16": "fp16", "F32": "fp32"}


class Architecture(Spec):
    """The architecture of a whole network: its stacks of layers or pipeline components, and its output head.

    **Assumes** that tied tensors (an output head that is the input embedding) are listed once, in `before`, with
    `tied_head` set.
    """

    model_type: str = Field(description="`model_type` in the Hugging Face configuration")
    kind: ModelKind
    hidden: int = Field(ge=1, description="hidden width of the main stack")
    vocabulary: int | None = Field(
        default=None,
        ge=1,
        description="vocabulary size (rows of the token embedding); None for networks without tokens",
    )
    max_context: int | None = Field(
        default=None, ge=1, description="maximum context length in tokens, as the configuration states it"
    )
    stacks: tuple[Stack, ...] = Field(
        default=(), description="stacks of layers; the last one is the main stack, which produces the output"
    )
    components: tuple[Component, ...] = Field(
        default=(), description="components of a diffusion pipeline, which has no stacks"
    )
    head: tuple[Tensor, ...] = Field(default=(), description="tensors of the output head, unless tied to the embedding")
    tied_head: bool = False
    stored_dtype: str | None = Field(default=None, description="number format of the checkpoint: bf16, fp16, fp32")
    quantization: str | None = Field(
        default=None, description="quantization scheme of the checkpoint, such as fp8 or mxfp4"
    )
    quantized_roles: tuple[Role, ...] = Field(
        default=("linear", "expert"), description="roles of the tensors that the checkpoint stores quantized"
    )
    container: Literal["safetensors", "gguf"] | None = Field(
        default=None, description="file format from which the stored tensor sizes were read"
    )
    stored: tuple[StoredTensors, ...] = Field(
        default=(),
        description="stored sizes of the network's tensors in the checkpoint; empty if its files were not read",
    )
    stored_layers: tuple[StoredLayer, ...] = Field(
        default=(), description="stored size of each layer of the main stack, in order; empty if only sums were read"
    )
    labels: int | None = Field(default=None, ge=1, description="number of classes of an encoder's classification head")
    loss_reads: LossInput = Field(
        default="fp32-copy",
        description="input of the loss: an fp32 copy of the logits, the logits, or the logits plus an fp32 bias "
        "outside the head (BART)",
    )
    softcapped_logits: bool = Field(
        default=False, description="whether logits pass through tanh, which saves a copy (Gemma 2)"
    )
    mask_buffer_bytes: int = Field(
        default=0, ge=0, description="bytes of the causal masks that modules keep beside their parameters (GPT-Neo)"
    )
    position_buffer_elements: int = Field(
        default=0, ge=0, description="elements of the tables of positions that modules keep as buffers (M2M-100)"
    )
    tensor_cards: int = Field(
        default=1, ge=1, description="number of tensor-parallel GPUs of which this network is one's share"
    )
    further_layers: int = Field(
        default=0, ge=0, description="layers of the checkpoint that predict further tokens (MTP), which are not counted"
    )
    draft: "Architecture | None" = Field(
        default=None, description="network that drafts tokens for this one, which is not counted"
    )
    reader_notes: tuple[str, ...] = Field(default=(), description="notes on what the reader assumed or ignored")

    @model_validator(mode="after")
    def _check_stacks_or_components(self) -> Self:
        """Refuse a diffusion pipeline without components, and any other network without stacks."""
        if bool(self.components) != (self.kind == "diffusion") or bool(self.components) == bool(self.stacks):
            raise ValueError("a diffusion pipeline needs components, and every other network needs stacks")
        return self

    @property
    def main(self) -> Stack:
        """Return the stack that produces the output; a diffusion pipeline has none."""
        return self.stacks[-1]

    @property
    def expert_layers(self) -> tuple[int, ...]:
        """Return the numbers of the main stack's layers that have routed experts, in order, from 0."""
        if not self.stacks:
            return ()
        groups = (group for group in self.main.groups if isinstance(group.layer.feed_forward, Moe))
        return tuple(sorted(place for group in groups for place in (group.places or range(group.count))))

    @property
    def adaptable_names(self) -> tuple[str, ...]:
        """Return the last parts of the names of the matrices that may have an adapter, those of the vocabulary last."""
        tensors = [tensor for group in self.main.groups for tensor in group.layer.tensors] if self.stacks else []
        matrices = (one.name for one in tensors if len(one.shape) > 1 and one.role in ("linear", "expert"))
        return tuple(
            dict.fromkeys((*(name.removesuffix(".weight").rpartition(".")[2] for name in matrices), *VOCABULARY_NAMES))
        )

    @property
    def fixed_length(self) -> int | None:
        """Return the input length of the main stack if it is fixed, as for image encoders."""
        return self.stacks[-1].positions if self.stacks else None

    @property
    def fixed_encoder_length(self) -> int | None:
        """Return the number of positions that the encoder of an encoder-decoder always reads (Whisper); else None."""
        return self.stacks[0].positions if self.kind == "encoder-decoder" else None

    @property
    def has_variable_length(self) -> bool:
        """Return whether the input has a variable length, as for text."""
        return bool(self.stacks) and self.fixed_length is None

    @property
    def depth(self) -> int:
        """Return the number of layers in the main stack; 0 for a diffusion pipeline."""
        return self.stacks[-1].layer_count if self.stacks else 0

    @property
    def stored_bytes(self) -> int:
        """Return the size of the network's tensors in the checkpoint in bytes; 0 if its files were not read."""
        parts = (*self.stored, *(part for component in self.components for part in component.stored))
        return sum(part.bytes for part in parts)

    @property
    def states_format(self) -> bool:
        """Return whether the model's configuration or files state the number format of its weights."""
        return bool(self.quantization or self.stored_dtype or self.stored)

    @property
    def stored_as(self) -> str:
        """Return the weight format of the checkpoint: a scheme's name, or `AS_STORED` if no scheme matches its size.

        If nothing states the format (`states_format`), it is assumed to be bf16.
        """
        plain = {_PLAIN_FORMATS.get(part.format) for part in self.stored}
        if self.quantization is None and plain and plain != {self.stored_dtype}:
            return AS_STORED
        return self.quantization or self.stored_dtype or "bf16"

    @property
    def parameters(self) -> int:
        """Return the exact number of parameters in the network; tied parameters count once."""
        inside = sum(stack.parameters for stack in self.stacks) + sum(tensor.parameters for tensor in self.head)
        return inside + sum(component.parameters for component in self.components)

    @property
    def active_parameters(self) -> int:
        """Return the number of parameters that one token uses, including embeddings and only the selected experts.

        **Formula**: all parameters less those of the experts that are not selected, experts · (1 − top_k / E).
        """
        return self.parameters - sum(_unselected_parameters(group) for stack in self.stacks for group in stack.groups)


def _unselected_parameters(group: LayerGroup) -> int:
    moe = group.layer.feed_forward
    if not isinstance(moe, Moe):
        return 0
    routed = sum(tensor.parameters for tensor in group.layer.tensors if tensor.role == "expert")
    return group.count * routed * (moe.experts - moe.top_k) // moe.experts


DEFAULT_SIDE = 1_024
"""Default width and height in pixels of images for networks that accept any size."""


@lru_cache(maxsize=256)
def with_image_size(architecture: Architecture, size: tuple[int, int] | None) -> Architecture:
    """Return an image encoder adapted to images of `size` (width, height); other networks are returned unchanged.

    The parameters stay the same: position embeddings are interpolated, as by transformers' `interpolate_pos_encoding`.

    **Assumes** that tokens other than the square of patches, such as a class token, stay the same.

    Raises:
        SpecError: If the image is smaller than a patch, or the network does not divide images into patches.
    """
    if size is None or architecture.kind != "vision-encoder":
        return architecture
    tower = architecture.main
    side = tower.patch_side
    if side is None or tower.positions is None:
        raise SpecError("image_size", f"{architecture.model_type} does not divide images into patches", "Remove it.")
    if min(size) < side:
        raise SpecError("image_size", f"is smaller than a patch of {side} × {side} pixels")
    more = tower.positions - isqrt(tower.positions) ** 2
    patches = (size[0] // side) * (size[1] // side)
    return architecture.evolve(stacks=(*architecture.stacks[:-1], tower.evolve(positions=patches + more)))


_PROJECTORS: Final = ("projector", "merger", "connector", "vision_adapter")
"""Parts of the names of modules that turn features of a tower into tokens of the language model."""


@lru_cache(maxsize=256)
def with_training_images(
    architecture: Architecture, images: int, size: tuple[int, int] | None, frozen: str, *, adapts: bool
) -> Architecture:
    """Return a vision-language model as a training step runs it: with `images` of `size` in each sequence.

    What is `frozen` (the tower, or all that reads images) gets neither gradients nor adapters. The same holds for what
    the loss does not depend on, unless it `adapts`: the tower without images, and layers of it whose output nobody
    reads, which then are a stack of their own. Networks that embed no images are returned unchanged.

    **Source**: torch.autograd, which leaves such a parameter's `.grad` None; optimizers skip it.
    """
    if not embeds_images(architecture):
        return architecture
    tower, *others = architecture.stacks
    unreached = not (images or adapts)
    read, unread = _split_unread_layers(tower)
    if frozen != "none" or unreached:
        read = _frozen_stack(read, whole=unreached or frozen == "all")
    if unread and not (adapts and frozen == "none"):
        unread = _frozen_stack(unread, whole=True)
    counted = read.images.evolve(count=images, patches=image_patches(tower, size), unread_layers=0)
    if images and tower.images.prompt_masks:
        others = [_masked_stack(stack) for stack in others]
    stacks = (read.evolve(images=counted), *((unread,) if unread else ()), *others)
    return architecture.evolve(stacks=stacks)


def _split_unread_layers(tower: Stack) -> tuple[Stack, Stack | None]:
    """Return the layers of `tower` whose output is read with the projector, and the others with their norm, if any."""
    last = tower.groups[-1]
    unread = tower.images.unread_layers
    if not unread or last.count <= unread:
        return tower, None
    kept = last.evolve(count=last.count - unread, places=last.places[:-unread])
    cut = last.evolve(count=unread, places=last.places[-unread:])
    projector = tuple(tensor for tensor in tower.after if _is_projector(tensor))
    norm = tuple(tensor for tensor in tower.after if not _is_projector(tensor))
    return (
        tower.evolve(groups=(*tower.groups[:-1], kept), after=projector),
        tower.evolve(groups=(cut,), before=(), after=norm),
    )


def _frozen_stack(stack: Stack, *, whole: bool) -> Stack:
    """Return `stack` with all its tensors frozen, but for the projector unless it is the `whole` of it."""

    def freeze(tensors: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return tuple(
            tensor if _is_projector(tensor) and not whole else tensor.evolve(frozen=True) for tensor in tensors
        )

    return stack.evolve(
        before=freeze(stack.before),
        after=freeze(stack.after),
        groups=tuple(
            group.evolve(layer=group.layer.evolve(tensors=freeze(group.layer.tensors))) for group in stack.groups
        ),
    )


def _masked_stack(stack: Stack) -> Stack:
    """Return a decoder whose attention is handed a mask, since tokens of an image see each other (Gemma 3)."""
    groups = []
    for group in stack.groups:
        mixer = group.layer.mixer
        masked = mixer.evolve(always_masked=True) if isinstance(mixer, Attention) else mixer
        groups.append(group.evolve(layer=group.layer.evolve(mixer=masked)))
    return stack.evolve(groups=tuple(groups))


def _is_projector(tensor: Tensor) -> bool:
    return any(name in tensor.name for name in _PROJECTORS)


def embeds_images(architecture: Architecture) -> bool:
    """Return whether images become prompt tokens; false for models with cross-attention to images, as in Llama 3.2."""
    if architecture.kind != "vision-language" or architecture.stacks[0].name != "vision":
        return False
    return all(group.layer.cross_attention is None for group in architecture.main.groups) and (
        architecture.stacks[0].merge is not None
    )


def image_patches(tower: Stack, size: tuple[int, int] | None) -> int:
    """Return an image's sequence length in a vision tower: its fixed length, or the number of patches in `size`.

    Towers that accept any size round it up to whole squares of merged patches.
    """
    if tower.positions is not None:
        return tower.positions
    width, height = size or (DEFAULT_SIDE, DEFAULT_SIDE)
    squares = isqrt(tower.merge or 1)
    unit = (tower.patch_side or 1) * squares
    return ceil_div(width, unit) * ceil_div(height, unit) * squares**2


def image_elements(tower: Stack, patches: int) -> int:
    """Return the number of pixel values in an image of `patches` patches; 0 if the tower has no patch convolution.

    Tokens that are not patches, such as a class token, are not counted.
    """
    cut = next((tensor for tensor in tower.before if tensor.role == "conv" and len(tensor.shape) > 3), None)
    if cut is None:
        return 0
    seen = isqrt(patches) ** 2 if tower.positions is not None else patches
    return seen * (cut.size // cut.shape[0])


def image_tokens(tower: Stack, size: tuple[int, int] | None) -> int:
    """Return the number of tokens that an image of `size` takes in the language model's prompt."""
    return max(1, (image_patches(tower, size) - tower.images.skipped) // (tower.merge or 1))
