"""What the profiles of training store, in a sentence each, with the versions of the libraries they were read in."""

from typing import Final

from planner.models.architecture import Architecture
from planner.workload.training import Training

_SENTENCES: Final[dict[str, str]] = {
    "liger": "As Liger-Kernel 0.8.2 does on transformers: RMSNorm keeps its input and one root a token, SwiGLU and "
    "GeGLU keep gate and up alone, and the head is computed with the loss in parts.",
    "unsloth": "As Unsloth 2026.8.19 does with unsloth_zoo ce232d6: norms and gates as Liger's, adapters that keep "
    "what they read once, checkpoints in RAM, and the loss in parts of 4 GiB.",
    "torchtune": "As torchtune 0.7 does: layers keep what those of transformers do, and the loss keeps "
    "log-probabilities of one part of the tokens after the other.",
}
# fmt: off
_LIGER_TYPES: Final = frozenset((
    "deepseek_v4", "exaone4", "falcon_h1", "gemma", "gemma2", "gemma3", "gemma3_text", "gemma4", "gemma4_text",
    "glm4", "glm4v", "glm4v_moe", "gpt_oss", "granite", "hunyuan_v1_dense", "hunyuan_v1_moe", "internvl", "llama",
    "llama4", "llama4_text", "llava", "ministral", "mistral", "mixtral", "mllama", "mllama_text_model", "nemotron",
    "olmo2", "olmo3", "paligemma", "phi3", "pixtral", "qwen2", "qwen2_5_vl", "qwen2_5_vl_text", "qwen2_vl",
    "qwen2_vl_text", "qwen3", "qwen3_5", "qwen3_5_moe", "qwen3_5_moe_text", "qwen3_5_text", "qwen3_moe",
    "qwen3_next", "qwen3_vl", "qwen3_vl_moe", "qwen3_vl_moe_text", "qwen3_vl_text", "smollm3", "smolvlm",
))
# fmt: on
"""The model types that Liger has kernels for.

**Source**: Liger-Kernel 0.8.2 `transformers/monkey_patch.py`, `MODEL_TYPE_TO_APPLY_LIGER_FN`.
"""


def profile_notes(architecture: Architecture, workload: Training) -> tuple[str, ...]:
    """Return what the profile of `workload` stores, and by which version, nothing for transformers itself."""
    sentence = _SENTENCES.get(workload.profile)
    if sentence is None:
        return ()
    if workload.profile == "liger" and architecture.model_type not in _LIGER_TYPES:
        missing = f"Liger-Kernel 0.8.2 has no kernels for {architecture.model_type}: by itself it would change nothing."
        return sentence, missing
    return (sentence,)
