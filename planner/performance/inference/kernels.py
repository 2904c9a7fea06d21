"""Time of a pass as the sum of its measured kernels, for networks and engines whose kernels were measured."""

from typing import Final, NamedTuple, TypeGuard

from planner.hardware.gpu import Gpu
from planner.models.architecture import Architecture
from planner.models.layers import Attention, Layer, Mlp, Moe
from planner.performance.attainable import memory_class
from planner.performance.inference.gpu_speed import GpuSpeed
from planner.performance.inference.passes import ModelSplit, PassBatch, PassTime, elementwise_seconds
from planner.performance.inference.work import ELEMENT_BYTES, PassWork
from planner.performance.kernels.attention import AttentionShape
from planner.performance.kernels.curves import Kernel, KernelTime, find_curve
from planner.performance.kernels.products import ExpertShape
from planner.performance.kernels.times import (
    attention_decode_time,
    attention_prefill_time,
    collective_time,
    element_format,
    experts_time,
    launch_seconds,
    matmul_time,
)

_FORMATS: Final = {"bf16": "bf16", "fp16": "bf16", "BF16": "bf16", "F16": "bf16", "fp8": "fp8", "nvfp4": "nvfp4"}
"""Formats of weights that kernels multiply as stored, with the tables' names."""
_EXPERT_FORMATS: Final = {
    **{name: found for name, found in _FORMATS.items() if found != "fp8"},
    "fp8-block128": "fp8-block",
    "mxfp4": "mxfp4-weights",
}
"""Formats of routed experts with the tables' names."""
_CACHES: Final = {"fp16": "bf16", "bf16": "bf16", "fp8": "fp8"}
_HEAD: Final = "bf16"
"""Format of the output head and of routers, which engines do not quantise."""
_MOST_CARDS: Final = 8
"""Most GPUs over which collectives were measured."""
_GATED_MATRICES: Final = 3


class KernelLayers(NamedTuple):
    """A number of equal layers with attention and a feed-forward block."""

    number: int
    attention: Attention
    feed_forward: Mlp | Moe


class PassKernels(NamedTuple):
    """The measured kernels of a pass: GPU, name of the engine's tables, formats of products and cache, and layers."""

    gpu: Gpu
    tables: str
    products: str
    cache: str
    hidden: int
    vocabulary: int
    layers: tuple[KernelLayers, ...]


class RoutedKernels(NamedTuple):
    """The measured kernels of a network's routed experts: GPU, name of the engine's tables, format, and the blocks."""

    gpu: Gpu
    tables: str
    number_format: str
    hidden: int
    blocks: tuple[tuple[int, Moe], ...]


def routed_kernels(architecture: Architecture, speed: GpuSpeed, gpu: Gpu, weights: str) -> RoutedKernels | None:
    """Return the kernels of the routed experts of `architecture`, or None if there are none that were measured.

    They must have been measured in the engine, on the GPU or, with stacked memory, on its family.
    """
    tables, number_format = speed.engine.kernel_tables, _EXPERT_FORMATS.get(weights)
    groups = [(group.count, group.layer.feed_forward) for group in architecture.main.groups]
    blocks = tuple((number, block) for number, block in groups if isinstance(block, Moe))
    if tables is None or number_format is None or not blocks or not all(_has_curves(block) for _, block in blocks):
        return None
    if not _is_measured(gpu, "experts", tables, number_format):
        return None
    return RoutedKernels(gpu, tables, number_format, architecture.main.hidden, blocks)


def prompt_experts_seconds(
    kernels: RoutedKernels, work: PassWork, speed: GpuSpeed, cards: int, batch: PassBatch
) -> float | None:
    """Return the seconds of the routed experts in a pass over prompts, None in a decoding step.

    A narrow part of an expert on each of several GPUs reaches less of a GPU's rate than a whole one.

    **Source**: curves fitted to ai-dynamo/aiconfigurator@095f58a: on 8 H200 vLLM's experts in blocks of fp8 with a part
    of 192 columns reach 112 TFLOP/s, whole ones of 1,536 columns 420.
    """
    if not batch.scores:
        return None
    replicas = speed.engine.schedulers(work, cards)
    each = [
        number * _routed_seconds(kernels, kernels.number_format, block, batch.rows, cards / replicas, cards)
        for number, block in kernels.blocks
    ]
    return sum(each)


