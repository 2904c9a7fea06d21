"""Parameter counts of a network by role, and the size in bytes of its weights in each number format."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from planner.dtypes import AS_STORED, SCHEMES, Scheme
from planner.memory.gguf import file_bytes
from planner.memory.result import Term, TermPart
from planner.memory.terms import (
    format_symbol,
    library_symbol,
    measured_term,
    model_symbol,
    term,
    workload_symbol,
)
from planner.models.architecture import Architecture, Layer, Moe, Role, Tensor, image_elements

_CAST_ROLES: Final[tuple[Role, ...]] = ("linear", "router", "conv")
_CAST_BESIDE_FP8: Final[tuple[Role, ...]] = ("router", "conv")
MATRIX_ROLES: tuple[Role, ...] = ("linear", "expert")
"""Roles of the tensors that quantization schemes quantize."""


class ParameterCounts(NamedTuple):
    """Parameter counts of a network by group: linear layers, experts, embedding, and autocast copies."""

    total: int
    linear: int
    experts: int
    token_embedding: int
    smallest_layer: int
    cast: int
    cast_in_a_layer: int
    cast_behind: int


def placed_tensors(architecture: Architecture) -> Iterator[tuple[Tensor, int]]:
    """Yield each distinct tensor of the network with the number of its copies."""
    for stack in architecture.stacks:
        yield from stack.tensors_with_counts()
    for tensors in (architecture.head, *(component.tensors for component in architecture.components)):
        yield from ((tensor, tensor.copies) for tensor in tensors)


@lru_cache(maxsize=256)
def parameter_counts(architecture: Architecture, in_fp8: bool = False) -> ParameterCounts:
    """Return the parameter counts of `architecture`; with `in_fp8` autocast does not cast linear layers.

    `token_embedding` is the largest table, `smallest_layer` the layer with the fewest parameters. `cast` are the
    parameters that autocast casts, `cast_in_a_layer` the most of one layer, `cast_behind` those after the layers.
    """
    by_role: dict[str, int] = {}
    for tensor, count in placed_tensors(architecture):
        by_role[tensor.role] = by_role.get(tensor.role, 0) + tensor.size * count
    groups = [group for stack in architecture.stacks for group in stack.groups]
    roles = _CAST_BESIDE_FP8 if in_fp8 else _CAST_ROLES
    each = [_cast_parameter_count_in_layer(group.layer, roles) for group in groups]
    layers = [cast * group.count for cast, group in zip(each, groups, strict=True)]
    return ParameterCounts(
        total=sum(by_role.values()),
        linear=by_role.get("linear", 0),
        experts=by_role.get("expert", 0),
        token_embedding=_token_embedding_parameters(architecture),
        smallest_layer=min(group.layer.parameters for group in groups),
        cast=sum(
            _cast_parameter_count(stack.before, roles) + _cast_parameter_count(stack.after, roles)
            for stack in architecture.stacks
        )
        + sum(layers),
        cast_in_a_layer=max(each),
        cast_behind=_cast_parameter_count(architecture.main.after, roles),
    )


def _cast_parameter_count_in_layer(layer: Layer, roles: tuple[Role, ...]) -> int:
    """Return the number of parameters of `layer` that autocast casts, including experts run by bmm (not grouped_mm)."""
    block = layer.feed_forward
    every_expert = isinstance(block, Moe) and block.every_expert
    experts = sum(tensor.parameters for tensor in layer.tensors if tensor.role == "expert") if every_expert else 0
    return _cast_parameter_count(layer.tensors, roles) + experts


def _cast_parameter_count(tensors: tuple[Tensor, ...], roles: tuple[Role, ...]) -> int:
    """Return the number of parameters in `tensors` that autocast casts, with copies that the graph keeps."""
    return sum(tensor.parameters for tensor in tensors if tensor.role in roles and not tensor.frozen)


def _token_embedding_parameters(architecture: Architecture) -> int:
    """Return the number of parameters in the largest embedding table."""
    tables = (tensor for stack in architecture.stacks for tensor in stack.before if tensor.role == "embedding")
    return max((tensor.size for tensor in tables), default=0)


KEPT_BYTES = 2
"""Bytes per element of tensors that a scheme does not quantize: embeddings, norms, routers, the output head."""
_KEPT_SOURCE: Final = "defaults of the scheme's library"
_UPCAST_SOURCE: Final = "peft.utils.other.prepare_model_for_kbit_training: 16-bit parameters are cast to fp32"


@lru_cache(maxsize=256)
def weights_term(architecture: Architecture, scheme_name: str, kept_bytes: int = KEPT_BYTES) -> Term:
    """Return the memory of the weights stored as `scheme_name`; unquantized elements take `kept_bytes` each.

    **Formula**: plain formats P · bytes; schemes Σ bytes of each projection as stored + 2 · (all other parameters);
    GGUF files Σ bytes of each tensor by its block type. For the format of a checkpoint whose files were read, the
    bytes in them.

    **Source**: see `planner.dtypes`.

    **Assumes** for schemes that every projection inside the layers is quantized and nothing else is, which is the
    default of bitsandbytes, GPTQ and AWQ; a quantized checkpoint names its quantized tensors itself. GPTQ and AWQ
    quantize the language model's layers and no vision tower (AutoGPTQ and AutoAWQ: `layers_block_name`).
    """
    name = architecture.stored_as if scheme_name == AS_STORED else scheme_name
    if architecture.stored and name == architecture.stored_as:
        return _stored_weights_term(architecture)
    scheme = SCHEMES[name]
    if scheme.family == "plain":
        return _plain_weights_term(architecture, scheme)
    if scheme.family == "gguf-file":
        return _gguf_weights_term(architecture, scheme)
    return _quantized_weights_term(architecture, scheme, kept_bytes)


def buffer_terms(architecture: Architecture, element_bytes: int) -> tuple[Term, ...]:
    """Return the memory of masks and positions that a network of transformers keeps as buffers; most have none.

    Tables of positions are of `element_bytes`, as the parameters are, or the computation where these are quantized.
    """
    if architecture.position_buffer_elements:
        elements = architecture.position_buffer_elements
        symbols = (
            model_symbol("n", elements, "elements of the tables of positions, that of the encoder and of the decoder"),
            format_symbol("w", element_bytes, "bytes per element"),
        )
        source = "transformers 5.23: the buffer `weights` of M2M100SinusoidalPositionalEmbedding"
        return (term("buffers", elements * element_bytes, "n × w", symbols, source),)
    if not architecture.mask_buffer_bytes:
        return ()
    positions = architecture.max_context or 0
    masks = architecture.mask_buffer_bytes // positions**2
    symbols = (
        model_symbol("m", masks, "modules that keep a mask of their own"),
        model_symbol("n", positions, "positions of the model, whatever the length of the prompt"),
    )
    source = (
        "transformers 5.23: the buffer `bias` of GPTNeoSelfAttention and GPTBigCodeModel, one boolean for each pair"
    )
    return (term("buffers", architecture.mask_buffer_bytes, "m × n²", symbols, source),)


def pixels_term(architecture: Architecture, sequences: int, element_bytes: int) -> Term | None:
    """Return the memory of the input images of a step, held by the caller; None for networks that read none.

    An image encoder reads one for each of `sequences`.
    """
    encodes = architecture.kind == "vision-encoder"
    tower = architecture.stacks[-1 if encodes else 0]
    patches = tower.positions if encodes else tower.images.patches
    images = sequences * (1 if encodes else tower.images.count)
    if not patches or not images:
        return None
    elements = image_elements(tower, patches)
    return term(
        "buffers",
        images * elements * element_bytes,
        "B × p × w",
        (
            workload_symbol("B", images, "images"),
            model_symbol("p", elements, "elements per image: color channels × pixels"),
            library_symbol("w", element_bytes, "bytes per element"),
        ),
        "pixel_values, the argument of transformers' image encoders",
    )


def weight_bytes(architecture: Architecture, scheme_name: str) -> int:
    """Return the size in bytes of all parameters stored as `scheme_name`."""
    return weights_term(architecture, scheme_name).bytes


def is_gguf(architecture: Architecture, scheme_name: str) -> bool:
    """Return whether weights of format `scheme_name` are a GGUF file, which llama.cpp runs."""
    if scheme_name == AS_STORED:
        return architecture.container == "gguf"
    return SCHEMES[scheme_name].family == "gguf-file"


def _stored_weights_term(architecture: Architecture) -> Term:
    """Return the memory of weights in the formats of the checkpoint's files."""
    by_format: dict[str, int] = {}
    for part in architecture.stored:
        by_format[part.format] = by_format.get(part.format, 0) + part.bytes
    source = f"the headers of the checkpoint's {architecture.container} files, tensor by tensor"
    return term(
        "weights",
        architecture.stored_bytes,
        "S",
        (model_symbol("S", architecture.stored_bytes, "bytes of the network's tensors in its files"),),
        source,
        parts=tuple(
            TermPart(name=f"tensors in {name}", bytes=count, formula="Σ bytes", source=source)
            for name, count in sorted(by_format.items(), key=lambda item: -item[1])
        ),
    )


