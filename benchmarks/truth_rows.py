"""From a published measurement to the same run in the estimator, or the reason why it is not covered."""

import re
from collections.abc import Callable
from typing import Final

from awq_rows import WARM_UP, awq_workload, loaded_bytes
from counters import counted, counter_of
from engine_rows import ENGINES, activation_run, copied_bytes, measured_bytes, not_covered, total_run
from exllama_rows import exllama_run
from gpt_fast_rows import gpt_fast_workload
from litgpt_rows import litgpt_workload
from loop_rows import peak_without_loss
from memory_rows import Excluded, Predicted, Row, cache_formats, card_named
from old_transformers import (
    BEFORE_SDPA,
    CONTEXTS,
    LOGITS_OF_WHOLE_PROMPT,
    ZEROED_GRADIENTS,
    exllama_bytes,
    fused_projection_bytes,
    generating_bytes,
    hidden_bytes,
    mask_bytes,
    rotary_bytes,
    single_expert_bytes,
    softmax_input_bytes,
)
from pipeline_rows import pipeline_run
from stated_networks import architecture_of, scratch_run
from truth_sharded import is_sharded, sharded_run, summed_bytes

from planner.dtypes import ELEMENT_BYTES, SCHEMES
from planner.errors import PlannerError
from planner.memory.chance import ByteInterval
from planner.memory.estimate import estimate_memory
from planner.memory.gguf import tensor_bytes
from planner.memory.inference.kv_cache import kv_cache_term
from planner.memory.result import MemoryResult
from planner.memory.software import memory_of
from planner.memory.software.vllm.setup import ExpertKernels, padded_weights_term
from planner.memory.weights import weight_bytes
from planner.models.architecture import Architecture, Attention, LatentAttention
from planner.plan.catalog import Catalog
from planner.workload.defaults import with_defaults
from planner.workload.workload import Inference, Training

KINDS: Final = ("weights_only", "kv_only", "activation_only", "inference", "train_full", "pretrain")

_OPTIMIZERS: Final = {
    "AdamW (HF)": "adamw",
    "AdamW (torch)": "adamw",
    "AdamW (torch fused)": "adamw",
    "Adafactor": "adafactor-transformers",
    "Adam8bit (bnb)": "adamw-8bit",
}
_LITGPT_SAMPLES: Final = 32
"""Samples of a step (`global_batch_size`) in Lightning-AI/litgpt config_hub/finetune/tiny-llama/full.yaml."""
_OTHER_ENGINES: Final = {
    "gptqll": "GPTQ-for-LLaMa's own kernels",
    "ao-": "torchao's examples under torch.compile",
    "rasbt": "a from-scratch implementation that generates",
    "torchtune": "torchtune's own modules, FSDP or offload",
    "swift": "DeepSpeed, GaLore or an unstated mix of lengths",
    "xtuner": "FSDP with a chunked loss",
    "mbridge": "Megatron",
    "qwen1-vllm": "vLLM of 2023 (V0), at the least share of the card that started",
    "glm2": "remote code with its own attention",
}
_OWN_PROGRAMS: Final[dict[str, Callable[[Row, Architecture], Predicted | Excluded]]] = {
    "exllama": exllama_run,
}
_GENERATORS: Final[dict[str, Callable[[Row], Inference | Excluded]]] = {
    "ao-llama": gpt_fast_workload,
    "awq": awq_workload,
    "litgpt": litgpt_workload,
    "litgpt-quant": litgpt_workload,
    "litgpt-mgpu": litgpt_workload,
}
_WITHOUT_HEAD: Final = ("bertl", "hfbench")
"""Sources whose networks had no head over the vocabulary: a classifier of two classes, and the `BertModel` of
benchmarks.md, with which its table of the checkpoint agrees."""
_SHORT_PROMPT: Final = 16
"""Tokens of a prompt that is called short: a line of text, so that matrices in NF4 are dequantized for it."""
_OWN_MIXTURES: Final = {"ikllama-031": (("v_proj", "Q5_K_S", "Q6_K"), ("q_proj", "Q5_K_S", "Q4_K_S"))}
"""Tensors, their usual type and their own in a file that its author mixed (`Q5_K_S_q4_v6`).

**Source**: the log in ikawrakow/ik_llama.cpp github-data/issues/103: 32 tensors in q4_K, 161 in q5_K and 33 in q6_K,
which are the head and the 32 of values; of the others only the square ones, of queries or outputs, make 4,941.00 MiB.
"""
_FOUR_BIT_IN_FP32: Final = ("optllm",)
"""Sources that load with `load_in_4bit=True` alone, so that bitsandbytes multiplies in fp32.

**Source**: huggingface/blog optimize-llm.md; transformers `BitsAndBytesConfig` (`bnb_4bit_compute_dtype` is fp32).
"""
_WITHOUT_PEAK: Final = "quanto"
"""Its figures are the same for one image and for four, to 1 MiB: what is loaded, and not the peak of a run."""
_BEYOND: Final = {
    "fluxq": "a network without a formula",
    "dtao": "a video pipeline, whose decoder in three dimensions has no formula",
    "quanto": "a network without a formula",
    "sd3": "a network without a formula",
    "sdxl": "a network without a formula",
    "qsd": "a network without a formula",
    "dfd": "a distilled or compressed pipeline without a configuration",
    "ooba": "a video pipeline, whose decoder in three dimensions has no formula",
    "amused": "a masked image model, without a formula",
    "cogv": "a video pipeline, whose decoder in three dimensions has no formula",
    "d2": "detectron2: images and boxes differ from batch to batch, so that no one shape can be traced",
    "mmdet": "mmdetection: images and boxes differ from batch to batch, so that no one shape can be traced",
    "mm": "mmsegmentation and mmaction2: of a fixed shape, but their networks were not at hand to be traced",
    "mxnet": "MXNet, which shares memory by its own graph",
    "whisper": "speech in segments, by faster-whisper's own kernels",
}


