"""Memory behavior of Liger's fused kernels in training with transformers."""

from typing import Final

from planner.hardware.gpu import Gpu
from planner.memory.software.base import triton_reasons
from planner.memory.software.pytorch import TrainingMemory
from planner.memory.training.losses import FusedKernels
from planner.models.architecture import Architecture
from planner.workload.training import Training

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
"""Model types (`model_type`) for which Liger has kernels.

**Source**: Liger-Kernel 0.8.2 `transformers/monkey_patch.py`, `MODEL_TYPE_TO_APPLY_LIGER_FN`.
"""


class Liger(TrainingMemory):
    """Training with transformers and Liger's fused kernels for norms, gates and the loss."""

    fused = FusedKernels(norms=True, gates=True)

    def differences_from_transformers(self, architecture: Architecture) -> tuple[str, ...]:
        """Return notes on how Liger differs from transformers, and whether it has no kernels for the model."""
        sentence = (
            "Modeled on Liger-Kernel 0.8.2 with transformers: RMSNorm saves its input and one root per token, SwiGLU "
            "and GeGLU save only gate and up, and the head is computed with the loss in chunks."
        )
        if architecture.model_type in _LIGER_TYPES:
            return (sentence,)
        missing = f"Liger-Kernel 0.8.2 has no kernels for {architecture.model_type}: enabling it would change nothing."
        return sentence, missing

    def unsupported_reasons(self, workload: Training, gpu: Gpu) -> tuple[str, ...]:
        """Return the reasons why `gpu` cannot run `workload`, including that it cannot run Triton kernels."""
        return (*super().unsupported_reasons(workload, gpu), *triton_reasons(gpu))


TRAINING: Final = Liger()
