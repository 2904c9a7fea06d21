"""Titles and values of a plan's fields as text, for forms, summaries, and sentences on differences and adjustments."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from planner.errors import SpecError
from planner.hardware.catalog import HardwareCatalog
from planner.plan.plan import Plan
from planner.present import format as fmt
from planner.workload.fields import TASKS, WorkloadField, fields_of, find_field
from planner.workload.presentation import FieldContext
from planner.workload.rules import FieldValue, field_reader, is_offered
from planner.workload.workload import Workload

_OF_PLAN: Final = {
    "model": "Model",
    "gpu": "GPU",
    "count": "Number of GPUs",
    "task": "Task",
    "corrections": "Corrections by logs",
    "workload": "Workload",
    "timing": "Settings of the time estimate",
    "cost": "Settings of the cost estimate",
}
_OPEN: Final = "default"


def setting_title(name: str) -> str:
    """Return the title of a field of the plan or its workload: `Micro-batch size`."""
    field = find_field(name)
    return field.title if field else _OF_PLAN.get(name, name)


def setting_text(name: str, value: FieldValue, hardware: HardwareCatalog) -> str:
    """Return the value of a field of the plan as text: `2,048`, `yes`, `AdamW`, `GeForce RTX 4090`."""
    if name == "gpu":
        return _card_names_text(value, hardware) if value else "none"
    if isinstance(value, bool):
        return fmt.yes_no(value)
    declared = [fields[name] for task in TASKS if name in (fields := fields_of(task))]
    words = (field_value_text(field, value) for field in declared if value in field.choices(None))
    return next(words, None) or field_value_text(declared[0] if declared else None, value)


def conflict_texts(names: Iterable[str], mine: Plan, theirs: Plan, hardware: HardwareCatalog) -> tuple[str, ...]:
    """Return fields that two versions of a plan have differently as text: `Batch size: 4 here, 8 in the file`.

    Args:
        names: Dotted names of fields, such as `workload.batch`; one without a title is named by what it belongs to.
        mine: The version in the window.
        theirs: The version in the file, whose card the catalog may not know.
        hardware: The catalog of the plans' cards.
    """
    texts: dict[str, None] = {}
    for name in names:
        setting = name.removeprefix("workload.")
        here, there = (_value_at(plan, name) for plan in (mine, theirs))
        if find_field(setting) is None and setting not in ("gpu", "count"):
            texts[_OF_PLAN.get(name.partition(".")[0], name)] = None
        else:
            values = [_known_setting_text(setting, value, hardware) for value in (here, there)]
            texts[f"{setting_title(setting)}: {values[0]} here, {values[1]} in the file"] = None
    return tuple(texts)


def _known_setting_text(name: str, value: FieldValue, hardware: HardwareCatalog) -> str:
    try:
        return setting_text(name, tuple(value) if isinstance(value, list) else value, hardware)
    except SpecError:
        return str(value)


def _value_at(plan: Plan, name: str) -> FieldValue:
    """Return the JSON value at the dotted `name` in a plan, None if the plan has no such field."""
    value: FieldValue = plan.model_dump(mode="json")
    for key in name.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return value


def adjustments_sentence(adjustments: tuple[str, ...], workload: Workload) -> str:
    """Return the settings that an edit also changed: `Also changed: optimizer step to default.`; or nothing."""
    if not adjustments:
        return ""
    changes = (f"{title_in_sentence(setting_title(name))} to {_new_value_text(name, workload)}" for name in adjustments)
    return f"Also changed: {', '.join(changes)}."


def field_value_text(field: WorkloadField | None, value: FieldValue, context: FieldContext | None = None) -> str:
    """Return a value of `field` as text; for some choices the text depends on the rest of the workload."""
    if field is not None and field.kind == "choice" and value in (choices := field.choices(context)):
        return choices[value]
    if value is None or value in ("", ()):
        return (field.option.placeholder if field else "") or _OPEN
    if isinstance(value, int):
        return fmt.size(value) if field is not None and field.kind == "bytes" else fmt.integer(value)
    if isinstance(value, float):
        return fmt.percent(value) if field is not None and field.kind == "share" else fmt.plain(value)
    if isinstance(value, tuple):
        return (" × " if field is not None and field.kind == "choice" else ", ").join(map(str, value))
    return str(value)


def offered_choices(field: WorkloadField, context: FieldContext, value: FieldValue) -> Mapping[Any, str]:
    """Return the choices for `field` that suit the rest of the workload, and always the current `value`."""
    read = field_reader(context.workload, count=context.count, model=context.architecture)
    known = field.choices(context) or {stop: field_value_text(field, stop) for stop in field.option.stops}
    offered = {one: words for one, words in known.items() if is_offered(field.name, one, read, context.workload.task)}
    default = {None: default_text(field, read(field.name) if value is None else None, context)}
    choices = {**(default if field.is_optional else {}), **offered}
    return choices if value in choices else {**choices, value: field_value_text(field, value, context)}


def default_text(field: WorkloadField, effective_value: FieldValue, context: FieldContext) -> str:
    """Return the title of a field's default, with the value that takes effect: `Default (NF4)`, or `None`."""
    if effective_value is None:
        return field.option.placeholder.capitalize() or "Default"
    words, _, _ = field_value_text(field, effective_value, context).partition(" (")
    return f"Default ({title_in_sentence(words)})"


def settings_summary(fields: Iterable[WorkloadField], context: FieldContext) -> str:
    """Return the summary of a collapsed section's fields: `BF16 autocast, weights in FP32`."""
    read = field_reader(context.workload)
    parts = (_summary_part_text(field, read(field.name), context) for field in fields)
    return ", ".join(words for words in parts if words)


def title_in_sentence(title: str) -> str:
    """Return a title for use within a sentence: `micro-batch size`, `KV-cache precision`, `Hugging Face`."""
    first, _, rest = title.partition(" ")
    is_name = rest[:1].isupper() and rest[1:2].islower()
    return f"{title[:1].lower()}{title[1:]}" if first[1:].islower() and not is_name else title


def _summary_part_text(field: WorkloadField, value: FieldValue, context: FieldContext) -> str:
    """Return a field's part of a section summary; empty for a number or switch that has its default value."""
    brief, title = field.option.brief, title_in_sentence(field.title)
    always = field.option.choices is not None or (brief and field.kind == "list")
    if value is None or (value == field.default and not always):
        return ""
    if callable(brief):
        return brief(value)
    words = field_value_text(field, value, context).partition(" (")[0]
    if field.option.choices is None and isinstance(value, bool):
        return title if value else f"no {title}"
    if not brief:
        return words if field.option.choices is not None else f"{title} {words}"
    return brief.format(words)


def _new_value_text(name: str, workload: Workload) -> str:
    """Return the value of an adjusted field as text."""
    value = field_reader(workload)(name)
    return fmt.yes_no(value) if isinstance(value, bool) else field_value_text(find_field(name, workload.task), value)


def _card_names_text(text: str, hardware: HardwareCatalog) -> str:
    """Return card ids as names, for `tesla-t4` or `1 × rtx-4090 + 2 × tesla-t4`."""
    kinds = (kind.rpartition(" × ") for kind in text.split(" + "))
    return " + ".join(f"{count}{times}{hardware.gpu(gpu_id).name}" for count, times, gpu_id in kinds)
