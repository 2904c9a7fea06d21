"""Published speeds of inference as runs of the estimate: decoding, prompts, and throughput of many requests."""

import re
from collections.abc import Callable
from typing import Final, NamedTuple

import throughput_images as image_rows
from throughput_programs import RESERVE_ANSWERS, program_of, with_most_similar_constants
from throughput_rows import Excluded, Row, Speeds, architecture_of, gpu_of, network_named

from planner.dtypes import SCHEMES
from planner.hardware.gpu import Gpu
from planner.models.architecture import Architecture
from planner.performance.attainable import kernel_width, memory_class
from planner.performance.efficiency import family_of
from planner.performance.inference.estimate import TimedFigure, request_spread_factor
from planner.performance.inference.gpu_speed import gpu_speed
from planner.performance.inference.kernels import pass_kernels
from planner.performance.inference.passes import ModelSplit
from planner.performance.inference.request import ServedModel, cached_bytes, decoding_step_time, prompt_time
from planner.performance.inference.service import SaturatedThroughput, saturated_throughput, sequences_that_fit
from planner.performance.links import links_of
from planner.performance.setting import TimeSetting
from planner.performance.software import tensorrt_llm, transformers
from planner.performance.software.engine import Engine
from planner.plan.catalog import Catalog

TASKS: Final = ("infer_decode", "infer_prefill", "infer_offline", "image_infer", "image_train")
_FLAT_MFU: Final = 0.4
_FIGURES: Final[dict[str, TimedFigure]] = {
    "infer_decode": "decode",
    "infer_prefill": "prefill",
    "infer_offline": "requests",
}
_TIMED_WITH_PROMPT: Final = ("qw25",)
"""Sources that divide the tokens of an answer by the time of prompt and answer together: QwenLM/Qwen2.5
speed_benchmark_vllm.py and speed_benchmark_transformers.py (`time_cost` of the whole call)."""

