"""The user's own cards and changes to bundled cards: their file, and their merge into the catalog.

An update of the catalog never touches that file.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Annotated, Final, NamedTuple, Self

from pydantic import ConfigDict, FailFast, Field, ValidationError, model_validator

from planner.base import Spec
from planner.errors import CatalogError, SpecError
from planner.hardware.catalog import HardwareCatalog
from planner.hardware.gpu import MOST_USD, MOST_WATTS, Day, FigureNote, Gpu, Line, Provenance
from planner.hardware.names import find_by_name
from planner.parsing import parse_json
from planner.storage import UnreadableFileError, decode_text, read_regular, read_stored, write_stored
from planner.units import GIB, MIB

OWN_SCHEMA: Final = 1
OWN_FIGURE: Final = "your own figure"
"""Source of a figure that the user entered."""
_BETWEEN_WORDS: Final = re.compile(r"[^a-z0-9.]+")
_ADDED_AFTER: Final = "Added by you, after the "
_USER_ONLY_FIELDS: Final = ("purchase_price_usd", "power_limit_watts")
"""Fields that only the user sets, never the catalog."""


class CardChange(Spec):
    """The user's changes to a bundled GPU; a field that is None keeps the catalog's value."""

    model_config = ConfigDict(allow_inf_nan=False)

    gpu: Line = Field(description="catalog id of the GPU")
    purchase_price_usd: float | None = Field(
        default=None, gt=0, le=MOST_USD, description="price in USD that the user paid for one GPU"
    )
    power_limit_watts: float | None = Field(
        default=None, gt=0, le=MOST_WATTS, description="power limit, as set with nvidia-smi -pl"
    )
    note: Line | None = None
    date: Day = Field(description="day on which the change was entered")

    @model_validator(mode="after")
    def _require_change(self) -> Self:
        """Refuse a change without price, power limit and note."""
        if self.purchase_price_usd is None and self.power_limit_watts is None and self.note is None:
            raise ValueError("is empty: set purchase_price_usd, power_limit_watts or note")
        return self


def make_card_change(gpu_id: str, day: str, entered_values: Mapping[str, object]) -> CardChange:
    """Return the changes to a card that the user entered on `day`, from a mapping of field names to values.

    Raises:
        SpecError: If a value is not allowed, or there is no change.
    """
    try:
        return CardChange.model_validate({**entered_values, "gpu": gpu_id, "date": day})
    except ValidationError as error:
        raise SpecError.from_validation(error) from error


class OwnHardware(Spec):
    """All GPUs and changes that the user added to the hardware catalog."""

    schema_version: int = Field(default=OWN_SCHEMA, ge=1, le=OWN_SCHEMA)
    # Not all of a hundred thousand wrong records are named, each with its fields.
    cards: Annotated[tuple[Gpu, ...], FailFast()] = ()
    changes: Annotated[tuple[CardChange, ...], FailFast()] = ()

    @model_validator(mode="after")
    def _require_unique_ids(self) -> Self:
        for kind, names in (("cards", [card.id for card in self.cards]), ("changes", [c.gpu for c in self.changes])):
            twice = next((name for name in names if names.count(name) > 1), None)
            if twice is not None:
                raise ValueError(f"{kind} name {twice!r} twice")
        return self

    def merged_with(self, newer: "OwnHardware") -> "OwnHardware":
        """Return this hardware merged with `newer`, which wins where both have the same card or change."""
        cards = {card.id: card for card in (*self.cards, *newer.cards)}
        changes = {change.gpu: change for change in (*self.changes, *newer.changes)}
        return OwnHardware(cards=tuple(cards.values()), changes=tuple(changes.values()))

    def without(self, gpu_id: str) -> "OwnHardware":
        """Return a copy without the card `gpu_id` and without the changes to this card."""
        return OwnHardware(
            cards=tuple(card for card in self.cards if card.id != gpu_id),
            changes=tuple(change for change in self.changes if change.gpu != gpu_id),
        )

    def change_of(self, gpu_id: str) -> CardChange | None:
        """Return the user's changes to the card `gpu_id`, or None."""
        return next((change for change in self.changes if change.gpu == gpu_id), None)

    def with_change_replaced(self, gpu_id: str, change: CardChange | None) -> "OwnHardware":
        """Return a copy with `change` as the only change to the card `gpu_id`, or without changes to it for None."""
        others = tuple(each for each in self.changes if each.gpu != gpu_id)
        return OwnHardware(cards=self.cards, changes=others if change is None else (*others, change))

    def without_changes(self) -> "OwnHardware":
        """Return a copy with the custom cards, without the changes to bundled cards."""
        return OwnHardware(cards=self.cards)

    def contains(self, gpu_id: str) -> bool:
        """Return whether the user added or changed the card with the id `gpu_id`."""
        return any(card.id == gpu_id for card in self.cards) or any(each.gpu == gpu_id for each in self.changes)


