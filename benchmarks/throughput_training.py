"""From a published training speed to the same run in the estimator, or the reason why it is not covered.

Figures that a source does not state are assumed here, and such rows are counted separately: MLPerf's logs state neither
how the model is split nor the format of its products, and LitGPT's tables only the longest of their samples.
"""

import re
from typing import Final, NamedTuple

from throughput_recipes import machine_of, recipe_of
from throughput_rows import Excluded, Row, Speeds, architecture_of, gpu_of
from throughput_shapes import MEGATRON, Shape, shape_of

from planner.errors import PlannerError
from planner.hardware.gpu import Gpu
from planner.models.architecture import Architecture, Tensor
from planner.performance.efficiency import MatrixFormat
from planner.performance.estimate import estimate_time
from planner.performance.flops import forward_work
from planner.performance.setting import TimeSetting
from planner.plan.catalog import Catalog
from planner.workload.defaults import with_defaults
from planner.workload.training import Lora, Training

TASKS: Final = ("train", "finetune")
_NO_RUN: Final = {
    "mli": "one layer alone, its batch not stated",
    "usp": "its model is not stated",
    "misc": "its model or batch is not stated",
    "r4060": "its batch and lengths vary",
}
_SQUAD_TOKENS: Final = 190
"""Mean tokens of a sample of SQuAD with its question: paragraphs of 117 words (Rajpurkar et al. 2016, arXiv 1606.05250)
and questions of 11. NeMo and Megatron-Bridge pass the ends of packed samples to attention (docs of NeMo 24.07, sequence
packing; MLPerf's LoRA does not: `packed_sequence_return_cu_seqlen: False`)."""
_FLAT_MFU: Final = 0.4
_MODULES: Final = ("RNN-T", "GNMT", "Tacotron2", "WaveGlow")


class Run(NamedTuple):
    """The run of a row in the estimator; `assumed` names the assumptions."""

    row: Row
    architecture: Architecture
    workload: Training
    gpu: Gpu
    setting: TimeSetting
    measured_tokens_per_second: float
    assumed: str


def training_run(row: Row, catalog: Catalog) -> Run | Excluded:
    """Return the run that `row` measured."""
    if reason := _exclusion_reason(row):
        return Excluded(reason)
    gpu, architecture = gpu_of(row, catalog), architecture_of(row, catalog)
    if isinstance(gpu, Excluded):
        return gpu
    if isinstance(architecture, Excluded):
        return architecture
    if architecture.kind == "encoder":
        architecture = _with_small_head(architecture)
    try:
        shape = shape_of(row, architecture)
        workload = _workload(row, shape)
        filled = with_defaults(workload, architecture, row.cards)
    except (PlannerError, ValueError) as error:
        return Excluded(f"refused: {str(error).splitlines()[0][:90]}")
    assert isinstance(filled, Training)
    gpu = _as_stated(row, gpu)
    tokens = _measured_tokens_per_second(row, architecture, shape)
    if tokens is None:
        return Excluded(f"unit without a conversion: {row.unit}")
    return Run(row, architecture, filled, gpu, _time_setting(row, shape), tokens, shape.assumed)


def _as_stated(row: Row, gpu: Gpu) -> Gpu:
    """Return `gpu` with the memory and the power limit that the row states for it.

    Six stacks of HBM2e have six fifths of the bandwidth of the five of an H100 PCIe (2.0 TB/s).
    """
    if "HBM2e" not in row.gpu:
        return gpu
    watts = re.search(r"(\d+)W", row.gpu)
    return gpu.evolve(bandwidth_bytes_per_s=2.0e12 * 6 / 5, power_limit_watts=float(watts[1]) if watts else None)


def _with_small_head(architecture: Architecture) -> Architecture:
    """Return an encoder with the head that these rows train: two answers, or only the masked tokens."""
    head = Tensor(name="qa_outputs.weight", shape=(2, architecture.hidden), role="head")
    return architecture.evolve(head=(head,), tied_head=False)


def _exclusion_reason(row: Row) -> str | None:
    if row.value is None:
        return "no speed: the run did not fit"
    if row.source in _NO_RUN:
        return _NO_RUN[row.source]
    if row.model.startswith(_MODULES):
        return "no transformer"
    if "power limited" in row.gpu:
        return "a power limit that is not stated"
    if "Adapter" in row.notes:
        return "prefixes (LLaMA-Adapter), not low-rank matrices"
    if row.unit == "min to train":
        return "a time to a target, not a speed"
    return _unstated_figure(row)


def _unstated_figure(row: Row) -> str | None:
    """Return what the source of `row` leaves open that no assumption fills, or None."""
    if "BERT" in row.model and row.source == "mlt":
        return "sequences without their padding, whose lengths are not stated"
    if row.source == "nemols" and not row.parallelism.startswith("TP"):
        return "how the model is split is not stated"
    if row.source == "dle" and row.length == 512:
        return "samples put together by length (LDDL), the mean not stated"
    if row.source == "tune" and row.length is None:
        return "lengths vary, their mean is not stated"
    return None


def _workload(row: Row, shape: Shape) -> Training:
    megatron = row.source in MEGATRON
    method = _method(row)
    fields: dict[str, object] = {
        "method": method,
        "compute": _compute_format(row, method),
        "micro_batch": shape.micro_batch,
        "gradient_accumulation": shape.accumulation,
        "sequence_length": shape.length,
        "activation_checkpointing": _recompute(row),
        "attention": "eager" if row.source in ("lam", "dle", "meg") else "sdpa" if row.source == "lit" else "flash",
        "profile": _profile(row, megatron),
        "parallel": shape.parallel,
    }
    if method != "full":
        fields["lora"] = Lora(rank=16)
    return Training.model_validate(fields)


