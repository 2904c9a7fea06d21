"""Memory of outdated versions of transformers and PyTorch, for published measurements that were made with one of them.

The estimator does not include this memory, because it describes transformers 5. Sources are the old versions' code.
"""

from collections.abc import Iterator
from typing import Final

from planner.memory.inference.kv_cache import kv_cache_term
from planner.memory.logits import output_width
from planner.memory.overhead import DeviceContext
from planner.memory.segments import unsplit_weight_bytes
from planner.memory.weights import MATRIX_ROLES, weight_bytes
from planner.models.architecture import Architecture, Attention, Tensor
from planner.units import MIB
from planner.workload.training import Training
from planner.workload.workload import Inference

BEFORE_SDPA: Final = ("bertl", "dsllm", "optgptq", "optllm")
"""Sources from before December 2023, when transformers 4.36 first called SDPA in language models."""
LOGITS_OF_WHOLE_PROMPT: Final = ("qwen15", "qwen2", "qwen2vl", "optgptq", "optllm", "dsllm", "sdpa")
"""Sources that ran versions before 4.45, whose models computed the logits of the whole prompt."""
_TUPLE_CACHES: Final = ("qwen15", "qwen2", "optgptq", "optllm", "qwen1-inf", "qwen1-kvq", "qwen1-v1")
"""Sources from before mid-2024: until transformers 4.42, `generate` passed caches as tuples."""
_ROTARY_TABLES: Final = ("qwen15", "qwen2", "qwen2vl")
"""Sources whose models had tables of cosines and sines in every layer: Qwen2RotaryEmbedding until 4.40, and
Qwen2VLRotaryEmbedding of the development version that Qwen2-VL came with."""
_FLOAT_LOGITS: Final = ("qwen15", "qwen2", "qwen2vl")
"""Sources whose models cast the whole prompt's logits to fp32 inside their forward pass."""
_SINGLE_EXPERTS: Final = ("qwen15", "qwen2")
"""Sources from before version 5, whose experts were layers of their own."""
ZEROED_GRADIENTS: Final = ("bertl",)
"""Sources of before PyTorch 2.0, whose `zero_grad` set gradients to zero and kept them through the next forward pass.

**Source**: release notes of PyTorch 2.0 (`zero_grad` sets to None by default, pytorch/pytorch#92731).
"""
_SAVED_SOFTMAX_INPUTS: Final = ("bertl",)
"""Sources of before PyTorch 1.11: the page of `bertl` ran in January 2022."""
CONTEXTS: Final = {
    "bertl": DeviceContext(1343 * MIB, 1343 * MIB, 1343 * MIB),
    "hfbench": DeviceContext((1035 - 158) * MIB, 721 * MIB, (1008 - 3) * MIB),
}
"""GPU contexts of versions that loaded every kernel at their start, as measured apart from the rows.

**Source**: of `bertl` its page, with a tensor of one element on the card. `hfbench` ran PyTorch 1.4 on a TITAN RTX: an
RTX 2080 Ti, of the same compute capability, shows 1,035 MiB with PyTorch 1.6 for CUDA 10.1 and a tensor that takes 158
(pytorch/pytorch#49877), a GTX 1080 721 with CUDA 10.1 (#55277), a Titan V 1,008 with a small tensor (#28394).
"""
_HALF, _FLOAT = 2, 4


def mask_bytes(family: str, architecture: Architecture) -> int:
    """Return the size of the causal masks, which every GPT-2 and GPT-NeoX layer had as a buffer before version 5."""
    if family != "sdpa" or architecture.model_type not in ("gpt2", "gpt_neox"):
        return 0
    return architecture.main.layer_count * (architecture.max_context or 0) ** 2


def rotary_bytes(family: str, architecture: Architecture, element: int) -> int:
    """Return the size of the tables of cosines and sines for all positions, which each layer stored separately.

    **Formula**: layers · positions · head size · 2 · bytes of the model's format.

    **Source**: transformers 4.38 modeling_qwen2.py Qwen2RotaryEmbedding._set_cos_sin_cache.
    """
    mixer = architecture.main.groups[0].layer.mixer
    if family not in _ROTARY_TABLES or not isinstance(mixer, Attention):
        return 0
    return architecture.main.layer_count * (architecture.max_context or 0) * mixer.head_dim * 2 * element


def hidden_bytes(family: str, architecture: Architecture, workload: Inference, element: int) -> int:
    """Return the size of the hidden states that are alive while the whole prompt's logits are cast to fp32.

    **Formula**: tokens · h · bytes; twice with a vision tower, whose model also holds the embedded prompt.

    **Source**: transformers 4.38 modeling_qwen2.py `Qwen2ForCausalLM.forward` (`logits = logits.float()` beside
    `hidden_states`), 4.45 modeling_qwen2_vl.py `Qwen2VLForConditionalGeneration.forward` (`inputs_embeds`).
    """
    if family not in _FLOAT_LOGITS:
        return 0
    tensors = 2 if architecture.kind == "vision-language" else 1
    return tensors * workload.batch * (workload.prompt_length or 0) * architecture.hidden * element


