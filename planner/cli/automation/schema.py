"""`gpu-planner schema`: the JSON schema of what a command prints with `--json`, or of a plan's or workload's file."""

import ast
import inspect
import json
import re
import sys
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import cache
from itertools import pairwise
from typing import Any, Final

from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, JsonSchemaValue
from pydantic_core import core_schema

from planner import __version__
from planner.cli.automation.json_outputs import OPTIONAL, OUTPUTS
from planner.cli.parser import Parser
from planner.errors import SpecError
from planner.workload.software.registry import SERVERS, serving_support
from planner.workload.software.software import EngineSettings

_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_DESCRIPTION: Final = """\
Print the JSON schema (draft 2020-12) of what a command prints with --json, or of the file of a plan or a workload.
Without a COMMAND: list what is described. Fields are added, never renamed."""
_EPILOG: Final = """\
OPTION selects the output of a command that has several, such as `gpu-planner schema monitor summary`.

examples:
  gpu-planner schema
  gpu-planner schema fit > fit.schema.json
  gpu-planner schema monitor summary
  gpu-planner schema plan

exit codes: 0 done, 2 invalid input"""


def run(argv: list[str]) -> int:
    """Run `gpu-planner schema` and return the exit code."""
    # `schema monitor --summary` is as clear as `schema monitor summary`.
    selected = {part for name in OUTPUTS for part in name.split()[1:]}
    words = [word[2:] if word.startswith("--") and word[2:] in selected else word for word in argv]
    arguments = make_parser().parse_args(words)
    if arguments.words:
        print(json.dumps(json_schema(" ".join(arguments.words)), indent=2, ensure_ascii=False))
    elif arguments.json:
        print(json.dumps({name: output.about for name, output in OUTPUTS.items()}, indent=2))
    else:
        width = max(map(len, OUTPUTS))
        print("\n".join(f"{name:<{width}}  {output.about}" for name, output in OUTPUTS.items()))
    return 0


def make_parser() -> Parser:
    """Return the parser of the command's options."""
    parser = Parser("gpu-planner schema", _DESCRIPTION, _EPILOG)
    choice = parser.add_argument_group("what to describe")
    choice.add_argument("words", metavar="COMMAND [OPTION]", nargs="*", help="a command, plan or workload")
    parser.add_general_options()
    return parser


def json_schema(name: str) -> dict[str, Any]:
    """Return the JSON schema of the output or file called `name`.

    Raises:
        SpecError: If nothing of this name is described.
    """
    described = OUTPUTS.get(name)
    if described is None:
        close = get_close_matches(name, OUTPUTS, n=3)
        hint = f"Did you mean {' or '.join(close)}?" if close else "`gpu-planner schema` lists what is described."
        raise SpecError("COMMAND", f"no schema is called {name!r}", hint)
    mode: JsonSchemaMode = "validation" if described.is_file else "serialization"
    schema = TypeAdapter(described.kind).json_schema(mode=mode, schema_generator=_PrintedSchema)
    title = f"gpu-planner {name}"
    return {"$schema": _DIALECT, "title": title, "$comment": f"GPU Planner {__version__}", **_untitled(schema)}


class _PrintedSchema(GenerateJsonSchema):
    """Schema in which a printed field is required, unless it is there only when an option asks for it."""

    def field_is_required(
        self,
        field: core_schema.ModelField | core_schema.DataclassField | core_schema.TypedDictField,
        total: bool,  # pydantic's own
    ) -> bool:
        """Return whether a field is always there."""
        if self.mode == "serialization":
            return True
        return super().field_is_required(field, total)

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        """Return the schema of a model, with optional fields not required."""
        if schema["cls"] is EngineSettings:
            return _settings_of_all_engines()
        found = super().model_schema(schema)
        for name, text in field_docstrings(schema["cls"]).items():
            if "description" not in found.get("properties", {}).get(name, {"description": ""}):
                found["properties"][name]["description"] = re.sub(r"\bNone\b", "null", text)
        optional = set(_optional_fields(schema["cls"]))
        if self.mode == "serialization" and optional and "required" in found:
            found["required"] = [name for name in found["required"] if name not in optional]
        return found


def _settings_of_all_engines() -> JsonSchemaValue:
    """Return the schema of the settings of whichever program serves: each program has its own."""
    properties: dict[str, Any] = {}
    for name in SERVERS:
        properties |= serving_support(name).settings.model_json_schema()["properties"]
    about = "settings of the inference engine, by its own names; null where another engine has them"
    properties = {name: {"anyOf": [kind, {"type": "null"}]} for name, kind in properties.items()}
    return {"type": "object", "description": about, "properties": properties, "additionalProperties": False}


def _optional_fields(model: type[BaseModel]) -> Iterator[str]:
    return (name for name, info in model.model_fields.items() if OPTIONAL in info.metadata)


def field_docstrings(kind: type) -> dict[str, str]:
    """Return the docstrings below the fields of a class and of those that it inherits from, by field."""
    found: dict[str, str] = {}
    for each in reversed(kind.__mro__):
        for field, below in pairwise(_class_bodies(each.__module__).get(each.__qualname__, ())):
            match field, below:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                    found[name] = inspect.cleandoc(text).replace("\n", " ")
    return found


@cache
def _class_bodies(module: str) -> dict[str, list[ast.stmt]]:
    """Return the statements of each class of a module; none if Python has no source of it, as of its built-in parts."""
    try:
        parsed = ast.parse(inspect.getsource(sys.modules[module]))
    except (OSError, TypeError):
        return {}
    return {node.name: node.body for node in parsed.body if isinstance(node, ast.ClassDef)}


def _untitled(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in schema.items() if name != "title"}
