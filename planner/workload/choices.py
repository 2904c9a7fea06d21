"""Allowed values of a workload's enumerated fields, with their titles."""

from typing import Final, Literal

Task = Literal["training", "inference"]
Goal = Literal["run", "fine-tune", "train"]
"""What a person wants to do with a model; fine-tuning and training are the same task."""
Attention = Literal["flash", "sdpa", "eager"]
Compute = Literal["fp32", "tf32", "bf16", "fp16", "amp-bf16", "amp-fp16", "fp8"]
Method = Literal["full", "lora", "qlora"]
Checkpointing = Literal["none", "selective", "full"]
Loss = Literal["full-logits", "chunked", "fused-linear"]
FrozenVision = Literal["none", "tower", "all"]
"""Parts of a vision-language model that are not trained: none, its vision tower, or tower and projector."""
TrainedFormat = Literal["fp32", "bf16", "fp16", "int8", "nf4", "nf4-dq"]
Offload = Literal["none", "optimizer", "parameters", "nvme"]
"""Tensors offloaded from the GPU: none, optimizer states in RAM, states and parameters in RAM, or states and parameters
on NVMe."""

METHOD_TITLES: Final[dict[Method, str]] = {"full": "Full fine-tuning", "lora": "LoRA", "qlora": "QLoRA (4 bits)"}
COMPUTE_TITLES: Final[dict[Compute, str]] = {
    "amp-bf16": "BF16 autocast",
    "amp-fp16": "FP16 autocast",
    "bf16": "BF16 throughout",
    "fp16": "FP16 throughout",
    "fp8": "FP8 (linear layers)",
    "tf32": "TF32",
    "fp32": "FP32",
}
DEFAULT_CONTEXT: Final = 4_096
"""Tokens of prompt and context unless they are given, if the model takes as many."""
SERVED_RANK: Final = 16
"""Highest rank of adapters that an engine serves unless it is given: `max_lora_rank` of vLLM 0.33."""
WEIGHT_FORMAT_TITLES: Final[dict[TrainedFormat, str]] = {
    "fp32": "FP32",
    "bf16": "BF16",
    "fp16": "FP16",
    "int8": "INT8 (LLM.int8)",
    "nf4": "NF4",
    "nf4-dq": "NF4 with double quantization",
}
ATTENTION_TITLES: Final[dict[Attention, str]] = {
    "sdpa": "SDPA (PyTorch)",
    "flash": "FlashAttention",
    "eager": "Eager (matrices)",
}
FROZEN_VISION_TITLES: Final[dict[FrozenVision, str]] = {
    "none": "None",
    "tower": "Vision tower",
    "all": "Vision tower and projector",
}
CHECKPOINTING_TITLES: Final[dict[Checkpointing, str]] = {
    "none": "None",
    "selective": "Selective (by operator)",
    "full": "Full (every layer)",
}
LOSS_TITLES: Final[dict[Loss, str]] = {
    "full-logits": "Full logits",
    "chunked": "Chunked",
    "fused-linear": "Fused with the output head",
}
OFFLOAD_TITLES: Final[dict[Offload, str]] = {
    "none": "None",
    "optimizer": "Optimizer states",
    "parameters": "Parameters and optimizer states",
    "nvme": "Parameters and optimizer states on NVMe",
}