def _plain_weights_term(architecture: Architecture, scheme: Scheme) -> Term:
    """Return the memory of weights that are all in one plain format, such as bf16."""
    counts = parameter_counts(architecture)
    size = int(scheme.data_bits) // 8
    return term(
        "weights",
        counts.total * size,
        "P × w",
        (
            model_symbol("P", counts.total, "number of parameters; tied parameters count once"),
            format_symbol("w", size, f"bytes per parameter in {scheme.title}"),
        ),
        "counted from all tensors of the model",
    )


def _projection_bytes(architecture: Architecture, scheme_name: str) -> tuple[int, int]:
    """Return the number of quantized elements and their size in bytes as `scheme_name`, scales included."""
    scheme = SCHEMES[scheme_name]
    roles = architecture.quantized_roles if scheme_name == architecture.quantization else MATRIX_ROLES
    language_only = scheme.family == "integer" and architecture.kind == "vision-language"
    placed = architecture.main.tensors_with_counts() if language_only else placed_tensors(architecture)
    # Schemes quantize matrices: the biases of gpt-oss's experts stay in bf16.
    chosen = [(tensor, count) for tensor, count in placed if tensor.role in roles and len(tensor.shape) > 1]
    stored = sum(scheme.tensor_bytes(tensor.shape) * count for tensor, count in chosen)
    return sum(tensor.size * count for tensor, count in chosen), stored