def softmax_input_bytes(family: str, architecture: Architecture, workload: Training) -> int:
    """Return the size of the attention scores that PyTorch saved before version 1.11, beside the softmax of them.

    **Formula**: layers · b · heads · s² · 4, also under autocast, which computes it in fp32; of one layer with
    checkpointing.

    **Source**: pytorch/pytorch#64000 and #65242, which removed it.

    **Checked**: with it, `traced_kernels.py bert,fp32,4,512,24,1024` reserves 13.28 GiB, with the context 14.59;
    bertl-002 shows 14.60.
    """
    stack, length = architecture.main, workload.sequence_length or 0
    mixer = stack.groups[0].layer.mixer
    if family not in _SAVED_SOFTMAX_INPUTS or not isinstance(mixer, Attention):
        return 0
    layers = 1 if workload.activation_checkpointing == "full" else stack.layer_count
    return layers * workload.micro_batch * mixer.heads * length**2 * _FLOAT


def single_expert_bytes(family: str, architecture: Architecture, weights: str | None) -> int:
    """Return what the allocator's blocks of experts hold more where each expert is a tensor of its own."""
    if family not in _SINGLE_EXPERTS:
        return 0
    groups = tuple(
        group.evolve(layer=group.layer.evolve(tensors=tuple(_single(group.layer.tensors))))
        for group in architecture.main.groups
    )
    single = architecture.evolve(stacks=(*architecture.stacks[:-1], architecture.main.evolve(groups=groups)))
    scheme = weights or "bf16"
    return unsplit_weight_bytes(single, scheme) - unsplit_weight_bytes(architecture, scheme)


def _single(tensors: tuple[Tensor, ...]) -> Iterator[Tensor]:
    for tensor in tensors:
        yield from (tensor.evolve(name=f"{tensor.name}.{one}", copies=1) for one in range(tensor.copies))


def exllama_bytes(weights: str | None, architecture: Architecture) -> int:
    """Return the size of the buffer in which ExLlama's kernels for 4-bit GPTQ unpack the largest matrix.

    **Formula**: 2 bytes · inputs · outputs.

    **Source**: AutoGPTQ modeling/_utils.py autogptq_post_init (`temp_dq`). Its successor takes Marlin's kernels first,
    which unpack in place.
    """
    if weights is None or not weights.startswith("gptq4"):
        return 0
    return 2 * max(tensor.size for tensor, _ in architecture.main.tensors_with_counts() if tensor.role in MATRIX_ROLES)


def generating_bytes(family: str, architecture: Architecture, workload: Inference, element: int) -> int:
    """Return the live bytes in a step of `generate`, or 0 if the source ran a newer version.

    The caller held the tuple of the old cache while the step made a new one, layer by layer, and in the first step the
    output of the prompt with its logits in fp32.

    **Formula**: weights + max over the first and the last step of 2 · cache + T · V · 4 (the first step only).

    **Source**: transformers 4.38 generation/utils.py greedy_search (`outputs` lives until the next one is assigned),
    modeling_qwen2.py (`from_legacy_cache`, `logits.float()`).
    """
    if family not in _TUPLE_CACHES:
        return 0
    batch, prompt, context = workload.batch, workload.prompt_length or 0, workload.context_length or 0
    if context <= prompt + 1:  # the prompt gives the first token by itself
        return 0
    first, last = (_cache(architecture, workload, tokens) for tokens in (prompt, context))
    logits = batch * prompt * output_width(architecture) * _FLOAT if family in LOGITS_OF_WHOLE_PROMPT else 0
    held = weight_bytes(architecture, workload.weights or "bf16") + max(2 * first + logits, 2 * last)
    return held + rotary_bytes(family, architecture, element)


def fused_projection_bytes(architecture: Architecture, workload: Inference) -> int:
    """Return the live bytes in the step of `generate` after the prompt, in GPT-2 and GPT-NeoX before version 4.48.

    Their values, and GPT-2's keys, are views of one projection of queries, keys and values, which the cache of the
    prompt keeps alive as a whole. The next step concatenates a new cache while the caller still holds the old one, and
    with it the output of the prompt: its logits, in the model's format.

    **Formula**: weights + b · s · (layers · (3 h + r) + layers · 2 h + V) · bytes, where r are the h turned keys of
    GPT-NeoX.

    **Source**: transformers 4.43 modeling_gpt2.py `GPT2Attention.forward` (`self.c_attn(hidden_states).split(…)`,
    `present = (key, value)`), modeling_gpt_neox.py `GPTNeoXAttention._attn_projections_and_rope`, generation/utils.py
    `_sample` (`outputs` lives until the next one is assigned).
    """
    tokens, hidden = workload.batch * (workload.prompt_length or 0), architecture.hidden
    turned = hidden if architecture.model_type == "gpt_neox" else 0
    each = architecture.main.layer_count * (5 * hidden + turned) + output_width(architecture)
    return weight_bytes(architecture, workload.weights or "bf16") + tokens * each * _HALF


def _cache(architecture: Architecture, workload: Inference, tokens: int) -> int:
    term = kv_cache_term(architecture, workload.batch, tokens, tokens, workload.kv_cache)
    return term.bytes if term else 0
