"""Model-dependent defaults of a workload, and the check of its parallelism against the model and the cards."""

from functools import lru_cache
from typing import Final, Literal

from planner.dtypes import AS_STORED, GGUF_FILE_TYPES
from planner.errors import SpecError
from planner.models.architecture import (
    Architecture,
    Attention,
    LatentAttention,
    Layer,
    Mlp,
    Moe,
    embeds_images,
    image_tokens,
    with_training_images,
)
from planner.models.diffusion import DiffusionTransformer, find_networks
from planner.workload.alignment import Alignment
from planner.workload.choices import DEFAULT_CONTEXT, Loss
from planner.workload.formats import (
    EXCLUSIVE_FIELDS,
    autocasts,
    default_profile,
    loaded_format,
    native_format_name,
    product_format,
)
from planner.workload.optimizers import OPTIMIZERS
from planner.workload.parallel import Parallel
from planner.workload.rules import (
    COUNT_HINT,
    COUNT_RULES,
    GROUP_RULES,
    PARALLEL_INFERENCE_RULES,
    PARALLEL_RULES,
    PARALLEL_TRAINING_RULES,
    PIPELINE_RULES,
    REPLICA_RULES,
    WEIGHT_FILE_RULES,
)
from planner.workload.software.registry import DEFAULT, SOFTWARE, serving_support, settings_for, training_support
from planner.workload.training import Lora, Training
from planner.workload.workload import Inference

DEFAULT_SEQUENCE: Final = 2_048


def with_defaults(workload: Training | Inference, architecture: Architecture, count: int) -> Training | Inference:
    """Return `workload` with its unset fields filled in for `architecture` on `count` cards.

    Inference: weights as the program loads the checkpoint, bf16 if nothing states its format; context and prompt 4,096
    tokens or the model's maximum if that is smaller. Training: sequences of 2,048 tokens or the model's maximum;
    parameters in fp32 under autocast, else in the compute precision; adapters of rank 16 on all linear layers of a
    model in 16 bits or NF4; the profile's default loss and optimizer step. A model of fixed input length (an image
    encoder) uses that length.

    GGUF files run in llama.cpp, everything else in Hugging Face transformers unless a profile is named or a setting
    of another engine is given. llama.cpp keeps caches of 16 bits in F16.

    Raises:
        SpecError: If the workload is spread over another number of cards than there are, or as the network cannot be,
            or asks for weights or a cache that the engine does not have.
    """
    if isinstance(workload, Training):
        PIPELINE_RULES.check(workload, model=architecture)
    parallel = resolve_parallel(workload, architecture, count)
    if architecture.kind == "diffusion":
        if isinstance(workload, Training):
            return _trained_pipeline(workload, architecture, parallel)
        return pipeline_defaults(workload, architecture, parallel)
    if isinstance(workload, Training):
        length = _input_length(workload.sequence_length, architecture, DEFAULT_SEQUENCE)
        images = _images_per_sequence(workload, architecture)
        if images:
            length = max(length, images * image_tokens(architecture.stacks[0], workload.image_size) + 1)
        return workload.evolve(
            images=images,
            sequence_length=length,
            alignment=_settled_alignment(workload, architecture, length),
            weights=workload.weights or default_weight_format(workload),
            lora=(workload.lora or Lora()).with_targets(usual_targets(architecture)) if workload.adapts else None,
            optimizer_step=workload.optimizer_step or OPTIMIZERS[workload.optimizer].steps[0],
            loss=workload.loss or _default_loss(workload),
            parallel=parallel,
        )
    if workload.image_size is not None and not architecture.kind.startswith("vision"):
        raise SpecError("image_size", f"{architecture.model_type} does not accept images", "Remove image_size.")
    context = _input_length(workload.context_length, architecture, DEFAULT_CONTEXT)
    prompt = architecture.fixed_encoder_length or _input_length(
        workload.prompt_length, architecture, min(context, DEFAULT_CONTEXT)
    )
    weights = architecture.stored_as if workload.weights in (None, AS_STORED) else workload.weights
    own_fields = [getattr(workload, name) for name in EXCLUSIVE_FIELDS]
    profile = workload.profile or default_profile(workload.engine.explicit_names(), own_fields, weights, architecture)
    own = serving_support(profile)
    loaded = loaded_format(profile, workload.weights, architecture, workload.compute)
    if architecture.kind not in own.networks:
        hint = f"Choose the profile {DEFAULT}, and weights that are not in a GGUF file."
        raise SpecError("profile", f"{SOFTWARE[profile].title} cannot run an image encoder on its own", hint)
    images = _images_per_prompt(workload, architecture, profile)
    WEIGHT_FILE_RULES.check(workload, model=architecture)
    if images:
        prompt = max(prompt, images * image_tokens(architecture.stacks[0], workload.image_size) + 1)
    return workload.evolve(
        profile=profile,
        weights=native_format_name(profile, loaded, architecture),
        engine=settings_for(profile, workload.engine),
        kv_cache=own.cache_names.get(workload.kv_cache, workload.kv_cache),
        context_length=context if architecture.kind == "encoder-decoder" else max(context, prompt),
        prompt_length=prompt,
        images=images,
        speculation=workload.speculation.with_defaults(),
        parallel=parallel,
    )