def _profile(row: Row, megatron: bool) -> str:
    if row.source == "meg":
        return "deepspeed"  # Megatron-DeepSpeed of 2021: neither fused attention nor overlapping all-reduces
    if megatron and "FSDP" not in row.parallelism:
        return "megatron"
    return {"tune": "torchtune", "lit": "litgpt"}.get(row.source, "hf") if row.cards == 1 else "hf"


def _method(row: Row) -> str:
    if "QLoRA" in row.notes or "nf4" in row.precision:
        return "qlora"
    return "lora" if "LoRA" in row.notes + row.model else "full"


def _recompute(row: Row) -> str:
    if row.recompute.startswith("selective"):
        return "selective"
    if row.source == "tune" and not row.recompute and row.length == 2_048:
        return "full"
    if row.source == "lit" and "FSDP" in row.parallelism:
        return "full"  # finetune/lora.py gives its FSDPStrategy an activation_checkpointing_policy
    return "full" if row.recompute == "full" else "none"


def _compute_format(row: Row, method: str) -> str:
    if row.source in ("lam", "dle"):
        return "amp-fp16" if "fp16" in row.precision else "fp32" if row.precision == "FP32" else "tf32"
    if row.source in ("tt", "ao") and "float8" in row.precision:
        return "fp8"
    if row.source == "mpt" or (method == "qlora" and row.source != "lit"):
        return "amp-bf16"
    return "bf16"


def _time_setting(row: Row, shape: Shape) -> TimeSetting:
    compiled = "compile" in (row.framework + row.notes).lower()
    if row.source == "tune" and "ablation" in row.notes:
        compiled = not ("Baseline" in row.notes or "+ Packed" in row.notes)
    narrow = None
    if row.source in MEGATRON:
        narrow = "fp4" if "FP4" in row.precision else "fp8" if "FP8" in row.precision or not row.precision else None
    recipe = recipe_of(row, shape.parallel.context, shape.accumulation)
    return machine_of(row).evolve(
        compiled=compiled,
        matrix_format=recipe.matrix_format or narrow,
        attention_format=recipe.attention_format,
        packed_tokens=_SQUAD_TOKENS if _is_packed(row) else None,
        graphs=recipe.graphs,
        overlaps_experts=recipe.overlaps_experts,
    )


def _is_packed(row: Row) -> bool:
    """Return whether `row` packs the samples of SQuAD, as NVIDIA's tables of fine-tuning do."""
    return row.task == "finetune" and row.source in ("nemo", "mbr")


def _measured_tokens_per_second(row: Row, architecture: Architecture, shape: Shape) -> float | None:
    """Return the measured tokens per second of all cards."""
    value = row.value or 0.0
    if seconds := re.search(r"([\d.]+) s/iter", row.notes):
        return (row.batch or 0) * shape.length / float(seconds[1])
    match row.unit:
        case "tokens/s":
            return value
        case "tokens/s/GPU":
            return value * row.cards
        case "samples/s":
            return value * shape.length
        case "s/iter":
            return row.cards * shape.micro_batch * shape.length / value
        case "TFLOPS/GPU":
            return value * 1e12 * row.cards / full_square_flops(architecture, shape.length)
    return None


def full_square_flops(architecture: Architecture, length: int) -> float:
    """Return the operations of training for one token as published tables count them: attention as a full square."""
    work = forward_work(architecture, 1, length)
    return 3 * (work.flops + work.attention_flops) / length


def predict(row: Row, catalog: Catalog) -> Speeds | Excluded:
    """Return the estimate for a row, or the reason why it is not covered."""
    run = training_run(row, catalog)
    if isinstance(run, Excluded):
        return run
    found = estimate_time(run.architecture, run.workload, ((run.gpu, row.cards),), run.setting)
    if found.unsupported or not found.tokens_per_second or row.value is None:
        return Excluded(found.unsupported or "no time")
    scale = row.value / run.measured_tokens_per_second * (-1 if row.unit == "s/iter" else 1)
    speeds = (found.tokens_per_second, *rules_of_thumb(run), found.low_tokens_per_second, found.high_tokens_per_second)
    ours, flat, bandwidth, low, high = [_in_unit(speed or 0.0, scale, row.value) for speed in speeds]
    return Speeds(ours, flat, bandwidth, *sorted((low, high)), run.assumed)


def _in_unit(tokens_per_second: float, scale: float, measured: float) -> float:
    """Return a speed in the row's unit; `scale` is negative if the unit is seconds."""
    return tokens_per_second * scale if scale > 0 else measured * measured / (tokens_per_second * -scale)


def rules_of_thumb(run: Run) -> tuple[float, float]:
    """Return the tokens per second from 6ND at a fixed share of the dense rate, and from the size of the weights.

    **Formula**: n · peak · 0.40 ÷ (6 · N); micro-batch tokens · n ÷ (3 · W ÷ B), N the parameters that a token visits
    and W their bytes in 16 bits on each card.
    """
    narrow: MatrixFormat = run.setting.matrix_format or ("fp8" if run.workload.compute == "fp8" else "bf16")
    rate = run.gpu.rate(narrow) or run.gpu.rate("fp16")
    if run.workload.compute in ("fp32", "tf32"):
        rate = run.gpu.rate(run.workload.compute) or run.gpu.rate("fp32")
    active = run.architecture.active_parameters
    peak, bandwidth = rate.ops_per_s if rate else 0.0, run.gpu.bandwidth_bytes_per_s or 0.0
    shards = run.workload.parallel.model_shards
    tokens = run.workload.micro_batch * (run.workload.sequence_length or 1) * run.row.cards / shards
    seconds = 3 * 2 * run.architecture.parameters / shards / bandwidth
    return run.row.cards * peak * _FLAT_MFU / (6 * active), tokens / seconds