def predict(row: Row, catalog: Catalog) -> Predicted | Excluded:
    """Return the estimate for `row`, or the reason why there is none."""
    if row.id.startswith(tuple(_BEYOND)):
        return _pipeline(row, catalog)
    if row.family == "rasbt" and row.kind == "pretrain":
        run = scratch_run(row)
        return run if isinstance(run, Excluded) else _as_measured(row, run.architecture, run.workload, catalog)
    why_not = _exclusion_reason(row)
    if why_not:
        return Excluded(why_not)
    if is_sharded(row):
        found = sharded_run(row, catalog)
        return Excluded(found) if isinstance(found, str) else Predicted(*found)
    try:
        architecture = architecture_of(row, catalog)
    except PlannerError:
        return Excluded(f"the model is not in the catalog: {row.model}")
    if row.family in _WITHOUT_HEAD:
        architecture = architecture.evolve(head=(), tied_head=False)
    return _of_network(row, architecture, catalog)


def _of_network(row: Row, architecture: Architecture, catalog: Catalog) -> Predicted | Excluded:
    """Return the estimate for a row with its network on one card, or on cards whose bytes are added."""
    own_program = _OWN_PROGRAMS.get(row.family)
    if own_program and row.kind == "inference":
        return own_program(row, architecture)
    if row.kind == "inference" and row.family in _GENERATORS:
        run = _GENERATORS[row.family](row)
        return run if isinstance(run, Excluded) else _of_profile(row, architecture, run, catalog)
    if row.kind in ("weights_only", "kv_only", "activation_only"):
        return _single_term(row, architecture)
    if row.family == "llcpp":
        total = total_run(row.technique, row.length, row.other, row.scheme or "")
        return Predicted(measured_bytes(architecture, total), "weights, cache and buffers of llama.cpp")
    if row.cards > 1 and row.scope != "sum_all_gpus":
        return Excluded("several cards that share one model")
    return _inference(row, architecture, catalog) if row.kind == "inference" else _training(row, architecture, catalog)


def _pipeline(row: Row, catalog: Catalog) -> Predicted | Excluded:
    """Return the estimate of a diffusion pipeline; other networks that are not for text have no formula."""
    run = pipeline_run(row.id, row.model, row.precision, row.technique, row.batch, catalog)
    if run is None:
        return Excluded(next(why for prefix, why in _BEYOND.items() if row.id.startswith(prefix)))
    if run.result is None:
        return Excluded(f"a diffusion pipeline: {run.words}")
    if row.kind == "weights_only" or row.family == _WITHOUT_PEAK:
        if row.precision not in ELEMENT_BYTES:
            return Excluded("what PyTorch keeps reserved of weights that were quantised while loading")
        return Predicted(next(term.bytes for term in run.result.terms if term.name == "weights"), run.words)
    counter = counter_of(row.metric)
    low, expected, high = counted(counter, run.result)
    more = max(run.loaded_bytes - expected, 0)
    return Predicted(expected + more, f"{run.words}, {counter}", low + more, high + more)


