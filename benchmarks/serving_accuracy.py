"""Simulated against measured services: whole runs request by request, and benchmarks at a fixed concurrency.

    python benchmarks/serving_accuracy.py [--runs FOLDER] [--truth FILE] [--rows] [--skip-rows]

`--table` also writes the table of the manual.

For each run of vLLM in FOLDER it prints the simulated and measured mean, median and 99th percentile of the time to
first token, between tokens and to the end, each request with its own arrival and lengths. For the rows of FILE,
benchmarks of engines with so many clients, it prints the median error of the time to first token and per token, by
engine, system and model: nothing is fitted to them, so that each is a system and a model that was left out. Of the
intervals it prints how many hold the measurement, of all engines and of each: those that are stated, and those whose
width is the 80th percentile of the error of all other systems. Then the seconds that 100,000 requests and a search
take, beside a loop.

Lengths of FILE are nominal. Those of InferenceX, which most rows are of, lie between 0.8 times these and these, and its
servers have settings of their own (`harness_of`); others are taken as they are. A measurement that is listed several
times counts once. Means over the requests are compared; where no requests warmed the server up before, those of the
first token hold its start, and are counted apart. Rows that `throughput.csv` has as well are not in FILE.
"""

import argparse
import csv
import json
import re
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from math import exp, log
from pathlib import Path
from random import Random
from statistics import fmean, median, quantiles
from typing import Final, NamedTuple

from tables import add_table_option, write_table

from planner.errors import PlannerError
from planner.performance.attainable import kernel_width
from planner.performance.inference.steps import AS_ESTIMATED
from planner.plan.catalog import Catalog, load_catalog
from planner.plan.plan import ModelChoice, Plan
from planner.plan.serving.answer import ServingWish
from planner.plan.serving.find_service import plan_serving
from planner.plan.serving.service_simulation import deploy_plan
from planner.serving.deployment import Deployment, ServingSetup
from planner.serving.simulate import LEAST_FACTORS, run_once
from planner.serving.targets import Targets, parse_latency_target
from planner.serving.traffic import (
    ConcurrentClients,
    LogNormalLength,
    RandomArrivals,
    TracedLength,
    Traffic,
    TrafficTrace,
)
from planner.units import round_up
from planner.workload.software.registry import SERVERS
from planner.workload.workload import Inference

_TRUTH: Final = Path(__file__).resolve().parent.parent / "tests" / "truth"
_CARDS: Final = {
    "b200_sxm": "b200-sxm-180gb",
    "b300_sxm": "b300-sxm-288gb",
    "gb200": "gb200-186gb",
    "h100_sxm": "h100-sxm5-80gb",
    "h200_sxm": "h200-sxm-141gb",
}
_RUN_CARDS: Final = {"rtx-pro-6000": "rtx-pro-6000-blackwell-server", "rtx-4090": "rtx-4090"}
_RUN_LINK_BYTES_PER_S: Final = 16e9
"""Bandwidth between the cards of the runs, in the measurers' own simulation of their machine: without peer access.

**Source**: casys-kaist/LLMServingSim@5daddb2 bench/examples/RTXPRO6000/*/config.json `link_bw`.
"""
_ENGINES: Final = {"trtllm": "tensorrt-llm"}
_WEIGHTS: Final = {"fp4": "nvfp4", "fp8": "fp8", "bf16": "bf16"}
_BLOCKS: Final = {"fp8_block": "fp8-block128"}
"""Formats of experts that are narrower than the precision of a row says."""
_OWN_LISTING: Final = "_cfg"
"""Part of the ids of InferenceX's runs without drafts."""
_CLIENTS: Final = re.compile(r"_c(\d*)_")
"""Number of clients in an id; some leave it empty, where the first token comes after 17 to 54 s."""
_SAME: Final = ("backend", "system", "isl", "osl", "batch_size")
_SAME_ROUNDED: Final = ("silicon_ttft_ms", "silicon_tpot_ms")
"""Columns that tell whether two rows are one measurement, the second ones rounded to 0.1 ms: some are listed with two
digits, too."""
_ENGINE_NAMES: Final = ("max_num_seqs", "max_num_batched_tokens")
_ROUNDS: Final = 4
_MANY_CLIENTS: Final = 32
_MANY: Final = 100_000
_REFERENCE_LOOP: Final = 10_000_000
_HELD: Final = 0.8


