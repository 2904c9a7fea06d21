"""Training capabilities of Megatron-LM."""

from typing import Final

from planner.workload.software.software import Software, TrainingSupport

MEGATRON: Final = Software(
    name="megatron",
    module="megatron",
    title="Megatron-LM",
    version="Megatron-LM 0.20",
    training=TrainingSupport(
        compute=("fp32", "tf32", "bf16", "fp16", "amp-bf16", "amp-fp16"),
        offloads=("none", "optimizer"),
        zero_limit=1,  # the distributed optimizer
        zero_limit_in_pipeline=1,
        default_split="matrices",  # Narayanan et al. 2021, arXiv 2104.04473 §3.2: tensor parallelism first, then stages
    ),
)