_MODELS: Final = {
    "CodeLlama": "codellama/CodeLlama-34b-hf",
    "CodeLlama 34B": "codellama/CodeLlama-34b-hf",
    "CodeLlama-34b-Instruct-hf": "codellama/CodeLlama-34b-hf",
    "DeepSeek-R1 (MLPerf)": "deepseek-ai/DeepSeek-R1",
    "Falcon": "tiiuae/falcon-40b",
    "Falcon 7B": "tiiuae/falcon-7b",
    "Llama 2 13B": "meta-llama/Llama-2-13b-hf",
    "Llama 3.1 405B": "meta-llama/Llama-3.1-405B",
    "Llama 3.3 70B": "meta-llama/Llama-3.3-70B-Instruct",
    "Llama 4 Maverick": "meta-llama/Llama-4-Maverick-17B-128E-Instruct",
    "Llama 4 Scout": "meta-llama/Llama-4-Scout-17B-16E-Instruct",
    "Llama-2-13B": "meta-llama/Llama-2-13b-hf",
    "Llama-2-70B": "meta-llama/Llama-2-70b-hf",
    "Llama-2-70B (MLPerf OpenOrca)": "meta-llama/Llama-2-70b-hf",
    "Llama-2-70B-chat": "meta-llama/Llama-2-70b-hf",
    "Llama-2-7B": "meta-llama/Llama-2-7b-hf",
    "Llama-2-7B-chat": "meta-llama/Llama-2-7b-hf",
    "DeepSeek-R1-0528": "deepseek-ai/DeepSeek-R1",
    "Kimi-K2": "moonshotai/Kimi-K2-Instruct",
    "Llama-3.3-70B": "meta-llama/Llama-3.3-70B-Instruct",
    "Mistral-7B": "mistralai/Mistral-7B-v0.1",
    "Llama-3-70B": "meta-llama/Meta-Llama-3-70B",
    "Llama-3-8B": "meta-llama/Meta-Llama-3-8B",
    "Llama-3.1-405B": "meta-llama/Llama-3.1-405B",
    "Llama-3.1-405B (MLPerf)": "meta-llama/Llama-3.1-405B",
    "Llama-3.1-70B": "meta-llama/Llama-3.1-70B",
    "Llama-3.1-8B": "meta-llama/Llama-3.1-8B",
    "Llama-3.1-8B (MLPerf)": "meta-llama/Llama-3.1-8B",
    "MPT 7B": "mosaicml/mpt-7b",
    "Mistral 7B": "mistralai/Mistral-7B-v0.1",
    "Mixtral 46.7B": "mistralai/Mixtral-8x7B-v0.1",
    "Mixtral-8x7B": "mistralai/Mixtral-8x7B-v0.1",
    "Mixtral-8x7B (MLPerf)": "mistralai/Mixtral-8x7B-v0.1",
    "Qwen3-0.6B": "Qwen/Qwen3-0.6B",
    "Qwen3-1.7B": "Qwen/Qwen3-1.7B",
    "Qwen3-4B": "Qwen/Qwen3-4B",
    "Qwen3-8B": "Qwen/Qwen3-8B",
    "Qwen3-14B": "Qwen/Qwen3-14B",
    "Qwen3-32B": "Qwen/Qwen3-32B",
    "Qwen3-30B-A3B": "Qwen/Qwen3-30B-A3B",
    "Qwen3-235B-A22B": "Qwen/Qwen3-235B-A22B",
    "StableLM Alpha": "stabilityai/stablelm-base-alpha-3b",
    "TinyLlama 1B": "TinyLlama/TinyLlama-1.1B-Chat-v1.0",
    "Vicuna 7B": "lmsys/vicuna-7b-v1.5",
    "phi-1.5": "microsoft/phi-1_5",
    "LLAMA2-7B": "meta-llama/Llama-2-7b-hf",
    "LLAMA2-13B": "meta-llama/Llama-2-13b-hf",
}
_DATASETS: Final = {
    "Llama-2-70B (MLPerf OpenOrca)": (294.0, 294.0),
    "Llama-3.1-405B (MLPerf)": (9_400.0, 680.0),
    "Llama-3.1-8B (MLPerf)": (778.0, 128.0),
}
"""Mean tokens of prompts and answers of MLPerf's data sets: the rows state answers at the most, so both are assumed.
Those of Llama 3.1 8B end with the limit of 128 tokens: they have 611 characters in the mean (8,167,644 of 13,368
answers, reference accuracy of mlcommons/inference).
"""
_REQUESTS: Final = {
    (128, 128): 30_000,
    (128, 2_048): 3_000,
    (128, 4_096): 1_500,
    (500, 2_000): 3_000,
    (1_000, 1_000): 3_000,
    (1_000, 2_000): 1_500,
    (1_024, 2_048): 1_500,
    (2_048, 128): 3_000,
    (2_048, 2_048): 1_500,
    (5_000, 500): 1_500,
    (20_000, 2_000): 1_000,
}
"""Requests of a run by the tokens of prompt and answer: NVIDIA/TensorRT-LLM perf-overview, Preparing a Dataset."""
_WEIGHTS: Final = {
    "bf16-true": "bf16",
    "f16": "F16",
    "float8_rowwise": "fp8",
    "fp4": "nvfp4",
    "awq": "awq4-128",
    "awq-int4": "awq4-128",
    "awq int4 gemm": "awq4-128",
    "awq int4 gemv": "awq4-128",
    "awq-hqq-int4": "awq4-64",
    "int4wo-hqq": "awq4-64",
    "int4wo-64": "awq4-64",
    "int4 g32": "gptq4-32",
    "gptq-int4": "gptq4-128",
    "gptq-int8": "gptq8-128",
    "int8 weight-only": "int8",
    "bnb.nf4": "nf4",
    "bnb.nf4-dq": "nf4-dq",
    "4-bit": "awq4-128",
    "int4": "awq4-128",
}
"""The catalog's names of formats by those of the sources, in lower case, where they differ."""
_BY_LETTERS: Final = {name.lower(): name for name in SCHEMES}