def _default_loss(workload: Training) -> Loss:
    """Return the program's default loss.

    **Source**: TRL 1.16 computes log-probabilities in tiles (trainer/utils.py add_fused_lm_head), with Liger's kernels
    for the layers alone; Unsloth fuses them with the head. It has no PPO: that of verl and OpenRLHF is from all logits.
    """
    own, objective = training_support(workload.profile), workload.alignment.method
    if objective == "none":
        return own.loss
    return "full-logits" if objective == "ppo" else own.alignment_loss


def _settled_alignment(workload: Training, architecture: Architecture, length: int) -> Alignment:
    """Return the workload's preference tuning or reinforcement learning with its unset fields filled in."""
    alignment = workload.alignment
    if alignment.method == "none":
        return alignment
    if architecture.kind not in ("decoder", "vision-language"):
        reason = f"{alignment.method.upper()} compares generated text, and {architecture.model_type} generates none"
        raise SpecError("alignment.method", reason, "Choose a decoder, or the objective none.")
    return alignment.settled(adapts=workload.adapts, sequence_length=length, micro_batch=workload.micro_batch)


def as_trained(architecture: Architecture, workload: Training) -> Architecture:
    """Return `architecture` as a step of `workload` (defaults filled in) runs it: with its images and frozen parts."""
    return with_training_images(
        architecture, workload.images or 0, workload.image_size, workload.frozen_vision, adapts=workload.adapts
    )


def _images_per_sequence(workload: Training, architecture: Architecture) -> int | None:
    """Return the number of images in each training sequence, by default 0; None for models that embed no images."""
    if not embeds_images(architecture):
        if workload.images or workload.frozen_vision != "none":
            field = "images" if workload.images else "frozen_vision"
            raise SpecError(
                field, f"{architecture.model_type} does not accept images in its sequences", "Leave it out."
            )
        return None
    return workload.images or 0


def _images_per_prompt(workload: Inference, architecture: Architecture, profile: str) -> int | None:
    """Return the number of images per prompt: by default 1, or 0 if the engine's image processing is not estimated."""
    if not embeds_images(architecture):
        if workload.images:
            raise SpecError(
                "images", f"{architecture.model_type} does not accept images in its prompt", "Remove images."
            )
        return None
    if "images" not in serving_support(profile).prompt_inputs:
        if workload.images:
            reason = f"{SOFTWARE[profile].title} has its own image processing, which is not estimated"
            raise SpecError("images", reason, f"Choose the profile {DEFAULT}.")
        return 0
    return 1 if workload.images is None else workload.images


def _input_length(requested: int | None, architecture: Architecture, default: int) -> int:
    """Return the input length: the model's fixed length, else `requested`, else `default`, within the context."""
    fixed = architecture.fixed_length
    if fixed is not None:
        return fixed
    if requested is not None:
        return requested
    return min(default, architecture.max_context or default)


def default_weight_format(workload: Training) -> str:
    """Return the default weight format of a training workload.

    The frozen model under adapters is in 16 bits, as checkpoints are loaded, or in NF4, with double quantization if the
    program asks bitsandbytes for it.
    """
    if workload.method == "qlora":
        return training_support(workload.profile).four_bits
    if workload.compute == "tf32":
        return "fp32"
    return "fp32" if autocasts(workload.compute) and not workload.adapts else product_format(workload.compute)


_ATTENTION: Final = ("to_k", "to_q", "to_v", "to_out.0")
_JOINT_ATTENTION: Final = (
    *(f"attn.{name}" for name in ("add_k_proj", "add_q_proj", "add_v_proj", "to_add_out")),
    *(f"attn.{name}" for name in _ATTENTION),
)
_FEED_FORWARD: Final = tuple(f"{block}.net.{place}" for block in ("ff", "ff_context") for place in ("0.proj", "2"))
_ADAPTED: Final = {"sd3": _JOINT_ATTENTION, "flux": (*_JOINT_ATTENTION, *_FEED_FORWARD)}
"""Layers of denoisers with adapters by default; of the others _ATTENTION.

**Source**: diffusers 0.42 examples: dreambooth/train_dreambooth_lora_{sd3,flux}.py,
text_to_image/train_text_to_image_lora{,_sdxl}.py, `target_modules`.
"""