class Compared(NamedTuple):
    """A measured benchmark at a fixed concurrency with its simulation, both in milliseconds.

    `warmed` means that the server had answered others before, so that its first tokens can be compared; `rounds` are
    the requests of each client.
    """

    id: str
    engine: str
    system: str
    model: str
    weights: str
    rounds: int
    clients: int
    first: tuple[float, float]
    token: tuple[float, float]
    stated: tuple[float, float]
    warmed: bool


def main() -> int:
    """Print the comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=Path, default=_TRUTH / "serving-runs")
    parser.add_argument("--truth", type=Path, default=_TRUTH / "serving.csv")
    parser.add_argument("--rows", action="store_true", help="print each row")
    parser.add_argument("--skip-rows", action="store_true", help="only the whole runs and the speed")
    add_table_option(parser)
    options = parser.parse_args()
    catalog = load_catalog()
    table: list[tuple[str, str, str, str]] = []
    for folder in sorted(path for path in options.runs.iterdir() if (path / "meta.json").exists()):
        table += print_run(folder, catalog)
    if not options.skip_rows:
        table += print_rows(options.truth, catalog, each=options.rows)
    if options.table:
        write_table("accuracy", "serving", ("measured", "first token", "between tokens", "end, 99 %"), table)
    print_speed(catalog)
    return 0


def print_run(folder: Path, catalog: Catalog) -> list[tuple[str, str, str, str]]:
    """Print a whole run beside its simulation, and return its row of the manual's table."""
    rows = [json.loads(line) for line in (folder / "requests.jsonl").read_text(encoding="utf-8").splitlines()]
    rows.sort(key=lambda row: row["queued_ts"])
    deployment, traffic = _run_of(folder, rows, catalog)
    if isinstance(deployment, str):
        print(f"{folder.name}: {deployment}")
        return []
    run = run_once(deployment, traffic, len(rows), 0, AS_ESTIMATED)
    assert run is not None
    found = run.requests
    print(f"\n{folder.name}: {len(rows)} requests, {deployment.replicas} replicas, {len(run.ended)} answered")
    figures: tuple[tuple[str, Callable[[int], float], Callable[[Mapping[str, float]], float]], ...] = (
        ("first token", lambda n: found.first[n] - found.arrival[n], lambda r: r["first_token_ts"] - r["queued_ts"]),
        (
            "between tokens",
            lambda n: (found.end[n] - found.first[n]) / max(found.output[n] - 1, 1),
            lambda r: (r["last_token_ts"] - r["first_token_ts"]) / max(r["output_toks"] - 1, 1),
        ),
        ("end to end", lambda n: found.end[n] - found.arrival[n], lambda r: r["last_token_ts"] - r["queued_ts"]),
    )
    print(f"  {'seconds':16}{'mean':>10}{'measured':>10}{'error':>9}{'median':>10}{'error':>9}{'p99':>10}{'error':>9}")
    cells = []
    for title, simulated, measured in figures:
        ours, theirs = [simulated(number) for number in range(len(rows))], [measured(row) for row in rows]
        print(f"  {title:16}{fmean(ours):10.4f}{fmean(theirs):10.4f}{_error(fmean(ours), fmean(theirs)):>9}", end="")
        print(f"{median(ours):10.4f}{_error(median(ours), median(theirs)):>9}", end="")
        print(f"{_p99(ours):10.4f}{_error(_p99(ours), _p99(theirs)):>9}")
        cells.append(_error(fmean(ours), fmean(theirs)))
    cells[-1] = _error(_p99(ours), _p99(theirs))
    return [(f"{folder.name}, vLLM 0.19, {len(rows)} requests", cells[0], cells[1], cells[2])]


