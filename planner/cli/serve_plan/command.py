"""`gpu-planner serve-plan`: the hardware on which a service meets its latency targets, or how given GPUs do."""

import argparse
import sys
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter

from planner.cli.main import DOES_NOT_FIT
from planner.cli.options import naming_options
from planner.cli.parser import Parser, row_limit_or_none
from planner.cli.plan_arguments import add_plan_options, plan_from_arguments, save_plan_as
from planner.cli.serve_plan.request import count_option, setup_from, targets_from, traffic_from, wish_from
from planner.cli.table import ProgressLine, TableColumn, column_table, prose_width, table, terminal_width, wrap
from planner.cli.user_catalog import user_catalog
from planner.errors import SpecError
from planner.plan.catalog import Catalog
from planner.plan.plan import Plan
from planner.plan.serving.answer import ServingAnswer
from planner.plan.serving.find_service import DEFAULT_SEARCH_REQUESTS, plan_serving
from planner.plan.serving.measured import MeasuredComparison, compare_with_run, traffic_of_run
from planner.plan.serving.service_simulation import served_plan, serving_curve, simulate_serving
from planner.present import format as fmt
from planner.present.serving.options import (
    SERVING_COLUMNS,
    ServingRow,
    consequence_sentence,
    left_out_sentence,
    option_sentence,
    program_title,
    search_sentence,
    serving_row,
    serving_rows,
)
from planner.present.serving.simulation import (
    comparison_heading,
    comparison_verdict,
    load_sentence,
    measured_columns,
    percentile_columns,
    rate_columns,
    sample_sentence,
    simulation_sentence,
    target_rows,
)
from planner.present.serving.traffic import targets_phrase, traffic_sentence
from planner.serving.deployment import ServingSetup
from planner.serving.result import RatePoint, ServingCurve, ServingSimulation
from planner.serving.simulate import DEFAULT_REQUESTS
from planner.serving.targets import Goodput, Targets
from planner.serving.traffic import Traffic, load_traffic_presets
from planner.serving_runs.read import read_serving_runs
from planner.workload.software.registry import SOFTWARE

_INDENT: Final = "  "


def simulation_text(
    found: ServingSimulation,
    points: tuple[RatePoint, ...],
    plan: Plan,
    catalog: Catalog,
    traffic: Traffic,
    targets: Targets,
) -> str:
    """Return a simulated service as text: the answer, its targets, its latencies, and its figures over the rate."""
    width = terminal_width()
    assert plan.gpu is not None
    cards = fmt.count_of(plan.count, catalog.hardware.gpu(plan.gpu).name)
    blocks = [wrap(simulation_sentence(found, targets.goodput), prose_width(width))]
    blocks.append(wrap(f"{cards} with {program_title(plan)}, for {traffic_sentence(traffic)}.", prose_width(width)))
    blocks += _simulation_blocks(found, targets, width)
    if points:
        blocks.append(column_table(rate_columns(), points))
    return "\n\n".join(block for block in blocks if block)


def measured_text(found: MeasuredComparison, plan: Plan, catalog: Catalog) -> str:
    """Return a measured run beside its simulation as text."""
    width = prose_width(terminal_width())
    blocks = [wrap(comparison_heading(found), width)]
    if found.simulation.unsupported is not None:
        return "\n\n".join((*blocks, wrap(simulation_sentence(found.simulation), width)))
    assert plan.gpu is not None  # or nothing was simulated
    cards = fmt.count_of(plan.count, catalog.hardware.gpu(plan.gpu).name)
    blocks.append(
        wrap(f"Simulated on {cards} with {SOFTWARE[found.program].title}. {comparison_verdict(found)}", width)
    )
    if found.figures:
        blocks.append(column_table(measured_columns(), found.figures))
    return "\n\n".join(blocks)


def _simulation_blocks(found: ServingSimulation, targets: Targets, width: int | None) -> list[str]:
    if found.unsupported is not None:
        return []
    rows = target_rows(found, targets.goodput)
    blocks = []
    if rows:
        heads = [TableColumn("Target", flexible=True), TableColumn("Simulated"), TableColumn("")]
        blocks.append(table(heads, [(row.title, row.figure, row.word) for row in rows], width))
    blocks.append(column_table(percentile_columns(), found.latencies))
    blocks.append(wrap(load_sentence(found), prose_width(width)))
    blocks += [wrap(note, prose_width(width)) for note in found.notes]
    blocks.append(wrap(sample_sentence(found), prose_width(width)))
    return blocks