def _trained_pipeline(workload: Training, architecture: Architecture, parallel: Parallel) -> Training:
    """Return a training `workload` of a pipeline's denoiser with its unset fields filled in.

    Adapters are on the layers of diffusers' scripts.

    Raises:
        SpecError: If the pipeline does not make images of this size.
    """
    denoiser, _ = find_networks(architecture.components)
    return workload.evolve(
        weights=workload.weights or default_weight_format(workload),
        lora=(workload.lora or Lora()).with_targets(usual_targets(architecture)) if workload.adapts else None,
        optimizer_step=workload.optimizer_step or OPTIMIZERS[workload.optimizer].steps[0],
        image_size=_pipeline_size(workload, architecture),
        precomputed=workload.precomputed or ("none" if denoiser.kind == "unet" else "prompts"),
        parallel=parallel,
    )


def usual_targets(architecture: Architecture) -> Literal["all-linear"] | tuple[str, ...]:
    """Return the layers that have adapters by default: of a pipeline's denoiser those of diffusers' script."""
    if architecture.kind != "diffusion":
        return "all-linear"
    denoiser, _ = find_networks(architecture.components)
    return _ADAPTED.get(denoiser.family, _ATTENTION) if isinstance(denoiser, DiffusionTransformer) else _ATTENTION


def _pipeline_size(workload: Training | Inference, architecture: Architecture) -> tuple[int, int]:
    """Return the size of the images in pixels, by default that for which the denoiser was trained.

    Raises:
        SpecError: If the sides are not multiples of a patch.
    """
    denoiser, decoder = find_networks(architecture.components)
    default = denoiser.sample_size * decoder.scale
    size = workload.image_size or (default, default)
    unit = decoder.scale * (denoiser.patch if isinstance(denoiser, DiffusionTransformer) else 1)
    if any(side % unit for side in size):
        raise SpecError("image_size", f"{size[0]:,} × {size[1]:,} pixels are not multiples of {unit:,}")
    return size


def pipeline_defaults(workload: Inference, architecture: Architecture, parallel: Parallel) -> Inference:
    """Return `workload` with its unset fields filled in: image size, guidance, and weights in the compute precision.

    Raises:
        SpecError: If the pipeline is run by an engine for text, or cannot generate images of this size.
    """
    if "diffusion" not in serving_support(workload.profile).networks:
        title = SOFTWARE[workload.profile or DEFAULT].title
        raise SpecError(
            "profile", f"no diffusion pipeline runs in {title}", f"Choose {DEFAULT}: the diffusers library."
        )
    _check_formats(workload, architecture)
    denoiser, _ = find_networks(architecture.components)
    if workload.attention == "eager" and isinstance(denoiser, DiffusionTransformer):
        reason = "eager attention is estimated for U-Nets only; diffusion transformers run fused kernels"
        raise SpecError("attention", reason, "Choose sdpa or flash.")
    size = _pipeline_size(workload, architecture)
    guided = not (isinstance(denoiser, DiffusionTransformer) and denoiser.guidance_embedded)
    settings = workload.diffusion
    return workload.evolve(
        profile=workload.profile or DEFAULT,
        weights=workload.weights or workload.compute,
        image_size=size,
        diffusion=settings.evolve(
            guidance=guided if settings.guidance is None else settings.guidance,
            text_weights=settings.text_weights or workload.compute,
        ),
        parallel=parallel,
    )


def _check_formats(workload: Inference, architecture: Architecture) -> None:
    for name, value in (("weights", workload.weights), ("diffusion.text_weights", workload.diffusion.text_weights)):
        if value in GGUF_FILE_TYPES:
            raise SpecError(
                name,
                "GGUF files of diffusion models mix weight formats, which is not supported",
                "Choose nf4, int8 or fp8.",
            )
        if value == AS_STORED and not all(component.stored for component in architecture.components):
            raise SpecError(
                name,
                "the weight formats in the files are unknown, because the pipeline's files were not read",
                "Choose the pipeline's folder, or hf:owner/name.",
            )


_ONE_STACK: Final = ("decoder", "encoder", "vision-encoder", "vision-language")


def resolve_parallel(workload: Training | Inference, architecture: Architecture, count: int) -> Parallel:
    """Return the parallelism of `workload` on `count` cards, with the number of replicas filled in.

    Raises:
        SpecError: If the product of the degrees of parallelism is not the number of cards, or the model or the software
            does not support this split.
    """
    COUNT_RULES.check(workload, count=count)
    if isinstance(workload, Training):
        if workload.alignment.method != "none":  # others have no groups, and need no check for each micro-batch size
            GROUP_RULES.check(workload, count=count)
        REPLICA_RULES.check(workload, count=count)
    parallel = _with_replicas(workload.parallel, count)
    if not parallel.is_plain:
        _check_network(parallel, architecture)
        PARALLEL_RULES.check(workload, model=architecture)
        (PARALLEL_TRAINING_RULES if isinstance(workload, Training) else PARALLEL_INFERENCE_RULES).check(workload)
    return parallel