def _run_of(folder: Path, rows: Sequence[Mapping[str, float]], catalog: Catalog) -> tuple[Deployment | str, Traffic]:
    """Return the deployment of a run, and its requests as they came to the engine."""
    meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
    engine = meta["engine_kwargs"]
    ranks, tensor = engine["data_parallel_size"], engine["tensor_parallel_size"]
    experts = ranks if engine["enable_expert_parallel"] else 1
    workload = Inference(
        weights="bf16",
        profile="vllm",
        engine={"version": "0.19", **{name: engine[name] for name in _ENGINE_NAMES}},
        parallel={"data": ranks, "tensor": tensor, "expert": experts, "sharing": "manual"},
    )
    card = next(card for name, card in _RUN_CARDS.items() if name in folder.name)
    plan = Plan(model=ModelChoice(id=meta["model"]), workload=workload, gpu=card, count=ranks * tensor)
    trace = TrafficTrace(
        arrival_seconds=tuple(row["queued_ts"] - rows[0]["queued_ts"] for row in rows),
        input_tokens=tuple(int(row["input_toks"]) for row in rows),
        output_tokens=tuple(int(row["output_toks"]) for row in rows),
    )
    traffic = Traffic.of_trace(trace)
    deployment = deploy_plan(plan, catalog, traffic, ServingSetup(over_http=False), requests=len(rows), seed=0)
    if isinstance(deployment, str):
        return deployment, traffic
    run, bandwidth = deployment.served, (_RUN_LINK_BYTES_PER_S,) * 3
    links = run.split.links._replace(name="PCIe", all_reduce_bytes_per_s=bandwidth, all_gather_bytes_per_s=bandwidth)
    return deployment._replace(served=run._replace(split=run.split._replace(links=links))), traffic


def _error(ours: float, theirs: float) -> str:
    return f"{ours / theirs - 1:+.1%}"


def _p99(values: Iterable[float]) -> float:
    ordered = sorted(values)
    return ordered[int(0.99 * (len(ordered) - 1))]


def print_rows(path: Path, catalog: Catalog, *, each: bool) -> list[tuple[str, str, str, str]]:
    """Print the benchmarks at a fixed concurrency beside their simulation, and return their rows of the table."""
    excluded: Counter[str] = Counter()
    compared = list(_compared(path, catalog, excluded))
    print(f"\n{path.name}: {len(compared)} benchmarks at a fixed concurrency")
    if each:
        for row in compared:
            print(f"  {row.id:70}{row.first[0]:10.1f}{row.first[1]:10.1f}{row.token[0]:9.2f}{row.token[1]:9.2f}")
    table = []
    engines = sorted({row.engine for row in compared})
    for engine in engines:
        print(f"  {engine:14}", end="")
        cells = []
        for figure in _FIGURES:
            errors = [_ratio(figure.pick(row)) for row in figure.rows(compared) if row.engine == engine]
            sizes = [abs(exp(error) - 1) for error in errors]
            print(f"   {figure.title} of {len(sizes)}: ", end="")
            print(f"median error {median(sizes):.1%}, bias {exp(median(errors)) - 1:+.1%}", end="")
            cells.append(f"{median(sizes):.0%}")
        print()
        number = sum([row.engine == engine for row in compared])
        table.append((f"{engine}, {number} benchmarks at a fixed concurrency", cells[0], cells[1], "not stated"))
    for figure in _FIGURES:
        rows = figure.rows(compared)
        print(f"  {figure.title}: median error {median([abs(exp(_ratio(figure.pick(row))) - 1) for row in rows]):.1%}")
        for kind in ("system", "model"):
            groups = defaultdict[str, list[float]](list)
            for row in rows:
                groups[getattr(row, kind)].append(abs(exp(_ratio(figure.pick(row))) - 1))
            worst = sorted(((median(errors), name, len(errors)) for name, errors in groups.items()), reverse=True)
            listed = ", ".join(f"{name} {error:.0%} ({number})" for error, name, number in worst)
            print(f"  {figure.title} by {kind} left out: {listed}")
        _print_intervals(figure, rows)
        for engine in engines:
            _print_intervals(figure, [row for row in rows if row.engine == engine], f" of {engine}")
    cold = [abs(exp(_ratio(row.first)) - 1) for row in compared if not row.warmed]
    print(f"  {len(cold):5} first tokens not compared, with the start of the server in them: ", end="")
    print(f"median error {median(cold):.1%}" if cold else "none")
    _print_stalls([row for row in compared if not row.warmed])
    for reason, count in excluded.most_common():
        print(f"  {count:5} not compared: {reason}")
    return table


