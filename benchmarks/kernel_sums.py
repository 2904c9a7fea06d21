"""Sums of measured kernels beside classes, on measured times per token of vLLM that neither was made from.

    python benchmarks/kernel_sums.py SERVING.CSV

`SERVING.CSV` is `silicon_sample.csv` of aiconfigurator. Its rows of vLLM 0.12 without a quantized format are compared:
Qwen3-32B in 16 bits on 2, 4 and 8 H100, 8 to 128 requests at once. A time per token is a decoding step at the mean
context plus its share of the prompts that are read meanwhile. Prints the median error and the median signed error by
classes, and by sums of kernels with as many element-wise launches in a layer as TensorRT-LLM's and as vLLM's code has.

Then the published speeds of Qwen3 in SGLang, by the tables of either engine in 16 bits and in FP8, whether estimates
stand on these sums or not: why they do not is seen here.
"""

import argparse
import csv
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median

from throughput_inference import TASKS, Case, case_of, predict, speeds_of
from throughput_rows import Excluded, truth

from planner.hardware.gpu import Gpu
from planner.models.architecture import Architecture
from planner.performance.inference.gpu_speed import gpu_speed
from planner.performance.inference.kernels import pass_kernels
from planner.performance.inference.passes import ModelSplit
from planner.performance.inference.request import ServedModel, decoding_step_time, prompt_time
from planner.performance.links import links_of
from planner.performance.setting import TimeSetting
from planner.performance.software import vllm
from planner.performance.software.engine import Engine
from planner.plan.catalog import Catalog, load_catalog

_MODEL, _CARD, _VERSION = "Qwen/Qwen3-32B", "h100-sxm5-80gb", "0.12.0"
_SETTINGS = {
    "classes": replace(vllm.ENGINE, schedules_ahead=False, kernel_tables=None),
    "kernels, launches as in TensorRT-LLM": Engine(
        **{**vars(vllm.ENGINE), "schedules_ahead": False},
    ),
    "kernels, launches as in vLLM": replace(vllm.ENGINE, schedules_ahead=False),
}
"""Engines to compare; vLLM before 0.14 does not schedule ahead."""


def main() -> None:
    """Print the errors of each way to estimate, by number of cards and of requests."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("serving", type=Path, help="silicon_sample.csv of aiconfigurator")
    rows = list(measured(parser.parse_args().serving))
    catalog = load_catalog()
    gpu, model = catalog.hardware.gpu(_CARD), catalog.models.model(_MODEL)
    print(f"{len(rows)} times per token: median error, median signed error")
    for title, engine in _SETTINGS.items():
        print(title)
        groups: dict[str, list[float]] = defaultdict(list)
        run = run_of(gpu, model, engine)
        for row in rows:
            error = seconds_per_token(run(int(row["tp_size"])), row) / (float(row["silicon_tpot_ms"]) / 1e3) - 1
            for name in ("all", f"{row['tp_size']} cards", f"{row['batch_size']} requests"):
                groups[name].append(error)
        for name, errors in groups.items():
            print(f"  {name:14} {len(errors):4} {median(map(abs, errors)):7.1%} {median(errors):+7.1%}")
    print_published(catalog)


def print_published(catalog: Catalog) -> None:
    """Print the errors of published speeds by sums of kernels and by classes, by tables, format and experts."""
    print("published speeds of Qwen3 in SGLang: median error, median signed error, by sums; median error by classes")
    groups: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for row in truth(None):
        if row.source != "qw3" or "SGLang" not in row.framework or row.task not in TASKS or not row.value:
            continue
        case, classes = case_of(row, catalog), predict(row, catalog, by_classes=True)
        if isinstance(case, Excluded) or isinstance(classes, Excluded):
            continue
        for tables in ("vllm", "sglang"):
            other = with_tables(case, tables)
            speeds = speeds_of(other) if other else None
            if speeds is not None and not isinstance(speeds, Excluded):
                kind = "experts" if case.run.work.expert_layers else "dense"
                errors = speeds.ours / row.value - 1, classes.ours / row.value - 1
                groups[f"{tables} {case.weights} {kind}"].append(errors)
    for name, found in sorted(groups.items()):
        sums, by_classes = zip(*found, strict=True)
        print(
            f"  {name:22} {len(found):4} {median(map(abs, sums)):7.1%} {median(sums):+7.1%}"
            f" {median(map(abs, by_classes)):7.1%}"
        )


def with_tables(case: Case, tables: str) -> Case | None:
    """Return `case` as the sum of the kernels in the tables of an engine, or None if one was not measured."""
    engine = replace(case.engine, kernel_tables=tables, kernel_formats=("bf16", "fp8"))
    speed = case.run.speed._replace(engine=engine)
    kernels = pass_kernels(case.run.architecture, speed, case.gpu, case.weights, case.run.cache)
    return case._replace(run=case.run._replace(speed=speed, kernels=kernels)) if kernels else None


def measured(path: Path) -> Iterator[dict[str, str]]:
    """Yield the rows of vLLM in 16 bits."""
    with path.open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            if (row["backend"], row["backend_version"], row["precision"]) == ("vllm", _VERSION, ""):
                yield row


def run_of(gpu: Gpu, model: Architecture, engine: Engine) -> Callable[[int], ServedModel]:
    """Return a function from the number of cards to the served model."""
    speed = gpu_speed(gpu, engine, "bf16")
    if speed is None:
        raise SystemExit(f"{gpu.name} has no bandwidth or rate in catalog/gpus")
    kernels = pass_kernels(model, speed, gpu, "bf16", "fp16")
    work, links = engine.work(model, "bf16"), links_of(gpu, TimeSetting())
    return lambda cards: ServedModel(model, work, speed, ModelSplit(links, cards, 1), "fp16", kernels=kernels)


def seconds_per_token(run: ServedModel, row: dict[str, str]) -> float:
    """Return the seconds between two tokens of a request, of as many as the row has at work."""
    requests, prompt, answer = int(row["batch_size"]), int(row["isl"]), int(row["osl"])
    step = decoding_step_time(run, requests, prompt + answer / 2).seconds
    return step + requests / answer * prompt_time(run, 1, prompt).seconds


if __name__ == "__main__":
    main()