def with_own_hardware(hardware: HardwareCatalog, own: OwnHardware) -> HardwareCatalog:
    """Return the catalog `hardware` with the user's cards first and the user's changes applied.

    A custom card replaces the bundled card of the same id.

    Changes to cards that the catalog does not have are ignored here, and stay in the file.
    """
    if not own.cards and not own.changes:
        return hardware
    mine = {card.id: card.evolve(own=True) for card in own.cards}
    bundled = (gpu for gpu in hardware.gpus if gpu.id not in mine)
    changes = {change.gpu: change for change in own.changes}
    cards = (_with_change_applied(gpu, changes.get(gpu.id)) for gpu in (*mine.values(), *bundled))
    return replace(hardware, gpus=tuple(cards))


class CardOverrides(Spec):
    """Figures of a custom card that differ from those of its base card; None means no difference."""

    model_config = ConfigDict(allow_inf_nan=False)

    memory_bytes: int | None = Field(default=None, gt=0)
    bandwidth_bytes_per_s: float | None = Field(default=None, gt=0)
    board_power_watts: float | None = Field(default=None, gt=0)
    purchase_price_usd: float | None = Field(default=None, gt=0)


def derive_card(base: Gpu, name: str, figures: CardOverrides, day: str) -> Gpu:
    """Return a custom card that the user entered on `day`: `base` with another name and other figures.

    Another memory size discards the measured usable memory. The launch price, the purchase price and the power limit of
    `base` are not copied, but its notes are: pass the card without the user's changes to it.

    Raises:
        SpecError: If the name has neither a letter nor a digit, or a figure is out of bounds.
    """
    gpu_id = _BETWEEN_WORDS.sub("-", name.lower()).strip("-.")
    if not gpu_id:
        raise SpecError("name", "needs a letter or a digit", "Enter the name of the GPU, such as RTX 4090 48 GB.")
    given = figures.model_dump(exclude_none=True)
    fresh = {} if figures.memory_bytes is None else _memory_size_fields(figures.memory_bytes)
    mine = (*given, *(field for field, value in fresh.items() if value is not None))
    kept = tuple(note for note in base.figure_notes if note.field not in (*mine, *_USER_ONLY_FIELDS))
    facts = (note for note in base.notes if not note.startswith(_ADDED_AFTER))
    return base.evolve(
        id=gpu_id,
        name=name.strip(),
        aliases=(),
        launch_price_usd=None,
        figure_notes=(*_user_figure_notes(mine, day), *kept),
        notes=(f"{_ADDED_AFTER}{base.name}", *facts),
        **{**dict.fromkeys(_USER_ONLY_FIELDS), **given, **fresh},
    )


def _memory_size_fields(memory_bytes: int) -> dict[str, object]:
    measured = ("usable_memory_bytes", "usable_memory_high_bytes", "smi_memory_bytes")
    return {"memory_label": f"{memory_bytes / GIB:g} GB", **dict.fromkeys(measured)}


def unknown_changes(hardware: HardwareCatalog, own: OwnHardware) -> tuple[str, ...]:
    """Return the ids of changed cards that are neither in the catalog nor among the user's cards."""
    known = {gpu.id for gpu in (*hardware.gpus, *own.cards)}
    return tuple(change.gpu for change in own.changes if change.gpu not in known)


def _with_change_applied(gpu: Gpu, change: CardChange | None) -> Gpu:
    """Return `gpu` with the user's changes applied; a power limit above the board power is ignored."""
    if change is None:
        return gpu
    limit = change.power_limit_watts
    held = limit is not None and not is_above_board_power(gpu, limit)
    changed = {"purchase_price_usd": change.purchase_price_usd, "power_limit_watts": limit if held else None}
    figures = {field: value for field, value in changed.items() if value is not None}
    notes = (*gpu.notes, *_change_notes(gpu, change, is_effective=held))
    return gpu.evolve(
        **figures, own=True, notes=notes, figure_notes=(*_user_figure_notes(figures, change.date), *gpu.figure_notes)
    )


