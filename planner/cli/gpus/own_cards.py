"""`gpu-planner gpus --add`, `--change`, `--remove`, `--own`, `--export`: the user's own cards and changes."""

import argparse
from collections.abc import Callable, Mapping
from datetime import date
from pathlib import Path
from typing import Final

from planner.cli.parser import number_type
from planner.errors import CatalogError, PlannerError, SpecError
from planner.hardware.catalog import HardwareCatalog
from planner.hardware.gpu import MOST_USD
from planner.hardware.names import resolve_gpu
from planner.hardware.own import (
    CardChange,
    OwnHardware,
    first_problem,
    make_card_change,
    own_json,
    read_own,
    unknown_changes,
    with_own_hardware,
    write_own,
)
from planner.numbers import MONEY
from planner.present import format as fmt
from planner.present.catalog.gpu_row import change_summary

TAKE_BACK: Final = "none"
"""The word that removes a number that was entered before."""
_OPTIONS: Final = {"paid": "purchase_price_usd", "power_limit": "power_limit_watts", "note": "note"}
_CHANGE_OPTIONS_HINT: Final = (
    '--paid USD, --power-limit W or --note TEXT; --paid none, --power-limit none and --note "" remove it'
)


def add_own_options(group: argparse._ArgumentGroup) -> None:
    """Add the options that read and write the user's own hardware."""
    group.add_argument("--add", metavar="FILE", help="add GPUs and changes from a JSON file")
    group.add_argument("--change", metavar="GPU", help="change your data of a GPU with --paid, --power-limit or --note")
    group.add_argument(
        "--paid",
        metavar="USD",
        type=number_type(MONEY, 0, MOST_USD, TAKE_BACK),
        help="the price that you paid for one GPU, or none to remove it",
    )
    group.add_argument("--note", metavar="TEXT", help='a note of your own on the GPU; "" removes the note')
    group.add_argument("--remove", metavar="GPU", help="remove a GPU of your own, or your changes to a GPU")
    group.add_argument("--own", action="store_true", help="list your own GPUs and changes")
    group.add_argument("--export", metavar="FILE", help="write your own GPUs and changes to a file")


def requests_own_hardware(arguments: argparse.Namespace) -> bool:
    """Return whether the command line requests an action on the user's own hardware."""
    return any(getattr(arguments, name) for name in _ACTIONS)


def run_own_hardware_action(arguments: argparse.Namespace, bundled: HardwareCatalog, file: Path, today: date) -> int:
    """Run the requested action on `file`, the user's own hardware, and print the result.

    Raises:
        PlannerError: If a file cannot be read or written, or a record is invalid; the error names the field.
    """
    action = next(function for name, function in _ACTIONS.items() if getattr(arguments, name))
    print(action(arguments, bundled, file, today))
    return 0


def _add_from_file(arguments: argparse.Namespace, bundled: HardwareCatalog, file: Path, today: date) -> str:
    path = Path(arguments.add)
    added = read_own(path, today)
    if not added.cards and not added.changes:
        raise PlannerError(f"{path} contains no GPU and no change", "The file needs `cards` or `changes`.")
    own = read_own(file).merged_with(added)
    problem = first_problem(with_own_hardware(bundled, own), added)
    if problem is not None:
        raise CatalogError(path, *problem)
    write_own(file, own)
    lines = [f"Added {fmt.plural(len(added.cards), 'GPU')} and {fmt.plural(len(added.changes), 'change')}."]
    known = {gpu.id for gpu in bundled.gpus}
    lines += [f"{card.id} replaces the bundled GPU with this id." for card in added.cards if card.id in known]
    lines += [f"{name} is not in the catalog; the change is kept." for name in unknown_changes(bundled, own)]
    return "\n".join(lines)