def _quantized_weights_term(architecture: Architecture, scheme: Scheme, kept_bytes: int) -> Term:
    """Return the memory of weights whose projections are quantized by `scheme`."""
    total = parameter_counts(architecture).total
    quantized, stored = _projection_bytes(architecture, scheme.name)
    kept = (total - quantized) * kept_bytes
    bits = round(8 * stored / quantized, 4) if quantized else 0.0
    return term(
        "weights",
        stored + kept,
        f"Q × q / 8 + (P − Q) × {kept_bytes}",
        (
            model_symbol("P", total, "number of parameters; tied parameters count once"),
            model_symbol("Q", quantized, "number of quantized parameters: the projections inside the layers"),
            format_symbol("q", bits, f"bits per weight in {scheme.title}, scales included"),
        ),
        scheme.source,
        parts=(
            TermPart(
                name=f"linear layers in {scheme.title.partition(',')[0]}",
                bytes=stored,
                formula="Q × q / 8",
                source=scheme.source,
            ),
            TermPart(
                name=f"embeddings and the rest in {8 * kept_bytes} bits",
                bytes=kept,
                formula=f"(P − Q) × {kept_bytes}",
                source=_KEPT_SOURCE if kept_bytes == KEPT_BYTES else _UPCAST_SOURCE,
            ),
        ),
    )


def _gguf_weights_term(architecture: Architecture, scheme: Scheme) -> Term:
    """Return the memory of the weights stored as a GGUF file."""
    total = parameter_counts(architecture).total
    stored = file_bytes(architecture, scheme.name)
    return term(
        "weights",
        stored,
        "P × q / 8",
        (
            model_symbol("P", total, "number of parameters; tied parameters count once"),
            format_symbol(
                "q", round(8 * stored / total, 4), f"bits per weight of a {scheme.name} file, tensor by tensor"
            ),
        ),
        scheme.source,
    )


_FOUR_BIT_SOURCE: Final = (
    "bitsandbytes autograd MatMul4Bit: dequantize_4bit of one matrix in 16 bits, `.to(A.dtype)`, forward and backward"
)


def unpacked_four_bit_terms(architecture: Architecture, computed_bytes: int) -> tuple[Term, ...]:
    """Return the memory of the largest projection in NF4 while it multiplies in a format of `computed_bytes` bytes.

    **Formula**: out · in · w, where w are the bytes of the format; of fp32, bitsandbytes' default, also those of the 16
    bits from which it is cast.
    """
    cast_from = KEPT_BYTES if computed_bytes > KEPT_BYTES else 0
    return dequantized_projection_terms(architecture, computed_bytes + cast_from, _FOUR_BIT_SOURCE)


def dequantized_projection_terms(architecture: Architecture, element_bytes: int, source: str) -> tuple[Term, ...]:
    """Return the memory of the largest quantized projection, dequantized to `element_bytes` bytes per element.

    **Formula**: out · in · w.
    """
    matrices = [
        tensor.size
        for stack in architecture.stacks
        for group in stack.groups
        for tensor in group.layer.tensors
        if tensor.role == "linear" and len(tensor.shape) == 2
    ]
    if not matrices:
        return ()
    largest = measured_term(
        "temporaries",
        max(matrices) * element_bytes,
        "n × w",
        (
            model_symbol("n", max(matrices), "elements of the largest projection"),
            format_symbol("w", element_bytes, "bytes per element once dequantized"),
        ),
        source,
    )
    return (largest,)
