"""Training capabilities of Hugging Face Transformers with Liger's fused kernels."""

from typing import Final

from planner.workload.software.software import Software, TrainingSupport

LIGER: Final = Software(
    name="liger",
    module="liger",
    title="Hugging Face with Liger kernels",
    version="Liger-Kernel 0.8.2",
    training=TrainingSupport(loss="fused-linear", aligns=True),
)
