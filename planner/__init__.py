"""GPU Planner: which GPU a model needs, and whether it fits the one you have.

The names below are the public API. They load on first use, so `import planner` costs next to nothing and brings in
neither Qt nor torch.

A plan states a model, a workload and GPUs; `evaluate` estimates memory, time and cost:

>>> import planner
>>> catalog = planner.load_catalog()
>>> gpu = planner.resolve_gpu(catalog.hardware, "RTX 4090")
>>> llama = planner.ModelChoice(id="meta-llama/Llama-3.1-8B")
>>> serving = planner.Plan(model=llama, workload=planner.Inference(batch=2), gpu=gpu.id)
>>> memory = planner.evaluate(serving, catalog).memory
>>> memory.verdict, memory.total_bytes == sum(term.bytes for term in memory.terms)
('fits', True)
>>> gpu.id in [fit.gpu_id for fit in planner.find_fits(serving, catalog)]
True

Several GPUs share a model as its software would, unless the workload's `parallel` says otherwise:

>>> two = serving.evolve(model=planner.ModelChoice(id="Qwen/Qwen2.5-14B"), gpu="rtx-3090", count=2)
>>> shared = planner.evaluate(two, catalog)
>>> shared.sharing.scheme, shared.workload.parallel.pipeline, shared.sharing.as_replicas.verdict
('layer split', 2, 'does-not-fit')

Solvers, advice and warnings:

>>> planner.largest_that_fits(serving, catalog, "batch").value > 2
True
>>> planner.fewest_cards(serving, catalog).value
1
>>> planner.smallest_card(serving, catalog).value == planner.find_fits(serving, catalog)[0].gpu_id
True
>>> tuning = serving.evolve(workload=planner.Training(method="lora"))
>>> advice = planner.advise(tuning, catalog)
>>> planner.evaluate(tuning.evolve(workload=planner.Training(method="qlora")), catalog).memory.verdict, len(advice) > 1
('does-not-fit', True)
>>> "loss-peak" in [warning.name for warning in planner.warnings_about(planner.evaluate(tuning, catalog))]
True
>>> planner.versus(tuning, serving, catalog).total_difference_bytes > 0
True

Time, cost and recommended hardware; prices are dated, so cost depends on a day:

>>> import datetime
>>> day = datetime.date(2026, 11, 22)
>>> job = planner.CostTerms(job=planner.Run(amount=50e6, unit="tokens"), region="DE")
>>> run = serving.evolve(workload=planner.Training(method="qlora"), cost=job, gpu="l40s")
>>> evaluation = planner.evaluate(run, catalog)
>>> evaluation.time.kind, evaluation.time.low_seconds < evaluation.time.seconds < evaluation.time.high_seconds
('step', True)
>>> cost = planner.evaluate_cost(evaluation, catalog, day).estimate
>>> cost.result.answer.verdict, cost.result.answer.confidence > 0.65
('rent', True)
>>> cost.result.rent.usd == sum(term.usd for term in cost.result.rent.terms)
True
>>> own = planner.evaluate(run.evolve(cost=job.evolve(buy={"owned": True})), catalog)
>>> faster = planner.find_faster_rental(own, planner.evaluate_cost(own, catalog, day).estimate, catalog, day)
>>> faster.hours < faster.own_hours
True
>>> found = planner.recommend(run, catalog, day, planner.Wish(budget_usd=20, counts=(1,)))
>>> found.cheapest.usd <= found.best_value.usd <= 20
True
>>> found.fastest.hours <= found.best_value.hours <= found.cheapest.hours
True
>>> busy = planner.Service(requests_per_day=20_000), planner.DailyHours(hours_per_day=8)
>>> served = serving.evolve(gpu="l40s", cost=planner.CostTerms(job=planner.Service(requests_per_day=20_000)))
>>> service = planner.evaluate(served, catalog)
>>> batched = planner.find_batched_service(service, planner.evaluate_cost(service, catalog, day).estimate, catalog, day)
>>> batched is None or batched.cards < batched.present_cards
True
>>> network, cards = evaluation.architecture, ((catalog.hardware.gpu("l40s"), 2),)
>>> planner.estimate_time(network, evaluation.workload, cards).seconds > 0
True
>>> catalog.cost.offer(cost.result.rent.offer_id).age_days(day) == cost.rows[0].age_days
True

Filtering hardware as `gpu-planner gpus` does; the fields `used`, `street` and `rent` need prices:

>>> prices = planner.price_words(planner.prices_by_card(catalog, day))
>>> query = planner.GpuQuery(where="memory_gib >= 24 and used < 1200", sort=("-bandwidth",))
>>> cards = planner.select(catalog.hardware.gpus, query, prices=prices)
>>> [each.id for each in cards], planner.derived_figures(cards[0])["usd_per_gib"]
(['rtx-4090', 'rtx-3090'], 66.625)
>>> large = planner.SystemQuery(where='memory_gib >= 1000 and kind == "server"', sort=("power",))
>>> [machine.id for machine in planner.select(catalog.hardware.machines, large)][:2]
['dgx-h200', 'dgx-b200']
>>> used = planner.prices_of(cards[0], catalog, day).bought["used"]
>>> used.low.price_usd <= used.median_usd <= used.high.price_usd, bool(used.latest.source)
(True, True)
>>> {fact.feature: fact.support for fact in planner.software_of(cards[0], catalog.software)}["fp8"]
'yes'
>>> planner.speeds_of(cards[0].id, catalog.speeds)[0].unit
'tokens/s'
>>> tried = planner.try_on(run, "a100-sxm4-80gb", 8, catalog, day)
>>> tried.evaluation.memory.verdict, tried.cost.estimate.result.rent.usd > 0
('fits', True)
>>> needs = planner.power_and_cooling(planner.Build((planner.BuildCards(cards[0], 2),)))
>>> needs.value("cards"), needs.value("wall") > 1350
(900.0, True)

The bundled catalog gives the same answers on every machine. With the user's custom GPUs and fetched prices it gives
those of the window and of the command line:

>>> mine = planner.load_catalog(prices=planner.prices_dir(), own=planner.own_hardware_file())
>>> len(mine.hardware.gpus) >= len(catalog.hardware.gpus)
True

Models, presets and files:

>>> network = planner.load_model("Qwen/Qwen3-8B", catalog.models).architecture
>>> planner.estimate_memory(network, planner.Inference()).peak_phase
'prefill'
>>> preset = next(preset for preset in planner.load_presets() if preset.id == "alpaca-lora-7b")
>>> planner.plan_of_preset(preset).model.id
'huggyllama/llama-7b'
>>> planner.with_preset(serving, preset).workload.method
'lora'
>>> import os, pathlib, tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     file, recipe = pathlib.Path(folder, "plan.json"), pathlib.Path(folder, "trainer.json")
...     planner.save_plan(file, serving)
...     planner.load_plan(file) == serving
...     _ = recipe.write_text('{"per_device_train_batch_size": 4, "optim": "adamw_torch"}')
...     planner.load_recipe(recipe).workload.micro_batch
True
4

A service, simulated request by request through the scheduler of its engine, and the hardware that holds its latencies:

>>> chat = planner.Traffic(
...     arrivals=planner.RandomArrivals(requests_per_second=4),
...     input=planner.LogNormalLength(median_tokens=1_020, p90_tokens=2_734),
...     output=planner.FixedLength(tokens=130),
... )
>>> first, between = ("ttft", "p95=1s"), ("itl", "p95=90ms")
>>> night = planner.DailyArrivals(requests_per_second=2, hourly_shares=(1,) * 8 + (3,) * 16)
>>> night.highest_rate
2.5714285714285716
>>> talk = chat.evolve(sessions=planner.Sessions(turns=4), prefixes=planner.SharedPrefixes(tokens=500))
>>> talk.requests_per_second, planner.ConcurrentClients(clients=8).think_seconds
(16.0, 0.0)
>>> targets = planner.Targets(limits=tuple(planner.parse_latency_target(*each) for each in (first, between)))
>>> engine = planner.Plan(model=llama, workload=planner.Inference(profile="vllm"), gpu="l40s", count=2)
>>> setup = planner.ServingSetup(router="least-loaded")
>>> simulated = planner.simulate_serving(engine, catalog, chat, targets, setup, requests=300, ranges=False)
>>> simulated.holds, simulated.replicas, simulated.latency("ttft").percentile(95).seconds < 1
(True, 2, True)
>>> point = next(planner.serving_curve(engine, catalog, chat, rates=[2.0], requests=100))
>>> point.simulation.requests_per_second > 1
True
>>> wish = planner.ServingWish(gpus=("l40s", "h100-sxm5-80gb"), cards_per_replica=(1,))
>>> answer = list(planner.plan_serving(engine, catalog, chat, targets, day, wish, requests=200))[-1]
>>> answer.complete, answer.best.plan.gpu in wish.gpus, answer.best.usd_per_month > 100
(True, True, True)
>>> planner.load_traffic_presets()[0].id
'chat'
>>> with tempfile.TemporaryDirectory() as folder:
...     file = pathlib.Path(folder, "requests.csv")
...     _ = file.write_text(os.linesep.join(("TIMESTAMP,ContextTokens,GeneratedTokens", "0.5,374,44", "4.5,396,109")))
...     planner.load_traffic(file).arrival_seconds
(0.0, 4.0)

The files that run a plan with another program, which give the plan again when they are read:

>>> settings = planner.launch_settings(serving.evolve(gpu="l40s"), catalog, "vllm", on="kubernetes")
>>> [file.name for file in settings.files], {row.key: row.value for row in settings.settings}["--max-num-seqs"]
(['deployment.yaml'], 2)
>>> with tempfile.TemporaryDirectory() as folder:
...     file = pathlib.Path(folder, settings.files[0].name)
...     _ = file.write_text(settings.files[0].text)
...     planner.load_launch_file(file).workload.batch
2

The commands that measure a plan on the real GPUs; the log of a run, compared with its plan; errors have a message and
a hint:

>>> check = planner.plan_checks(serving.evolve(gpu="l40s"), catalog)[0]
>>> check.language, check.expected[0].name
('python', 'allocated')

>>> log = planner.read_log("CUDA out of memory. Tried to allocate 2.78 GiB. GPU 0 has a total capacity of 23.5 GiB "
...     "of which 1.73 GiB is free. Of the allocated memory 20.1 GiB is allocated by PyTorch, and 0.35 GiB is "
...     "reserved by PyTorch but unallocated.")
>>> planner.compare_plan(tuning, catalog, log).row("allocated").at_least
True
>>> try:
...     planner.resolve_gpu(catalog.hardware, "RTX 4091")
... except planner.PlannerError as error:
...     "rtx-4090" in error.hint
True

What a server's metrics or a load generator's results say of a run is one record:

>>> with tempfile.TemporaryDirectory() as folder:
...     scrape = pathlib.Path(folder, "metrics.txt")
...     info = 'vllm:cache_config_info{block_size="16",num_gpu_blocks="9180"} 1'
...     text = scrape.write_text(info)
...     run = planner.read_serving_runs(scrape)[0]
>>> run.cache_tokens, run.reason("first_token")
(146880, "vLLM's /metrics does not state it")

A report has the answers with their reasons and sources, as a web page, a PDF or Markdown, and opens again as its plan:

>>> with tempfile.TemporaryDirectory() as folder:
...     page = pathlib.Path(folder, "report.html")
...     planner.write_report(planner.report_on_plan(serving, catalog, day), page)
...     planner.load_plan(page) == serving
'html'
True
>>> planner.report_on_two_plans(serving, serving.evolve(gpu="l40s"), catalog, day).sections[1].title
'Memory of both'

A custom module is traced in a separate process, which needs torch and takes a while:

>>> net = planner.Target(kind="file", place="net.py", name="net_and_input")  # a function that returns both
>>> request = planner.TraceRequest(target=net)
>>> limits = planner.TraceLimits(seconds=60)
>>> recording = planner.start_trace(request, limits).result()  # doctest: +SKIP
>>> planner.conclude(recording, gpu).total_bytes  # doctest: +SKIP
>>> planner.facts_of(recording).reserved_bytes  # doctest: +SKIP
>>> planner.save_recording("net.trace.json.gz", recording)  # doctest: +SKIP
>>> planner.load_recording("net.trace.json.gz") == recording  # doctest: +SKIP

The GPUs of many machines, from Prometheus or from exporters; here from a saved scrape:

>>> used = 'DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-1",modelName="NVIDIA L4",Hostname="node1"} 97'
>>> with tempfile.TemporaryDirectory() as folder:
...     scrape = pathlib.Path(folder, "node1.prom")
...     scrape.write_text(used + chr(10)) > 0
...     fleet = planner.read_fleet([planner.FleetConnection(url=str(scrape))], {})
...     [(one.host, one.device.name, one.use) for one in fleet.cards]
True
[('node1', 'NVIDIA L4', 0.97)]
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from planner.cost.terms import CostTerms, DailyHours, Run, Service
    from planner.errors import PlannerError
    from planner.fleet.connection import FleetConnection
    from planner.fleet.fleet import read_fleet
    from planner.hardware.derived import derived_figures
    from planner.hardware.names import resolve_gpu
    from planner.hardware.power import Build, BuildCards, power_and_cooling
    from planner.hardware.published_speeds import speeds_of
    from planner.hardware.query import GpuQuery, SystemQuery, select
    from planner.hardware.software_support import software_of
    from planner.launch.launch import launch_settings
    from planner.launch.load import load_launch_file
    from planner.launch.verify import plan_checks
    from planner.memory.estimate import estimate_memory
    from planner.memory.logs.read import read_log
    from planner.models.load import load_model
    from planner.paths import own_hardware_file, prices_dir
    from planner.performance.estimate import estimate_time
    from planner.plan.advice.advise import advise
    from planner.plan.catalog import load_catalog
    from planner.plan.comparison import versus
    from planner.plan.cost import evaluate_cost
    from planner.plan.cost_alternatives import find_batched_service, find_faster_rental
    from planner.plan.evaluate import evaluate, find_fits
    from planner.plan.files import load_plan, save_plan
    from planner.plan.logs.comparison import compare_plan
    from planner.plan.placement import try_on
    from planner.plan.plan import ModelChoice, Plan
    from planner.plan.prices import price_words, prices_by_card, prices_of
    from planner.plan.recipes import load_presets, load_recipe, plan_of_preset, with_preset
    from planner.plan.recommend.option import Wish
    from planner.plan.recommend.recommend import recommend
    from planner.plan.serving.answer import ServingWish
    from planner.plan.serving.find_service import plan_serving
    from planner.plan.serving.service_simulation import serving_curve, simulate_serving
    from planner.plan.solve import fewest_cards, largest_that_fits, smallest_card
    from planner.plan.warnings import warnings_about
    from planner.present.report.comparison_report import report_on_two_plans
    from planner.present.report.plan_report import report_on_plan
    from planner.present.report.write import write_report
    from planner.serving.deployment import ServingSetup
    from planner.serving.targets import Targets, parse_latency_target
    from planner.serving.traffic import (
        ConcurrentClients,
        DailyArrivals,
        FixedLength,
        LogNormalLength,
        RandomArrivals,
        Sessions,
        SharedPrefixes,
        Traffic,
        load_traffic_presets,
    )
    from planner.serving.traffic_files import load_traffic
    from planner.serving_runs.read import read_serving_runs
    from planner.trace.analysis.memory import facts_of
    from planner.trace.analysis.trace_result import conclude
    from planner.trace.files import load_recording, save_recording
    from planner.trace.request import Target, TraceRequest
    from planner.trace.run import TraceLimits, start_trace
    from planner.workload.workload import Inference, Training

__version__ = "0.1.0"

__all__ = [
    "Build",
    "BuildCards",
    "ConcurrentClients",
    "CostTerms",
    "DailyArrivals",
    "DailyHours",
    "FixedLength",
    "FleetConnection",
    "GpuQuery",
    "Inference",
    "LogNormalLength",
    "ModelChoice",
    "Plan",
    "PlannerError",
    "RandomArrivals",
    "Run",
    "Service",
    "ServingSetup",
    "ServingWish",
    "Sessions",
    "SharedPrefixes",
    "SystemQuery",
    "Target",
    "Targets",
    "TraceLimits",
    "TraceRequest",
    "Traffic",
    "Training",
    "Wish",
    "__version__",
    "advise",
    "compare_plan",
    "conclude",
    "derived_figures",
    "estimate_memory",
    "estimate_time",
    "evaluate",
    "evaluate_cost",
    "facts_of",
    "fewest_cards",
    "find_batched_service",
    "find_faster_rental",
    "find_fits",
    "largest_that_fits",
    "launch_settings",
    "load_catalog",
    "load_launch_file",
    "load_model",
    "load_plan",
    "load_presets",
    "load_recipe",
    "load_recording",
    "load_traffic",
    "load_traffic_presets",
    "own_hardware_file",
    "parse_latency_target",
    "plan_checks",
    "plan_of_preset",
    "plan_serving",
    "power_and_cooling",
    "price_words",
    "prices_by_card",
    "prices_dir",
    "prices_of",
    "read_fleet",
    "read_log",
    "read_serving_runs",
    "recommend",
    "report_on_plan",
    "report_on_two_plans",
    "resolve_gpu",
    "save_plan",
    "save_recording",
    "select",
    "serving_curve",
    "simulate_serving",
    "smallest_card",
    "software_of",
    "speeds_of",
    "start_trace",
    "try_on",
    "versus",
    "warnings_about",
    "with_preset",
    "write_report",
]

_HOMES = {
    "Build": "planner.hardware.power",
    "BuildCards": "planner.hardware.power",
    "ConcurrentClients": "planner.serving.traffic",
    "CostTerms": "planner.cost.terms",
    "DailyArrivals": "planner.serving.traffic",
    "DailyHours": "planner.cost.terms",
    "FixedLength": "planner.serving.traffic",
    "FleetConnection": "planner.fleet.connection",
    "GpuQuery": "planner.hardware.query",
    "Inference": "planner.workload.workload",
    "LogNormalLength": "planner.serving.traffic",
    "ModelChoice": "planner.plan.plan",
    "Plan": "planner.plan.plan",
    "PlannerError": "planner.errors",
    "RandomArrivals": "planner.serving.traffic",
    "Run": "planner.cost.terms",
    "Service": "planner.cost.terms",
    "ServingSetup": "planner.serving.deployment",
    "ServingWish": "planner.plan.serving.answer",
    "Sessions": "planner.serving.traffic",
    "SharedPrefixes": "planner.serving.traffic",
    "SystemQuery": "planner.hardware.query",
    "Target": "planner.trace.request",
    "Targets": "planner.serving.targets",
    "TraceLimits": "planner.trace.run",
    "TraceRequest": "planner.trace.request",
    "Traffic": "planner.serving.traffic",
    "Training": "planner.workload.workload",
    "Wish": "planner.plan.recommend.option",
    "advise": "planner.plan.advice.advise",
    "compare_plan": "planner.plan.logs.comparison",
    "conclude": "planner.trace.analysis.trace_result",
    "derived_figures": "planner.hardware.derived",
    "estimate_memory": "planner.memory.estimate",
    "estimate_time": "planner.performance.estimate",
    "evaluate": "planner.plan.evaluate",
    "evaluate_cost": "planner.plan.cost",
    "facts_of": "planner.trace.analysis.memory",
    "fewest_cards": "planner.plan.solve",
    "find_batched_service": "planner.plan.cost_alternatives",
    "find_faster_rental": "planner.plan.cost_alternatives",
    "find_fits": "planner.plan.evaluate",
    "largest_that_fits": "planner.plan.solve",
    "launch_settings": "planner.launch.launch",
    "load_catalog": "planner.plan.catalog",
    "load_launch_file": "planner.launch.load",
    "load_model": "planner.models.load",
    "load_plan": "planner.plan.files",
    "load_presets": "planner.plan.recipes",
    "load_recipe": "planner.plan.recipes",
    "load_recording": "planner.trace.files",
    "load_traffic": "planner.serving.traffic_files",
    "load_traffic_presets": "planner.serving.traffic",
    "own_hardware_file": "planner.paths",
    "parse_latency_target": "planner.serving.targets",
    "plan_checks": "planner.launch.verify",
    "plan_of_preset": "planner.plan.recipes",
    "plan_serving": "planner.plan.serving.find_service",
    "power_and_cooling": "planner.hardware.power",
    "price_words": "planner.plan.prices",
    "prices_by_card": "planner.plan.prices",
    "prices_dir": "planner.paths",
    "prices_of": "planner.plan.prices",
    "read_fleet": "planner.fleet.fleet",
    "read_log": "planner.memory.logs.read",
    "read_serving_runs": "planner.serving_runs.read",
    "recommend": "planner.plan.recommend.recommend",
    "report_on_plan": "planner.present.report.plan_report",
    "report_on_two_plans": "planner.present.report.comparison_report",
    "resolve_gpu": "planner.hardware.names",
    "save_plan": "planner.plan.files",
    "save_recording": "planner.trace.files",
    "select": "planner.hardware.query",
    "serving_curve": "planner.plan.serving.service_simulation",
    "simulate_serving": "planner.plan.serving.service_simulation",
    "smallest_card": "planner.plan.solve",
    "software_of": "planner.hardware.software_support",
    "speeds_of": "planner.hardware.published_speeds",
    "start_trace": "planner.trace.run",
    "try_on": "planner.plan.placement",
    "versus": "planner.plan.comparison",
    "warnings_about": "planner.plan.warnings",
    "with_preset": "planner.plan.recipes",
    "write_report": "planner.present.report.write",
}


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'planner' has no attribute {name!r}", name=name, obj=sys.modules[__name__])
    return getattr(import_module(_HOMES[name]), name)
