"""The plan that a command line describes: a model, a preset, a training file or a saved plan, changed by options."""

import argparse
import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from planner.cli.options import add_workload_options, check_options, workload_from_arguments
from planner.cli.parser import Parser, comma_separated, option_value
from planner.cli.table import ProgressLine
from planner.cli.user_catalog import named_cards
from planner.errors import ModelFileError, NoFormulaError, PlanFileError, PlannerError, SpecError, TraceError
from planner.models.catalog import resolve_model
from planner.numbers import COUNT
from planner.plan.catalog import Catalog
from planner.plan.evaluate import architecture_of
from planner.plan.files import is_plan_file, named_plan, save_plan
from planner.plan.plan import ModelChoice, Plan
from planner.workload.workload import Inference, Workload

if TYPE_CHECKING:
    from planner.plan.recipes import Preset
    from planner.plan.shared_gpus import SharedGpus
    from planner.workload.recipes.recipe import Recipe


_RECIPE_SUFFIXES: Final = (".yml", ".yaml", ".json", ".sh", ".bash", ".sbatch", ".slurm", "modelfile")


class RecipeFile(NamedTuple):
    """A training file: its path, and the recipe read from the file."""

    recipe: "Recipe"
    path: Path


def load_recipe_file(arguments: argparse.Namespace) -> RecipeFile | None:
    """Return the training file given as MODEL or by `--workload`; None if neither is a training file.

    Raises:
        RecipeError: If the training file cannot be read.
        SpecError: If MODEL and `--workload` are both training files.
    """
    model, workload = (_recipe_path(word) for word in (arguments.model, arguments.workload))
    if model is not None and workload is not None:
        hint = "Name the model instead of one of them: gpu-planner fit MODEL --workload FILE"
        raise SpecError("--workload", "there are two training files", hint)
    path = model or workload
    if path is None:
        return None
    from planner.launch.load import load_launch_file
    from planner.plan.recipes import load_recipe

    return RecipeFile(load_recipe(path) if path.is_dir() else load_launch_file(path), path)


def plan_with_recipe(given: RecipeFile, word: str | None, catalog: Catalog) -> Plan:
    """Return the plan of a training file, for the model `word`, or the file's model if `word` is the file or None.

    Raises:
        PlannerError: If there is no such model, or the file names no model.
    """
    from planner.plan.recipes import plan_of_recipe, with_recipe

    if word is None or Path(word) == given.path:
        return plan_of_recipe(given.recipe, given.path, catalog.models)
    return with_recipe(named_plan(word, catalog), given.recipe)


def _recipe_path(word: str | Path | None) -> Path | None:
    # Most words are names of models, for which the YAML reader need not be loaded.
    if word is None or not (str(word).lower().endswith(_RECIPE_SUFFIXES) or os.path.isdir(word)):
        return None
    from planner.launch.load import is_launch_file

    return Path(word) if is_launch_file(Path(word)) else None


class PlanArguments(NamedTuple):
    """The plan on the command line, with the preset or training file on which the plan is based."""

    plan: Plan
    preset: "Preset | None"
    recipe: RecipeFile | None
    shared: "SharedGpus | None" = None


def add_plan_options(parser: Parser) -> None:
    """Add the options that describe a plan: model, cards and workload."""
    model_options = parser.add_argument_group("model")
    model_options.add_argument("model", metavar="MODEL", nargs="?", help="the model to run, by name or file")
    model_options.add_argument("--preset", metavar="NAME", help="start from a well-known recipe; options override it")
    model_options.add_argument("--list-presets", action="store_true", help="list the presets and exit")
    hardware = parser.add_argument_group("hardware")
    hardware.add_argument(
        "--gpu",
        metavar="GPU",
        action="append",
        help='GPU or system, such as "RTX 4090", "8 x H100 SXM" or dgx-h100; repeatable',
    )
    hardware.add_argument("--count", metavar="N", help="number of these GPUs [1]")
    hardware.add_argument(
        "--beside",
        metavar="PLAN.json",
        action="append",
        default=[],
        help="a plan whose model runs on the same GPUs and gets what it needs; repeatable",
    )
    add_workload_options(parser)


