"""The catalog of models: records loaded from JSON, and architectures built from them on first use."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import Field, field_validator

from planner.base import Spec
from planner.dtypes import SCHEMES, scheme_called
from planner.errors import AmbiguousNameError, NoFormulaError, SpecError
from planner.models.architecture import Architecture, ModelKind
from planner.records import RecordFiles, records_mentioning
from planner.validation import close_names

_NOT_BUILT_FILE: Final = "not-built.json"
_SUGGESTIONS: Final = 5
_SHORT: Final = 2
# In ASCII, as for the dates: a class of all alphabets takes pydantic a hundred times as long to compile.
_ID: Final = r"^[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)?$"
_SEPARATORS: Final = re.compile(r"[\s_-]+")
_WRITTEN_POINT: Final = r"(?<=\d)_(?=\d)"  # qwen1_5, phi-1_5
_NAME_PARTS: Final = r"[a-z]+|\d+(?:\.\d+)*"
_WEIGHT_FORMAT: Final = (
    r"(?i)(?P<name>.+?)[\s:._-]+(?P<format>i?q\d\w*|awq|gptq|fp8|nf4|fp16|bf16|int[48]|w4a16|[48]-?bit)"
)
"""A model's name with the format of its weights, as files and tags are called: `llama3.1:8b-q4_K_M`."""
_CONVERTED: Final = r"(?i)-hf$"
"""Ending of names of checkpoints in the form of transformers, which people leave out."""
_REPOSITORY: Final = r"(?a)[\w.-]{1,96}/[\w.-]{1,96}"
_PACKAGING: Final = r"(?i)[-_.](gguf|safetensors|mlx|exl2|unsloth-bnb|bnb|hf)$"
_CONTEXT_FIELDS: Final = ("max_position_embeddings", "n_positions", "max_seq_len", "max_target_positions")
_LIST_COMMAND: Final = (
    "The window's list of models, or `gpu-planner models WORDS` in a shell, shows all models; "
    "a config.json can be used as well."
)


class PublishedSize(Spec):
    """The number of parameters that the publisher states, often rounded."""

    value: str
    source: str = Field(min_length=3)
    difference: str | None = Field(
        default=None, description="reason why the publisher's parameter count differs from the exact count"
    )


class ModelRecord(Spec):
    """One model of the catalog: its configuration, sources and verification."""

    id: str = Field(pattern=_ID)
    aliases: tuple[str, ...] = ()
    variants: dict[str, str] = Field(
        default={}, description="names of checkpoints of the same network in other weight formats, each with its format"
    )
    family: str
    kind: ModelKind
    config: dict[str, Any] = Field(description="fields of config.json that determine the tensors")
    parameters: int = Field(gt=0, description="exact number of parameters, with every tensor counted once")
    published: PublishedSize | None = None
    sources: tuple[str, ...] = Field(min_length=1)
    verification: Literal[
        "config_copy",
        "reimplementation_config",
        "dimension_dump",
        "transformers_class_default",
        "inherited",
        "recalled_count_checked",
        "other",
    ] = Field(description="kind of source: a copy of config.json, another framework's configuration, a table, …")
    as_of: str = Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$", description="day on which the sources were read")
    notes: tuple[str, ...] = ()

    @field_validator("variants")
    @classmethod
    def _check_known_schemes(cls, variants: dict[str, str]) -> dict[str, str]:
        """Refuse a variant whose weight format is unknown."""
        unknown = sorted(set(variants.values()) - set(SCHEMES))
        if unknown:
            raise ValueError(f"{unknown[0]!r} is not a weight format")
        return variants

    def __hash__(self) -> int:
        # The configuration is a dictionary; the id is the record's own.
        return hash(self.id)

    @property
    def name(self) -> str:
        """Return the model's id without its owner."""
        return self.id.rpartition("/")[2]

    @property
    def context(self) -> int | None:
        """Return the maximum context length that the configuration states, in tokens."""
        text = self.config.get("text_config", self.config)
        return next((text[name] for name in _CONTEXT_FIELDS if name in text), None)

    @property
    def names(self) -> tuple[str, ...]:
        """Return all names of the model: its id, aliases and variants."""
        return (self.id, *self.aliases, *self.variants)


class UnsupportedModel(Spec):
    """A model without a formula: a trace answers for it if its configuration is known, else nothing."""

    id: str = Field(pattern=_ID)
    aliases: tuple[str, ...] = ()
    family: str
    reason: str = Field(min_length=3)
    config: dict[str, Any] | None = Field(
        default=None, description="fields of config.json from which transformers builds the network that is traced"
    )
    parameters: int | None = Field(
        default=None, gt=0, description="exact number of parameters of that network, as transformers counts them"
    )
    sources: tuple[str, ...] = Field(min_length=1)

    @property
    def names(self) -> tuple[str, ...]:
        """Return all names of the model: its id and aliases."""
        return (self.id, *self.aliases)