def _print_stalls(cold: Iterable[Compared]) -> None:
    """Print how long a single stall at the start, which the first request of each client sees, would have to be.

    It explains the difference if it is as long for few clients as for many.
    """
    stalls: dict[tuple[str, str, str, bool], list[float]] = defaultdict(list)
    for row in cold:
        stalls[row.engine, row.model, row.weights, row.clients >= _MANY_CLIENTS].append(
            row.rounds * (row.first[1] - row.first[0]) / 1e3
        )
    for (engine, model, weights, many), seconds in sorted(stalls.items()):
        ends = quantiles(seconds, n=4) if len(seconds) > 1 else seconds * 3
        clients = f"{_MANY_CLIENTS} clients and more" if many else f"less than {_MANY_CLIENTS} clients"
        print(f"        {engine} {model} {weights}, {clients}: ", end="")
        print(f"a stall of {ends[0]:.1f} to {ends[2]:.1f} s in half of {len(seconds)}")


class Figure(NamedTuple):
    """A figure of the benchmarks: its title, its simulated and measured value, and the place of its stated factor."""

    title: str
    pick: Callable[[Compared], tuple[float, float]]
    place: int

    def rows(self, compared: Iterable[Compared]) -> list[Compared]:
        """Return the benchmarks in which it can be compared: first tokens only after others warmed the server up."""
        return [row for row in compared if row.warmed or self.place]


_FIGURES: Final = (
    Figure("first token", lambda row: row.first, 0),
    Figure("per token", lambda row: row.token, 1),
)


def _ratio(pair: tuple[float, float]) -> float:
    return log(pair[0] / pair[1])


def _print_intervals(figure: Figure, compared: Sequence[Compared], which: str = "") -> None:
    """Print how many measurements lie in the stated intervals, and in those that the other systems give."""
    if not compared:
        return
    errors = [abs(_ratio(figure.pick(row))) for row in compared]
    stated = fmean([error <= log(row.stated[figure.place]) for error, row in zip(errors, compared, strict=True)])
    held, widths = [], []
    for system in {row.system for row in compared}:
        others = sorted(error for error, row in zip(errors, compared, strict=True) if row.system != system)
        if others:
            width = others[min(len(others) - 1, int(_HELD * len(others)))]
            widths.append(exp(width))
            held += [error <= width for error, row in zip(errors, compared, strict=True) if row.system == system]
    left_out = f"{fmean(held):.0%} (factors {min(widths):.2f} to {max(widths):.2f})" if held else "none"
    print(f"  {figure.title}{which}: stated 80 % intervals hold {stated:.0%}, those of the other systems {left_out}")


def _compared(path: Path, catalog: Catalog, excluded: Counter[str]) -> Iterator[Compared]:
    """Yield the rows that can be simulated, and count the reasons of the others."""
    with path.open(encoding="utf-8", newline="") as stream:
        listed = list(csv.DictReader(stream))
        plain = {_measurement(row) for row in listed if _OWN_LISTING in row["id"]}
        for row in {_measurement(row): row for row in listed}.values():
            found = _unstated(row, plain) or _simulated(row, catalog)
            if isinstance(found, str):
                excluded[found] += 1
            else:
                yield found


