"""Terms of the glossary as a sentence about a plan."""

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from planner.hardware.derived import DERIVED_FIGURES, half_rate
from planner.hardware.gpu import Gpu
from planner.memory.result import TermName
from planner.performance.result import TimeResult
from planner.plan.evaluate import Evaluation
from planner.present import format as fmt
from planner.present.cost.time import BOUND_TITLES
from planner.present.names import term_in_sentence
from planner.present.plan.settings import field_value_text, title_in_sentence
from planner.workload.fields import find_field
from planner.workload.presentation import FieldContext
from planner.workload.rules import field_reader

Figure = Callable[[Evaluation], str]


def in_plan(term: str, evaluation: Evaluation, plan_name: str = "your plan") -> str:
    """Return what the glossary term called `term` is in the evaluated plan; empty for a term without a figure there."""
    figure = FIGURES.get(term)
    text = "" if figure is None else figure(evaluation)
    return f"In {plan_name}: {text}." if text else ""


def _of_card(read: Callable[[Gpu], str], evaluation: Evaluation) -> str:
    """Return the plan's card and what `read` says of it; empty without a card, or where the card lacks it."""
    gpu = evaluation.gpu
    text = "" if gpu is None else read(gpu)
    return f"{gpu.name}, {text}" if gpu is not None and text else ""


def _memory(name: TermName, evaluation: Evaluation) -> str:
    """Return the size of a memory term, and its share of the peak."""
    term, total = evaluation.memory.term(name), evaluation.memory.total_bytes
    if term is None:
        return f"no {term_in_sentence(name)} at the peak of memory"
    return f"{fmt.size(term.bytes)}, {fmt.percent(term.bytes / total)} of the {fmt.size(total)} needed"


def _field(name: str, evaluation: Evaluation) -> str:
    """Return a workload field's title and value; empty for a task without it."""
    workload, architecture = evaluation.workload, evaluation.architecture
    field = find_field(name, workload.task)
    if field is None or architecture is None:
        return ""
    value = field_reader(workload)(name)
    context = FieldContext(workload, architecture, evaluation.plan.count)
    return "" if value is None else f"{title_in_sentence(field.title)} {field_value_text(field, value, context)}"


def _sharing(name: str, evaluation: Evaluation) -> str:
    """Return how several GPUs share the work; empty for a single GPU."""
    several = evaluation.plan.count > 1 or len(evaluation.cards) > 1
    return _field(f"parallel.{name}", evaluation) if several else ""


def _state_sharding(evaluation: Evaluation) -> str:
    """Return the ZeRO stage, which only training has."""
    return _sharing("zero", evaluation) if evaluation.workload.task == "training" else ""


def _time(read: Callable[[TimeResult], str], evaluation: Evaluation) -> str:
    time = evaluation.time
    return "" if time is None else read(time)


def _cards(evaluation: Evaluation) -> str:
    return fmt.listing(tuple(f"{number} × {gpu.name}" for gpu, number in evaluation.cards))


def _parameters(evaluation: Evaluation) -> str:
    return f"{fmt.parameters(evaluation.parameters)} parameters"


def _active_parameters(evaluation: Evaluation) -> str:
    some, every = evaluation.active_parameters, evaluation.parameters
    return f"each token passes through {fmt.parameters(some)} of {fmt.parameters(every)} parameters"


def _usable(evaluation: Evaluation) -> str:
    memory = evaluation.memory
    if memory.capacity_bytes is None:
        return ""
    return f"{fmt.size(memory.total_bytes)} needed of {fmt.size(memory.capacity_bytes)} usable on each GPU"


def _other_programs(evaluation: Evaluation) -> str:
    held = evaluation.memory.other_processes_bytes
    return f"{fmt.size(held)} of the GPU" if held else "none of the GPU's memory"


def _context(evaluation: Evaluation) -> str:
    chosen = _field("context_length", evaluation)
    most = evaluation.max_context
    return f"{chosen} of {fmt.integer(most)} tokens that the model allows" if chosen and most else chosen


def _global_batch(evaluation: Evaluation) -> str:
    workload = evaluation.workload
    if workload.task != "training" or evaluation.traced:
        return ""
    factors = (workload.micro_batch, workload.gradient_accumulation, workload.parallel.data or 1)
    return f"{' × '.join(map(fmt.integer, factors))} = {fmt.plural(math.prod(factors), 'sequence')} a step"


def _hardware_units(count: int | None, noun: str) -> str:
    return "" if count is None else f"{fmt.integer(count)} {noun}"


def _rate(dtype: str, gpu: Gpu) -> str:
    rate = gpu.rate(dtype)
    return f"no published {dtype.upper()} rate" if rate is None else f"{fmt.rate(rate.ops_per_s, dtype)} dense"


def _half_rate(gpu: Gpu) -> str:
    rate = half_rate(gpu)
    return "" if rate is None else f"{fmt.rate(rate.ops_per_s, rate.dtype)} dense in {rate.dtype.upper()}"


def _ridge(gpu: Gpu) -> str:
    figure = DERIVED_FIGURES["ridge_point"]
    value = figure.value(gpu)
    return "" if value is None else f"{fmt.quantity(value, figure.unit)} = {figure.explained(gpu)}"


def _bound(time: TimeResult) -> str:
    if time.bound is None:
        return ""
    first, later = time.first_token_bound or time.bound, time.token_bound or time.bound
    then = "" if later == first else f", and each later token by {BOUND_TITLES[later]}"
    return f"limited by {BOUND_TITLES[first]}{then}"