def plan_from_arguments(arguments: argparse.Namespace, catalog: Catalog) -> PlanArguments:
    """Return the plan that the options describe.

    Raises:
        PlannerError: If no model is given, a file cannot be read, or an option is not allowed; the error names it.
    """
    recipe = load_recipe_file(arguments)
    try:
        base, preset = _base_plan_and_preset(arguments, catalog, recipe)
    except NoFormulaError as error:
        if recipe is not None or arguments.preset is not None:
            raise
        return PlanArguments(_traced_plan(arguments, catalog, error), None, None)
    try:
        plan = _changed_plan(arguments, catalog, base)
    except SpecError as error:
        if error.field == "--draft":
            raise SpecError(error.field, error.reason, _draft_hint(arguments.draft, catalog, error.hint)) from error
        raise
    if plan.model.trace is None:
        check_options(arguments, plan.workload, architecture_of(plan, catalog))
    if not getattr(arguments, "beside", None):
        return PlanArguments(plan, preset, recipe)
    from planner.plan.shared_gpus import share_gpus  # few cards have several models

    shared = share_gpus(plan, [_neighbour(word, catalog) for word in arguments.beside], catalog)
    return PlanArguments(shared.plan, preset, recipe, shared)


def _draft_hint(word: str, catalog: Catalog, hint: str) -> str:
    """Return how the model is named that `--draft` names instead of a kind of draft, or else `hint`."""
    try:
        return f"A model that drafts is named by --draft-model {resolve_model(catalog.models, word)}."
    except PlannerError as error:
        return (
            hint if hint.startswith("Close names") else f"A model that drafts is named by --draft-model. {error.hint}"
        )


def _neighbour(word: str, catalog: Catalog) -> Plan:
    """Return the plan of another model on the same cards, in the file `word` or of the model that it names.

    Raises:
        SpecError: If it is neither.
    """
    try:
        return named_plan(word, catalog)
    except PlannerError as error:
        reason = error.reason if isinstance(error, SpecError) else error.message
        raise SpecError("--beside", reason, "Save the other plan with gpu-planner fit … --save FILE.json.") from error


def _traced_plan(arguments: argparse.Namespace, catalog: Catalog, error: NoFormulaError) -> Plan:
    """Return the plan of a model without formulas, built from its configuration by transformers and traced.

    Raises:
        NoFormulaError: If PyTorch or transformers is not installed.
        ModelFileError: If transformers cannot build the model either.
        PlannerError: If an option is not allowed, or the trace fails.
    """
    # Few models have no formulas, and a trace takes a while to load.
    from planner.plan.trace_request import request_of_unread_model
    from planner.trace.analysis.memory import facts_of
    from planner.trace.run import missing_packages_hint, trace

    missing = missing_packages_hint(config=True)
    if missing is not None:
        raise NoFormulaError(error.path, error.reason, error.traceable, f"In a shell, {missing}.") from error
    plan = _changed_plan(arguments, catalog, Plan(model=ModelChoice(id=arguments.model)))
    if plan.workload.gpus:
        raise SpecError("--gpu", "GPUs of several kinds cannot be traced together", "Name one kind.")
    card = None if plan.gpu is None else catalog.hardware.gpu(plan.gpu)
    request = request_of_unread_model(arguments.model, plan.workload, plan.count, card, catalog)
    try:
        with ProgressLine(sys.stderr) as line:
            recording = trace(request, on_progress=lambda progress: line.show(f"Tracing: {progress.text}"))
    except TraceError as failure:
        if failure.stage != "load":
            raise
        reason = f"{error.reason}, and {failure.reason}"
        raise ModelFileError(error.path, reason, f"{failure.hint} {error.advice}".strip()) from failure
    facts = facts_of(recording)
    note = (
        f"{error.reason}, so that no formula counts this: transformers {recording.environment.transformers} built the "
        "network from its configuration, without weights, and its run was traced."
    )
    choice = ModelChoice.of_trace(facts.evolve(notes=(note, *facts.notes)))
    return plan.evolve(model=choice, workload=Inference(other_processes_bytes=plan.workload.other_processes_bytes))


