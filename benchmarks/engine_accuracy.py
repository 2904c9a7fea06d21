"""How far estimates of vLLM, SGLang and TensorRT-LLM are off published runs of them, engine by engine.

    python benchmarks/engine_accuracy.py [--serving serving.csv] [--table]

Prints for each engine the median and the 90th percentile of the absolute error, and the bias, of the speeds in
`tests/truth/throughput.csv` whose program it is, and a line for each cache that SGLang's logs print in
`tests/truth/memory.csv`. With `--serving` also of the time per output token in a table like ai-dynamo/aiconfigurator's
`silicon_sample.csv`, of what is served in one place: a step of all concurrent requests and their share of the prompts,
no queue. vLLM is given twice, with its classes of kernels and with the sum of the measured kernels of its own tables,
which no plan uses; SGLang's tables lack kernels that a sum needs.
"""

import argparse
import csv
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Final

from kernel_rows import CARDS
from tables import add_table_option, write_table
from throughput_accuracy import TITLES, compare, spread_of
from throughput_programs import program_of
from throughput_rows import truth

from planner.errors import PlannerError
from planner.hardware.gpu import Gpu
from planner.models.catalog import resolve_model
from planner.performance.inference.gpu_speed import gpu_speed
from planner.performance.inference.kernels import pass_kernels
from planner.performance.inference.passes import ModelSplit
from planner.performance.inference.request import ServedModel, decoding_step_time, prompt_time
from planner.performance.links import links_of
from planner.performance.setting import TimeSetting
from planner.performance.software import sglang, tensorrt_llm, vllm
from planner.performance.software.engine import Engine
from planner.plan.catalog import Catalog, load_catalog
from planner.plan.evaluate import evaluate
from planner.plan.plan import ModelChoice, Plan
from planner.units import GIB
from planner.workload.workload import Inference

_TASKS: Final = ("infer_decode", "infer_prefill", "infer_offline")
_ENGINES: Final = {"vllm": vllm.ENGINE, "sglang": sglang.ENGINE, "trtllm": tensorrt_llm.ENGINE}
_FORMATS: Final = {"fp8": "fp8", "fp8_block": "fp8-block128", "nvfp4": "nvfp4", "int4_wo": "awq4-128"}
_MILLI: Final = 1e3
_STATIC: Final = re.compile(r"SGLang TP=(\d+) mem-fraction-static ([\d.]+)")
MEMORY: Final = Path(__file__).resolve().parent.parent / "tests" / "truth" / "memory.csv"


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--serving", type=Path, help="table of measured times per output token")
    add_table_option(parser)
    arguments = parser.parse_args()
    print(f"{'engine':14} {'of':34} {'rows':>5} {'median':>8} {'90 %':>8} {'bias':>8}")
    errors_of = dict(sorted(_published_speeds().items()))
    for name, measured_gib, ours_gib in _cache_pools():
        print(f"{'sglang':14} {'cache of ' + name:34} {measured_gib:8.2f} GiB measured, {ours_gib:.2f} estimated")
    if arguments.serving:
        errors_of |= dict(sorted(_served(arguments.serving).items()))
    rows = [_row(engine, label, errors) for (engine, label), errors in errors_of.items()]
    for engine, label, *figures in rows:
        print(f"{engine:14} {label:34} {figures[0]:>5} {figures[1]:>8} {figures[2]:>8} {figures[3]:>8}")
    if arguments.table:
        header = ("engine", "of", "rows", "median error", "90 % within", "bias")
        write_table("accuracy", "engines", header, rows)
    return 0


def _row(engine: str, label: str, errors: list[float]) -> list[str]:
    middle, high = spread_of(errors)
    titles = {vllm.ENGINE.name: "vLLM", sglang.ENGINE.name: "SGLang", tensorrt_llm.ENGINE.name: "TensorRT-LLM"}
    signed = f"{median(errors):+.1%}"
    return [titles[engine], TITLES.get(label, label), str(len(errors)), f"{middle:.1%}", f"{high:.0%}", signed]