@lru_cache(maxsize=1024)
def _with_replicas(parallel: Parallel, count: int) -> Parallel:
    """Return `parallel` with the number of replicas on `count` cards filled in, if it is unset."""
    return parallel.evolve(data=count // parallel.model_shards) if parallel.data is None else parallel


@lru_cache(maxsize=1024)
def _check_network(parallel: Parallel, architecture: Architecture) -> None:
    """Reject degrees of parallelism that the model's layers do not allow."""
    if architecture.kind == "diffusion":
        raise SpecError(
            "parallel",
            "the networks in a diffusion pipeline cannot be split across GPUs",
            "Leave the degrees unset: each GPU then makes images of its own.",
        )
    layers = [group.layer for stack in architecture.stacks for group in stack.groups]
    if parallel.tensor > 1:
        for layer in layers:
            _check_tensor(layer, parallel.tensor)
    if parallel.expert > 1:
        _check_experts(parallel, [layer.feed_forward for layer in layers])
    if parallel.pipeline > 1:
        _check_stages(parallel, architecture)
    if parallel.context > 1 and architecture.fixed_length is not None:
        raise SpecError(
            "parallel.context", "inputs of a fixed length cannot be split across GPUs by context parallelism"
        )


def _check_tensor(layer: Layer, cards: int) -> None:
    """Reject a tensor parallelism over `cards` that does not divide the layer's heads or feed-forward width."""
    for mixer in (layer.mixer, layer.second_mixer, layer.cross_attention):
        if isinstance(mixer, Attention | LatentAttention) and mixer.heads % cards:
            raise SpecError(
                "parallel.tensor",
                f"{mixer.heads:,} attention heads are not divisible by {cards:,}",
                _divisors_hint(mixer.heads),
            )
        if isinstance(mixer, Attention) and mixer.kv_heads % cards and cards % mixer.kv_heads:
            reason = f"{mixer.kv_heads:,} key-value heads can be neither divided nor repeated evenly for {cards:,} GPUs"
            raise SpecError("parallel.tensor", reason, _divisors_hint(mixer.heads))
    block = layer.feed_forward
    widths = [block.intermediate] if isinstance(block, Mlp) else []
    if isinstance(block, Moe):
        widths = [block.intermediate, block.shared_intermediate]
    for width in widths:
        if width % cards:
            reason = f"a feed-forward width of {width:,} is not divisible by {cards:,}"
            raise SpecError("parallel.tensor", reason, "Use a degree that divides it, such as 2.")


def _divisors_hint(size: int) -> str:
    """Return a hint with the degrees above 1 that divide `size`."""
    return f"Possible values: {', '.join(str(cards) for cards in range(2, size + 1) if size % cards == 0)}."


def _check_experts(parallel: Parallel, blocks: list[Mlp | Moe | None]) -> None:
    """Reject an expert parallelism that does not divide the routed experts or the replicas."""
    routed = {block.experts for block in blocks if isinstance(block, Moe)}
    if not routed:
        raise SpecError("parallel.expert", "this model has no routed experts", "Set it to 1.")
    for experts in routed:
        if experts % parallel.expert:
            reason = f"{experts:,} experts are not divisible by {parallel.expert:,}"
            raise SpecError("parallel.expert", reason, _divisors_hint(experts))
    if (parallel.data or 1) % parallel.expert:
        reason = f"the number of replicas, {parallel.data:,}, is not divisible by {parallel.expert:,}"
        raise SpecError("parallel.expert", reason, hint=COUNT_HINT)


def _check_stages(parallel: Parallel, architecture: Architecture) -> None:
    """Reject pipeline stages that the model's layers cannot fill."""
    if architecture.kind not in _ONE_STACK:
        reason = "an encoder-decoder model cannot be split into pipeline stages"
        raise SpecError("parallel.pipeline", reason, "Set it to 1, or share the model by ZeRO.")
    layers = architecture.depth
    if parallel.pipeline * parallel.interleave > layers:
        stages = parallel.pipeline * parallel.interleave
        reason = f"{layers:,} layers cannot fill {stages:,} stages"
        raise SpecError("parallel.pipeline", reason, f"Use at most {layers:,} stages.")
    if parallel.pipeline_layers and sum(parallel.pipeline_layers) != layers:
        named = sum(parallel.pipeline_layers)
        raise SpecError(
            "parallel.pipeline_layers",
            f"the stages have {named:,} layers in total, but the model has {layers:,}",
            "Leave it unset to split the layers evenly.",
        )
