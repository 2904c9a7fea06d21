"""`gpu-planner gpus --add`, `--change`, `--remove`, `--own`, `--export`: the user's own cards and changes."""

import argparse
from collections.abc import Callable, Mapping
from datetime import date
from pathlib import Path
from typing import Final

from planner.errors import CatalogError, PlannerError, SpecError
from planner.hardware.catalog import HardwareCatalog
from planner.hardware.names import resolve_gpu
from planner.hardware.own import (
    CardChange,
    OwnHardware,
    first_problem,
    make_card_change,
    unknown_changes,
    with_own_hardware,
)
from planner.hardware.own_file import own_json, read_own, write_own
from planner.present import format as fmt
from planner.present.catalog.gpu_row import change_summary

TAKE_BACK: Final = "none"
"""The word that removes a number that was entered before."""
_OPTIONS: Final = {"paid": "purchase_price_usd", "power_limit": "power_limit_watts", "note": "note"}
_WAYS: Final = '--paid USD, --power-limit W or --note TEXT; --paid none, --power-limit none and --note "" remove it'


def add_own_options(group: argparse._ArgumentGroup) -> None:
    """Add the options that read and write the user's own hardware."""
    group.add_argument("--add", metavar="FILE", help="add cards and changes from a JSON file")
    group.add_argument(
        "--change", metavar="GPU", help="change your data of a card with --paid, --power-limit or --note"
    )
    group.add_argument("--paid", metavar="USD", type=_usd, help="the price that you paid for one; none removes it")
    group.add_argument("--note", metavar="TEXT", help='a note of your own; "" removes it')
    group.add_argument("--remove", metavar="GPU", help="remove your own card, or your changes to a card")
    group.add_argument("--own", action="store_true", help="list your own cards and changes")
    group.add_argument("--export", metavar="FILE", help="write your own cards and changes to a file")


def _usd(text: str) -> float | str:
    """Parse a price, which is validated later, or the word that removes it."""
    try:
        return text if text == TAKE_BACK else float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a price in USD nor {TAKE_BACK}") from None


def wants_own(arguments: argparse.Namespace) -> bool:
    """Return whether an option that reads or writes the user's own hardware is given."""
    return any(getattr(arguments, name) for name in _ACTIONS)


def run_own(arguments: argparse.Namespace, bundled: HardwareCatalog, file: Path, today: date) -> int:
    """Run the given action on the user's `file` and print its result.

    Raises:
        PlannerError: If a file cannot be read or written, or a record is invalid; it names the field.
    """
    action = next(each for name, each in _ACTIONS.items() if getattr(arguments, name))
    print(action(arguments, bundled, file, today))
    return 0


def _add(arguments: argparse.Namespace, bundled: HardwareCatalog, file: Path, today: date) -> str:
    path = Path(arguments.add)
    added = read_own(path, today)
    if not added.cards and not added.changes:
        raise PlannerError(f"{path} contains no card and no change", "It needs `cards` or `changes`.")
    own = read_own(file).merged_with(added)
    problem = first_problem(with_own_hardware(bundled, own), added)
    if problem is not None:
        raise CatalogError(path, *problem)
    write_own(file, own)
    said = [f"Added {fmt.plural(len(added.cards), 'card')} and {fmt.plural(len(added.changes), 'change')}."]
    known = {gpu.id for gpu in bundled.gpus}
    said += [f"{card.id} replaces the bundled card with this id." for card in added.cards if card.id in known]
    said += [f"{name} is not in the catalog; the change is kept." for name in unknown_changes(bundled, own)]
    return "\n".join(said)


def _change(arguments: argparse.Namespace, bundled: HardwareCatalog, file: Path, today: date) -> str:
    told = _fields_set_now(arguments)
    own = read_own(file)
    gpu = resolve_gpu(with_own_hardware(bundled, own), arguments.change)
    before = own.change_of(gpu.id)
    change = _joined_change(
        gpu.id, {} if before is None else before.model_dump(include=set(_OPTIONS.values())), told, today
    )
    if change is None:
        write_own(file, own.with_change_replaced(gpu.id, None))
        return f"{gpu.name}: no changes."
    changed = own.with_change_replaced(gpu.id, change)
    wrong = first_problem(with_own_hardware(bundled, changed), OwnHardware(changes=(change,)))
    # An older value may have become invalid with a newer catalog; only what is set now is refused.
    if wrong is not None and wrong.field in told:
        raise SpecError(_option(wrong.field), wrong.reason, wrong.hint)
    write_own(file, changed)
    return f"{gpu.name}: {change_summary(change)}."


def _fields_set_now(arguments: argparse.Namespace) -> dict[str, object]:
    """Return the fields that are set now by name, None for those that are removed."""
    given = {field: value for name, field in _OPTIONS.items() if (value := getattr(arguments, name)) is not None}
    if not given:
        raise SpecError("--change", "has nothing to change", f"Give {_WAYS}.")
    taken_back = {"purchase_price_usd": TAKE_BACK, "power_limit_watts": TAKE_BACK, "note": ""}
    return {field: None if value == taken_back[field] else value for field, value in given.items()}


def _joined_change(
    gpu_id: str, kept: Mapping[str, object], told: Mapping[str, object], today: date
) -> CardChange | None:
    """Return the change with the fields set now and before, or None if all of them are removed."""
    both = {**kept, **told}
    if all(value is None for value in both.values()):
        return None
    try:
        return make_card_change(gpu_id, today.isoformat(), both)
    except SpecError as error:
        raise SpecError(_option(error.field), error.reason, error.hint or f"Give {_WAYS}.") from error


def _option(field: str) -> str:
    """Return the option that sets a field of a change."""
    return next((f"--{name.replace('_', '-')}" for name, each in _OPTIONS.items() if each == field), "--change")


def _remove(arguments: argparse.Namespace, bundled: HardwareCatalog, file: Path, _: date) -> str:
    own = read_own(file)
    name = arguments.remove
    gpu_id = name if own.names(name) else resolve_gpu(with_own_hardware(bundled, own), name).id
    if not own.names(gpu_id):
        raise SpecError("--remove", f"{gpu_id} is neither your own nor changed by you", "See --own for those that are.")
    write_own(file, own.without(gpu_id))
    is_bundled = any(gpu.id == gpu_id for gpu in bundled.gpus)
    return f"{gpu_id} has the data of the catalog again." if is_bundled else f"{gpu_id} is removed."


def _list(arguments: argparse.Namespace, bundled: HardwareCatalog, file: Path, _: date) -> str:
    own = read_own(file)
    if arguments.json:
        return own_json(own)
    lines = [f"{card.id}: {card.name}, {card.memory_label}" for card in own.cards]
    lines += [f"{change.gpu}: {change_summary(change)}" for change in own.changes]
    lines += [f"{name} is not in the catalog." for name in unknown_changes(bundled, own)]
    return "\n".join(lines) or "No cards or changes of your own. Use --add FILE or --change GPU."


def _export(arguments: argparse.Namespace, _bundled: HardwareCatalog, file: Path, _: date) -> str:
    own = read_own(file)
    write_own(Path(arguments.export), own)
    return f"Wrote {fmt.plural(len(own.cards), 'card')} and {fmt.plural(len(own.changes), 'change')}."


_Action = Callable[[argparse.Namespace, HardwareCatalog, Path, date], str]
_ACTIONS: Final[Mapping[str, _Action]] = {
    "add": _add, "change": _change, "remove": _remove, "export": _export, "own": _list,
}  # fmt: skip