def _measurement(row: Mapping[str, str]) -> tuple[str, ...]:
    return *(row[name] for name in _SAME), *(f"{float(row[name]):.1f}" for name in _SAME_ROUNDED)


def _simulated(row: Mapping[str, str], catalog: Catalog) -> Compared | str:
    """Return a row with its simulation, or the reason why there is none."""
    engine = _ENGINES.get(row["backend"], row["backend"])
    if engine not in SERVERS:
        return f"{engine} is not modeled"
    if int(row["attention_dp_size"] or 1) > 1:
        return "attention in parallel over the data, beside experts over all cards"
    if row["precision"] not in _WEIGHTS:
        return f"weights in {row['precision']}"
    clients, prompt, answer = int(row["batch_size"]), int(row["isl"]), int(row["osl"])
    tensor = tensor_degree(row)
    harness = harness_of(row, engine)
    try:
        model = catalog.models.model(row["model_path"])
        stored, asked = model.stored_as, _BLOCKS.get(row["moe_quant_mode"], _WEIGHTS[row["precision"]])
        weights = None if kernel_width(stored) == kernel_width(asked) else asked
        workload = Inference(
            profile=engine,
            weights=weights,
            parallel={"tensor": tensor, "data": 1, "sharing": "manual"},
            engine=harness.engine,
        )
        choice = ModelChoice(id=row["model_path"])
        plan = Plan(model=choice, workload=workload, gpu=_CARDS[row["system"]], count=tensor)
        traffic = _traffic(clients, prompt, answer, harness.shortest)
        deployment = deploy_plan(plan, catalog, traffic, ServingSetup(), requests=1, seed=0)
    except PlannerError as error:
        return "the model is not in the catalog" if "model" in error.message else error.message[:60]
    except ValueError:
        return "the engine does not run these weights"
    if isinstance(deployment, str):
        return deployment
    if harness.graph_rows is not None:
        speed = deployment.served.speed
        engine_then = replace(speed.engine, graph_rows=harness.graph_rows)
        deployment = deployment._replace(served=deployment.served._replace(speed=speed._replace(engine=engine_then)))
    experts = deployment.served.experts
    if harness.experts is not None and experts is not None:
        kernels = experts._replace(number_format=harness.experts)
        deployment = deployment._replace(served=deployment.served._replace(experts=kernels))
    run = run_once(deployment, traffic, harness.rounds * clients, 0, AS_ESTIMATED)
    assert run is not None
    found, counted = run.requests, run.ended if harness.counts_first else [n for n in run.ended if n >= clients]
    if not counted:
        return "the requests are longer than the cache"
    first = fmean([found.first[number] - found.arrival[number] for number in counted])
    token = fmean([(found.end[number] - found.first[number]) / max(found.output[number] - 1, 1) for number in counted])
    measured = float(row["silicon_ttft_ms"]), float(row["silicon_tpot_ms"])
    return Compared(
        row["id"],
        engine,
        row["system"],
        row["model_path"],
        row["precision"],
        harness.rounds,
        clients,
        (1e3 * first, measured[0]),
        (1e3 * token, measured[1]),
        (
            max(deployment.errors.prompts, deployment.scheduling.first_token_factor),
            max(deployment.errors.decoding, LEAST_FACTORS["tpot"]),
        ),
        harness.warmed,
    )


def _unstated(row: Mapping[str, str], plain: Collection[tuple[str, ...]]) -> str:
    """Return what a row leaves unstated without which it cannot be compared, empty if there is nothing.

    `plain` are measurements of InferenceX's listing of servers without drafts. SGLang 0.5.9 ran with drafts, too: with
    Qwen3.5 whole experts on 4 cards, with DeepSeek on the same cards as without.

    **Source**: SemiAnalysisAI/InferenceX@12ba0ae nvidia-master.yaml, `qwen3.5-fp8-b200-sglang`, `dsr1-fp8-b200-sglang`
    and both with `-mtp` (`spec-decoding: mtp`).
    """
    named = _CLIENTS.search(row["id"])
    if named is not None and named[1] != row["batch_size"]:
        return "the number of clients, of which the id says nothing, or something else"
    if row["backend_version"] == "0.5.9" and row["precision"] == "fp8" and row["system"].startswith("b"):
        sizes = row["tp_size"], row["moe_ep_size"]
        drafted = sizes == ("4", "1") if "Qwen3.5" in row["model_path"] else _measurement(row) not in plain
        return "whether a draft was used" if drafted else ""
    return ""


