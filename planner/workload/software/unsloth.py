"""Training capabilities of Unsloth."""

from typing import Final

from planner.workload.software.software import Software, TrainingSupport

UNSLOTH: Final = Software(
    name="unsloth",
    module="unsloth",
    title="Unsloth",
    version="Unsloth 2026.8.19",
    training=TrainingSupport(
        loss="fused-linear",
        compute=("fp32", "tf32", "bf16", "fp16", "amp-bf16", "amp-fp16"),
        four_bits="nf4-dq",  # FastLanguageModel.from_pretrained asks bitsandbytes for double quantization
        aligns=True,
        alignment_loss="fused-linear",
    ),
)
