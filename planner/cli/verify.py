"""`gpu-planner verify`: commands that measure what a plan estimates, and the comparison with what they print."""

import argparse
import json
from pathlib import Path
from typing import Final

from planner.cli.comparisons import comparison_block, named_log, read_named_log
from planner.cli.options import naming_options
from planner.cli.parser import Parser
from planner.cli.plan_arguments import add_plan_options, plan_from_arguments, save_plan_as
from planner.cli.table import TableColumn, table, terminal_width
from planner.cli.user_catalog import user_catalog
from planner.errors import SpecError
from planner.launch.verify import plan_checks
from planner.plan.catalog import Catalog
from planner.plan.logs.comparison import compare_plan, with_measurements
from planner.plan.plan import Plan
from planner.present.memory.log_comparison import check_views

_DESCRIPTION: Final = """\
Print the commands that measure on the real GPUs what is estimated, with what they should show. With --log: compare
what they printed with the estimate, part by part, with its range."""
_EPILOG: Final = """\
MODEL is a plan, or a model with the options of `gpu-planner fit`. --log reads the start-up lines of vLLM and llama.cpp,
nvidia-smi, PyTorch's memory statistics, llama-bench, llama-batched-bench, vllm bench serve, the Trainer's metrics, and
the lines that this command suggests.

examples:
  gpu-planner verify plan.json
  gpu-planner verify plan.json --log vllm.log
  llama-bench -m qwen3-8b-Q4_K_M.gguf -o json | gpu-planner verify plan.json --log -
  gpu-planner verify plan.json --log run.log --save measured.json

exit codes: 0 done, 2 invalid input, or the plan cannot run this way"""
_HEADS: Final = (
    TableColumn("Should show", flexible=True),
    TableColumn("Estimated", "right"),
    TableColumn("Printed as", flexible=True),
)


def run(argv: list[str]) -> int:
    """Run `gpu-planner verify` and return the exit code."""
    arguments = make_parser().parse_args(argv)
    try:
        print(_answer(arguments, user_catalog()))
    except SpecError as error:
        raise naming_options(error) from error
    return 0


def make_parser() -> Parser:
    """Return the parser of the command's options."""
    parser = Parser("gpu-planner verify", _DESCRIPTION, _EPILOG)
    measured = parser.add_argument_group("measurements")
    measured.add_argument("--log", metavar="FILE", help="compare with what a run printed (- for standard input)")
    measured.add_argument(
        "--save",
        metavar="PLAN.json",
        type=Path,
        help="write the plan with what the log measured: its speed, and corrections of its memory",
    )
    add_plan_options(parser)
    parser.add_general_options()
    return parser


def _answer(arguments: argparse.Namespace, catalog: Catalog) -> str:
    plan = plan_from_arguments(arguments, catalog).plan
    if arguments.log is None:
        if arguments.save is not None:
            raise SpecError("--save", "there is nothing measured to write", "Add --log FILE.")
        return _commands(plan, catalog, as_json=arguments.json)
    log = named_log(arguments.log)
    comparison = compare_plan(plan, catalog, read_named_log(log))
    if arguments.save is not None:
        save_plan_as(arguments.save, with_measurements(plan, catalog, comparison, log))
    return comparison.model_dump_json(indent=2) if arguments.json else comparison_block(comparison, terminal_width())


def _commands(plan: Plan, catalog: Catalog, *, as_json: bool) -> str:
    checks = plan_checks(plan, catalog)
    if as_json:
        return json.dumps([check.model_dump(mode="json") for check in checks], indent=2, ensure_ascii=False)
    width = terminal_width()
    blocks = []
    for view in check_views(checks):
        rows = [list(row) for row in view.expected]
        blocks += [f"# {view.title}\n{view.command}", table(_HEADS, rows, width)]
    return "\n\n".join((*blocks, "Compare what they print: gpu-planner verify … --log FILE"))
