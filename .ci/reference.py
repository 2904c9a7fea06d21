"""The reference pages of the manual, written from the code: `python .ci/reference.py [--check]`.

Writes `docs/reference`: the help of every command, every field of a workload, the public Python names, and the
glossary; and `docs/gpu-basics.md`, the glossary in reading order, with its drawings.
With `--check` it writes nothing, and ends with 1 where a page differs from what the code says.
"""

import argparse
import collections.abc
import functools
import importlib
import inspect
import io
import os
import re
import sys
import tomllib
import types
import typing
from collections.abc import Iterable, Iterator
from contextlib import redirect_stdout
from pathlib import Path

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

import planner
from planner.cli.automation.declarations import parser_of
from planner.cli.automation.schema import field_docstrings
from planner.cli.commands import COMMANDS
from planner.cli.main import main
from planner.glossary import CHAPTERS, glossary, terms_to_read
from planner.paths import resources_dir
from planner.present.format import capitalized
from planner.workload.fields import WorkloadField, all_fields
from planner.workload.presentation import GROUPS

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
COLUMNS = "100"
LONGEST_DEFAULT = 60
PACKAGES = {
    "present": "Reports",
    "plan": "Plans",
    "launch": "Launch settings",
    "workload": "Workloads",
    "hardware": "Hardware",
    "models": "Models",
    "memory": "Memory",
    "performance": "Time",
    "serving": "Services",
    "fleet": "Fleets",
    "serving_runs": "Measured runs of servers",
    "cost": "Cost",
    "trace": "Traces",
    "paths": "Folders of the user",
    "errors": "Errors",
}
RESULTS = (
    "planner.plan.evaluate.Evaluation",
    "planner.memory.result.MemoryResult",
    "planner.serving.result.ServingSimulation",
    "planner.plan.serving.answer.ServingAnswer",
    "planner.plan.serving.answer.ServingOption",
    "planner.launch.settings.LaunchSettings",
    "planner.launch.verify.PlanCheck",
    "planner.launch.verify.ExpectedAmount",
    "planner.memory.result.Term",
    "planner.memory.fit.CardFit",
    "planner.performance.result.TimeResult",
    "planner.plan.cost.PlanCost",
    "planner.cost.estimate.CostEstimate",
    "planner.cost.result.CostResult",
    "planner.cost.result.RentCost",
    "planner.cost.result.OwnCost",
    "planner.cost.result.MoneyTerm",
    "planner.cost.result.Decision",
    "planner.plan.recommend.option.Recommendation",
    "planner.plan.recommend.option.HardwareOption",
    "planner.trace.recording.TracedFacts",
    "planner.trace.recording.TracedPhase",
    "planner.trace.recording.TraceDifference",
)
"""What the public functions return; the names are no part of `planner`, since nobody makes such objects."""
PROGRAM = re.compile(r"^```python\n.*?^```$", re.MULTILINE | re.DOTALL)


def pages() -> dict[str, str]:
    """Return the text of each generated page and picture by its path in the folder of the manual."""
    return {
        "reference/command-line.md": command_line(),
        "reference/workload.md": workload(),
        "reference/python.md": python_api(),
        "reference/glossary.md": glossary_page(),
        "gpu-basics.md": basics_page(),
        **{f"pictures/basics/{name}.svg": picture for name, picture in drawings().items()},
    }


def command_line() -> str:
    """Return the help of every command."""
    os.environ["COLUMNS"] = COLUMNS
    helps = ((name, parser_of(name).format_help().rstrip()) for name in COMMANDS)
    parts = ["# Command line", _code(_main_help()), *(f"## {name}\n\n{_code(text)}" for name, text in helps)]
    return "\n\n".join(parts) + "\n"


def workload() -> str:
    """Return a table of the fields of each task, by the section of the form that asks for them."""
    parts = [
        "# Workload fields",
        "A workload describes how a model is trained or run. A plan's file holds these fields under `workload` by "
        "their names, with dots for nested ones; `fit`, `cost` and `recommend` take them as flags, and all of them by "
        "`--set NAME=VALUE`. The window asks for them under their titles.",
    ]
    for task in ("training", "inference"):
        fields = [field for field in all_fields() if task in field.tasks]
        parts.append(f"## {task.capitalize()}")
        for group, title in GROUPS.items():
            rows = [_field_row(field) for field in fields if field.group == group]
            if rows:
                heading = f"### {task.capitalize()}: {title or 'main fields'}"
                parts.append(f"{heading}\n\n{_table(('Title', 'Name and flag', 'Default', 'Meaning'), rows)}")
        rows = [_field_row(field) for field in fields if field.group not in GROUPS]
        if rows:
            heading = f"### {task.capitalize()}: only by name"
            parts.append(f"{heading}\n\n{_table(('Title', 'Name and flag', 'Default', 'Meaning'), rows)}")
    return "\n\n".join(parts) + "\n"