@dataclass(frozen=True, eq=False)
class ModelCatalog:
    """All models of the catalog. Catalogs compare by identity, so that a catalog can be a cache key."""

    records: Sequence[ModelRecord]
    not_built: Sequence[UnsupportedModel] = ()
    _built: dict[str, Architecture] = field(default_factory=dict, init=False, repr=False)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self.records)} models>"

    def record(self, name: str) -> ModelRecord:
        """Return the record with exactly the id, alias or variant `name`; `resolve_model` accepts other spellings.

        Raises:
            SpecError: If there is none.
        """
        if name not in self._records_by_name:
            self._records_by_name.update(_by_name(records_mentioning(self.records, name)))
        if name not in self._records_by_name:
            raise SpecError("model", f"no model has the id {name!r}", hint=_similar_names_hint(self, name))
        return self._records_by_name[name]

    def model(self, name: str) -> Architecture:
        """Return the architecture with exactly the id, alias or variant `name`, built on first use.

        Raises:
            SpecError: If there is none.
        """
        found = self._built.get(name)
        if found is None:
            found = self._built[name] = _build_architecture(self.record(name), name)
        return found

    @cached_property
    def _records_by_name(self) -> dict[str, ModelRecord]:
        """Return the records that were looked up, and those of the same files, by name."""
        return {}

    def names_written_as(self, text: str) -> tuple[str, ...]:
        """Return the names that are `text` but for case, separators and the owner, as the catalog writes them."""
        asked = normalize_name(text)
        named = _by_name(records_mentioning(self.records, *asked.split("-")))
        return tuple(name for name in named if asked in _spellings(name))

    @property
    def names_as_written(self) -> Mapping[str, tuple[str, ...]]:
        """Return the names as the catalog writes them, by normalized spelling with and without the owner."""
        found: dict[str, dict[str, None]] = {}
        for name in _by_name(self.records):
            for spelling in _spellings(name):
                found.setdefault(spelling, {})[name] = None
        return {spelling: tuple(names) for spelling, names in found.items()}

    @cached_property
    def _ids_by_parts(self) -> Mapping[tuple[str, ...], tuple[str, ...]]:
        """Return the ids of the models by the letters and numbers of their names, with and without the owner."""
        found: dict[tuple[str, ...], dict[str, None]] = {}
        for record in self.records:
            for name in (record.id, *record.aliases):
                for spelling in (name, name.rpartition("/")[2]):
                    found.setdefault(name_parts(re.sub(_CONVERTED, "", spelling)), {})[record.id] = None
        return {parts: tuple(ids) for parts, ids in found.items()}

    def ids_written_as(self, text: str) -> tuple[str, ...]:
        """Return the ids whose letters and numbers are those of `text`, or else begin with them, of one network."""
        if exact := self._ids_by_parts.get(name_parts(re.sub(_CONVERTED, "", text)), ()):
            return exact
        begun = self.ids_beginning_with(text)
        networks = [self.record(model_id).config for model_id in begun]
        return begun[:1] if all(each == networks[0] for each in networks) else ()

    def ids_beginning_with(self, text: str) -> tuple[str, ...]:
        """Return the ids whose letters and numbers begin with those of `text`, of which one is a word of three letters.

        M2 and A10 are names of hardware.
        """
        asked = name_parts(text)
        if not any(len(part) > _SHORT and part.isalpha() for part in asked):
            return ()
        found = (ids for parts, ids in self._ids_by_parts.items() if parts[: len(asked)] == asked)
        return tuple(dict.fromkeys(model_id for ids in found for model_id in ids))

    def without_formula(self, text: str) -> tuple[UnsupportedModel, ...]:
        """Return the models without a formula that are named `text`, or else those whose names begin with it."""
        asked = name_parts(text)
        named = {
            parts: model
            for model in self.not_built
            for name in model.names
            for parts in (name_parts(name), name_parts(name.rpartition("/")[2]))
        }
        if asked in named:
            return (named[asked],)
        begun = {model.id: model for parts, model in named.items() if asked and parts[: len(asked)] == asked}
        return tuple(begun.values())


def _by_name(records: Iterable[ModelRecord]) -> dict[str, ModelRecord]:
    return {name: record for record in records for name in record.names}


def _spellings(name: str) -> tuple[str, str]:
    """Return the normalized spellings of a name, with and without its owner."""
    return normalize_name(name), normalize_name(name.rpartition("/")[2])


def name_parts(name: str) -> tuple[str, ...]:
    """Return the letters and numbers of a model's name: `llama3.1:8b` and `Llama-3.1-8B` have the same."""
    return tuple(re.findall(_NAME_PARTS, re.sub(_WRITTEN_POINT, ".", name.casefold())))


def split_format(name: str) -> tuple[str, str]:
    """Return a model's name without the format of its weights or the kind of its file, and the format or ""."""
    found = re.fullmatch(_WEIGHT_FORMAT, name)
    return (found["name"], found["format"]) if found else (re.sub(_PACKAGING, "", name), "")


