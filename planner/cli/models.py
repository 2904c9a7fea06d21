"""`gpu-planner models`: search and show models."""

import argparse
from typing import Final

from pydantic_core import to_json

from planner.cli.parser import Parser
from planner.cli.table import column_table, details
from planner.models.catalog import (
    ModelCatalog,
    ModelRecord,
    UnsupportedModel,
    load_models,
    name_parts,
    normalize_name,
)
from planner.models.load import load_model
from planner.models.readers.registry import readers
from planner.paths import catalog_dir
from planner.present.catalog.models import MODEL_COLUMNS, architecture_details, model_details

_DESCRIPTION: Final = """\
List the models of the catalog, or show the architecture of one. Parameters are counted exactly, tied ones once.
Any other model can be read from its config.json, its safetensors or GGUF files, or the Hugging Face Hub."""

_EPILOG: Final = """\
examples:
  gpu-planner models llama 70b
  gpu-planner models --show meta-llama/Llama-3.1-8B
  gpu-planner models --show ./my-model/config.json
  gpu-planner models --show ./llama-3.1-8b-Q4_K_M.gguf
  gpu-planner models --show hf:Qwen/Qwen3-8B
  gpu-planner models --supported"""


def run(argv: list[str]) -> int:
    """Run `gpu-planner models` and return the exit code."""
    arguments = make_parser().parse_args(argv)
    if arguments.supported:
        print(_supported_types_text(as_json=arguments.json))
        return 0
    catalog = load_models(catalog_dir() / "models")
    if arguments.show:
        print(_model_text(arguments.show, catalog, as_json=arguments.json))
    else:
        print(_model_list_text(arguments, catalog))
    return 0


def make_parser() -> Parser:
    """Return the parser of the command's options."""
    parser = Parser("gpu-planner models", _DESCRIPTION, _EPILOG)
    choice = parser.add_argument_group("selection")
    choice.add_argument("words", metavar="WORDS", nargs="*", help="words in the model's name, alias or family")
    other = parser.add_argument_group("actions instead of the list")
    other.add_argument("--show", metavar="MODEL", help="show a model: a name, a file, a folder, or hf:owner/name")
    other.add_argument(
        "--supported",
        action="store_true",
        help="list the model_type values of a config.json that are read; transformers' others are traced by fit",
    )
    parser.add_general_options()
    return parser


def _supported_types_text(*, as_json: bool) -> str:
    names = list(readers())
    return to_json(names, indent=2).decode() if as_json else "\n".join(names)


def _model_text(name_or_path: str, catalog: ModelCatalog, *, as_json: bool) -> str:
    loaded = load_model(name_or_path, catalog)
    if loaded.path is not None:
        if as_json:
            return loaded.architecture.model_dump_json(indent=2)
        return details(loaded.name, architecture_details(loaded.architecture), loaded.architecture.reader_notes)
    record = catalog.record(loaded.name)
    if as_json:
        return record.model_dump_json(indent=2)
    notes = (*record.notes, *loaded.architecture.reader_notes)
    return details(loaded.name, model_details(record, loaded.architecture), notes)


def _model_list_text(arguments: argparse.Namespace, catalog: ModelCatalog) -> str:
    records = [record for record in catalog.records if _record_matches(record, arguments.words)]
    if arguments.json:
        return to_json([record.model_dump(mode="json") for record in records], indent=2).decode()
    total, others = len(catalog.records), _without_formula_text(arguments.words, catalog)
    if records:
        shown = column_table(MODEL_COLUMNS, records, dispensable=("kind", "family"))
        return f"{shown}\n\n{len(records):,} of {total:,} models{others}"
    return f"None of {total:,} models matches. Others can be read with --show from their config.json.{others}"


def _without_formula_text(words: list[str], catalog: ModelCatalog) -> str:
    """Return a line on each model without a formula that `words` find: why, and whether a trace answers for it."""
    found = [model for model in catalog.not_built if words and _record_matches(model, words)]
    answers = {True: "; `gpu-planner fit` traces it", False: ""}
    lines = (f"\n{model.id}: {model.reason}{answers[model.config is not None]}." for model in found)
    return "\n" * bool(found) + "".join(lines)


def _record_matches(record: ModelRecord | UnsupportedModel, words: list[str]) -> bool:
    text = normalize_name(" ".join((*record.names, record.family)))
    parts = f"-{'-'.join(name_parts(text))}-"
    return all(normalize_name(word) in text or f"-{'-'.join(name_parts(word))}-" in parts for word in words)
