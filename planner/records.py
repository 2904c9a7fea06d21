"""Reader of catalog files: JSON lists of records, with validation errors that name file, record and field."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Final, Protocol, TypeVar, overload

from pydantic import TypeAdapter, ValidationError

from planner.errors import CatalogError, SpecError
from planner.parsing import parse_json
from planner.storage import UnreadableFileError, read_regular
from planner.units import MIB

_MOST_BYTES: Final = 32 * MIB
_CORRECT_RECORD: Final = "Correct that field, or reinstall the bundled catalog."


class IdentifiedRecord(Protocol):
    """A catalog record with a unique id."""

    @property
    def id(self) -> str:
        """Return the record's id."""
        ...


Record = TypeVar("Record", bound=IdentifiedRecord)


class RecordFiles(Sequence[Record]):
    """The records of the class `kind` in JSON files, in order; a file is parsed when one of its records is asked for.

    Most answers need the records of a few files. Whatever parses a file raises a `CatalogError`, as `read_records`.
    """

    def __init__(self, folder: Path, kind: type[Record], paths: Iterable[Path] | None = None) -> None:
        self._folder, self._kind = folder, kind
        self._paths = sorted(folder.rglob("*.json")) if paths is None else list(paths)
        self._parsed: dict[Path, tuple[Record, ...]] = {}

    def mentioning(self, *words: str) -> tuple[Record, ...]:
        """Return all records of each file whose text contains all `words`, in upper or lower case.

        Among them is every record that is named by these words; words outside ASCII are not compared.
        """
        asked = [word.lower().encode() for word in words if word.isascii()]
        return tuple(
            record
            for path, text in self._texts.items()
            if all(word in text for word in asked)
            for record in self._in_file(path)
        )

    @overload
    def __getitem__(self, place: int) -> Record: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Record, ...]: ...
    def __getitem__(self, place: int | slice) -> Record | tuple[Record, ...]:
        return self._all[place]

    def __iter__(self) -> Iterator[Record]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    @cached_property
    def _texts(self) -> Mapping[Path, bytes]:
        """Return each file's text in lower case, as far as it is ASCII."""
        return {path: _read_text(path).lower() for path in self._paths}

    @cached_property
    def _all(self) -> tuple[Record, ...]:
        seen: dict[str, Record] = {}
        for path in self._paths:
            for record in self._in_file(path):
                if record.id in seen:
                    raise CatalogError(path, record.id, "id", "another record has this id", hint="Ids must be unique.")
                seen[record.id] = record
        if not seen:
            hint = "Reinstall, or name a catalog folder."
            raise CatalogError(self._folder, "", "", "there are no JSON files here", hint=hint)
        return tuple(seen.values())

    def _in_file(self, path: Path) -> tuple[Record, ...]:
        if path not in self._parsed:
            self._parsed[path] = _read_record_file(path, _record_list_adapter(self._kind))
        return self._parsed[path]


def read_records(folder: Path, kind: type[Record], paths: Iterable[Path] | None = None) -> tuple[Record, ...]:
    """Return the records of the class `kind` in `paths`, by default in every JSON file below `folder`, in order.

    Raises:
        CatalogError: If there is no file, a file cannot be read, or a record does not validate or repeats an id; it
            names the file, the record and the field.
    """
    return RecordFiles(folder, kind, paths)[:]


def records_mentioning(records: Sequence[Record], *words: str) -> Sequence[Record]:
    """Return `records`, or of those in files only the ones that `RecordFiles.mentioning` returns."""
    return records.mentioning(*words) if isinstance(records, RecordFiles) else records


@cache
def _record_list_adapter(kind: type[Record]) -> TypeAdapter[tuple[Record, ...]]:
    """Return the validator of lists of `kind`, cached: building it takes as long as reading a hundred records."""
    return TypeAdapter(tuple[kind, ...])  # type: ignore[valid-type]  # the kind is known only at run time


def _read_text(path: Path) -> bytes:
    try:
        return read_regular(path, "catalog file", _MOST_BYTES)
    except UnreadableFileError as error:
        raise CatalogError(path, "", "", error.reason, error.hint) from error


def _read_record_file(path: Path, adapter: TypeAdapter[tuple[Record, ...]]) -> tuple[Record, ...]:
    text = _read_text(path)
    try:
        # By pydantic's parser, which limits depth and digits itself: the bundled catalog is read at every start.
        return adapter.validate_json(text)
    except ValidationError as error:
        raise _catalog_error(path, text, error) from error


def _catalog_error(path: Path, text: bytes, error: ValidationError) -> CatalogError:
    """Return the catalog error for pydantic's first error in the file at `path`."""
    where = error.errors(include_url=False)[0]["loc"]
    problem = SpecError.from_validation(error)
    if not where or not isinstance(where[0], int):
        return CatalogError(path, "", "", problem.reason, hint="A catalog file is a JSON list of records.")
    record = _record_at(text, where[0])
    name = record.get("id") if isinstance(record, dict) else None
    field = ".".join(str(part) for part in where[1:])
    hint = problem.hint or _CORRECT_RECORD
    return CatalogError(path, str(name or f"record {where[0] + 1}"), field, problem.reason, hint=hint)


def _record_at(text: bytes, number: int) -> object:
    """Return a record of the catalog file, or None if it is beyond the limits of other files."""
    try:
        return parse_json(text)[number]
    except UnreadableFileError:
        return None
