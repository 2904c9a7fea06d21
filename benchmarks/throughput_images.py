"""Published speeds of image networks, as runs of the estimate from operation counts."""

import re
from typing import Final

from throughput_recipes import machine_of
from throughput_rows import Excluded, Row, Speeds, gpu_of

from planner.hardware.gpu import Gpu
from planner.models.diffusion import find_networks
from planner.performance.inference.images import batch_counts, decoder_counts, denoiser_counts
from planner.performance.links import links_of
from planner.performance.traced import Kind, OperationCounts, Precision, TracedStep, step_time
from planner.plan.catalog import Catalog

TASKS: Final = ("image_infer", "image_train")
_FLAT_MFU: Final = 0.4
_RESNET_50: Final = OperationCounts(2 * 4.09e9, 11.1e6, calls=175)
"""At 224 pixels: huggingface/pytorch-image-models@aa4b585 results/benchmark-infer-amp-nchw-pt291-cu130-5090.csv scaled
from 288 pixels (6.8 GMACs and 18.37 M). Operators: 53 convolutions with as many norms, 49 activations, 16 sums and four
at the ends (torchvision)."""
_ATTENDING: Final = ("vit", "deit", "beit", "eva", "mixer", "xcit")
_PRECISIONS: Final[dict[str, Precision]] = {
    "fp16": "fp16",
    "fp16 AMP": "fp16",
    "AMP fp16": "fp16",
    "fp16 amp nchw": "fp16",
    "TF32": "tf32",
    "FP32": "tf32",
    "fp32/TF32": "tf32",
    "fp32": "tf32",
    "": "fp16",
    "fp8": "fp8",
    "unet fp8": "fp8",
    "clip1:fp32,clip2:fp32,unet:fp8,vae:fp32": "fp8",
}
_USUAL_SAMPLES: Final = 256
"""Of a card, where a row does not say: NVIDIA/DeepLearningExamples@729963d, configs.yml of its ConvNets."""
_DDIM_STEPS: Final = 30
_SDXL_STEPS: Final = 20
"""MLPerf Inference's rule for Stable Diffusion XL: 20 steps with guidance, at 1,024 pixels."""
_NO_COUNTS: Final = "operations of the network are not in the source"


def predict(row: Row, catalog: Catalog) -> Speeds | Excluded:
    """Return the estimate for a row, or the reason why it is not covered."""
    gpu = gpu_of(row, catalog)
    if isinstance(gpu, Excluded):
        return gpu
    if row.unit not in ("img/s", "samples/s"):
        return Excluded(f"unit {row.unit}: no speed of the network alone")
    if row.source == "mlinf" and row.model.startswith("ResNet"):
        return Excluded("engines in 8-bit integers")
    counts = _counts(row, catalog)
    if isinstance(counts, Excluded):
        return counts
    precision = _PRECISIONS.get(row.precision)
    if precision is None:
        return Excluded(f"engines in 8-bit integers: {row.precision}")
    return _speeds(row, counts, gpu, precision)


def _speeds(row: Row, counts: OperationCounts, gpu: Gpu, precision: Precision) -> Speeds | Excluded:
    trains = row.task == "image_train"
    whole = counts.training_step_counts() if trains else counts
    samples = row.batch // row.cards if row.batch else _USUAL_SAMPLES
    step = TracedStep(
        "training" if trains else "inference",
        batch_counts(whole, samples),
        samples,
        precision,
        gradient_bytes=_gradient_bytes(row) if trains else 0.0,
        compiled=is_compiled(row),
        channels_last=row.source == "dle" and precision == "fp16",
    )
    found = step_time(step, gpu, links_of(gpu, machine_of(row)), row.cards)
    rate = gpu.rate({"fp16": "fp16", "tf32": "tf32", "fp8": "fp8", "fp32": "fp32"}[precision]) or gpu.rate("fp32")
    if found.samples_per_second is None or rate is None or gpu.bandwidth_bytes_per_s is None:
        return Excluded(f"bandwidth or rate not in the catalog: {gpu.name}")
    flat = _FLAT_MFU * rate.ops_per_s / whole.flops
    bandwidth = gpu.bandwidth_bytes_per_s / (2 * whole.elements)
    ours = found.samples_per_second
    assert found.low_seconds
    assert found.seconds
    spread = found.seconds / found.low_seconds
    return Speeds(ours, row.cards * flat, row.cards * bandwidth, ours / spread, ours * spread, _assumptions(row))


def _gradient_bytes(row: Row) -> float:
    """Return the size of the gradients summed in each step: fp32 in PyTorch, 16 bits in MLPerf's stacks."""
    return (row.parameters or 0.0) * (2 if is_compiled(row) else 4)


def _assumptions(row: Row) -> str:
    """Return the assumptions about figures that the source does not state."""
    return "the number format" if not row.precision else ""


def _counts(row: Row, catalog: Catalog) -> OperationCounts | Excluded:
    if row.model.startswith("ResNet-50"):
        return _RESNET_50
    if row.model.startswith(("SDXL", "Stable Diffusion v1")):
        return _diffusion(row, catalog)
    found = re.search(r"([\d.]+) GMACs, ([\d.]+)M activations", row.notes)
    if found is None:
        return Excluded(_NO_COUNTS)
    return OperationCounts(2e9 * float(found[1]), 1e6 * float(found[2]), kind_of(row))


def is_compiled(row: Row) -> bool:
    """Return whether operators between products are fused: by torch.compile, or in MLPerf's stacks."""
    return "compile" in row.framework or "MLPerf" in row.model


def kind_of(row: Row) -> Kind:
    """Return the kind of network: convolutions, attention or diffusion."""
    if row.model.startswith(("SDXL", "Stable Diffusion")):
        return "diffusion"
    return "attention" if row.model.startswith(_ATTENDING) else "convolutions"


def _diffusion(row: Row, catalog: Catalog) -> OperationCounts | Excluded:
    large = row.model.startswith("SDXL")
    if "no xformers" in row.framework:
        return Excluded("number of steps not stated")
    name = "stabilityai/stable-diffusion-xl-base-1.0" if large else "stable-diffusion-v1-5/stable-diffusion-v1-5"
    denoiser, decoder = find_networks(catalog.models.model(name).components)
    side, steps = (128, _SDXL_STEPS) if large else (64, _DDIM_STEPS)
    one, last = denoiser_counts(denoiser, side, side, 77), decoder_counts(decoder, side, side)
    flops, elements = 2 * steps * one.flops + last.flops, 2 * steps * one.elements + last.elements
    return OperationCounts(flops, elements, "diffusion", steps * one.calls + last.calls)
