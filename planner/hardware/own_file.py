"""Reader and writer of the file with the user's own cards and changes to bundled cards."""

import json
from datetime import date
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from planner.errors import CatalogError, SpecError
from planner.hardware.gpu import Provenance
from planner.hardware.own import OWN_FIGURE, OwnHardware
from planner.parsing import parse_json
from planner.storage import UnreadableFileError, decode_text, read_regular, read_stored, write_stored
from planner.units import MIB

_MOST_BYTES: Final = 16 * MIB
_FILE_KIND: Final = "hardware file"
_HINT: Final = (
    'A hardware file holds {"cards": [...], "changes": [...]}, a list of cards or one card. In the window, '
    "“Add a card like this one…” (menu Catalog, Your own) makes a card without a file; in a shell, "
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
        {"provenance": provenance, **_record_fields(card)} if isinstance(card, dict) else card
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


def _record_fields(card: dict[str, object]) -> dict[str, object]:
    """Return the fields of a card's record from the output of `gpus --show --json`."""
    return {name: value for name, value in card.items() if name not in _ADDITIONAL_PRINTED_KEYS}


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
