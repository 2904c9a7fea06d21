"""`gpu-planner report`: a report on a plan, two plans, a recording or a trace, as HTML, PDF or Markdown."""

import argparse
import json
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Final

from planner.cli.comparisons import other_plan
from planner.cli.money_options import add_money_options, plan_with_money
from planner.cli.parser import Parser, option_value
from planner.cli.plan_arguments import add_plan_options
from planner.cli.user_catalog import user_catalog
from planner.hardware.names import resolve_gpu
from planner.monitor.recording.log_import import is_recording, open_recording
from planner.numbers import MONEY
from planner.plan.catalog import Catalog
from planner.present.report.document import Report
from planner.present.report.write import report_format, write_report
from planner.trace.files import is_recording_file, load_recording

_DESCRIPTION: Final = """\
Write a report for people who decide and do not have GPU Planner: the question and the answer, the workload, other
hardware for the same job, memory, speed, cost with break-even and sensitivity, a bill of materials with power and
cooling, risks, and the formula and source of every figure."""
_EPILOG: Final = """\
MODEL is a plan, a model or a training file as for `gpu-planner fit`; or a recording of `gpu-planner monitor`, or of
`gpu-planner trace`, for a report on that run. An HTML report is a single file that also prints well; it and a Markdown
report open again in GPU Planner, and a PDF has the plan attached.

examples:
  gpu-planner report plan.json -o report.html
  gpu-planner report meta-llama/Llama-3.1-8B --profile vllm --gpu l40s --requests-per-day 20000 -o report.pdf
  gpu-planner report plan.json --versus other.json -o comparison.md
  gpu-planner report run.gpurec --tariff 0.30 -o run.html
  gpu-planner report run.trace.json.gz --gpu "RTX 4090" -o trace.html

exit codes: 0 done, 2 invalid input, 3 a PDF needs the window's packages"""


def run(argv: list[str], today: date | None = None) -> int:
    """Run the command with prices as of `today`, by default the current day, and return the exit code.

    Raises:
        PlannerError: If the report cannot be made or written.
    """
    arguments = make_parser().parse_args(argv)
    path = arguments.output
    report_format(path)  # a wrong name is refused before anything is computed
    report = _report(arguments, user_catalog(), arguments.date or today or datetime.now(UTC).date())
    written_as = write_report(report, path)
    if arguments.json:
        print(json.dumps({"file": str(path), "format": written_as, "title": report.title}))
    else:
        print(f"Wrote {path}: {report.title}.")
    return 0


def make_parser() -> Parser:
    """Return the parser of the command's options."""
    parser = Parser("gpu-planner report", _DESCRIPTION, _EPILOG)
    add_plan_options(parser)
    add_money_options(parser)
    answer = parser.add_argument_group("the report")
    answer.add_argument(
        "-o", "--output", metavar="FILE", type=Path, required=True, help="file to write: .html, .pdf or .md"
    )
    answer.add_argument("--versus", metavar="OTHER", help="compare with a PLAN.json, with other GPUs or another model")
    answer.add_argument(
        "--date", metavar="YYYY-MM-DD", type=_day, help="day from which the age of prices is counted [today]"
    )
    parser.add_general_options()
    return parser


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a day such as 2026-11-24") from error


def _report(arguments: argparse.Namespace, catalog: Catalog, today: date) -> Report:
    path = None if arguments.model is None else Path(arguments.model)
    if path is not None and path.is_file():
        if is_recording_file(path):
            return _trace_report(path, arguments, catalog, today)
        if is_recording(path):
            from planner.present.report.recording_report import report_on_recording  # reads and plots series

            return report_on_recording(open_recording(path), today, _tariff(arguments))
    plan = plan_with_money(arguments, catalog)
    if arguments.versus is None:
        from planner.present.report.plan_report import report_on_plan

        return report_on_plan(plan, catalog, today)
    from planner.present.report.comparison_report import report_on_two_plans

    return report_on_two_plans(plan, other_plan(arguments.versus, plan, catalog), catalog, today)


def _trace_report(path: Path, arguments: argparse.Namespace, catalog: Catalog, today: date) -> Report:
    """Return the report on a trace, for the cards of `--gpu` and `--count` if they are given."""
    # A trace takes a while to load, and few reports are on one.
    from planner.present.report.trace_report import report_on_trace
    from planner.trace.analysis.trace_result import conclude
    from planner.trace.launcher import traced_ranks

    recording = load_recording(path)
    gpu = resolve_gpu(catalog.hardware, arguments.gpu[0]) if arguments.gpu else None
    count = traced_ranks(recording.request) if arguments.count is None else int(arguments.count)
    usable = catalog.hardware.usable_memory(gpu) if gpu else None
    result = conclude(recording, gpu, usable, count)
    return report_on_trace(result, today, gpu.name if gpu else None, count)


def _tariff(arguments: argparse.Namespace) -> float | None:
    """Return the price of electricity in USD per kWh, None if it is not given."""
    value = option_value("--tariff", arguments.tariff, MONEY) if arguments.tariff is not None else None
    return value if isinstance(value, float) else None
