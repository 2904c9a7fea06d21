"""Published measurements with several cards that share one model, as runs of the estimator."""

import re
from typing import Final

from memory_rows import Row, cache_formats, card_named

from planner.errors import PlannerError
from planner.hardware.gpu import Gpu
from planner.memory.inference.kv_cache import kv_cache_term
from planner.memory.overhead import cublas_workspace_bytes
from planner.memory.parallel.ranks import timelines_by_stage
from planner.memory.parallel.tensor import tensor_share
from planner.memory.phases import PhaseSnapshots
from planner.memory.weights import weight_bytes
from planner.models.architecture import Architecture, Attention, LatentAttention, Layer, Mlp, Moe, Tensor
from planner.models.readers.config_json import read_config
from planner.plan.catalog import Catalog
from planner.units import MIB
from planner.workload.defaults import with_defaults
from planner.workload.parallel import Parallel
from planner.workload.workload import Inference, Training

_DETERMINISTIC: Final = 8 * 4 * MIB
"""Megatron's functional tests set CUBLAS_WORKSPACE_CONFIG to :4096:8, eight buffers of 4 MiB."""
_SHARES: Final = ("weights_only", "kv_only")
_PADDED_BY_VLLM: Final = 64
_OTHER_NETWORKS: Final = {
    "bert": "Megatron's BERT has heads and a pooler of its own",
    "t5": "Megatron's T5 reads inputs of two lengths",
    "hybrid": "Megatron's Mamba layers",
    "nemotron": "Megatron's FSDP, with Mamba layers",
    "mixtral": "the number of cards is not stated",
}
_LATENT_HEADS: Final = {"qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "v_head_dim": 16}
"""Head sizes of latent attention (`qk-head-dim`, `qk-pos-emb-head-dim`, `v-head-dim`), which its row does not repeat.

**Source**: NVIDIA/Megatron-LM tests/functional_tests/test_cases/gpt/gpt3_mcore_te_tp2_pp2_mla/model_config.yaml.
"""
_UNEVEN_STAGES: Final = (2, 4, 4, 2)
"""Layers of each stage where they are uneven: 2 of 12 in the first and in the last.

**Source**: gpt3_mcore_te_tp1_pp4_vp1_uneven_pipeline/model_config.yaml beside it (`decoder-first-pipeline-num-layers`).
"""
_COMPILED: Final = ("titan", "ao-float8")


def is_sharded(row: Row) -> bool:
    """Return whether `sharded_run` covers a row: training from scratch, and weights and caches split over cards."""
    return row.kind == "pretrain" or (row.kind in _SHARES and row.cards > 1 and row.scope == "per_gpu")


def sharded_run(row: Row, catalog: Catalog) -> tuple[int, str] | str:
    """Return the estimated bytes for a row with several cards and a description, or the reason why there are none."""
    if row.kind == "kv_only" and "K " not in row.other:
        return "memory for the cache of a card, while the one with the least decides how many tokens all hold"
    if row.kind in _SHARES:
        try:
            architecture = catalog.models.model(row.model)
        except PlannerError:
            return f"the model is not in the catalog: {row.model}"
        return _bytes_per_card(row, architecture), f"a share of {row.cards} cards"
    if row.family == "mcore":
        return _megatron(row, catalog)
    if row.family in _COMPILED:
        return "torch.compile and float8 fuse what is kept"
    if row.family == "mbridge":
        return "Megatron-Bridge: settings are not stated, or experts"
    return "several cards that share one model"


def _bytes_per_card(row: Row, architecture: Architecture) -> int:
    """Return one card's bytes of weights or cache with vLLM, SGLang or DeepSpeed's AutoTP.

    AutoTP divides the layers that `AutoTP.tp_parser` finds: each card holds the embedding and the head.

    **Source**: deepspeed/inference/engine.py, which injects each class of layers that the parser names.
    """
    pad = _PADDED_BY_VLLM // row.cards if "vLLM" in row.technique else 1 if "AutoTP" not in row.technique else None
    own = tensor_share(architecture, row.cards, vocabulary_multiple=pad)
    if row.kind == "weights_only":
        return weight_bytes(own, row.scheme or "bf16")
    formats = cache_formats(row.kv_format) or ("bf16", "bf16")
    cache = kv_cache_term(own, int(row.batch or 1), int(row.length), 0, formats[0])
    return cache.bytes if cache else 0


def summed_bytes(architecture: Architecture, workload: Inference, cards: int, gpu: Gpu | None) -> int:
    """Return the bytes allocated on all cards together if the cards share the layers."""
    shared = workload.evolve(parallel=Parallel(pipeline=cards))
    stages = timelines_by_stage(architecture, with_defaults(shared, architecture, cards))
    return sum(
        _allocated_peak_bytes(snapshots) + snapshots.threads * cublas_workspace_bytes(gpu) for _, snapshots in stages
    )


def _megatron(row: Row, catalog: Catalog) -> tuple[int, str] | str:
    group, name = row.model.removeprefix("megatron/").split("/")
    if group in _OTHER_NETWORKS:
        return _OTHER_NETWORKS[group]
    if group == "moe" and "ETP" in row.technique:
        return "Megatron's experts are sliced by a group of their own, or offloaded"
    if row.cards == 1:
        return "the number of cards is not stated"
    architecture = _gpt(row, name)
    workload = _megatron_step(row, architecture)
    filled = with_defaults(workload, architecture, row.cards)
    # Megatron logs the last rank, which is in the last stage.
    _, snapshots = timelines_by_stage(architecture, filled)[-1]
    gpu = card_named(row.gpu, catalog.hardware)
    workspace = cublas_workspace_bytes(gpu) if "nondeterministic" in name else _DETERMINISTIC
    return _allocated_peak_bytes(
        snapshots
    ) + snapshots.threads * workspace, f"the last stage of {_workload_text(filled)}"


def _gpt(row: Row, name: str) -> Architecture:
    """Return Megatron's GPT: GPT-2 with the row's sizes, grouped heads, norms of queries and keys, or a gate."""
    hidden, heads = _number(row, "h"), _number(row, "heads")
    dropped = {} if "_cp4_" not in name else dict.fromkeys(("attn_pdrop", "embd_pdrop", "resid_pdrop"), 0.0)
    sizes = {
        "model_type": "gpt2",
        "vocab_size": _number(row, "vocab", 50_257),
        "n_positions": int(row.length),
        "n_embd": hidden,
        "n_layer": _number(row, "L"),
        "n_head": heads,
        "n_inner": _inner_width(row, hidden),
        "tie_word_embeddings": "untied" not in row.other,
    }
    network = read_config(sizes | dropped, row.id)
    layers = (_layer(group.layer, row, "qk_layernorm" in name) for group in network.main.groups)
    if "MLA" in row.other:
        layers = (_latent(layer, row, hidden) for layer in layers)
    groups = tuple(
        group.evolve(layer=_with_experts(layer, row, hidden) if "experts=" in row.other else layer)
        for group, layer in zip(network.main.groups, layers, strict=True)
    )
    return network.evolve(stacks=(network.main.evolve(groups=groups),))


def _inner_width(row: Row, hidden: int) -> int:
    """Return the inner width: with a gate Megatron takes two thirds of 4h, in whole 64s (training/arguments.py)."""
    return int(4 * hidden * 2 / 3) // 64 * 64 if "swiglu" in row.other else 4 * hidden


def _layer(layer: Layer, row: Row, norms_keys: bool) -> Layer:
    mixer, block = layer.mixer, layer.feed_forward
    if not isinstance(mixer, Attention) or not isinstance(block, Mlp):
        return layer
    gated = "swiglu" in row.other
    grouped = mixer.evolve(
        kv_heads=_number(row, "kv_heads", mixer.heads), qk_norm="head" if norms_keys else mixer.qk_norm
    )
    widths = {"c_attn": grouped.q_dim + 2 * grouped.kv_dim, "c_fc": block.intermediate * (2 if gated else 1)}
    tensors = []
    for tensor in layer.tensors:
        width = next((size for part, size in widths.items() if part in tensor.name), None)
        tensors.append(tensor if width is None else tensor.evolve(shape=(*tensor.shape[:-1], width)))
    fused = block.evolve(gated=gated, activation="silu" if gated else "gelu")
    return layer.evolve(mixer=grouped, feed_forward=fused, tensors=tuple(tensors))


def _latent(layer: Layer, row: Row, hidden: int) -> Layer:
    """Return `layer` with latent attention of the row's ranks in the place of its attention, without biases."""
    mixer = layer.mixer
    if not isinstance(mixer, Attention):
        return layer
    query, latent = _number(row, "q_lora"), _number(row, "kv_lora")
    own = LatentAttention(heads=mixer.heads, q_lora_rank=query, kv_lora_rank=latent, **_LATENT_HEADS)
    expanded = own.qk_nope_head_dim + own.v_head_dim
    shapes = {
        "q_a_proj": (query, hidden),
        "q_b_proj": (own.heads * (own.qk_nope_head_dim + own.qk_rope_head_dim), query),
        "kv_a_proj_with_mqa": (own.latent_dim, hidden),
        "kv_b_proj": (own.heads * expanded, latent),
        "o_proj": (hidden, own.heads * own.v_head_dim),
    }
    tensors = (
        *(tensor for tensor in layer.tensors if "attn" not in tensor.name),
        *(Tensor(name=f"attn.{name}.weight", shape=shape, role="linear") for name, shape in shapes.items()),
        Tensor(name="attn.q_a_layernorm.weight", shape=(query,), role="norm"),
        Tensor(name="attn.kv_a_layernorm.weight", shape=(latent,), role="norm"),
    )
    return layer.evolve(mixer=own, tensors=tensors)


def _with_experts(layer: Layer, row: Row, hidden: int) -> Layer:
    """Return `layer` with experts of the block's width in the place of its block, without biases."""
    block = layer.feed_forward
    if not isinstance(block, Mlp):
        return layer
    count, width = _number(row, "experts"), block.intermediate
    experts = Moe(
        experts=count, top_k=_number(row, "top-k"), intermediate=width, gated=block.gated, activation=block.activation
    )
    tensors = (
        *(tensor for tensor in layer.tensors if ".mlp." not in f".{tensor.name}"),
        Tensor(name="mlp.router.weight", shape=(count, hidden), role="router"),
        Tensor(name="mlp.experts.{expert}.fc1.weight", shape=(width, hidden), role="expert", copies=count),
        Tensor(name="mlp.experts.{expert}.fc2.weight", shape=(hidden, width), role="expert", copies=count),
    )
    return layer.evolve(feed_forward=experts, tensors=tensors)


def _megatron_step(row: Row, architecture: Architecture) -> Training:
    tensor, pipeline, context = (_degree(row, name) for name in ("TP", "PP", "CP"))
    micro_batch = int(row.batch)
    replicas = row.cards // (tensor * pipeline * context)
    virtual = re.search(r"virtual stage=(\d+)", row.technique)
    return Training(
        profile="megatron",
        compute="bf16",
        micro_batch=micro_batch,
        sequence_length=int(row.length),
        gradient_accumulation=max(_number(row, "batch") // (micro_batch * replicas), 1),
        attention="eager" if "unfused" in row.technique or "impl=local" in row.technique else "flash",
        activation_checkpointing="full" if "recompute=full" in row.technique else "none",
        parallel=Parallel(
            tensor=tensor,
            pipeline=pipeline,
            pipeline_layers=_UNEVEN_STAGES if "uneven_pipeline" in row.model else (),
            context=context,
            expert=_degree(row, "EP"),
            sequence="sequence_parallel=yes" in row.technique,
            zero=1 if "distributed_optimizer=yes" in row.technique else 0,
            interleave=architecture.depth // (pipeline * int(virtual[1])) if virtual else 1,
        ),
    )


def _number(row: Row, name: str, default: int | None = None) -> int:
    """Return the number that the row's description states as `name=…`."""
    found = re.search(rf"(?:^|\s){name}=(\d+)", row.other)
    if found:
        return int(found[1])
    if default is None:
        raise ValueError(f"{row.id} does not state {name}")
    return default


def _degree(row: Row, name: str) -> int:
    found = re.search(rf"\b{name}(\d+)", row.technique)
    return int(found[1]) if found else 1


def _allocated_peak_bytes(timeline: PhaseSnapshots) -> int:
    """Return the peak bytes of PyTorch's allocator, without NCCL's buffers."""
    return max(one.total - (0 if one.name == "load" else timeline.outside_bytes) for one in timeline.snapshots)


def _workload_text(workload: Training | Inference) -> str:
    parallel = workload.parallel
    shared = f"{parallel.tensor}×{parallel.pipeline}×{parallel.context}"
    if isinstance(workload, Training):
        return f"{workload.micro_batch} × {workload.sequence_length}, {shared}, ZeRO {parallel.zero}"
    return f"{workload.batch} × {workload.context_length}, {shared}"
