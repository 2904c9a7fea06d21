"""The values that a workload's choices can have."""

from typing import Literal

Task = Literal["training", "inference"]
Attention = Literal["flash", "sdpa", "eager"]
Compute = Literal["fp32", "tf32", "bf16", "fp16", "amp-bf16", "amp-fp16", "fp8"]
Method = Literal["full", "lora", "qlora"]
Checkpointing = Literal["none", "selective", "full"]
Loss = Literal["full-logits", "chunked", "fused-linear"]
TrainedFormat = Literal["fp32", "bf16", "fp16", "int8", "nf4", "nf4-dq"]
Offload = Literal["none", "optimizer", "parameters", "nvme"]
"""What stays in RAM between uses: nothing, optimizer states, parameters with them, or both on disk."""
