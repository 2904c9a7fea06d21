"""What to try, the likeliest help first.

The order follows what was found in 400 training jobs that used their cards by half or less: of 706 issues 46 % were
operations on data and 45 % the model's own, and 85 % were mended by a few changed lines.

**Source** Microsoft, "An Empirical Study on Low GPU Utilization of Deep Learning Jobs", ICSE 2024.
"""

from typing import Final

WORKERS: Final = "Load data in more processes: DataLoader(num_workers=…, persistent_workers=True, prefetch_factor=4)."
PREPARED: Final = "Do once what is the same in each epoch: decode, resize and tokenise beforehand, and store it."
ON_CARD: Final = "Move augmentation to the card (torchvision v2 on tensors, Kornia, NVIDIA DALI)."
PINNED: Final = "Pin what is copied and copy beside the work: pin_memory=True, .to(device, non_blocking=True)."
LARGER_BATCH: Final = "Raise the batch; the plan says by how much before memory ends."
PROFILE: Final = "Look at some steps with torch.profiler: it shows what the card waits for."
COMPILE: Final = "Let torch.compile fuse small kernels; mode='reduce-overhead' launches them as one CUDA graph."
NO_SYNC: Final = "Avoid what waits for the card in each step: .item(), .cpu(), print of a tensor, metrics each step."
LOCAL_DISK: Final = "Copy the data to a local disk or into memory first."
LARGE_FILES: Final = "Keep many small files in few large ones (WebDataset, Parquet, memory-mapped arrays)."
PRECISION: Final = "Compute in bf16 (torch.autocast), or allow TF32, so that the tensor cores do the work."
FUSED_OPTIMIZER: Final = "Use the fused optimizer (fused=True) and FlashAttention; both start fewer kernels."
FEWER_BYTES: Final = "Read fewer bytes: narrower numbers (bf16, fp8), quantised weights, fused kernels, FlashAttention."
CHECKPOINTING: Final = "Checkpoint activations, or shrink the batch and accumulate; the plan shows what each saves."
SEGMENTS: Final = "Against fragments of memory: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True."

DATA: Final = (WORKERS, PREPARED, ON_CARD, PINNED, PROFILE)
WAITING: Final = (WORKERS, PINNED, NO_SYNC, LARGER_BATCH, PROFILE)
LAUNCHES: Final = (COMPILE, LARGER_BATCH, NO_SYNC, FUSED_OPTIMIZER, PROFILE)
DISKS: Final = (LOCAL_DISK, LARGE_FILES, WORKERS, PREPARED)
GOOD: Final = (PRECISION, PROFILE)