def pass_kernels(architecture: Architecture, speed: GpuSpeed, gpu: Gpu, weights: str, cache: str) -> PassKernels | None:
    """Return the kernels of a pass over `architecture` on `gpu`, or None if one of them was not measured.

    All must have been measured in the engine, on the GPU or, with stacked memory, on its family.
    """
    engine, products, stored = speed.engine, _FORMATS.get(weights), _CACHES.get(cache)
    tables, layers = engine.kernel_tables, _layers(architecture)
    if tables is None or stored is None or layers is None or speed.unfused:
        return None
    if products is None or products not in engine.kernel_formats or memory_class(gpu) not in engine.kernel_memory:
        return None
    needed: list[tuple[Kernel, str, str]] = [
        ("product", tables, products),
        ("product", tables, _HEAD),
        ("attention-read", tables, f"{_HEAD}/{stored}"),
        ("attention-write", tables, stored),
        ("attention-write-single", tables, stored),
        ("all-reduce", tables, "graph"),
    ]
    if any(isinstance(group.feed_forward, Moe) for group in layers):
        needed += [("experts", tables, products), ("all-gather", "nccl", "nccl"), ("reduce-scatter", "nccl", "nccl")]
    if not all(_is_measured(gpu, *kernel) for kernel in needed):
        return None
    return PassKernels(gpu, tables, products, stored, architecture.main.hidden, architecture.vocabulary or 0, layers)


def _is_measured(gpu: Gpu, kernel: Kernel, engine: str, number_format: str) -> bool:
    """Return whether `kernel` was measured in `engine`, on `gpu` or on a GPU that reads memory as it does.

    With stacked memory that is any GPU of its family. GDDR keeps the bits that correct errors among the data, on GPUs
    for servers and not on others, so that a fifth of the bandwidth may be lost.

    **Source**: NVIDIA, CUDA C++ Best Practices Guide, "Theoretical Bandwidth Calculation".
    """
    found = find_curve(gpu, kernel, engine, number_format)
    origins = ("own table", "family") if memory_class(gpu) == "HBM" else ("own table",)
    return found is not None and found.curve.engine == engine and found.origin in origins


def _layers(architecture: Architecture) -> tuple[KernelLayers, ...] | None:
    """Return the layers of a decoder, or None if one has other than attention and a gated or dense block."""
    if architecture.kind != "decoder":
        return None
    found = []
    for group in architecture.main.groups:
        attention, block = group.layer.mixer, group.layer.feed_forward
        if not isinstance(attention, Attention) or not _has_curves(block) or _has_more(group.layer):
            return None
        found.append(KernelLayers(group.count, attention, block))
    return tuple(found)


def _has_curves(block: Mlp | Moe | None) -> TypeGuard[Mlp | Moe]:
    """Return whether the formula of products or of gated experts describes a feed-forward block."""
    return isinstance(block, Mlp) or (isinstance(block, Moe) and block.gated)


def _has_more(layer: Layer) -> bool:
    return layer.second_mixer is not None or layer.cross_attention is not None


def kernels_time(
    kernels: PassKernels, work: PassWork, speed: GpuSpeed, split: ModelSplit, batch: PassBatch
) -> PassTime | None:
    """Return the time of the kernels of a pass over `batch`, or None where their sum was not shown to be its time.

    That is so with more GPUs than tables have, with offloaded weights, and with experts in pipeline stages.

    **Formula**: for each layer the products (queries, keys and values in one, gate and up projection in one),
    attention, two all-reduces, or of experts an all-gather of quantised inputs and a reduce-scatter, and the bytes of
    element-wise kernels ÷ bandwidth, plus the product of the head; every kernel with the time that a CUDA graph needs
    to start it.

    **Source**: curves fitted to ai-dynamo/aiconfigurator@095f58a; no figure of a whole pass is used.

    **Assumes** that kernels run one after the other, that tokens are spread evenly over experts, and that each process
    that schedules sequences of its own has all heads and dense weights on its GPU (`enable_attention_dp`), with the
    experts divided over the GPUs; where one process schedules for all GPUs, each has a part of every expert.
    """
    cards = split.tensor
    if cards > _MOST_CARDS or split.offloaded.share or (work.expert_layers and split.stages > 1):
        return None
    replicas = speed.engine.schedulers(work, cards)
    shards, rows = cards // replicas, batch.rows / replicas
    products = _product(kernels, batch.outputs, kernels.vocabulary / cards, kernels.hidden, _HEAD)
    attention = launches = 0.0
    for layers in kernels.layers:
        products += layers.number * _attention_products(kernels, layers.attention, rows, shards)
        products += layers.number * _block_products(kernels, layers.feed_forward, batch.rows, rows, cards)
        attention += layers.number * _attention_seconds(kernels, layers.attention, batch, replicas, shards)
        kernels_each = speed.engine.elementwise_launches(layers.attention)
        launches += layers.number * kernels_each * launch_seconds(kernels.gpu, kernels.tables)
    read = min(products, work.read_bytes(batch.rows) / (speed.bytes_per_s * cards))
    is_prompt = batch.scores > 0
    return PassTime(
        weights_read=read,
        compute=products - read,
        attention=attention if is_prompt else 0.0,
        cache_read=0.0 if is_prompt else attention,
        elementwise=elementwise_seconds(work, speed, batch.rows, cards) + launches,
        tensor_exchange=_exchange_seconds(kernels, work, batch.rows, cards, shards),
    )