def _published_speeds() -> dict[tuple[str, str], list[float]]:
    """Return the signed errors of published speeds by engine and task."""
    names = {engine.name for engine in _ENGINES.values()}
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    compared, _ = compare(truth(None), _TASKS)
    for item in compared:
        engine = program_of(item.row.framework, item.row.precision, has_experts=False)
        if engine is not None and engine.name in names:
            found[engine.name, item.row.task].append(item.error(item.speeds.ours))
    return found


def _cache_pools() -> Iterator[tuple[str, float, float]]:
    """Yield the caches that SGLang's logs print in `tests/truth/memory.csv`: model, and GiB measured and estimated."""
    catalog = load_catalog()
    with MEMORY.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            stated = _STATIC.search(row["technique"])
            if stated is None:
                continue
            plan = Plan(
                model=ModelChoice(id=row["model"].removesuffix("-FP8")),
                gpu="h100-sxm5-80gb",
                count=int(stated[1]),
                workload=Inference(
                    profile="sglang",
                    weights=row["precision"],
                    parallel={"tensor": int(stated[1])},
                    engine={"mem_fraction_static": float(stated[2])},
                ),
            )
            pool = evaluate(plan, catalog).memory.cache_pool
            if pool is not None:
                yield row["model"], float(row["measured_gib"]), pool.bytes / GIB


def _served(path: Path) -> dict[tuple[str, str], list[float]]:
    """Return the signed errors of measured times per output token by engine, and by what the estimate is made of."""
    catalog = load_catalog()
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    with path.open(newline="", encoding="utf-8") as file:
        for row in _plain_rows(csv.DictReader(file)):
            engine = _ENGINES[row["backend"]]
            for label, variant in _variants(row["backend"], engine):
                seconds = _token_seconds(row, catalog, variant)
                if seconds is not None:
                    measured = float(row["silicon_tpot_ms"]) / _MILLI
                    found[engine.name, f"time per output token, {label}"].append(seconds / measured - 1)
    return found


def _plain_rows(rows: Iterable[dict[str, str]]) -> Iterator[dict[str, str]]:
    """Yield the rows that are served in one place without data-parallel attention, whose sizes are all stated."""
    for row in rows:
        alone = row["mode"] == "agg" and row["attention_dp_size"] == "1" and row["pp_size"] == "1"
        if alone and row["gemm_quant_mode"] in _FORMATS and row["silicon_tpot_ms"]:
            yield row


def _variants(backend: str, engine: Engine) -> Iterator[tuple[str, Engine]]:
    if engine is tensorrt_llm.ENGINE:
        yield "as in plans", engine
    else:
        yield "by classes", replace(engine, kernel_tables=None)
        yield "by kernels", replace(engine, kernel_tables=backend, kernel_formats=tensorrt_llm.ENGINE.kernel_formats)


def _token_seconds(row: dict[str, str], catalog: Catalog, engine: Engine) -> float | None:
    """Return the estimated time per output token of a row, None where a figure is unknown or no kernels are measured.

    **Formula**: a decoding step of all requests with half of their answers, and B / answer prompts for each step.
    """
    gpu = catalog.hardware.gpu(CARDS[row["system"]])
    run = _served_model(row, catalog, engine, gpu)
    if run is None:
        return None
    batch, prompt, answer = int(row["batch_size"]), int(row["isl"]), int(row["osl"])
    step = decoding_step_time(run, batch, prompt + answer / 2).seconds
    return step + batch / answer * prompt_time(run, 1, prompt).seconds


def _served_model(row: dict[str, str], catalog: Catalog, engine: Engine, gpu: Gpu) -> ServedModel | None:
    try:
        architecture = catalog.models.model(resolve_model(catalog.models, row["model_path"]))
    except PlannerError:
        return None
    weights = _FORMATS[row["gemm_quant_mode"]]
    speed = gpu_speed(gpu, engine, weights)
    if speed is None:
        return None
    split = ModelSplit(links_of(gpu, TimeSetting()), int(row["tp_size"]), 1)
    cache = "fp8" if engine is tensorrt_llm.ENGINE else "fp16"
    kernels = pass_kernels(architecture, speed, gpu, weights, cache)
    if kernels is None and engine.kernel_tables is not None and engine is not tensorrt_llm.ENGINE:
        return None
    return ServedModel(architecture, engine.work(architecture, weights), speed, split, cache, kernels=kernels)


if __name__ == "__main__":
    sys.exit(main())
