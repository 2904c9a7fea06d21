"""`gpu-planner fit`: check whether a model fits a card, and show what uses the memory."""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from planner.cli.main import DOES_NOT_FIT
from planner.cli.options import default_option_texts, naming_options
from planner.cli.parser import Parser
from planner.cli.plan_arguments import RecipeFile, add_plan_options, plan_from_arguments, save_plan_as
from planner.cli.report import memory_report
from planner.cli.table import prose_width, terminal_width, wrap
from planner.cli.user_catalog import user_catalog
from planner.errors import SpecError
from planner.plan.catalog import Catalog
from planner.plan.evaluate import Evaluation, evaluate
from planner.plan.plan import Plan
from planner.present.memory.verdict import needs_change
from planner.present.memory.view import evaluation_view
from planner.present.plan.phrase import beside_sentences, plan_phrase

if TYPE_CHECKING:
    from planner.plan.comparison import PlanComparison
    from planner.plan.logs.log_amounts import LogComparison
    from planner.plan.recipes import Preset
    from planner.plan.shared_gpus import Neighbour

_SHARING_OPTIONS: Final = {
    "training": "Set --zero, --tp or --dp to change it.",
    "inference": "Set --tp, --pp or --dp to change it.",
}

_DESCRIPTION: Final = """\
Check whether a model fits a GPU, and show what uses the memory: the verdict first, then the terms, the phases and
the assumptions. Without --gpu: the memory needed, and the smallest GPUs that fit. `gpu-planner cost` with the same
model, GPU and workload says how long it takes and what it costs."""

_EPILOG: Final = """\
MODEL is a name from the catalog (see `gpu-planner models`), a plan, or a model's file: its config.json, its
safetensors or GGUF weights (only their headers are read), or the folder with these files. hf:owner/name reads them
from the Hugging Face Hub. MODEL can also be the folder of a PEFT LoRA adapter, a training file of axolotl, TRL,
transformers, DeepSpeed, accelerate or LLaMA-Factory that names its model, or a script, a Modelfile or a file of Docker
Compose, Kubernetes, SkyPilot or dstack that starts one of these, vLLM, SGLang, TensorRT-LLM, llama-server or Ollama;
pass one that names no model as --workload. A Python script is traced as it is: `gpu-planner trace train.py`.

examples:
  gpu-planner fit meta-llama/Llama-3.1-8B --gpu "RTX 4090"
  gpu-planner fit meta-llama/Llama-3.1-8B --weights nf4 --batch 8 --context 8192
  gpu-planner fit Qwen/Qwen2.5-7B --task training --optimizer adamw-8bit --checkpointing full --gpu h100-sxm
  gpu-planner fit ./my-model/config.json --gpu "A100 SXM 80GB" --count 4 --save plan.json
  gpu-planner fit meta-llama/Llama-3.1-70B --task training --gpu "8 x H100 SXM" --zero 3 --checkpointing full
  gpu-planner fit meta-llama/Llama-3.1-8B --gpu "RTX 4090" --gpu "Tesla T4" --pp 2
  gpu-planner fit ./qwen3-8b-Q4_K_M.gguf --gpu "RTX 4070" --context 16384
  gpu-planner fit qlora.yml --gpu "RTX 4090"
  gpu-planner fit --list-presets
  gpu-planner fit --preset unsloth-llama-3.1-8b --seq 8192
  gpu-planner fit Qwen/Qwen3-8B --preset axolotl-llama-3-qlora --gpu "RTX 4090"
  gpu-planner fit plan.json --explain
  gpu-planner fit plan.json --advise --solve micro-batch --solve gpu
  gpu-planner fit plan.json --log vllm.log
  gpu-planner fit plan.json --versus other.json
  gpu-planner fit plan.json --versus "2 x RTX 3090"
  gpu-planner fit Qwen/Qwen3-8B --profile vllm --gpu "H100 SXM" --beside embeddings.json
  gpu-planner fit plan.json --check && sbatch train.sh

tight: it fits with a probability of 50 to 95 %, which the answer states; --check counts it as fitting.

exit codes: 0 done, 1 does not fit (only with --check; tight counts as fitting), 2 invalid input"""


