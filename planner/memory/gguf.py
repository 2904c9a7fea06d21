"""Sizes in bytes of GGUF files: the block type that llama.cpp chooses for each tensor of a mixture such as Q4_K_M."""

from collections.abc import Iterable
from functools import lru_cache
from typing import Final, Literal

from planner.dtypes import GGUF_FILE_TYPES, gguf_type
from planner.models.architecture import Architecture, Attention, Moe, Role, Stack, Tensor

Category = Literal["output", "embedding", "value", "key", "attention-output", "down", "other", "fp32"]

_TENSOR_NAMES: Final[dict[Category, tuple[str, ...]]] = {
    "value": ("v_proj", "qkv", "query_key_value", "c_attn", "Wqkv", "kv_b_proj"),
    "key": ("k_proj",),
    "attention-output": ("o_proj", "out_proj", "self_attention.dense", "attention.dense", "attn.c_proj"),
    "down": ("down_proj", "fc2", "dense_4h_to_h", "mlp.c_proj", "w2", "fc_out"),
}
_FALLBACK: Final = {
    "IQ4_XS": "IQ4_NL",
    "Q2_K": "Q4_0",
    "Q3_K": "Q4_0",
    "Q4_K": "Q5_0",
    "Q5_K": "Q5_1",
    "Q6_K": "Q8_0",
}
_UNQUANTISED: Final = ("F32", "F16", "BF16")
_SOURCE_LAYERS_70B: Final = (80, 8192)


def file_bytes(architecture: Architecture, file_type: str) -> int:
    """Return the size in bytes of all tensors in a GGUF file of `file_type`, quantized without imatrix.

    **Formula**: Σ over tensors: elements / block · block bytes of the type that llama.cpp's mixture rules choose;
    one-dimensional tensors and routers stay in F32; rows that do not divide into blocks fall back to smaller blocks.

    **Source**: llama.cpp src/llama-quant.cpp at 007dbbf, llama_tensor_get_type and tensor_type_fallback.
    """
    return sum(tensor_bytes(architecture, file_type).values())


@lru_cache(maxsize=256)
def tensor_bytes(architecture: Architecture, file_type: str) -> dict[str, int]:
    """Return the bytes of a network's tensors as `file_type`, summed by place: embedding, layers, output, other.

    If `architecture` was read from a GGUF file of this type, the sizes are those in the file.
    """
    bytes_by_place = {"embedding": 0, "layers": 0, "output": 0, "other": 0}
    if architecture.container == "gguf" and file_type == architecture.stored_as:
        for part in architecture.stored:
            bytes_by_place[part.place] += part.bytes
        return bytes_by_place
    for tensor in architecture.head:
        bytes_by_place["output"] += _tensor_size_bytes(
            tensor, _tensor_block_type(architecture, tensor, file_type, 0, 1)
        )
    for stack in architecture.stacks:
        for tensor in (*stack.before, *stack.after):
            place = "embedding" if gguf_category(tensor) == "embedding" else "other"
            bytes_by_place[place] += _tensor_size_bytes(
                tensor, _tensor_block_type(architecture, tensor, file_type, 0, 1)
            )
        bytes_by_place["layers"] += sum(_bytes_by_layer(architecture, stack, file_type))
    return bytes_by_place


@lru_cache(maxsize=256)
def layer_bytes(architecture: Architecture, file_type: str) -> tuple[int, ...]:
    """Return the size in bytes of each layer of the main stack as `file_type`, in layer order.

    If `architecture` was read from a GGUF file of this type, the sizes are those in the file; of a part of such a file
    whose layers were not read one by one, the sum is divided in proportion to parameters.
    """
    stack = architecture.main
    if architecture.container == "gguf" and file_type == architecture.stored_as:
        if architecture.stored_layers:
            return tuple(layer.bytes for layer in architecture.stored_layers)
        total = sum(part.bytes for part in architecture.stored if part.place == "layers")
        return _split_bytes(total, [_layer_parameters(stack, place) for place in range(stack.layer_count)])
    return tuple(_bytes_by_layer(architecture, stack, file_type))