def is_above_board_power(gpu: Gpu, limit_watts: float) -> bool:
    """Return whether a power limit is above the card's board power; false if the board power is unknown."""
    return gpu.board_power_watts is not None and limit_watts > gpu.board_power_watts


def _user_figure_notes(fields: Iterable[str], day: str) -> tuple[FigureNote, ...]:
    """Return the provenance notes that mark `fields` as entered by the user on `day`."""
    source = Provenance.own(OWN_FIGURE, day)
    return tuple(FigureNote(field=field, provenance=source) for field in fields)


def _change_notes(gpu: Gpu, change: CardChange, *, is_effective: bool) -> Iterable[str]:
    """Yield sentences on the user's changes to a card, for display."""
    if change.power_limit_watts is not None:
        limit = f"{change.power_limit_watts:,.0f} W"
        full = "" if gpu.board_power_watts is None else f" of {gpu.board_power_watts:,.0f} W"
        if is_effective:
            yield f"Your power limit: {limit}{full}; the rates assume no limit"
        else:
            yield f"Your power limit of {limit} is above the board power{full} and is ignored"
    if change.note is not None:
        yield change.note


# Checked when something is added, never when the file is read: a newer catalog must not make the file unreadable.
class OwnProblem(NamedTuple):
    """A problem with one field of a custom hardware record, and a suggested remedy."""

    record: str
    field: str
    reason: str
    hint: str


def first_problem(hardware: HardwareCatalog, added: OwnHardware) -> OwnProblem | None:
    """Return the first problem with the hardware `added`, or None; the catalog `hardware` already includes `added`."""
    problems = (_name_conflict(hardware, card) for card in added.cards)
    limits = (_power_limit_problem(hardware, change) for change in added.changes)
    return next((each for each in (*problems, *limits) if each is not None), None)


def _name_conflict(hardware: HardwareCatalog, card: Gpu) -> OwnProblem | None:
    """Return the problem that an id, name or alias of `card` is already taken by another card, or None."""
    for field, text in _identifying_fields(card):
        other = next((gpu for gpu in find_by_name(hardware, text) if gpu.id != card.id), None)
        if other is not None:
            reason = f"{text!r} is the name of {other.id} ({other.name}) already"
            return OwnProblem(card.id, field, reason, _name_conflict_hint(card, field))
    return None


def _identifying_fields(card: Gpu) -> Iterator[tuple[str, str]]:
    """Yield the fields that identify a card (id, name, aliases), each with its value."""
    yield "id", card.id
    yield "name", card.name
    yield from ((f"aliases.{place}", alias) for place, alias in enumerate(card.aliases))


def _name_conflict_hint(card: Gpu, field: str) -> str:
    if field.startswith("aliases"):
        return "Remove this alias."
    return f"Choose another name, such as {card.name + ', mine'!r}." if field == "name" else "Choose another id."


def _power_limit_problem(hardware: HardwareCatalog, change: CardChange) -> OwnProblem | None:
    """Return the problem that a power limit is above the board power, or None."""
    gpu = next((gpu for gpu in hardware.gpus if gpu.id == change.gpu), None)
    limit = change.power_limit_watts
    if gpu is None or limit is None or not is_above_board_power(gpu, limit):
        return None
    reason = f"{limit:,.0f} W is above the board power of {gpu.board_power_watts:,.0f} W"
    return OwnProblem(change.gpu, "power_limit_watts", reason, "A power limit must be below the board power.")


_MOST_BYTES: Final = 16 * MIB
_FILE_KIND: Final = "hardware file"
_HINT: Final = (
    'A hardware file holds {"cards": [...], "changes": [...]}, a list of these or one GPU. In the window, '
    "“Add a GPU like this one…” (menu Catalog, Your own) adds one without a file; in a shell, "
    '`gpu-planner gpus --show "RTX 4090" --json` prints one to start from.'
)
_REPAIR_HINT: Final = "Fix the file in an editor, or move it away to start over; until then it is not overwritten."
_ADDITIONAL_PRINTED_KEYS: Final = frozenset(
    (
        *("derived", "prices", "software", "speeds", "fit", "job", "plan", "count", "totals"),
        *("street_price_usd", "street_price_source", "used_price_usd", "used_price_source"),
        *("rent_usd_per_hour", "rent_source", "price_usd", "price_source"),
    )
)
"""Keys that `gpus --show --json` prints besides the fields of a card's record; the reader ignores these keys."""
_USER_SOURCE: Final = "your own word"
"""Source of a custom card that was imported without a provenance."""
_YOURS: Final = {"basis": "yours", "certainty": "yours"}