class _OptionalParts(NamedTuple):
    """Optional parts of the answer besides the estimate; parts that were not requested are None."""

    comparison: "LogComparison | None"
    recipe: RecipeFile | None
    preset: "Preset | None"
    versus: "PlanComparison | None"
    neighbours: "tuple[Neighbour, ...]"


def run(argv: list[str]) -> int:
    """Run `gpu-planner fit` and return the exit code; errors name options instead of plan fields."""
    arguments = make_parser().parse_args(argv)
    try:
        return _print_answer(arguments)
    except SpecError as error:
        raise naming_options(error) from error


def _print_answer(arguments: argparse.Namespace) -> int:
    catalog = user_catalog()
    if arguments.list_presets:
        return _print_presets(catalog, as_json=arguments.json)
    plan, preset, recipe, shared = plan_from_arguments(arguments, catalog)
    if arguments.check and plan.gpu is None and not plan.workload.gpus:
        raise SpecError("--check", "needs a GPU to check against", "Add --gpu.")
    plan, comparison = _plan_and_log_comparison(plan, catalog, arguments)
    evaluation = evaluate(plan, catalog)
    versus = _versus_comparison(evaluation, catalog, arguments.versus)
    parts = _OptionalParts(comparison, recipe, preset, versus, shared.neighbours if shared else ())
    if arguments.save:
        save_plan_as(arguments.save, plan)
    answer = _evaluation_json if arguments.json else _evaluation_text
    print(answer(evaluation, catalog, arguments, parts))
    return DOES_NOT_FIT if arguments.check and evaluation.memory.verdict not in ("fits", "tight") else 0


def make_parser() -> Parser:
    """Return the parser of the command's options."""
    parser = Parser("gpu-planner fit", _DESCRIPTION, _EPILOG)
    add_plan_options(parser)
    answer = parser.add_argument_group("the answer")
    answer.add_argument("--explain", action="store_true", help="show formula, numbers and sources of each term")
    answer.add_argument("--advise", action="store_true", help="list all measures that save memory, and their costs")
    answer.add_argument(
        "--solve",
        metavar="OPTION",
        action="append",
        default=[],
        help="find the largest micro-batch, seq, batch, context, prompt or gpu-layers that fits, the fewest GPUs "
        "(count) or the smallest GPU (gpu); repeatable",
    )
    answer.add_argument(
        "--versus",
        metavar="OTHER",
        help="compare with another plan (a file), or with the same plan for another model or on other GPUs",
    )
    answer.add_argument("--check", action="store_true", help="exit with code 1 if the model does not fit")
    answer.add_argument("--save", metavar="PLAN.json", type=Path, help="write the plan to a file")
    _add_log_options(parser)
    parser.add_general_options()
    return parser


def _add_log_options(parser: Parser) -> None:
    logs = parser.add_details("measurements of a run")
    logs.add_argument(
        "--log",
        metavar="FILE",
        help="compare with the log of a run (- for standard input): PyTorch's memory_summary(), memory_stats(), memory "
        "snapshot as JSON or out-of-memory message, or output of vLLM, llama.cpp, nvidia-smi or Trainer metrics",
    )
    logs.add_argument(
        "--correct",
        action="store_true",
        help="correct this plan by the log, and save the correction; without --log, apply the saved correction",
    )
    logs.add_argument("--uncorrected", action="store_true", help="ignore the corrections of the plan")