def _attention_products(kernels: PassKernels, attention: Attention, rows: float, shards: int) -> float:
    """Return the seconds of the products before and after attention over `rows` tokens."""
    queries, keys = attention.q_dim / shards, _key_heads(attention, shards) * attention.head_dim
    before = _product(kernels, rows, queries + 2 * keys, kernels.hidden, kernels.products)
    return before + _product(kernels, rows, kernels.hidden, queries, kernels.products)


def _block_products(kernels: PassKernels, block: Mlp | Moe, all_rows: float, rows: float, cards: int) -> float:
    """Return the seconds of the products of a feed-forward block: of `rows` tokens, of routed experts of `all_rows`."""
    hidden, shards = kernels.hidden, cards * rows / all_rows
    if isinstance(block, Mlp):
        return _mlp_products(kernels, block.intermediate / shards, rows, gated=block.gated)
    routed = _routed_seconds(kernels, kernels.products, block, all_rows, shards, cards)
    routed += _product(kernels, rows, block.experts, hidden, _HEAD)
    if not block.shared_intermediate:
        return routed
    return routed + _mlp_products(kernels, block.shared_intermediate / shards, rows, gated=True)


def _routed_seconds(
    kernels: PassKernels | RoutedKernels, number_format: str, block: Moe, rows: float, shards: float, cards: int
) -> float:
    """Return the seconds of a block's routed experts for `rows` tokens: each expert over `shards` GPUs of `cards`."""
    shape = ExpertShape(
        tokens=rows,
        hidden=kernels.hidden,
        width=block.intermediate / shards,
        experts=block.experts,
        chosen=block.top_k,
        cards=cards / shards,
        matrices=_GATED_MATRICES,
        weight_bytes=element_format(number_format).weight_bytes,
        skewed=0.0,
    )
    return _seconds(experts_time(kernels.gpu, kernels.tables, number_format, shape))


def _mlp_products(kernels: PassKernels, width: float, rows: float, *, gated: bool) -> float:
    into = _product(kernels, rows, (2 if gated else 1) * width, kernels.hidden, kernels.products)
    return into + _product(kernels, rows, kernels.hidden, width, kernels.products)


def _product(kernels: PassKernels, rows: float, columns: float, inner: float, number_format: str) -> float:
    return _seconds(matmul_time(kernels.gpu, kernels.tables, number_format, rows, columns, inner, fused=True))


def _attention_seconds(
    kernels: PassKernels, attention: Attention, batch: PassBatch, replicas: int, shards: int
) -> float:
    """Return the seconds of a layer's attention, of a prompt or of one new token of each sequence."""
    is_prompt, window = batch.scores > 0, attention.window or 0
    shape = AttentionShape(
        sequences=batch.sequences / replicas,
        tokens=batch.tokens if is_prompt else min(batch.tokens, window or batch.tokens),
        heads=max(1.0, attention.heads / shards),
        key_heads=_key_heads(attention, shards),
        head_size=attention.head_dim,
        window=window if is_prompt else 0,
        cache_bytes=element_format(kernels.cache).weight_bytes,
    )
    if is_prompt:
        return _seconds(attention_prefill_time(kernels.gpu, kernels.tables, f"{_HEAD}/{kernels.cache}", shape))
    return _seconds(attention_decode_time(kernels.gpu, kernels.tables, kernels.cache, shape))


def _key_heads(attention: Attention, shards: int) -> float:
    return max(1.0, attention.kv_heads / shards)


def _exchange_seconds(kernels: PassKernels, work: PassWork, rows: float, cards: int, shards: int) -> float:
    """Return the seconds of collectives: sums over `shards` GPUs, inputs and results of experts over all `cards`."""
    elements, gpu = rows * kernels.hidden, kernels.gpu
    if shards > 1:
        size = elements * ELEMENT_BYTES
        return 2 * work.layers * _seconds(collective_time(gpu, kernels.tables, "graph", "all-reduce", shards, size))
    if cards == 1:
        return 0.0
    into = elements * element_format(kernels.products).input_bytes
    gathered = _seconds(collective_time(gpu, "nccl", "nccl", "all-gather", cards, into))
    scattered = _seconds(collective_time(gpu, "nccl", "nccl", "reduce-scatter", cards, elements * ELEMENT_BYTES))
    return work.expert_layers * (gathered + scattered)


def _seconds(found: KernelTime | None) -> float:
    return found.seconds if found else 0.0