def _change_card(arguments: argparse.Namespace, bundled: HardwareCatalog, file: Path, today: date) -> str:
    new_fields = _new_fields(arguments)
    own = read_own(file)
    gpu = resolve_gpu(with_own_hardware(bundled, own), arguments.change)
    before = own.change_of(gpu.id)
    change = _merged_change(
        gpu.id, {} if before is None else before.model_dump(include=set(_OPTIONS.values())), new_fields, today
    )
    if change is None:
        write_own(file, own.with_change_replaced(gpu.id, None))
        return f"{gpu.name}: no changes."
    changed = own.with_change_replaced(gpu.id, change)
    problem = first_problem(with_own_hardware(bundled, changed), OwnHardware(changes=(change,)))
    # An older value may have become invalid with a newer catalog; only what is set now is refused.
    if problem is not None and problem.field in new_fields:
        raise SpecError(_option_for_field(problem.field), problem.reason, problem.hint)
    write_own(file, changed)
    return f"{gpu.name}: {change_summary(change)}."


def _new_fields(arguments: argparse.Namespace) -> dict[str, object]:
    """Return the fields that the options set, by name; None removes a field."""
    given = {field: value for name, field in _OPTIONS.items() if (value := getattr(arguments, name)) is not None}
    if not given:
        raise SpecError("--change", "has nothing to change", f"Give {_CHANGE_OPTIONS_HINT}.")
    removal_values = {"purchase_price_usd": TAKE_BACK, "power_limit_watts": TAKE_BACK, "note": ""}
    return {field: None if value == removal_values[field] else value for field, value in given.items()}


def _merged_change(
    gpu_id: str, old_fields: Mapping[str, object], new_fields: Mapping[str, object], today: date
) -> CardChange | None:
    """Return the change of a card with old and new fields, None if all fields are removed."""
    merged_fields = {**old_fields, **new_fields}
    if all(value is None for value in merged_fields.values()):
        return None
    try:
        return make_card_change(gpu_id, today.isoformat(), merged_fields)
    except SpecError as error:
        raise SpecError(
            _option_for_field(error.field), error.reason, error.hint or f"Give {_CHANGE_OPTIONS_HINT}."
        ) from error


def _option_for_field(field: str) -> str:
    """Return the option that sets a field of a card change."""
    return next(
        (f"--{name.replace('_', '-')}" for name, option_field in _OPTIONS.items() if option_field == field), "--change"
    )


def _remove_card(arguments: argparse.Namespace, bundled: HardwareCatalog, file: Path, _: date) -> str:
    own = read_own(file)
    name = arguments.remove
    gpu_id = name if own.contains(name) else resolve_gpu(with_own_hardware(bundled, own), name).id
    if not own.contains(gpu_id):
        raise SpecError(
            "--remove",
            f"{gpu_id} is neither your own nor changed by you",
            "`gpu-planner gpus --own` lists your GPUs and changes.",
        )
    write_own(file, own.without(gpu_id))
    is_bundled = any(gpu.id == gpu_id for gpu in bundled.gpus)
    return f"{gpu_id} has the data of the catalog again." if is_bundled else f"{gpu_id} is removed."


def _own_hardware_list(arguments: argparse.Namespace, bundled: HardwareCatalog, file: Path, _: date) -> str:
    own = read_own(file)
    if arguments.json:
        return own_json(own)
    lines = [f"{card.id}: {card.name}, {card.memory_label}" for card in own.cards]
    lines += [f"{change.gpu}: {change_summary(change)}" for change in own.changes]
    lines += [f"{name} is not in the catalog." for name in unknown_changes(bundled, own)]
    return "\n".join(lines) or "No GPUs or changes of your own. Use --add FILE or --change GPU."


def _export_to_file(arguments: argparse.Namespace, _bundled: HardwareCatalog, file: Path, _: date) -> str:
    own = read_own(file)
    write_own(Path(arguments.export), own)
    return f"Wrote {fmt.plural(len(own.cards), 'GPU')} and {fmt.plural(len(own.changes), 'change')}."


_Action = Callable[[argparse.Namespace, HardwareCatalog, Path, date], str]
_ACTIONS: Final[Mapping[str, _Action]] = {
    "add": _add_from_file,
    "change": _change_card,
    "remove": _remove_card,
    "export": _export_to_file,
    "own": _own_hardware_list,
}