def python_api() -> str:
    """Return every public name with its signature and docstring, by the package that defines it."""
    parts = [
        "# Python API",
        "`import planner` costs next to nothing; each name is loaded on first use. Results are frozen objects, and "
        "every one of them turns into JSON by `model_dump_json()`.",
    ]
    names = [name for name in planner.__all__ if name != "__version__"]
    homes = {name: getattr(planner, name).__module__.split(".")[1] for name in names}
    if unknown := set(homes.values()) - set(PACKAGES):
        raise SystemExit(f"no title for the packages {sorted(unknown)}")
    for package, title in PACKAGES.items():
        here = sorted((name for name in names if homes[name] == package), key=str.lower)
        if here:
            parts.append(f"## {title}")
            parts.extend(_public(name, getattr(planner, name)) for name in here)
    return "\n\n".join([*parts, *results()]) + "\n"


def results() -> Iterator[str]:
    """Yield the section about what the functions return: examples, which First steps shows, too, and every field."""
    yield "## Results"
    yield "What the functions return, field by field. These examples are also in [First steps](../first-steps.md)."
    yield from PROGRAM.findall((DOCS / "first-steps.md").read_text(encoding="utf-8"))[1:]
    for path in RESULTS:
        module, _, name = path.rpartition(".")
        kind = getattr(importlib.import_module(module), name)
        yield f"### {name}\n\n{_markdown(inspect.cleandoc(kind.__doc__ or ''))}"
        yield _table(("Field", "Type", "Meaning"), _result_rows(kind))


def _result_rows(kind: type) -> Iterator[tuple[str, str, str]]:
    """Yield the fields of a result, a model or another record, and its properties."""
    if issubclass(kind, BaseModel):
        fields = {name: (info.annotation, info.description or "") for name, info in kind.model_fields.items()}
    else:
        fields = {name: (annotation, "") for name, annotation in typing.get_type_hints(kind).items()}
    written = field_docstrings(kind)
    for name, (annotation, described) in fields.items():
        meaning = written.get(name) or described
        if not meaning:
            raise SystemExit(f"{kind.__name__}.{name} has neither a docstring nor a description")
        yield f"`{name}`", f"`{_cell(_type(annotation))}`", _cell(capitalized(meaning).removesuffix("."))
    for name, value in vars(kind).items():
        if isinstance(value, property | functools.cached_property) and not name.startswith("_"):
            getter = value.fget if isinstance(value, property) else value.func
            returned = _type(inspect.signature(getter).return_annotation)
            meaning = (inspect.getdoc(getter) or "").splitlines()[0].removeprefix("Return ")
            yield f"`{name}`", f"`{_cell(returned)}`", _cell(capitalized(meaning))


def glossary_page() -> str:
    """Return the terms of the field with their definitions and sources."""
    parts = [
        f"## {entry.term}\n\n{entry.definition.strip()} [Source]({entry.source})\n\nIn GPU Planner: {entry.shows_as}"
        for entry in glossary()
    ]
    return "\n\n".join(["# Glossary", *parts]) + "\n"


def basics_page() -> str:
    """Return the terms in reading order, with drawings, and marks where the window adds figures of the plan."""
    parts = [
        "# GPU basics",
        "What one needs to know about GPUs to run, fine-tune and train neural networks, in an order in which one thing "
        "builds on another. The window explains the same terms where it uses them, underlined with dots: click one, or "
        "press Shift+F1 in its field.",
    ]
    drawn: set[str] = set()
    for chapter, entries in terms_to_read().items():
        parts += [f"## {chapter}", CHAPTERS[chapter]]
        for entry in entries:
            new = [name for name in entry.aliases if name.casefold() not in entry.definition.casefold()]
            others = f" Also called {', '.join(new)}." if new else ""
            parts.append(f"### {entry.term}\n\n{entry.definition}{others} [Source]({entry.source})")
            if entry.drawing and entry.drawing not in drawn:
                drawn.add(entry.drawing)
                parts.append(f"![{entry.term}](pictures/basics/{entry.drawing}.svg)")
            parts.append(f"<!-- in your plan: {entry.term} -->")
    return "\n\n".join(parts) + "\n"


def drawings() -> dict[str, str]:
    """Return each drawing in the light colors, on their surface, by its name."""
    colors = tomllib.loads((resources_dir() / "tokens" / "light.toml").read_text(encoding="utf-8"))
    in_light = {role: colors["base"][base] for role, base in colors["roles"].items()}
    ground = f'<rect width="100%" height="100%" fill="{in_light["surface"]}"/>'
    return {
        file.stem: re.sub(r"@([\w-]+)", lambda role: in_light[role[1]], file.read_text(encoding="utf-8")).replace(
            ">", f">{ground}", 1
        )
        for file in sorted((resources_dir() / "drawings").glob("*.svg"))
    }


def _main_help() -> str:
    printed = io.StringIO()
    with redirect_stdout(printed):
        main(["--help"])
    return printed.getvalue().rstrip()


def _code(text: str, language: str = "text") -> str:
    return f"```{language}\n{text}\n```"