class Harness(NamedTuple):
    """What a benchmark's client and server set: lengths from a share of the nominal ones on, and rounds of requests.

    `counts_first` means that the first requests count, which all arrive at once, and `warmed` that others came before
    them. `engine` are settings of the server, `graph_rows` the tokens of prompts up to which it has CUDA graphs, and
    `experts` the format of its kernels of experts, if they are not the defaults of the version that is estimated.
    """

    shortest: float = 1.0
    rounds: int = _ROUNDS
    counts_first: bool = False
    warmed: bool = True
    engine: Mapping[str, float] = {}
    graph_rows: int | None = None
    experts: str | None = None


_MXFP4_KERNELS: Final = {"h200_sxm": "int4-weights", "b200_sxm": "mxfp4-fp8"}
"""Kernels of gpt-oss' experts that InferenceX chooses in vLLM: Marlin, which multiplies 4-bit weights of either kind in
16 bits, and FlashInfer's with inputs in 8 bits.

**Source**: SemiAnalysisAI/InferenceX@626932a gptoss_fp4_h200.sh `VLLM_MXFP4_USE_MARLIN`, gptoss_fp4_b200.sh
`VLLM_USE_FLASHINFER_MOE_MXFP4_MXFP8`.
"""
_INFERENCEX_LENGTHS: Final = ((1_024, 1_024), (1_024, 8_192), (8_192, 1_024))
_COLD: Final = ("", "0.5.6", "1.1.0rc2.post2")
"""Versions of the servers before the benchmark warmed up (21 January 2026)."""
_WITH_PROMPT_GRAPHS: Final = "0.5.10"


def harness_of(row: Mapping[str, str], engine: str) -> Harness:
    """Return the settings of a row's benchmark: those of InferenceX, whose three pairs of lengths tell it, or defaults.

    **Source**: SemiAnalysisAI/InferenceX@843c625 and its history: benchmark-tmpl.yml `RANDOM_RANGE_RATIO` 0.8;
    `run_benchmark_serving` with 10 prompts for each client, after d053ae2 with 2 to warm up; SGLang's
    `--chunked-prefill-size` and `--mem-fraction-static`, on B200 and B300 `--scheduler-recv-interval` 10, from 16
    clients on 30, but for the later FP8 of Qwen3.5 on B300 (c0f62a2); vLLM's `--max-cudagraph-capture-size` 2048 but
    for MiniMax on Hopper, twice the prompt as `--max-num-batched-tokens` on B300; TensorRT-LLM's `--max_num_tokens`
    16,384 with Llama, else clients + prompt + 64, rounded up to 64, since January 8,192 at least. SGLang has CUDA
    graphs of prompts since 0.5.10 (sgl-project/sglang#16331), but not of networks that read images, even for text
    (#30620 allows them for Qwen3.5).
    """
    clients, prompt, answer = int(row["batch_size"]), int(row["isl"]), int(row["osl"])
    system, model, version = row["system"], row["model_path"], row["backend_version"]
    graphs = version.startswith(_WITH_PROMPT_GRAPHS) and "Qwen3.5" not in model
    eager = 0 if engine == "sglang" and not graphs else None
    if (prompt, answer) not in _INFERENCEX_LENGTHS:
        return Harness(graph_rows=eager)
    settings: dict[str, float] = {}
    if engine == "sglang":
        quarter = "DeepSeek" in model and row["precision"] == "fp4"
        later = system == "b300_sxm" and row["precision"] == "fp8" and version.startswith(_WITH_PROMPT_GRAPHS)
        smaller = "Qwen" in model and (later or system == "h200_sxm")
        settings["chunked_prefill_size"] = 16_384 if quarter or smaller else 32_768
        settings["mem_fraction_static"] = 0.85 if quarter else 0.80 if smaller else 0.82
        if system.startswith("b"):
            settings["scheduler_recv_interval"] = 10 if clients < 16 or later else 30
    if engine == "vllm":
        settings["max_num_batched_tokens"] = 2 * prompt if system == "b300_sxm" else 8_192
        eager = None if "MiniMax" in model and system.startswith("h") else 2_048
    if engine == "tensorrt-llm":
        tokens = round_up(clients + prompt + 64, 64)
        settings["max_num_tokens"] = 16_384 if "Llama" in model else tokens if version in _COLD else max(8_192, tokens)
    experts = _MXFP4_KERNELS.get(system) if engine == "vllm" and "gpt-oss" in model else None
    return Harness(0.8, 10, True, version not in _COLD, settings, eager, experts)