def _single_term(row: Row, architecture: Architecture) -> Predicted | Excluded:
    """Return the estimate for a row that measured only one memory term."""
    if row.kind == "activation_only":
        run = activation_run(row.id, row.technique, row.length, row.other)
        copied = copied_bytes(architecture, row.technique, run)
        return Predicted(measured_bytes(architecture, run) + copied, "buffers of vLLM or llama.cpp")
    return _weights(row, architecture) if row.kind == "weights_only" else _cache(row, architecture)


def _exclusion_reason(row: Row) -> str | None:
    """Return the reason why a row of another program, of vLLM or of llama.cpp is not covered, or None."""
    if row.kind in ("inference", "train_full") and row.family not in (*_OWN_PROGRAMS, *_GENERATORS):
        program = next((why for prefix, why in _OTHER_ENGINES.items() if row.id.startswith(prefix)), None)
        if program:
            return f"another engine or recipe: {program}"
    if row.family in ENGINES:
        return None if is_sharded(row) else not_covered(row.id, row.technique)
    return "activations of training, measured apart" if row.kind == "activation_only" else None


def _bytes_of_own_mixture(row: Row, architecture: Architecture) -> int:
    """Return what the tensors take more whose types the row's log counts otherwise than llama.cpp mixes them."""
    return sum(
        count * (SCHEMES[own].tensor_bytes(tensor.shape) - SCHEMES[usual].tensor_bytes(tensor.shape))
        for name, usual, own in _OWN_MIXTURES.get(row.id, ())
        for tensor, count in architecture.main.tensors_with_counts()
        if name in tensor.name
    )


def _weights(row: Row, architecture: Architecture) -> Predicted | Excluded:
    scheme = row.scheme
    if scheme is None:
        return Excluded(f"weight format {row.precision!r}")
    if row.cards > 1 and "sum_all" not in row.metric and "device_map" not in row.technique:
        return Excluded("tensor parallelism")
    if "LoRA" in row.technique or "context" in row.technique:
        return Excluded("LoRA adapters or a GPU context are part of the figure")
    if SCHEMES[scheme].family == "gguf-file":
        parts = tensor_bytes(architecture, scheme)
        on_host = 0 if architecture.tied_head else parts["embedding"]
        total = sum(parts.values()) - on_host + _bytes_of_own_mixture(row, architecture)
        return Predicted(total, f"{scheme} file without the token embedding")
    if row.family == "qwen1-v1":
        return Excluded("the figure includes an unstated GPU context")
    if row.family == "vllm" and scheme == "mxfp4":
        kernels = ExpertKernels.MARLIN if "Marlin" in row.technique else ExpertKernels.TRITON
        weights = padded_weights_term(architecture, scheme, kernels)
        return Predicted(weights.bytes, f"weights in {scheme}, {kernels.name.lower()}")
    return Predicted(weight_bytes(architecture, scheme), f"weights in {scheme}")


def _cache(row: Row, architecture: Architecture) -> Predicted | Excluded:
    formats = cache_formats(row.kv_format)
    if formats is None:
        return Excluded(f"keys and values in a format that the estimator has not ({row.kv_format})")
    if "kv^T (" in row.technique:
        return Excluded("a latent cache with a transposed copy, which ik_llama.cpp had")
    whole = _full_length(architecture, expanded="mla_attn=0" in row.technique)
    caches = [kv_cache_term(whole, int(row.batch), int(row.length), 0, name) for name in formats]
    total = sum(cache.bytes for cache in caches if cache) // 2
    return Predicted(total, f"cache of {row.length} tokens, {row.kv_format}")


