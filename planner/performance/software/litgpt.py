"""Speed of LitGPT in training and inference."""

from types import MappingProxyType
from typing import Final

from planner.performance.software.engine import Engine, TrainingPace
from planner.performance.software.transformers import EAGER_KERNELS

ENGINE: Final = Engine(
    name="bnb-eager",
    layer_seconds=1_000e-6,
    source="Lightning-AI/litgpt@2685705 tutorials/resource-tables.md: 4 models of 16 to 40 layers on A100",
    eager=True,
    eager_kernels=EAGER_KERNELS,
    quantised_layer_seconds=MappingProxyType({"nf4": 1_600e-6}),
    unpacks_weights=True,
    reads_float4=False,
)
"""LitGPT's eager layers with bitsandbytes; its memory in inference is not modeled."""
PACE: Final = TrainingPace()