def search_text(answer: ServingAnswer, catalog: Catalog, traffic: Traffic, targets: Targets, limit: int | None) -> str:
    """Return the answer of a search as text: the best option in detail, and `limit` options in a table."""
    width = terminal_width()
    asked, met = f"For {traffic_sentence(traffic)}; {targets_phrase(targets)}.", search_sentence(answer)
    shown = answer.best or answer.nearest
    head = [asked, met] if answer.options else [met, asked]
    blocks = [wrap(text, prose_width(width)) for text in head]
    if shown is not None:
        row = serving_row(shown, catalog.hardware, targets.goodput)
        blocks.insert(0 if answer.options else 1, _option_line(row, answer, targets.goodput, width))
        blocks += _option_blocks(row, targets, width)
    rows = serving_rows(answer, catalog.hardware, targets.goodput)
    listed = rows[:limit]
    if len(rows) > 1 and listed:
        columns = [column for column in SERVING_COLUMNS if column.shown]
        blocks.append(column_table(columns, listed))
    if len(listed) < len(rows):
        blocks.append(f"{len(listed):,} of {len(rows):,} options listed; --all lists them all, best first")
    blocks.append(wrap(left_out_sentence(answer), prose_width(width)))
    return "\n\n".join(block for block in blocks if block)


def _option_line(row: ServingRow, answer: ServingAnswer, goodput: Goodput | None, width: int | None) -> str:
    title = "Best" if answer.best is not None else "Closest to the targets"
    met = simulation_sentence(row.option.simulation, goodput)
    return wrap(f"{title}: {option_sentence(row)}, with {program_title(row.option.plan)}. {met}", prose_width(width))


def _option_blocks(row: ServingRow, targets: Targets, width: int | None) -> list[str]:
    blocks = _simulation_blocks(row.option.simulation, targets, width)
    if row.option.consequences:
        lines = [wrap(consequence_sentence(one), prose_width(width), _INDENT) for one in row.option.consequences]
        blocks.append("\n".join(("What would change it:", *lines)))
    return blocks


_DESCRIPTION: Final = """\
Find the hardware with which a service answers its requests within latency targets: for the fewest dollars, GPUs or
watts. Each option is simulated request by request through the scheduler of the plan's program. With --gpu and --count,
or with --dp, simulate what these GPUs do instead."""

_EPILOG: Final = """\
examples:
  gpu-planner serve-plan meta-llama/Llama-3.1-8B --rate 4/s --input 1500 --output 300 --ttft p95=1s --itl p95=50ms
  gpu-planner serve-plan meta-llama/Llama-3.1-8B --traffic chat --rate 20/s --ttft p95=500ms --gpu l40s --gpu h100-sxm
  gpu-planner serve-plan meta-llama/Llama-3.1-70B --weights fp8 --rate 2/s --input 800:3000 --e2e p99=20s
  gpu-planner serve-plan plan.json --gpu l40s --count 2 --dp 2 --rate 4/s --curve
  gpu-planner serve-plan plan.json --measured vllm-bench.json
  gpu-planner serve-plan plan.json --trace requests.csv --speed 2 --ttft p99=2s --json

Latencies: --ttft is the time to the first token, --itl the time between two tokens, --tpot its mean over a request,
--e2e the time to the last token. A target is a percentile or the mean, and a time with its unit: p95=1s, p99=50ms,
mean=200ms; 1s alone means p95=1s. --goodput 99%,ttft=1s,tpot=50ms: this share of requests meets all of these limits.
Lengths: 1500 for all requests alike, or MEDIAN:P90, such as 800:3000, for lengths that differ (log-normal).
Traces: CSV or JSONL with arrival, input and output tokens, and the layouts of Azure's and Mooncake's traces.

--measured simulates the traffic of a measured run on the plan's GPUs, and prints both: the /metrics of vLLM, SGLang,
TensorRT-LLM or llama-server, or a result of `vllm bench serve`, SGLang's bench_serving, guidellm or AIPerf.

Without --profile, vLLM serves. Ranges cover 80 % of measurements. --json prints one object: of a search its wish (what
was asked), options (best first, each with its plan and simulation), left_out and nearest; of a simulation its
latencies, targets, cache and one minute in detail; with --curve a list of both. Times are in seconds.

exit codes: 0 done, 1 the targets are not met (only with --check), 2 invalid input"""
_LISTED: Final = 10