def _throughput(time: TimeResult) -> str:
    if time.tokens_per_second is not None:
        return f"{fmt.significant(time.tokens_per_second)} tokens a second"
    return "" if time.samples_per_second is None else f"{fmt.significant(time.samples_per_second)} samples a second"


def _duration(name: str, what: str, time: TimeResult) -> str:
    seconds = getattr(time, name)
    return "" if seconds is None else f"{fmt.duration(seconds)} {what}"


def _mfu(time: TimeResult) -> str:
    share = time.mfu_fraction
    return "" if share is None else f"{fmt.percent(share)} of the peak rate"


def _step(time: TimeResult) -> str:
    return _duration("seconds", "a step", time) if time.kind == "step" else ""


def _request(time: TimeResult) -> str:
    return _duration("seconds", "a request", time) if time.kind == "service" else ""


_RATES: Final = ("fp32", "bf16", "fp16", "fp8", "fp4", "int8")
FIGURES: Final[Mapping[str, Figure]] = {
    "GPU": _cards,
    "CUDA core": partial(_of_card, lambda gpu: _hardware_units(gpu.shader_cores, "cores")),
    "Tensor core": partial(_of_card, lambda gpu: _hardware_units(gpu.tensor_cores, "tensor cores")),
    "GPU memory": partial(_of_card, lambda gpu: gpu.memory_label),
    "HBM": partial(_of_card, lambda gpu: gpu.memory_type or ""),
    "GDDR": partial(_of_card, lambda gpu: gpu.memory_type or ""),
    "Memory bandwidth": partial(_of_card, lambda gpu: fmt.bandwidth(gpu.bandwidth_bytes_per_s)),
    "Unified memory": partial(_of_card, lambda gpu: "unified memory" if gpu.unified_memory else "memory of its own"),
    "Compute capability": partial(_of_card, lambda gpu: gpu.compute_capability or ""),
    "Form factor": partial(_of_card, lambda gpu: gpu.form_factor or ""),
    "Board power": partial(_of_card, lambda gpu: fmt.power(gpu.board_power_watts)),
    "NVLink": partial(_of_card, lambda gpu: gpu.interconnect or ""),
    "MIG": partial(_of_card, lambda gpu: "" if gpu.mig is None else f"MIG: {fmt.yes_no(gpu.mig)}"),
    "ECC": partial(_of_card, lambda gpu: "" if gpu.ecc is None else f"ECC: {fmt.yes_no(gpu.ecc)}"),
    "FLOPS": partial(_of_card, _half_rate),
    "Ridge point": partial(_of_card, _ridge),
    **{dtype.upper(): partial(_of_card, partial(_rate, dtype)) for dtype in _RATES},
    "Usable memory": _usable,
    "Out of memory": _usable,
    "Used by other programs": _other_programs,
    "Framework overhead": partial(_memory, "framework_overhead"),
    "Activations": partial(_memory, "activations"),
    "Gradients": partial(_memory, "gradients"),
    "Optimizer states": partial(_memory, "optimizer_states"),
    "Adam moments": partial(_memory, "optimizer_states"),
    "Master weights": partial(_memory, "master_weights"),
    "Logits": partial(_memory, "logits"),
    "KV cache": partial(_memory, "kv_cache"),
    "Adapter": partial(_memory, "adapters"),
    "Speculative decoding": partial(_memory, "draft"),
    "Parameters": _parameters,
    "Active parameters": _active_parameters,
    "Context length": _context,
    "Precision": partial(_field, "weights"),
    "Quantization": partial(_field, "weights"),
    "Mixed precision": partial(_field, "compute"),
    "Attention": partial(_field, "attention"),
    "FlashAttention": partial(_field, "attention"),
    "SDPA": partial(_field, "attention"),
    "Batch size": partial(_field, "batch"),
    "Sequence length": partial(_field, "sequence_length"),
    "Micro-batch size": partial(_field, "micro_batch"),
    "Gradient accumulation": partial(_field, "gradient_accumulation"),
    "Global batch size": _global_batch,
    "Optimizer": partial(_field, "optimizer"),
    "Activation checkpointing": partial(_field, "activation_checkpointing"),
    "Fused cross-entropy": partial(_field, "loss"),
    "Fine-tuning": partial(_field, "method"),
    "Full fine-tuning": partial(_field, "method"),
    "LoRA": partial(_field, "method"),
    "QLoRA": partial(_field, "method"),
    "Adapter rank": partial(_field, "lora.rank"),
    "Data parallelism": partial(_sharing, "data"),
    "ZeRO": _state_sharding,
    "FSDP": _state_sharding,
    "Tensor parallelism": partial(_sharing, "tensor"),
    "Pipeline parallelism": partial(_sharing, "pipeline"),
    "Context parallelism": partial(_sharing, "context"),
    "Expert parallelism": partial(_sharing, "expert"),
    "MFU": partial(_time, _mfu),
    "Memory-bound": partial(_time, _bound),
    "Compute-bound": partial(_time, _bound),
    "Roofline": partial(_time, _bound),
    "Throughput": partial(_time, _throughput),
    "Latency": partial(_time, _request),
    "Training step": partial(_time, _step),
    "TTFT": partial(_time, partial(_duration, "first_token_seconds", "to the first token")),
    "Prefill": partial(_time, partial(_duration, "first_token_seconds", "to the first token")),
    "TPOT": partial(_time, partial(_duration, "output_token_seconds", "a token")),
    "Decode": partial(_time, partial(_duration, "output_token_seconds", "a token")),
}
"""The figure of each term that has one, as the end of a sentence; empty where a plan lacks it."""