def read_own(path: Path, today: date | None = None) -> OwnHardware:
    """Read the user's hardware in the file `path`; empty if there is no file.

    The file holds an object with cards and changes, a list of cards, or one card.

    With `today`, the file is one to import: it must exist, and cards without `provenance` are marked as entered by the
    user on that day. Without `today`, it is the file in which the user's hardware is stored.

    Raises:
        CatalogError: If the file cannot be read or a record does not validate; it names the record and the field.
    """
    hint = _HINT if today else _REPAIR_HINT
    try:
        data = (read_regular if today else read_stored)(path, _FILE_KIND, _MOST_BYTES)
        if data is None:
            return OwnHardware()
        content = parse_json(decode_text(data))
        return OwnHardware.model_validate(_with_user_figures_marked(_as_whole_file(content, today)))
    except UnreadableFileError as error:
        raise CatalogError(path, "", "", error.reason, f"{error.hint} {hint}" if today else hint) from error
    except ValidationError as error:
        raise _own_file_error(path, content, error, hint) from error


def write_own(path: Path, own: OwnHardware) -> None:
    """Write `own` to `path` atomically.

    Raises:
        CatalogError: If it cannot be written.
    """
    try:
        write_stored(path, own_json(own) + "\n")
    except OSError as error:
        raise CatalogError(path, "", "", f"cannot be written ({error.strerror})", "Check the folder.") from error


def own_json(own: OwnHardware) -> str:
    """Return the user's hardware `own` as JSON: the schema version and all fields that differ from their defaults."""
    content = own.model_dump(mode="json", exclude_defaults=True)
    return json.dumps({"schema_version": own.schema_version, **content}, indent=2, ensure_ascii=False)


def _as_whole_file(content: object, today: date | None) -> object:
    """Return the JSON `content` of a file as an object with the list `cards`, also if it is only that list or one card.

    With `today`, cards without a `provenance` are marked as entered by the user on that day.
    """
    if isinstance(content, list):
        content = {"cards": content}
    elif isinstance(content, dict) and "id" in content:
        content = {"cards": [content]}
    if today is None or not isinstance(content, dict) or not isinstance(content.get("cards"), list):
        return content
    provenance = Provenance.own(_USER_SOURCE, today.isoformat()).model_dump(mode="json")
    cards = [
        {"provenance": provenance, **{name: card[name] for name in card if name not in _ADDITIONAL_PRINTED_KEYS}}
        if isinstance(card, dict)
        else card
        for card in content["cards"]
    ]
    return {**content, "cards": cards}


def _with_user_figures_marked(content: object) -> object:
    """Return the file content with the user's figures marked `yours`; older files have the mark `measured`."""
    if isinstance(content, list):
        return [_with_user_figures_marked(each) for each in content]
    if not isinstance(content, dict):
        return content
    is_own = content.get("basis") == "measured" and content.get("source") in (OWN_FIGURE, _USER_SOURCE)
    return content | _YOURS if is_own else {name: _with_user_figures_marked(each) for name, each in content.items()}


def _own_file_error(path: Path, content: object, error: ValidationError, hint: str) -> CatalogError:
    where = error.errors(include_url=False)[0]["loc"]
    problem = SpecError.from_validation(error)
    hint = f"{problem.hint} {hint}".strip()
    records = _as_whole_file(content, None)
    kind, place = (str(where[0]), where[1]) if len(where) > 1 else ("", None)
    if not isinstance(place, int) or not isinstance(records, dict):
        return CatalogError(path, "", ".".join(map(str, where)), problem.reason, hint)
    record = records[kind][place]
    name = (record.get("id") or record.get("gpu")) if isinstance(record, dict) else None
    field = ".".join(str(part) for part in where[2:])
    return CatalogError(path, str(name or f"{kind} {place + 1}"), field, problem.reason, hint)