def run(argv: list[str], today: date | None = None) -> int:
    """Run the command with prices as of `today`, by default the current day, and return the exit code."""
    arguments = make_parser().parse_args(argv)
    catalog = user_catalog()
    try:
        asked = plan_from_arguments(arguments, catalog).plan
    except SpecError as error:
        raise naming_options(error) from error
    setup = setup_from(arguments)
    if arguments.measured is not None:
        return _compare(arguments, asked, catalog, setup)
    plan = served_plan(asked)
    traffic, targets = traffic_from(arguments), targets_from(arguments)
    if _is_deployment(arguments, plan):
        return _simulate(arguments, plan, catalog, traffic, targets, setup)
    return _search(arguments, plan, catalog, traffic, targets, setup, today or datetime.now(UTC).date())


def _compare(arguments: argparse.Namespace, asked: Plan, catalog: Catalog, setup: ServingSetup) -> int:
    """Simulate each run of a file of measurements, in its own program unless the plan names one, and print both."""
    found: list[MeasuredComparison] = []
    plan = asked
    for run in read_serving_runs(arguments.measured):
        plan = served_plan(asked, run.engine)
        given = arguments.rate is not None or arguments.clients is not None or arguments.trace is not None
        traffic = traffic_from(arguments) if given else traffic_of_run(run)
        simulation = simulate_serving(plan, catalog, traffic, None, setup, seed=count_option(arguments, "seed") or 0)
        assert simulation is not None  # only a stopped simulation returns None
        found.append(compare_with_run(run, str(plan.workload.profile), traffic, simulation))
    if arguments.json:
        print(TypeAdapter(tuple[MeasuredComparison, ...]).dump_json(tuple(found), indent=2).decode())
    else:
        print("\n\n".join(measured_text(each, plan, catalog) for each in found))
    return 0


def _is_deployment(arguments: argparse.Namespace, plan: Plan) -> bool:
    """Return whether the GPUs are given, so that nothing is searched."""
    counted = arguments.count is not None or plan.count > 1 or arguments.curve
    return plan.gpu is not None and not arguments.search and (counted or plan.workload.parallel.data is not None)


def _simulate(
    arguments: argparse.Namespace, plan: Plan, catalog: Catalog, traffic: Traffic, targets: Targets, setup: ServingSetup
) -> int:
    requests, seed = count_option(arguments, "requests") or DEFAULT_REQUESTS, count_option(arguments, "seed") or 0
    found = simulate_serving(plan, catalog, traffic, targets, setup, requests=requests, seed=seed)
    assert found is not None  # only a stopped simulation returns None
    points = (
        tuple(serving_curve(plan, catalog, traffic, setup, requests=requests, seed=seed)) if arguments.curve else ()
    )
    if arguments.save:
        save_plan_as(arguments.save, plan)
    if arguments.json:
        print(_simulation_json(found, points, curve=arguments.curve))
    else:
        print(simulation_text(found, points, plan, catalog, traffic, targets))
    return DOES_NOT_FIT if arguments.check and not found.holds else 0


def _simulation_json(found: ServingSimulation, points: tuple[RatePoint, ...], *, curve: bool) -> str:
    if not curve:
        return found.model_dump_json(indent=2)
    return ServingCurve(simulation=found, curve=points).model_dump_json(indent=2)


def _search(
    arguments: argparse.Namespace,
    plan: Plan,
    catalog: Catalog,
    traffic: Traffic,
    targets: Targets,
    setup: ServingSetup,
    today: date,
) -> int:
    if not targets.limits and targets.goodput is None:
        hint = "Add a target, such as --ttft p95=1s or --itl p95=50ms; or name GPUs with --gpu and --count."
        raise SpecError("--ttft, --itl, --tpot, --e2e", "a search needs at least one latency target", hint)
    requests, seed = (
        count_option(arguments, "requests") or DEFAULT_SEARCH_REQUESTS,
        count_option(arguments, "seed") or 0,
    )
    wish = wish_from(arguments, plan, catalog)
    answer: ServingAnswer | None = None
    with ProgressLine(sys.stderr) as line:
        for answer in plan_serving(plan, catalog, traffic, targets, today, wish, setup, requests=requests, seed=seed):
            line.show(f"Simulating: {answer.done} of {answer.total} configurations")
    assert answer is not None  # at least one is yielded
    if arguments.save and answer.best is not None:
        save_plan_as(arguments.save, answer.best.plan)
    if arguments.json:
        print(answer.model_dump_json(indent=2))
    else:
        print(search_text(answer, catalog, traffic, targets, None if arguments.all else arguments.limit))
    return DOES_NOT_FIT if arguments.check and answer.best is None else 0