def load_models(folder: Path, *, on_demand: bool = False) -> ModelCatalog:
    """Read every JSON file in `folder`, each a list of records; with `on_demand`, when one of its records is asked for.

    Raises:
        CatalogError: If a file cannot be read or a record does not validate or repeats an id; it names the file,
            the record and the field. With `on_demand`, whatever parses the file raises it.
    """
    aside = folder / _NOT_BUILT_FILE
    records = RecordFiles(folder, ModelRecord, [path for path in sorted(folder.glob("*.json")) if path != aside])
    not_built = RecordFiles(folder, UnsupportedModel, [aside]) if aside.exists() else ()
    return ModelCatalog(records, not_built) if on_demand else ModelCatalog(records[:], not_built[:])


def resolve_model(catalog: ModelCatalog, text: str) -> str:
    """Return the catalog's name for `text`, ignoring case and separators; the owner may be omitted.

    Separators between letters and numbers may be missing or others, as in Ollama's `llama3.1:8b`. The last words may
    be omitted, too, if only names of one network start with the others.

    Raises:
        AmbiguousNameError: If several networks have this name.
        NoFormulaError: If it names a network that can only be traced.
        SpecError: If there is none; the hint suggests similar names.
    """
    found = catalog.names_written_as(text) or catalog.ids_written_as(text)
    owners = {catalog.record(name).id for name in found}
    if len(owners) > 1:
        raise AmbiguousNameError("model", text, tuple(sorted(found)))
    if not found:
        raise _unknown_model_error(catalog, text)
    return found[0]


def normalize_name(name: str) -> str:
    """Return a model name in lower case with uniform separators."""
    return _SEPARATORS.sub("-", name.strip().casefold())


def _without_separators(name: str) -> str:
    return "".join(filter(str.isalnum, name))


def _unknown_model_error(catalog: ModelCatalog, text: str) -> SpecError | NoFormulaError:
    unread = catalog.without_formula(text)
    if len(unread) > 1:
        return AmbiguousNameError("model", text, tuple(model.id for model in unread))
    if not unread:
        reason = f"no model is called {text[:80]!r}"
    elif unread[0].config is None:
        reason = f"{unread[0].id} cannot be built: {unread[0].reason}"
    else:
        return NoFormulaError(unread[0].id, unread[0].reason, unread[0].id)
    return SpecError("model", reason, hint=_similar_names_hint(catalog, text))


def _similar_names_hint(catalog: ModelCatalog, text: str) -> str:
    if (meant := _without_format(catalog, text)) is not None:
        name, scheme = meant
        weights = f" and --weights {scheme_called(scheme) or scheme}" if scheme else ""
        return f"The number format is not part of the name: write {name!r}{weights}."
    asked = _without_separators(normalize_name(text))
    spellings = catalog.names_as_written
    holding = [spelling for spelling in spellings if len(asked) > 2 and asked in _without_separators(spelling)]
    close = (
        sorted(holding, key=len)
        or _names_with_parts_of(spellings, text)
        or close_names(normalize_name(text), spellings, _SUGGESTIONS)
    )
    names = tuple(dict.fromkeys(spellings[spelling][0] for spelling in close))[:_SUGGESTIONS]
    on_hub = f" hf:{text} reads it from the Hugging Face Hub." if re.fullmatch(_REPOSITORY, text) else ""
    return (f"Close names: {', '.join(names)}. {_LIST_COMMAND}" if names else _LIST_COMMAND) + on_hub


def _names_with_parts_of(spellings: Iterable[str], text: str) -> list[str]:
    """Return the spellings that have the letters and numbers of `text` in this order, and others between."""
    asked = name_parts(text)

    def holds(spelling: str) -> bool:
        parts = iter(name_parts(spelling))
        return all(part in parts for part in asked)

    return sorted(filter(holds, spellings), key=len) if len(asked) > 1 else []


def _without_format(catalog: ModelCatalog, text: str) -> tuple[str, str] | None:
    """Return a known name that is `text` without its number format and with or without its owner, and the format."""
    for name in dict.fromkeys((text.strip(), text.strip().rpartition("/")[2])):
        scheme, shorter = "", name
        while True:
            known, (shorter, found) = shorter, split_format(shorter)
            scheme = scheme or found
            if shorter == known:
                break
            if catalog.ids_written_as(shorter):
                return shorter, scheme
    return None


def _build_architecture(record: ModelRecord, name: str) -> Architecture:
    # Imported here: lists and searches need no reader.
    from planner.models.readers.config_json import read_config

    built = read_config(record.config, record.id)
    scheme = record.variants.get(name)
    if scheme is None:
        return built
    if SCHEMES[scheme].family == "plain":
        return built.evolve(stored_dtype=scheme, quantization=None)
    note = f"stored as {scheme}, according to the checkpoint's name"
    return built.evolve(quantization=scheme, reader_notes=(*built.reader_notes, note))