def tensor_degree(row: Mapping[str, str]) -> int:
    """Return the cards that share the model; some rows state them times the cards that share the experts."""
    cards, width, experts = (int(row[name] or 0) for name in ("tp_size", "moe_tp_size", "moe_ep_size"))
    return width if experts > 1 and width > 1 and cards == width * experts else cards


def _traffic(clients: int, prompt: int, answer: int, shortest: float) -> Traffic:
    """Return the requests of so many clients, whose prompts and answers have a share of the nominal tokens or more."""
    random = Random(0)
    lengths = [tuple(random.randint(int(shortest * tokens), tokens) for tokens in (prompt, answer)) for _ in range(500)]
    trace = TrafficTrace(
        arrival_seconds=(0.0,) * len(lengths),
        input_tokens=tuple(max(1, own) for own, _ in lengths),
        output_tokens=tuple(max(1, own) for _, own in lengths),
    )
    clients_in_turn = ConcurrentClients(clients=clients)
    return Traffic(arrivals=clients_in_turn, input=TracedLength(), output=TracedLength(), trace=trace)


def print_speed(catalog: Catalog) -> None:
    """Print the seconds of 100,000 requests on one core, beside those of a loop of ten million additions."""
    chat = Traffic(
        arrivals=RandomArrivals(requests_per_second=15),
        input=LogNormalLength(median_tokens=1_020, p90_tokens=2_734, most_tokens=14_050),
        output=LogNormalLength(median_tokens=129, p90_tokens=424, most_tokens=1_000),
    )
    plan = Plan(
        model=ModelChoice(id="meta-llama/Llama-3.1-8B"), workload=Inference(profile="vllm"), gpu="h100-sxm5-80gb"
    )
    deployment = deploy_plan(plan, catalog, chat, ServingSetup(), requests=2_000, seed=0)
    assert not isinstance(deployment, str)
    begin = time.process_time()
    run = run_once(deployment, chat, _MANY, 0, AS_ESTIMATED)
    middle = time.process_time()
    total = 0
    for number in range(_REFERENCE_LOOP):
        total += number
    end = time.process_time()
    assert run is not None
    seconds, loop = middle - begin, end - middle
    print(
        f"\n{_MANY:,} requests: {seconds:.2f} s of one core, {seconds / loop:.1f} times a loop of ten million additions"
    )
    targets = Targets(limits=(parse_latency_target("ttft", "p95=1s"), parse_latency_target("itl", "p95=50ms")))
    begin, first, tried = time.process_time(), 0.0, 0
    wish = ServingWish(kv_caches=("fp8",))
    for answer in plan_serving(plan, catalog, chat, targets, date(2026, 11, 22), wish):
        first, tried = first or (time.process_time() - begin if answer.best else 0.0), answer.done
    print(f"a search over {tried} configurations: {first:.1f} s to its first answer, ", end="")
    print(f"{time.process_time() - begin:.1f} s in all")


if __name__ == "__main__":
    sys.exit(main())
