"""What Liger's fused kernels change in the memory of training with transformers."""

from typing import Final

from planner.hardware.gpu import Gpu
from planner.memory.software.pytorch import TrainingMemory
from planner.memory.support import triton_reasons
from planner.memory.training.fused import FusedKernels
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
"""The model types that Liger has kernels for.

**Source**: Liger-Kernel 0.8.2 `transformers/monkey_patch.py`, `MODEL_TYPE_TO_APPLY_LIGER_FN`.
"""


class Liger(TrainingMemory):
    """Transformers with Liger's kernels for norms, gates and the loss."""

    fused = FusedKernels(norms=True, gates=True)

    def described(self, architecture: Architecture) -> tuple[str, ...]:
        """Say what Liger's kernels keep, and where there are none."""
        sentence = (
            "As Liger-Kernel 0.8.2 does on transformers: RMSNorm keeps its input and one root a token, SwiGLU and "
            "GeGLU keep gate and up alone, and the head is computed with the loss in parts."
        )
        if architecture.model_type in _LIGER_TYPES:
            return (sentence,)
        missing = f"Liger-Kernel 0.8.2 has no kernels for {architecture.model_type}: by itself it would change nothing."
        return sentence, missing

    def unsupported_reasons(self, workload: Training, gpu: Gpu) -> tuple[str, ...]:
        """Return why `gpu` cannot run `workload`: its kernels are written in Triton."""
        return (*super().unsupported_reasons(workload, gpu), *triton_reasons(gpu))


TRAINING: Final = Liger()
