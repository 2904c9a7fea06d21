"""The phases of text generation with their memory: load, prefill of the prompt, decoding up to the full context."""

from functools import partial
from typing import NamedTuple

from planner.memory.inference.kv_cache import deferred_kv_cache_term, state_term
from planner.memory.inference.scratch import (
    SCRATCH_SOURCE,
    DecodeCopy,
    largest_decode_copy,
    scratch_term,
    tower_scratch_bytes,
)
from planner.memory.kernels import AttentionKind
from planner.memory.logits import bytes_with_fp32_copy, output_logits_term, output_width, predicts_every_token
from planner.memory.phases import DeferredTerm, PhaseSnapshots, Snapshot
from planner.memory.precision import Precision, inference_precision
from planner.memory.result import Term
from planner.memory.segments import unsplit_weight_bytes
from planner.memory.terms import (
    deferred_measured_term,
    format_symbol,
    library_symbol,
    measured_term,
    model_symbol,
    workload_symbol,
)
from planner.memory.weights import buffer_terms, pixels_term, unpacked_four_bit_terms, weights_term
from planner.models.architecture import Architecture, embeds_images, image_elements, image_patches, image_tokens
from planner.workload.workload import Inference

_HELD_SOURCE = (
    "transformers 5.23: LlavaModel.forward and similar methods keep references to image_features and inputs_embeds "
    "while they run"
)


class VisionTerms(NamedTuple):
    """Memory terms of a prompt's images: the tower at work, pixels and embedded prompt, pixels and encoded images."""

    tower: Term
    embedded: Term
    encoded: Term


def vision_terms(architecture: Architecture, workload: Inference, precision: Precision) -> VisionTerms | None:
    """Return the memory of the images in `workload` (defaults filled in); None without images or vision tower.

    The later stages of a pipeline have none.

    **Formula**: tower: images · patches · bytes of its widest layer, beside the pixels and the embedded prompt; then
    images · tokens · h for each kept tensor of the encoded images, images · patches · v for each kept output of the
    tower, and s² bytes for each mask of a sequence.

    **Assumes** that all images go through the tower together, as in one call of the image processor.
    """
    images = workload.batch * (workload.images or 0)
    if not images or not embeds_images(architecture):
        return None
    tower, size = architecture.stacks[0], precision.compute_bytes
    patches, tokens = image_patches(tower, workload.image_size), image_tokens(tower, workload.image_size)
    needed = tower_scratch_bytes(tower, images, patches, precision, workload.attention)
    every = workload_symbol("m", images, "images in all sequences together")
    prompt, element = workload.prompt_length or 0, library_symbol("w", size, "bytes per element")
    prompts = (
        workload_symbol("B", workload.batch, "sequences"),
        workload_symbol("s", prompt, "tokens of the prompt, image tokens included"),
    )
    width = model_symbol("h", architecture.hidden, "width of the language model")
    kept, pixels = tower.images, image_elements(tower, patches)
    seen = (model_symbol("p", pixels, "numbers per image, color channels × pixels, which the caller holds"),)
    encoded = kept.kept_features * tokens * architecture.hidden + kept.kept_outputs * patches * tower.hidden
    return VisionTerms(
        tower=measured_term(
            "activations",
            needed,
            "m × n × a",
            (
                every,
                model_symbol("n", patches, "patches per image, special tokens included"),
                model_symbol(
                    "a",
                    round(needed / (images * patches)),
                    "bytes per patch inside the vision tower's widest layer",
                ),
            ),
            SCRATCH_SOURCE,
        ),
        embedded=measured_term(
            "buffers",
            (images * pixels + workload.batch * prompt * architecture.hidden) * size,
            "(m × p + B × s × h) × w",
            (every, *seen, *prompts, width, element),
            _HELD_SOURCE,
        ),
        encoded=measured_term(
            "buffers",
            images * (pixels + encoded) * size + kept.prompt_masks * workload.batch * prompt**2,
            "m × (p + c × t × h + k × n × v) × w" + (" + q × B × s²" if kept.prompt_masks else ""),
            (
                every,
                *seen,
                library_symbol("c", kept.kept_features, "tensors of the encoded images"),
                model_symbol("t", tokens, "tokens per encoded image"),
                width,
                library_symbol("k", kept.kept_outputs, "outputs of the tower's layers"),
                model_symbol("n", patches, "patches per image"),
                model_symbol("v", tower.hidden, "width of the tower"),
                element,
                *((*prompts, library_symbol("q", kept.prompt_masks, "masks")) if kept.prompt_masks else ()),
            ),
            _HELD_SOURCE,
        ),
    )


_FOUR_BIT = ("nf4", "nf4-dq")
_MANY_TOKENS = 256
_GROWING = (
    "With each new token, every layer's KV cache is copied into a slightly larger one. PyTorch's allocator keeps the "
    "freed memory until the GPU is full, so nvidia-smi may show far more than is needed."
)
_LOGITS_SOURCE = "transformers generation: the logits are copied to fp32 for sampling"


