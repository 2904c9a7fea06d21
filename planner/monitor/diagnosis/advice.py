"""Advice that several rules share, grouped by bottleneck, the likeliest remedy first.

The order follows a study of 400 training jobs that used their GPUs by half or less: of 706 issues 46 % were data
operations and 45 % in the model itself, and 85 % were fixed by changing a few lines of code.

**Source** Microsoft, "An Empirical Study on Low GPU Utilization of Deep Learning Jobs", ICSE 2024.
"""

from typing import Final

SET_POWER_LIMIT: Final = "nvidia-smi -pl WATTS, amd-smi set --power-cap WATTS"
"""Commands that set the power limit of a GPU of NVIDIA or AMD."""
WORKERS: Final = (
    "If CPU cores are free, load data in more processes, with DataLoader(num_workers=…, persistent_workers=True)."
)
PREPROCESS_ONCE: Final = (
    "Preprocess once instead of in every epoch: decode, resize and tokenize beforehand, and store the results."
)
SMALLER_INPUTS: Final = "Decode less: store images at the size that the model reads."
MORE_CORES: Final = "Use a machine with more CPU cores per GPU; more loading processes do not help without free cores."
AUGMENT_ON_GPU: Final = "Run augmentation on the GPU (torchvision v2 on tensors, Kornia, NVIDIA DALI)."
PINNED_MEMORY: Final = "Overlap copies with computation: pin_memory=True, .to(device, non_blocking=True)."
LARGER_BATCH: Final = "Increase the batch size; the plan shows how far memory allows."
PROFILE: Final = "Profile a few steps with torch.profiler: it shows what the GPU waits for."
COMPILE: Final = "Let torch.compile fuse small kernels; mode='reduce-overhead' launches them as one CUDA graph."
NO_SYNCHRONIZATION: Final = "Avoid synchronization in each step: .item(), .cpu(), printing a tensor, computing metrics."
LOCAL_DISK: Final = "Copy the data to a local disk or into RAM first."
LARGE_FILES: Final = "Pack many small files into a few large ones (WebDataset, Parquet, memory-mapped arrays)."
PRECISION: Final = "Compute in bf16 (torch.autocast), or allow TF32, so that the tensor cores are used."
FUSED_OPTIMIZER: Final = "Use a fused optimizer (fused=True) and FlashAttention; both launch fewer kernels."
FEWER_BYTES: Final = (
    "Reduce memory traffic: narrower types (bf16, fp8), quantized weights, fused kernels, FlashAttention."
)
CHECKPOINTING: Final = "Use activation checkpointing, or a smaller batch with accumulation; the plan shows the savings."
EXPANDABLE_SEGMENTS: Final = "Reduce memory fragmentation: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True."

BUSY_CPU: Final = (PREPROCESS_ONCE, AUGMENT_ON_GPU, SMALLER_INPUTS, MORE_CORES, PROFILE)
WAITING_GPU: Final = (WORKERS, PINNED_MEMORY, NO_SYNCHRONIZATION, LARGER_BATCH, PROFILE)
FEWER_LAUNCHES: Final = (COMPILE, LARGER_BATCH, NO_SYNCHRONIZATION, FUSED_OPTIMIZER, PROFILE)
SLOW_DISKS: Final = (LOCAL_DISK, LARGE_FILES, WORKERS, PREPROCESS_ONCE)
WELL_USED: Final = (PRECISION, PROFILE)