def make_parser() -> Parser:
    """Return the parser of the command's options."""
    parser = Parser("gpu-planner serve-plan", _DESCRIPTION, _EPILOG)
    add_plan_options(parser)
    traffic = parser.add_argument_group("traffic")
    names = ", ".join(preset.id for preset in load_traffic_presets())
    traffic.add_argument("--traffic", metavar="PRESET", help=f"lengths and targets of a kind of service: {names}")
    traffic.add_argument("--rate", metavar="N/s", help="requests per second, or as N/min, N/h or N/day")
    traffic.add_argument(
        "--clients", metavar="N", help="clients that each send a request when their last one has ended"
    )
    traffic.add_argument("--trace", metavar="FILE", type=Path, help="recorded requests: CSV or JSONL")
    traffic.add_argument("--speed", metavar="X", help="play the trace X times as fast [1]")
    traffic.add_argument("--input", metavar="TOKENS", help="prompt tokens, as N or MEDIAN:P90 [1,000]")
    traffic.add_argument("--output", metavar="TOKENS", help="answer tokens, as N or MEDIAN:P90 [300]")
    traffic.add_argument(
        "--burstiness", metavar="X", help="1: random (Poisson); lower: in bursts; higher: evenly spread [1]"
    )
    traffic.add_argument("--shared-prefix", metavar="TOKENS", help="tokens with which all prompts begin")
    traffic.add_argument("--prefixes", metavar="N", help="number of different shared prefixes [1]")
    traffic.add_argument("--turns", metavar="N", help="turns of a conversation, whose prompts grow [1]")
    traffic.add_argument(
        "--think-seconds", metavar="S", help="pause of a client between requests, or between two turns [0]"
    )
    limits = parser.add_argument_group("latency targets; each repeatable")
    for name, about in (
        ("ttft", "time to the first token"),
        ("itl", "time between two tokens"),
        ("tpot", "mean time between the tokens of a request"),
        ("e2e", "time to the last token"),
    ):
        limits.add_argument(f"--{name}", metavar="p95=TIME", action="append", default=[], help=about)
    limits.add_argument(
        "--goodput", metavar="SHARE,LIMITS", help="share of requests within limits: 99%%,ttft=1s,tpot=50ms"
    )
    search = parser.add_details("the search")
    search.add_argument("--search", action="store_true", help="find the number of GPUs even if it is given")
    search.add_argument("--objective", metavar="WHAT", help="what to minimize: usd, cards (GPUs) or watts [usd]")
    search.add_argument("--counts", metavar="NUMBERS", help="GPUs per replica, comma-separated [1,2,4,8]")
    search.add_argument("--most-gpus", metavar="N", help="maximum number of GPUs of all replicas together [64]")
    search.add_argument("--vendor", metavar="NAMES", help="only these vendors, comma-separated")
    search.add_argument("--try-weights", metavar="FORMATS", help="further weight formats to try, comma-separated")
    search.add_argument("--try-kv-cache", metavar="FORMATS", help="further formats of the KV cache to try")
    search.add_argument("--try-step-tokens", metavar="NUMBERS", help="further numbers of tokens per step to try")
    acquisition = search.add_mutually_exclusive_group()
    acquisition.add_argument("--rent", action="store_true", help="rent only")
    acquisition.add_argument("--own", action="store_true", help="own only")
    search.add_argument("--modes", metavar="MODES", help="rental modes, comma-separated [on-demand]")
    search.add_argument("--budget", metavar="USD", help="highest cost per month")
    search.add_argument("--surely", action="store_true", help="meet the targets over the whole range of the estimate")
    how = parser.add_details("how requests are served")
    how.add_argument("--router", metavar="NAME", help="round-robin, least-loaded or prefix-aware [round-robin]")
    how.add_argument("--no-prefix-cache", action="store_true", help="do not reuse the KV cache of earlier requests")
    how.add_argument(
        "--disaggregate", metavar="P+D", help="P replicas read prompts and D others answer, such as 2+4 (with --count)"
    )
    answer = parser.add_argument_group("the answer")
    answer.add_argument(
        "--measured",
        metavar="FILE",
        type=Path,
        help="compare with a measured run: a scrape or a result file",
    )
    answer.add_argument("--curve", action="store_true", help="also simulate the given GPUs at several rates")
    answer.add_argument("--requests", metavar="N", help="requests of each simulation [2,000; in a search 800]")
    answer.add_argument("--seed", metavar="N", help="seed of the random traffic [0]")
    answer.add_argument("--all", action="store_true", help="list all options")
    answer.add_argument("--limit", metavar="N", type=row_limit_or_none, default=_LISTED, help="list N options [10]")
    answer.add_argument("--save", metavar="PLAN.json", type=Path, help="write the plan with the best option to a file")
    answer.add_argument("--check", action="store_true", help="exit with code 1 if the targets are not met")
    parser.add_general_options()
    return parser