def inference_timeline(architecture: Architecture, workload: Inference) -> PhaseSnapshots:
    """Return the memory in each phase of text generation in `workload` (defaults filled in).

    **Formula**: prefill = weights + cache of the prompt + one layer's scratch, or the logits; decode = weights + cache
    of the whole context + logits. Buffers of different layers do not add up: each is freed before the next. A matrix in
    NF4 that reads more than one token is dequantized first.

    **Source**: bitsandbytes autograd/_functions.py `matmul_4bit` (`gemv_4bit` for one token, else `MatMul4Bit`).
    """
    precision = inference_precision(workload)
    batch, context, prompt = workload.batch, workload.context_length or 0, workload.prompt_length or 0
    weights = weights_term(architecture, workload.weights or "bf16")
    state = state_term(architecture, batch)
    buffers = buffer_terms(architecture, precision.compute_bytes)
    fixed = [item for item in (weights, state, *buffers) if item is not None]
    own_prompt = 1 if architecture.kind == "encoder-decoder" else prompt
    prefilled = deferred_kv_cache_term(architecture, batch, own_prompt, prompt, workload.kv_cache, prefilling=True)
    cached = deferred_kv_cache_term(architecture, batch, context, prompt, workload.kv_cache)
    width, per_logit = output_width(architecture), bytes_with_fp32_copy(precision.compute_bytes)
    whole = batch * own_prompt if predicts_every_token(architecture) else batch
    every = architecture.kind in ("encoder", "vision-encoder") or workload.prompt_logits == "all"
    unpacked = partial(_unpacked_terms, architecture, workload.weights, precision)
    pixels = pixels_term(architecture, batch, precision.compute_bytes)
    seen = vision_terms(architecture, workload, precision)
    encoded = seen.encoded if seen else None
    masked = seen is not None and workload.attention == "sdpa" and architecture.stacks[0].images.prompt_masks > 0
    scratch = scratch_term(architecture, batch, prompt, precision, workload.attention, masked=masked)
    snapshots = [
        Snapshot("load", [weights], "the parameters are on the GPU"),
        *(
            [
                Snapshot(
                    "prefill",
                    _alive_terms(fixed, seen.embedded, seen.tower),
                    "the vision tower reads the images",
                )
            ]
            if seen
            else ()
        ),
        Snapshot(
            "prefill",
            _alive_terms(fixed, prefilled, pixels, encoded, scratch, *unpacked(batch * own_prompt)),
            "layers read the whole prompt at once",
        ),
        Snapshot(
            "prefill",
            _alive_terms(
                fixed,
                prefilled,
                pixels,
                encoded,
                output_logits_term(width, whole if every else batch, per_logit, _LOGITS_SOURCE),
            ),
            "the output head computes the logits of the whole prompt"
            if every
            else "the prompt has been processed and the first token's logits are computed",
        ),
    ]
    if cached is not None:
        step = output_logits_term(width, batch, per_logit, _LOGITS_SOURCE)
        copies = _decode_copies_term(architecture, batch, context, precision, workload.attention)
        single: list[Term | DeferredTerm] = [copies, *unpacked(batch)]
        largest = max(single, key=lambda one: one.bytes)
        grown = _alive_terms(fixed, cached, largest, step)
        snapshots += [
            Snapshot(
                "decode",
                _alive_terms(fixed, prefilled),
                "the first token is generated with the prompt in every layer's cache",
            ),
            Snapshot("decode", grown, "the cache has grown to the whole context"),
        ]
    grows = cached is not None and context - prompt >= _MANY_TOKENS
    dynamic = max(scratch.bytes, seen.tower.bytes if seen else 0)
    return PhaseSnapshots(
        tuple(snapshots),
        dynamic=dynamic,
        notes=(_GROWING,) if grows else (),
        unsplit_bytes=unsplit_weight_bytes(architecture, workload.weights or "bf16"),
    )


def _alive_terms(always_alive: list[Term], *optional_terms: Term | DeferredTerm | None) -> list[Term | DeferredTerm]:
    """Return the terms `always_alive`, and those of `optional_terms` that are not None."""
    return [*always_alive, *[item for item in optional_terms if item is not None and item.bytes]]


def _unpacked_terms(
    architecture: Architecture, scheme_name: str | None, precision: Precision, tokens: int
) -> tuple[Term, ...]:
    """Return the memory of the matrix in NF4 that a layer dequantizes to multiply `tokens` tokens with it."""
    if scheme_name not in _FOUR_BIT or tokens == 1:
        return ()
    return unpacked_four_bit_terms(architecture, precision.compute_bytes)


def _decode_copies_term(
    architecture: Architecture, batch: int, context: int, precision: Precision, attention: AttentionKind
) -> DeferredTerm:
    """Return the memory of the tensors copied in a decoding step by the layer that copies most."""
    size = precision.compute_bytes
    copied = largest_decode_copy(architecture, context, precision, attention)
    needed = batch * copied.total * size
    return deferred_measured_term("temporaries", needed, partial(_write_decode_copies, needed, batch, copied, size))


def _write_decode_copies(needed: int, batch: int, copied: DecodeCopy, element_bytes: int) -> Term:
    return measured_term(
        "temporaries",
        needed,
        "B × n × k × w",
        (
            workload_symbol("B", batch, "sequences"),
            workload_symbol("n", copied.tokens, "tokens cached by the layer that copies most"),
            model_symbol("k", copied.elements, "copied elements per token: appended keys, repeated or expanded heads"),
            format_symbol("w", element_bytes, "bytes per element"),
        ),
        "transformers 5.23 cache_utils.DynamicLayer.update: torch.cat makes a new tensor for each token",
    )