def _full_length(architecture: Architecture, *, expanded: bool) -> Architecture:
    """Return `architecture` with caches of full length for sliding layers, as these engine versions allocate them.

    Without llama.cpp's own kernels for it (`mla_attn=0`), latent attention caches the keys and values of each head.
    """
    stack = architecture.main
    groups = []
    for group in stack.groups:
        mixer = group.layer.mixer
        if isinstance(mixer, Attention):
            mixer = mixer.evolve(window=None)
        elif isinstance(mixer, LatentAttention) and expanded:
            width = mixer.qk_nope_head_dim + mixer.qk_rope_head_dim + mixer.v_head_dim
            mixer = Attention(heads=mixer.heads, kv_heads=mixer.heads, head_dim=width // 2)
        groups.append(group.evolve(layer=group.layer.evolve(mixer=mixer)))
    return architecture.evolve(stacks=(*architecture.stacks[:-1], stack.evolve(groups=tuple(groups))))


def _inference(row: Row, architecture: Architecture, catalog: Catalog) -> Predicted | Excluded:
    scheme = row.scheme
    if scheme is None:
        return Excluded(f"weight format {row.precision!r}")
    lengths = _lengths(row)
    if lengths is None:
        return Excluded("lengths are not stated")
    if row.kv_format == "int8":
        return Excluded("an int8 cache with its own kernels")
    prompt, context = lengths
    kept = "fp32" if scheme == "fp32" else "fp16" if "fp16" in row.compute else "bf16"
    workload = Inference(
        weights=scheme,
        compute="fp32" if row.family in _FOUR_BIT_IN_FP32 and scheme == "nf4" else kept,
        kv_cache=kept,
        batch=int(row.batch or 1),
        prompt_length=prompt,
        context_length=context,
        images=0 if architecture.kind == "vision-language" else None,
        attention=_attention(row),
        prompt_logits="all" if row.family in LOGITS_OF_WHOLE_PROMPT else "last",
    )
    if row.model.startswith("distilbert"):
        architecture = architecture.evolve(head=(), tied_head=False)
    return _as_measured(row, architecture, workload, catalog)


def _training(row: Row, architecture: Architecture, catalog: Catalog) -> Predicted | Excluded:
    scheme = row.scheme
    if scheme not in ("bf16", "fp16", "fp32"):
        return Excluded(f"weight format {row.precision!r}")
    if not row.length.isdigit():
        return Excluded("lengths or image sizes are not stated, or differ from sequence to sequence")
    compute = scheme
    if "autocast" in row.compute or "AMP" in row.compute:
        compute = "amp-fp16" if "fp16" in row.compute else "amp-bf16"
    without_step = row.optimizer.startswith("none")
    optimizer = "sgd" if without_step else _OPTIMIZERS.get(row.optimizer)
    if optimizer is None:
        return Excluded(f"optimizer {row.optimizer!r}")
    if "DeepSpeed" in row.optimizer or row.family == "qwen1-recipe":
        return Excluded("another engine or recipe: DeepSpeed")
    workload = Training(
        weights="fp32" if compute.startswith("amp") else scheme,
        compute=compute,
        optimizer=optimizer,
        micro_batch=int(row.batch),
        sequence_length=int(row.length),
        gradient_accumulation=_accumulated_batches(row),
        activation_checkpointing="full" if "grad_ckpt=yes" in row.technique else "none",
        attention=_attention(row),
        profile="litgpt" if row.family == "litgpt-hub" else "hf",
    )
    if not without_step:
        return _as_measured(row, architecture, workload, catalog)
    return _without_loss(row, architecture, workload)


def _accumulated_batches(row: Row) -> int:
    """Return the micro-batches of an optimizer step, which the row or its program's file states.

    One batch after gradients that were set to zero finds them as the second of several does.
    """
    found = re.search(r"grad_accum=(\d+)", row.other)
    if found:
        return max(int(found[1]), 2 if row.family in ZEROED_GRADIENTS else 1)
    return _LITGPT_SAMPLES // int(row.batch) if row.family == "litgpt-hub" else 1


def _without_loss(row: Row, architecture: Architecture, workload: Training) -> Predicted:
    """Return the peak of a loop of forward and backward passes over the sum of all logits."""
    filled = with_defaults(workload, architecture, 1)
    returns_cache = row.family == "sdpa" and architecture.model_type in ("gpt2", "gpt_neox")
    peak = peak_without_loss(architecture, workload, returns_cache=returns_cache)
    peak += mask_bytes(row.family, architecture)
    low, _, high = memory_of(architecture, filled).spread_of(filled).around(ByteInterval(peak, peak, peak))
    return Predicted(peak, f"{_workload_text(filled)}, no loss, no step", low, high)


def _as_measured(
    row: Row, architecture: Architecture, workload: Training | Inference, catalog: Catalog
) -> Predicted | Excluded:
    gpu = card_named(row.gpu, catalog.hardware)
    result = estimate_memory(architecture, workload, gpu)
    counter = counter_of(row.metric)
    low, expected, high = counted(counter, result, gpu, CONTEXTS.get(row.family))
    old = _old_version_bytes(row, architecture, workload, result)
    if row.cards > 1 and isinstance(workload, Inference):
        more = summed_bytes(architecture, workload, row.cards, gpu) - expected
        low, expected, high = low + more, expected + more, high + more
    return Predicted(expected + old, f"{_workload_text(workload)}, {counter}", low + old, high + old)


def _of_profile(row: Row, architecture: Architecture, workload: Inference, catalog: Catalog) -> Predicted:
    """Return the estimate of a run whose program, with its version, has a profile."""
    gpu = card_named(row.gpu, catalog.hardware)
    counter = counter_of(row.metric)
    summed = row.scope == "sum_all_gpus"
    count = 1 if summed else row.cards
    low, expected, high = counted(counter, estimate_memory(architecture, workload, gpu, count=count), gpu)
    more = summed_bytes(architecture, workload, row.cards, gpu) - expected if summed and row.cards > 1 else 0
    if row.family == "awq":
        more = max(more, loaded_bytes(row, architecture) + WARM_UP - expected)
    low, expected, high = low + more, expected + more, high + more
    cards = "1 card" if row.cards == 1 else f"{row.cards} cards"
    return Predicted(expected, f"{_workload_text(workload)}, {workload.profile}, {cards}, {counter}", low, high)


def _old_version_bytes(
    row: Row, architecture: Architecture, workload: Training | Inference, result: MemoryResult
) -> int:
    """Return the bytes that the row's old version of transformers held in addition to `result`."""
    if not isinstance(workload, Inference):
        return softmax_input_bytes(row.family, architecture, workload)
    element = 4 if workload.compute == "fp32" else 2
    tables = rotary_bytes(row.family, architecture, element)
    generating = generating_bytes(row.family, architecture, workload, element)
    single = single_expert_bytes(row.family, architecture, workload.weights)
    hidden = hidden_bytes(row.family, architecture, workload, element)
    more = max(generating - result.allocated_bytes, tables + hidden) + single
    if row.family == "sdpa" and row.kv_format:
        tensors = sum(term.bytes for term in result.terms if term.name != "framework_overhead")
        more = fused_projection_bytes(architecture, workload) - tensors
    if workload.weights == "awq4-128":
        more = max(more, loaded_bytes(row, architecture) - result.allocated_bytes)
    return more + mask_bytes(row.family, architecture) + exllama_bytes(workload.weights, architecture)


def _lengths(row: Row) -> tuple[int, int] | None:
    """Return prompt and context from `prompt=…;gen=…`, or from the length alone for a single forward pass."""
    split = re.search(r"prompt=(\d+)\D+gen=(\d+)", row.other)
    if split:
        return int(split[1]), int(split[1]) + int(split[2])
    generated = re.search(r"^gen=(\d+); prompt short|^short prompt, gen (\d+)", row.other)
    if generated:
        return _SHORT_PROMPT, max(_SHORT_PROMPT, int(generated[1] or generated[2]))
    return (int(row.length), int(row.length)) if row.length.isdigit() else None


def _attention(row: Row) -> str:
    if "eager" in row.technique or row.family in BEFORE_SDPA:
        return "eager"
    return "flash" if "flash_attn" in row.technique and "flash_attn=no" not in row.technique else "sdpa"


def _workload_text(workload: Training | Inference) -> str:
    if isinstance(workload, Training):
        return f"train {workload.micro_batch} × {workload.sequence_length}, {workload.compute}, {workload.attention}"
    length = f"{workload.prompt_length}→{workload.context_length}"
    return f"{workload.batch} × {length}, {workload.weights}, {workload.attention}"