def _base_plan_and_preset(
    arguments: argparse.Namespace, catalog: Catalog, recipe: RecipeFile | None
) -> tuple[Plan, "Preset | None"]:
    """Return the plan that the options change, and the preset on which the plan is based, if any."""
    if recipe is not None and arguments.preset is not None:
        raise SpecError(
            "--preset", "cannot be combined with a training file", "Leave out --preset or the training file."
        )
    if arguments.preset is not None:
        from planner.cli.presets import plan_with_preset

        return plan_with_preset(arguments.preset, arguments.model, arguments.workload, catalog)
    if recipe is not None:
        arguments.workload = None
        return plan_with_recipe(recipe, arguments.model, catalog), None
    if arguments.model is None:
        hint = "Name a model: gpu-planner fit meta-llama/Llama-3.1-8B. `gpu-planner models` lists all."
        raise PlannerError("no model is given", hint)
    if arguments.model.endswith(".py"):
        hint = f"A trace runs it as it is: gpu-planner trace {shlex.quote(arguments.model)}"
        raise SpecError("MODEL", f"{arguments.model} is a Python script, not a model", hint)
    return named_plan(arguments.model, catalog), None


def _changed_plan(arguments: argparse.Namespace, catalog: Catalog, base: Plan) -> Plan:
    workload = changed_workload(arguments, base)
    changes: dict[str, object] = {"workload": workload}
    changes |= _card_fields(arguments, catalog, workload)
    try:
        return base.with_parts(**changes)
    except SpecError as error:
        raise SpecError(f"--{error.field}", error.reason, "--help-all explains every option.") from error


def _card_fields(arguments: argparse.Namespace, catalog: Catalog, workload: Workload) -> dict[str, object]:
    """Return the plan fields that `--gpu` and `--count` set; several kinds of cards are part of the workload."""
    cards = named_cards(arguments.gpu or (), catalog)
    if len(cards) > 1:
        if arguments.count is not None:
            raise SpecError(
                "--count",
                "is ambiguous with several kinds of GPUs",
                'Count each kind: --gpu "2 x RTX 3090" --gpu "RTX 4090".',
            )
        return {"workload": workload.evolve(gpus=cards), "gpu": None, "count": sum(kind.count for kind in cards)}
    changes: dict[str, object] = {}
    if arguments.count is not None:
        changes["count"] = option_value("--count", arguments.count, COUNT)
    if cards:
        changes |= {"gpu": cards[0].id, "workload": workload.evolve(gpus=()) if workload.gpus else workload}
        if cards[0].count > 1:
            if changes.get("count", cards[0].count) != cards[0].count:
                reason = f"{changes['count']} contradicts the {cards[0].count} GPUs of --gpu"
                raise SpecError("--count", reason, "Leave it out, or change the number in --gpu.")
            changes |= {"count": cards[0].count}
    return changes


def changed_workload(arguments: argparse.Namespace, base: Plan) -> Workload:
    """Return the workload of the plan `base`, changed by the workload options.

    Raises:
        PlannerError: If an option is not allowed, or the plan is of a traced module.
    """
    workload = workload_from_arguments(arguments, base.workload)
    if base.model.trace is not None and workload.evolve(other_processes_bytes=0) != base.workload.evolve(
        other_processes_bytes=0
    ):
        hint = "Trace the module again with other options: gpu-planner trace --help"
        raise PlannerError("workload options cannot change a traced module", hint)
    return workload


def save_plan_as(path: Path, plan: Plan) -> None:
    """Write `plan` to the file `path`, replacing a plan but no other file.

    Raises:
        PlanFileError: If the file exists and is not a plan, or cannot be written.
    """
    if path.exists() and not is_plan_file(path):
        raise PlanFileError(path, "exists and is not a plan", "Choose another name; nothing was written.")
    save_plan(path, plan)


def vendors_in_catalog(text: str | None, catalog: Catalog) -> list[str] | None:
    """Return the vendors of `--vendor`, comma-separated, in the catalog's spelling; None without the option.

    Raises:
        SpecError: If no card is of such a vendor.
    """
    known = {vendor.lower(): vendor for vendor in sorted({gpu.vendor for gpu in catalog.hardware.gpus})}
    found = comma_separated(text)
    for name in found or ():
        if name.lower() not in known:
            raise SpecError("--vendor", f"unknown vendor {name!r}", f"Vendors: {', '.join(known.values())}.")
    return None if found is None else [known[name.lower()] for name in found]