class Case(NamedTuple):
    """The run of a row: network, workload and lengths."""

    row: Row
    run: ServedModel
    gpu: Gpu
    weights: str
    engine: Engine


def predict(row: Row, catalog: Catalog, *, substituted: bool = False, by_classes: bool = False) -> Speeds | Excluded:
    """Return the estimate for a row, or the reason why it is not covered.

    If `substituted`, the constants of its program are those of the most similar one; `by_classes`, it does not stand on
    measured kernels.
    """
    if row.value is None:
        return Excluded("out of memory: no speed")
    if row.quality == "C":
        return Excluded("community rows: offloading and speculation are not ruled out")
    if row.task in image_rows.TASKS:
        return image_rows.predict(row, catalog)
    case = case_of(row, catalog, substituted=substituted)
    if isinstance(case, Excluded):
        return case
    if by_classes:
        case = case._replace(run=case.run._replace(kernels=None))
    speeds = speeds_of(case)
    return speeds if isinstance(speeds, Excluded) else _with_interval(case, speeds)


def speeds_of(case: Case) -> Speeds | Excluded:
    """Return the estimated speeds of a case, without their intervals."""
    return _PREDICTORS[case.row.task](case)


def _with_interval(case: Case, speeds: Speeds) -> Speeds:
    figure = _FIGURES[case.row.task]
    factor = request_spread_factor(figure, case.engine, family_of(case.gpu))
    return speeds._replace(low=speeds.ours / factor, high=speeds.ours * factor, assumed=_assumptions(case.row))


def _assumptions(row: Row) -> str:
    """Return the assumptions about figures that the source does not state."""
    if row.source == "mlinf":
        return "the lengths of prompts, the batch, and how the cards share the model"
    if row.task == "infer_offline" and row.batch is None:
        return "the batch"
    return "the length of the answer" if row.task == "infer_decode" and row.output_length is None else ""


def case_of(row: Row, catalog: Catalog, *, substituted: bool = False) -> Case | Excluded:
    """Return the run that a row describes, or the reason why it is not covered."""
    architecture, gpu = _network(row, catalog), gpu_of(row, catalog)
    if isinstance(architecture, Excluded):
        return architecture
    if isinstance(gpu, Excluded):
        return gpu
    asked = row.precision.lower()
    weights = _WEIGHTS.get(asked) or _BY_LETTERS.get(asked)
    has_experts = architecture.active_parameters < architecture.parameters
    engine = program_of(row.framework, weights or "", has_experts=has_experts)
    if engine is None or weights is None:
        return Excluded(f"engine or format not stated: {row.framework[:20]} {row.precision}")
    return _case_on(row, architecture, gpu, with_most_similar_constants(engine) if substituted else engine, weights)


def is_sum_of_kernels(case: Case) -> bool:
    """Return whether the estimate of a case is a sum of measured kernels."""
    return case.run.kernels is not None and not (case.run.work.expert_layers and case.run.split.stages > 1)


def classes_of(case: Case, *, by_classes: bool = False) -> tuple[tuple[str, ...], ...]:
    """Return the classes whose constants a case uses, the nearest first.

    A sum of measured kernels has none, unless the estimate is made `by_classes`.

    A class is a task in a program with a kind of memory, a width of weights and the way in which their kernels are
    launched; constants are the same for other tasks, and those of launches for other widths.
    """
    if is_sum_of_kernels(case) and not by_classes:
        return ()
    engine, task = case.engine.name, case.row.task
    launched = next((begins for begins in case.engine.quantised_layer_seconds if case.weights.startswith(begins)), "")
    memory, width = memory_class(case.gpu), kernel_width(case.weights)
    return (
        (task, engine, launched, memory, width),
        (engine, launched, memory, width),
        (task, engine, launched, memory),
        (engine, launched, memory),
    )