def _plan_and_log_comparison(
    plan: Plan, catalog: Catalog, arguments: argparse.Namespace
) -> tuple[Plan, "LogComparison | None"]:
    if arguments.uncorrected:
        plan = plan.evolve(corrections=())
    if arguments.log is None and not arguments.correct:
        return plan, None
    from planner.cli.comparisons import (
        corrected_plan_and_comparison,  # the log readers are slow to load and rarely needed
    )

    return corrected_plan_and_comparison(plan, catalog, arguments)


def _versus_comparison(evaluation: Evaluation, catalog: Catalog, word: str | None) -> "PlanComparison | None":
    if word is None:
        return None
    from planner.cli.comparisons import other_plan  # rarely needed
    from planner.plan.comparison import compare_evaluations

    return compare_evaluations(evaluation, evaluate(other_plan(word, evaluation.plan, catalog), catalog))


def _print_presets(catalog: Catalog, *, as_json: bool) -> int:
    from planner.cli.presets import preset_list  # rarely needed

    print(preset_list(catalog, terminal_width(), as_json=as_json))
    return 0


def _evaluation_json(
    evaluation: Evaluation, catalog: Catalog, arguments: argparse.Namespace, parts: _OptionalParts
) -> str:
    """Return the evaluation as JSON text, with the optional parts under additional keys."""
    extra_fields: dict[str, object] = {}
    if arguments.advise or arguments.solve:
        from planner.cli.advice import advice_fields  # slow to load, and rarely needed

        extra_fields.update(advice_fields(evaluation, catalog, arguments.solve, is_requested=arguments.advise))
    if parts.comparison is not None:
        extra_fields["comparison"] = parts.comparison.model_dump(mode="json")
    if parts.recipe is not None:
        extra_fields["recipe"] = parts.recipe.recipe.model_dump(mode="json")
    if parts.preset is not None:
        extra_fields["preset"] = parts.preset.model_dump(mode="json", exclude_unset=True)
    if parts.versus is not None:
        extra_fields["versus"] = parts.versus.model_dump(mode="json")
    if parts.neighbours:
        extra_fields["beside"] = [neighbour.model_dump(mode="json") for neighbour in parts.neighbours]
    if not extra_fields:
        return evaluation.model_dump_json(indent=2)
    return json.dumps({**evaluation.model_dump(mode="json"), **extra_fields}, indent=2, ensure_ascii=False)


def _evaluation_text(
    evaluation: Evaluation, catalog: Catalog, arguments: argparse.Namespace, parts: _OptionalParts
) -> str:
    defaults = () if evaluation.traced else default_option_texts(evaluation.plan.workload, evaluation.workload)
    view, width = evaluation_view(evaluation, catalog), terminal_width()
    if view.sharing:
        view = view._replace(sharing=f"{view.sharing} {_SHARING_OPTIONS[evaluation.workload.task]}")
    extra_blocks: list[str] = []
    if parts.neighbours:
        extra_blocks.append("\n".join(wrap(text, prose_width(width)) for text in beside_sentences(parts.neighbours)))
    if parts.recipe is not None:
        from planner.cli.presets import recipe_block  # rarely needed

        given = parts.recipe
        extra_blocks.append(recipe_block(given.recipe, given.path.name, width, explain=arguments.explain))
    if parts.preset is not None:
        from planner.cli.presets import preset_block

        extra_blocks.append(preset_block(parts.preset, width))
    if arguments.solve or arguments.advise or needs_change(evaluation.memory):
        from planner.cli.advice import advice_blocks

        extra_blocks.extend(advice_blocks(evaluation, catalog, arguments.solve, width, is_requested=arguments.advise))
    if parts.comparison is not None:
        from planner.cli.comparisons import comparison_block

        extra_blocks.append(comparison_block(parts.comparison, width))
    if parts.versus is not None:
        from planner.cli.comparisons import versus_block

        extra_blocks.append(versus_block(evaluation, parts.versus, catalog, width))
    return memory_report(
        view, plan_phrase(evaluation, catalog), defaults, width, explain=arguments.explain, more=tuple(extra_blocks)
    )