@lru_cache(maxsize=256)
def expert_layer_bytes(architecture: Architecture, file_type: str) -> tuple[int, ...]:
    """Return the size in bytes of the routed experts in each layer of the main stack as `file_type`; 0 without experts.

    These are the tensors that llama.cpp keeps in RAM with `--n-cpu-moe`, biases of experts included.

    **Source**: llama.cpp 0.5.0 common/common.h, LLM_FFN_EXPS_REGEX.
    """
    if architecture.container == "gguf" and file_type == architecture.stored_as and architecture.stored_layers:
        return tuple(layer.expert_bytes for layer in architecture.stored_layers)
    return tuple(_bytes_by_layer(architecture, architecture.main, file_type, only="expert"))


def _split_bytes(total: int, weights: list[int]) -> tuple[int, ...]:
    """Return `total` bytes split in proportion to `weights`; the parts sum to `total` exactly."""
    ends = [total * sum(weights[: index + 1]) // sum(weights) for index in range(len(weights))]
    return tuple(end - start for start, end in zip([0, *ends], ends, strict=False))


def _layer_parameters(stack: Stack, place: int) -> int:
    """Return the number of parameters of the layer at index `place`."""
    return next(
        group.layer.parameters for group in stack.groups if place in (group.places or tuple(range(group.count)))
    )


def _bytes_by_layer(architecture: Architecture, stack: Stack, file_type: str, only: Role | None = None) -> list[int]:
    """Return the bytes of each layer, of tensors of one role if `only` names it.

    Which layers get more bits depends on the depth of the whole network.
    """
    layer_sizes = [0] * stack.layer_count
    depth = stack.whole_depth or stack.layer_count
    for group in stack.groups:
        for place in group.places or tuple(range(group.count)):
            for tensor in group.layer.tensors:
                if only is not None and tensor.role != only:
                    continue
                type_name = _tensor_block_type(architecture, tensor, file_type, stack.first_place + place, depth)
                layer_sizes[place] += _tensor_size_bytes(tensor, type_name)
    return layer_sizes


def block_bytes(architecture: Architecture, tensor: Tensor, file_type: str, places: Iterable[int]) -> set[int]:
    """Return the sizes in bytes of `tensor`, all copies together, that it has in the layers at `places`."""
    stack = architecture.main
    depth = stack.whole_depth or stack.layer_count
    types = {_tensor_block_type(architecture, tensor, file_type, stack.first_place + place, depth) for place in places}
    return {_tensor_size_bytes(tensor, type_name) for type_name in types}


def _tensor_size_bytes(tensor: Tensor, type_name: str) -> int:
    """Return the bytes of `tensor` in the block type `type_name`, all copies together."""
    return gguf_type(type_name).tensor_bytes(tensor.shape) * tensor.copies


def gguf_category(tensor: Tensor) -> Category:
    """Return the category by which llama.cpp's mixture rules choose a tensor's block type."""
    if tensor.role == "head" and len(tensor.shape) > 1:
        return "output"
    if tensor.role == "embedding":
        return "embedding"
    if len(tensor.shape) == 1 or tensor.role not in ("linear", "expert"):
        return "fp32"
    for category, names in _TENSOR_NAMES.items():
        if any(name in tensor.name for name in names):
            return category
    return "other"


def _tensor_block_type(architecture: Architecture, tensor: Tensor, file_type: str, place: int, layers: int) -> str:
    """Return the GGUF block type, such as Q4_K, of a tensor of layer `place` out of `layers`."""
    base = GGUF_FILE_TYPES[file_type]
    category = gguf_category(tensor)
    if category == "fp32":
        return "F32"
    if base in _UNQUANTISED:
        return base
    if file_type == "MXFP4_MOE":  # only the experts are in MXFP4
        base = base if tensor.role == "expert" else "Q8_0"
    return _type_that_divides_rows(
        _mixture_block_type(architecture, category, file_type, base, place, layers, tensor.shape[-1]), tensor
    )


def _mixture_block_type(
    architecture: Architecture, category: Category, file_type: str, base: str, place: int, layers: int, columns: int
) -> str:
    """Return the block type that the mixture `file_type` gives to tensors of `category`."""
    tied_output = category == "embedding" and architecture.tied_head
    if category == "output" or tied_output:
        fits = columns % gguf_type(base).block == 0 and architecture.model_type != "falcon"
        return "Q6_K" if fits and base != "Q8_0" else "Q8_0"
    if category == "value":
        return _value_block_type(architecture, file_type, base, place, layers)
    if category == "down":
        return _down_block_type(file_type, base, place, layers, falcon=architecture.model_type == "falcon")
    if category == "key" and _expert_count(architecture) == 8:
        return "Q8_0"
    if category == "attention-output":
        return _attention_output_block_type(architecture, file_type, base)
    return base


def _value_block_type(architecture: Architecture, file_type: str, base: str, place: int, layers: int) -> str:
    """Return the block type that the mixture `file_type` gives to value projections of layer `place`."""
    if _expert_count(architecture) == 8:
        return "Q8_0"
    shared = _queries_per_value(architecture) >= 4
    chosen = base
    match file_type:
        case "Q2_K":
            chosen = "Q4_K" if shared else "Q3_K"
        case "Q3_K_M":
            chosen = "Q5_K" if place < 2 else "Q4_K"
        case "Q3_K_L":
            chosen = "Q5_K"
        case "IQ4_NL" | "IQ4_XS" if shared:
            chosen = "Q5_K"
        case "Q4_K_M" | "Q5_K_M" if _gets_more_bits(place, layers):
            chosen = "Q6_K"
        case "Q4_K_S" if place < 4:
            chosen = "Q5_K"
    is_70b = (architecture.main.layer_count, architecture.hidden) == _SOURCE_LAYERS_70B
    return "Q5_K" if is_70b and chosen in ("Q3_K", "Q4_K") else chosen


def _down_block_type(file_type: str, base: str, place: int, layers: int, *, falcon: bool) -> str:
    """Return the block type that the mixture `file_type` gives to feed-forward down projections of layer `place`."""
    first_eighth = place < layers // 8
    more_bits = _gets_more_bits(place, layers)
    match file_type:
        case "Q2_K":
            return "Q3_K"
        case "Q3_K_M":
            if place < layers // 16:
                return "Q5_K"
            return "Q4_K" if not falcon or more_bits else "Q3_K"
        case "Q3_K_L":
            return "Q4_K" if falcon else "Q5_K"
        case "Q4_K_M" if falcon:
            return "Q6_K" if place < layers // 16 else "Q5_K" if more_bits else "Q4_K"
        case "Q4_K_M" | "Q5_K_M" if more_bits:
            return "Q6_K"
        case "IQ4_NL" | "IQ4_XS" if first_eighth:
            return "Q5_K"
        case "Q4_K_S" if first_eighth and not falcon:
            return "Q5_K"
    return base


def _attention_output_block_type(architecture: Architecture, file_type: str, base: str) -> str:
    """Return the block type that the mixture `file_type` gives to attention output projections."""
    if architecture.model_type == "falcon":
        return "Q4_K" if file_type == "Q3_K_L" else base
    if _expert_count(architecture) == 8:
        raised = ("Q2_K", "Q3_K_S", "Q3_K_M", "IQ4_NL", "Q4_K_S", "Q4_K_M", "IQ4_XS")
        return "Q5_K" if file_type in raised else base
    return {"Q2_K": "Q3_K", "Q3_K_M": "Q4_K", "Q3_K_L": "Q5_K"}.get(file_type, base)


def _type_that_divides_rows(type_name: str, tensor: Tensor) -> str:
    """Return `type_name`, or a smaller block type or F16 if the tensor's rows do not divide into its blocks."""
    columns = tensor.shape[-1]
    if columns % gguf_type(type_name).block == 0:
        return type_name
    smaller = _FALLBACK.get(type_name)
    return smaller if smaller and columns % gguf_type(smaller).block == 0 else "F16"


def _gets_more_bits(place: int, layers: int) -> bool:
    """Return whether mixtures give layer `place` of `layers` more bits: first and last eighth, and every third."""
    eighth = layers // 8
    return place < eighth or place >= 7 * layers // 8 or (place - eighth) % 3 == 2


def _expert_count(architecture: Architecture) -> int:
    """Return the number of routed experts per layer, 0 for dense networks."""
    return max(
        (
            group.layer.feed_forward.experts
            for group in architecture.main.groups
            if isinstance(group.layer.feed_forward, Moe)
        ),
        default=0,
    )


def _queries_per_value(architecture: Architecture) -> int:
    """Return the number of query heads that share one key-value head."""
    mixers = (group.layer.mixer for group in architecture.main.groups)
    return max((mixer.heads // mixer.kv_heads for mixer in mixers if isinstance(mixer, Attention)), default=1)