def _network(row: Row, catalog: Catalog) -> Architecture | Excluded:
    """Return the network of a row by our table of names, else by the catalog's lookup of the source's name."""
    found = architecture_of(row, catalog, _MODELS)
    return network_named(row.model, catalog) or found if isinstance(found, Excluded) else found


def _case_on(row: Row, architecture: Architecture, gpu: Gpu, engine: Engine, weights: str) -> Case | Excluded:
    if engine.name == transformers.ENGINE.name and architecture.active_parameters < architecture.parameters:
        return Excluded("transformers before 5 loops over the experts in Python")
    if "AutoAWQ" in row.framework and row.task == "infer_prefill":
        return Excluded("AutoAWQ reads prompts with modules that are not fused")
    if "GEMV" in row.precision and (row.batch or 1) > 1:
        return Excluded("a product of one row, called for each sequence")
    speed = gpu_speed(gpu, engine, weights, unfused="llama" in row.framework)
    if speed is None:
        return Excluded(f"bandwidth or rate not in the catalog: {gpu.name}")
    tensor, stages = degrees(row)
    split = ModelSplit(links_of(gpu, TimeSetting()), tensor, stages)
    cache = "fp8" if engine is tensorrt_llm.ENGINE else "fp16"
    work = engine.work(architecture, weights)
    kernels = pass_kernels(architecture, speed, gpu, weights, cache)
    return Case(row, ServedModel(architecture, work, speed, split, cache, kernels=kernels), gpu, weights, engine)


def degrees(row: Row) -> tuple[int, int]:
    """Return the tensor and pipeline degrees that a row states.

    Layers are split over cards in llama.cpp, and in Transformers with a device map. Experts are divided over the
    tensor-parallel cards, so that EP names no further cards.
    """
    found = {name: int(size) for name, size in re.findall(r"(TP|PP)(\d+)", row.parallelism)}
    if row.parallelism == "TP":
        return row.cards, 1
    if row.parallelism in ("layer split", "sequential") or row.framework.startswith("Transformers"):
        return 1, row.cards
    return found.get("TP", 1), found.get("PP", 1)


def _decoding_speeds(case: Case) -> Speeds | Excluded:
    row, run = case.row, case.run
    if row.batch is None and row.unit.endswith("/user"):
        return Excluded("arrivals: how many sequences are at work is not stated")
    batch, answer = row.batch or 1, row.output_length or 256
    prompt = row.length if row.source not in ("xd", "gf") and row.length else 0
    context = prompt if row.source == "awq" else prompt + answer / 2
    seconds = decoding_step_time(run, batch, context).seconds
    if prompt and (row.unit.endswith("/user") or row.source in _TIMED_WITH_PROMPT):
        seconds += batch / answer * prompt_time(run, 1, prompt).seconds
    share = {"tokens/s/user": 1.0, "tokens/s/GPU": batch / row.cards}.get(row.unit, float(batch))
    return Speeds(share / seconds, _flat_rate_speed(case, 1), share / _bandwidth_step(case, batch, context))


def _flat_rate_speed(case: Case, tokens_per_output: float) -> float:
    work, speed = case.run.work, case.run.speed
    flops = 2 * (work.parameters + work.head_parameters) * tokens_per_output
    return _cards(case) * speed.ops_per_s * _FLAT_MFU / flops


def _cards(case: Case) -> int:
    return case.run.split.tensor * case.run.split.stages


def _bandwidth_step(case: Case, batch: float, context: float) -> float:
    run = case.run
    moved = run.work.read_bytes(batch) + batch * cached_bytes(run, context)
    return moved / ((case.gpu.bandwidth_bytes_per_s or 1) * run.split.tensor)


def _prefill_speeds(case: Case) -> Speeds | Excluded:
    row, run = case.row, case.run
    batch, tokens = row.batch or 1, row.length
    if not tokens:
        return Excluded("length of the prompt not stated")
    seconds = prompt_time(run, batch, tokens).seconds
    if row.output_length:
        seconds += row.output_length * decoding_step_time(run, batch, tokens).seconds
    plain = _bandwidth_step(case, 1, 1)
    return Speeds(batch * tokens / seconds, _flat_rate_speed(case, 1), batch * tokens / plain)