def _table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [list(header), *map(list, rows)]
    lines.insert(1, ["---"] * len(lines[0]))
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _field_row(field: WorkloadField) -> tuple[str, str, str, str]:
    flag = f"<br>`{field.option.flag}`" if field.option.flag else ""
    default = field.option.default or ("from the model" if field.default is None else f"`{_plain(field.default)}`")
    unit = f" ({field.option.unit})" if field.option.unit else ""
    meaning = " ".join(f"{field.help}{unit}. {field.option.explanation}".split()).replace("….", "…")
    choices = ", ".join(f"`{_plain(value)}`" for value in field.choices(None) if value is not None)
    if meaning.split(",")[0].split()[0] not in map(_plain, field.choices(None)):
        meaning = capitalized(meaning)
    chosen = f" One of {choices}." if choices and field.choices(None).keys() != {False, True} else ""
    return field.title, f"`{field.name}`{flag}", _cell(default), _cell(meaning + chosen)


def _plain(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _public(name: str, value: object) -> str:
    parts = [f"### {name}", _code(_signature(name, value), "python"), _markdown(inspect.cleandoc(value.__doc__ or ""))]
    if isinstance(value, type) and issubclass(value, BaseModel):
        rows = list(_model_rows(value))
        parts.append(_table(("Field", "Type", "Default", "Meaning"), rows))
    return "\n\n".join(part for part in parts if part)


def _markdown(docstring: str) -> str:
    """Return a docstring with its sections (`Raises:` and the like) as lists."""
    lines: list[str] = []
    in_section = False
    for line in docstring.splitlines():
        if heading := re.fullmatch(r"(Args|Returns|Yields|Raises|Attributes):", line):
            lines += [f"**{heading[1]}**", ""]
            in_section = True
        elif in_section and (item := re.fullmatch(r" {4}([\w.]+): (.*)", line)):
            lines.append(f"- `{item[1]}`: {item[2]}")
        else:
            in_section = in_section and (not line or line.startswith(" "))
            lines.append(f"  {line.strip()}" if in_section and line else line)
    return "\n".join(lines)


def _signature(name: str, value: object) -> str:
    if isinstance(value, type) and issubclass(value, BaseModel):
        return f"class planner.{name}"
    if isinstance(value, type) and issubclass(value, Exception):
        return f"class planner.{name}(Exception)"
    signature = inspect.signature(typing.cast("typing.Callable[..., object]", value))
    kind = "class " if isinstance(value, type) else ""
    shown = [_parameter(parameter) for parameter in signature.parameters.values()]
    result = f" -> {_type(signature.return_annotation)}" if not kind else ""
    flat = f"{kind}planner.{name}({', '.join(shown)}){result}"
    if len(flat) <= int(COLUMNS):
        return flat
    return f"{kind}planner.{name}(\n" + "".join(f"    {part},\n" for part in shown) + f"){result}"


def _parameter(parameter: inspect.Parameter) -> str:
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    default = "" if parameter.default is parameter.empty else f" = {_default(parameter.default)}"
    return f"{stars}{parameter.name}: {_type(parameter.annotation)}{default}"


def _default(value: object) -> str:
    """Return a default as it is written, and … for one that is long or has no text of its own."""
    text = repr(value)
    return "…" if " at 0x" in text or len(text) > LONGEST_DEFAULT else text


def _type(annotation: object) -> str:
    """Return an annotation without the modules that its names are defined in, and without what stands in Annotated."""
    if isinstance(annotation, typing.ForwardRef):  # a model that was not used yet
        annotation = annotation.__forward_arg__
    origin, inner = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return _type(inner[0])
    if origin in (typing.Union, types.UnionType):
        return " | ".join(map(_type, inner))
    if isinstance(origin, type) and origin is not collections.abc.Callable:
        return f"{origin.__name__}[{', '.join('...' if part is ... else _type(part) for part in inner)}]"
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", None) or repr(annotation)
    if origin is not None:
        text = repr(annotation)
    return re.sub(r"\b(?:[a-z_]+\.)+(?=[A-Za-z])", "", text).replace("NoneType", "None")


def _model_rows(model: type[BaseModel]) -> Iterator[tuple[str, str, str, str]]:
    for name, info in model.model_fields.items():
        default = "required" if info.is_required() else "made anew" if info.default is PydanticUndefined else None
        written = default or f"`{_default(info.default)}`"
        yield (
            f"`{name}`",
            f"`{_cell(_type(info.annotation))}`",
            _cell(written),
            _cell(info.description or info.title or ""),
        )


def run() -> int:
    """Write the pages, or check them; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; end with 1 where a page is out of date")
    is_checked = parser.parse_args().check
    stale = []
    for name, text in pages().items():
        path = DOCS / name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            stale.append(name)
            if not is_checked:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8", newline="\n")
    print(f"{'out of date' if is_checked else 'written'}: {', '.join(stale)}" if stale else "every page is current")
    return int(is_checked and bool(stale))


if __name__ == "__main__":
    sys.exit(run())
