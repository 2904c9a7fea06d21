"""`gpu-planner launch`: write the files that run a plan with another program."""

import argparse
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter

from planner.cli.options import naming_options
from planner.cli.parser import Parser
from planner.cli.plan_arguments import add_plan_options, plan_from_arguments
from planner.cli.user_catalog import user_catalog
from planner.errors import PlannerError, SpecError
from planner.launch.launch import launch_settings, program_for, save_launch_files
from planner.launch.places import PLACES
from planner.launch.settings import LaunchSettings
from planner.launch.software import LAUNCHERS

_DESCRIPTION: Final = f"""\
Write the files and commands that run a plan with another program. Each setting says which part of the plan it
expresses; what the program cannot express is named.

programs: {", ".join(LAUNCHERS)}
places: {", ".join(PLACES)}"""
_BESIDE: Final = "beside-{}"
"""Folder of the files of a plan that runs beside the first."""
_EPILOG: Final = """\
MODEL is a plan, or a model with the options of `gpu-planner fit`. `gpu-planner fit FILE` reads the files that are
written.

examples:
  gpu-planner launch plan.json --for vllm
  gpu-planner launch Qwen/Qwen3-8B --gpu "H100 SXM" --context 8192 --batch 16 --for vllm --on kubernetes -o run
  gpu-planner launch meta-llama/Llama-3.1-8B --gpu "8 x H100 SXM" --task training --zero 3 --for accelerate --on slurm

exit codes: 0 done, 2 invalid input, or the plan cannot run this way"""


def run(argv: list[str]) -> int:
    """Run `gpu-planner launch` and return the exit code."""
    arguments = make_parser().parse_args(argv)
    try:
        settings = _settings(arguments)
    except SpecError as error:
        named = naming_options(error)
        field = f"--{named.field}" if named.field in ("for", "on") else named.field
        raise SpecError(field, named.reason, named.hint) from error
    folders = [arguments.folder and arguments.folder / _BESIDE.format(place) for place in range(len(settings))]
    for each, folder in zip(settings, (arguments.folder, *folders[1:]), strict=True):
        if folder is not None:
            save_launch_files(each, folder)
    if arguments.json and len(settings) > 1:
        print(TypeAdapter(tuple[LaunchSettings, ...]).dump_json(settings, indent=2).decode())
    elif arguments.json:
        print(settings[0].model_dump_json(indent=2))
    else:
        texts = [_text(each, folder) for each, folder in zip(settings, (arguments.folder, *folders[1:]), strict=True)]
        print("\n\n".join(texts))
    return 0


def make_parser() -> Parser:
    """Return the parser of the command's options."""
    parser = Parser("gpu-planner launch", _DESCRIPTION, _EPILOG)
    answer = parser.add_argument_group("the files")
    answer.add_argument("--for", dest="program", metavar="PROGRAM", help="the program that runs the plan")
    answer.add_argument("--on", metavar="PLACE", default="shell", help="where it runs [shell]")
    answer.add_argument("-o", dest="folder", metavar="DIR", type=Path, help="write the files to this folder")
    add_plan_options(parser)
    parser.add_general_options()
    return parser


def _settings(arguments: argparse.Namespace) -> tuple[LaunchSettings, ...]:
    """Return the settings of the plan and of the plans on the same cards, each for its program and the next port."""
    if arguments.program is None:
        raise PlannerError("no program is given", f"Name one: --for {'|'.join(LAUNCHERS)}")
    catalog = user_catalog()
    given = plan_from_arguments(arguments, catalog)
    found = [launch_settings(given.plan, catalog, arguments.program, arguments.on)]
    for place, other in enumerate(given.shared.others if given.shared else (), start=1):
        found.append(launch_settings(other, catalog, program_for(other), arguments.on, ports_on=place))
    return tuple(found)


def _text(settings: LaunchSettings, folder: Path | None) -> str:
    if folder is None:
        blocks = [f"# {file.name}\n{file.text}" for file in settings.files]
    else:
        blocks = [f"{folder / file.name}\n" for file in settings.files]
    rows = [f"  {row.field} = {row.value}: {row.reason}" for row in settings.not_expressed]
    heading = [f"Not in the files of {settings.title}:"] if rows else []
    return "\n".join((*blocks, *heading, *rows))