def _offline_speeds(case: Case) -> Speeds | Excluded:
    row = case.row
    if row.source == "qw3":
        return _single_request_speeds(case)
    lengths = _lengths(row)
    if isinstance(lengths, Excluded):
        return lengths
    prompt, answer = lengths
    if row.batch:
        best: SaturatedThroughput | None = saturated_throughput(case.run, row.batch, prompt, answer)
    elif row.parallelism:
        best = _saturated(case, prompt, answer)
    else:
        best = _best_layout(case, prompt, answer)
    if best is None:
        return Excluded("does not fit as stated")
    whole = 1 + prompt / answer
    scale = 1.0 if row.unit.startswith("tokens") else 1 / answer
    scale /= row.cards if row.unit.endswith("/GPU") else 1
    step = _bandwidth_step(case, best.sequences, prompt + answer / 2)
    return Speeds(scale * best.tokens_per_second, scale * _flat_rate_speed(case, whole), scale * best.sequences / step)


def _single_request_speeds(case: Case) -> Speeds:
    """Return the speed of one request, counting prompt and answer tokens as the Qwen documents do."""
    row, run = case.row, case.run
    prompt, answer = row.length or 1, row.output_length or 1
    seconds = prompt_time(run, 1, prompt).seconds
    seconds += answer * decoding_step_time(run, 1, prompt + answer / 2).seconds
    plain = answer * _bandwidth_step(case, 1, prompt + answer / 2)
    return Speeds((prompt + answer) / seconds, _flat_rate_speed(case, 1), (prompt + answer) / plain)


def _lengths(row: Row) -> tuple[float, float] | Excluded:
    if row.length and row.output_length:
        return row.length, row.output_length
    if "latency" in row.notes or "Server" in row.notes or "Interactive" in row.notes or "server" in row.notes:
        return Excluded("arrivals under a limit of latency: the batch is not stated")
    found = _DATASETS.get(row.model)
    return found or Excluded(f"lengths not stated: {row.model}")


def _saturated(case: Case, prompt: float, answer: float) -> SaturatedThroughput | None:
    held = (case.gpu.memory_bytes or 0) / case.gpu.device_count
    grown = 1.0 if case.engine.name in RESERVE_ANSWERS else 0.5
    sequences = sequences_that_fit(case.run, case.weights, prompt + grown * answer, held)
    requests = _REQUESTS.get((round(prompt), round(answer))) if case.row.source == "trt" else None
    if not sequences or requests is None:
        return saturated_throughput(case.run, sequences, prompt, answer) if sequences else None
    steady = saturated_throughput(case.run, min(sequences, requests), prompt, answer)
    seconds = requests / steady.requests_per_second
    if requests > sequences:  # the last ones run at falling batches, whose steps take no less than that of one sequence
        seconds += answer / 2 * decoding_step_time(case.run, 1, prompt + answer / 2).seconds
    rate = requests / seconds
    return steady._replace(requests_per_second=rate, tokens_per_second=rate * answer)


def _best_layout(case: Case, prompt: float, answer: float) -> SaturatedThroughput | None:
    """Return the total throughput of the fastest layout of replicas over the cards."""
    found = []
    for tensor in (1, 2, 4, 8):
        if case.row.cards % tensor == 0:
            run = case.run._replace(split=case.run.split._replace(tensor=tensor))
            one = _saturated(case._replace(run=run), prompt, answer)
            if one is not None:
                found.append(one._replace(tokens_per_second=one.tokens_per_second * case.row.cards / tensor))
    return max(found, key=lambda one: one.tokens_per_second, default=None)


_PREDICTORS: Final[dict[str, Callable[[Case], Speeds | Excluded]]] = {
    "infer_decode": _decoding_speeds,
    "infer_prefill": _prefill_speeds,
    "infer_offline": _offline_speeds,
}
