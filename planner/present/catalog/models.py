"""What tables and detail panes show of a model."""

from typing import Final

from planner.models.architecture import Architecture
from planner.models.catalog import ModelRecord
from planner.present import format as fmt
from planner.present.catalog.architecture import KIND_TITLES, architecture_details
from planner.present.columns import Column, Detail, DetailGroup, numbers, words

VERIFICATION_WORDS: Final = {
    "config_copy": "a copy of its config.json",
    "reimplementation_config": "another framework's configuration of it",
    "dimension_dump": "a table of its dimensions",
    "transformers_class_default": "the defaults of its transformers class",
    "inherited": "the configuration of the model that it derives from",
    "recalled_count_checked": "recalled, and checked against its exact parameter count",
    "other": "another document",
}

MODEL_COLUMNS: Final[tuple[Column[ModelRecord], ...]] = (
    words("name", "Name", lambda record: record.id, width=40),
    words("family", "Family", lambda record: record.family, width=18),
    numbers(
        "parameters",
        "Parameters",
        lambda record: record.parameters,
        unit="billion",
        per_unit=1e9,
        width=12,
        tooltip=lambda record: fmt.integer(record.parameters),
    ),
    numbers(
        "context",
        "Longest context",
        lambda record: record.context,
        unit="tokens",
        unknown="not stated",
        show=lambda tokens: fmt.integer(round(tokens)),
        width=16,
    ),
    words("kind", "Kind", lambda record: KIND_TITLES[record.kind], width=20),
)


def model_details(record: ModelRecord, architecture: Architecture) -> tuple[DetailGroup, ...]:
    """Return what is known of a model, what its network is made of, and where that was read."""
    known = Detail(
        "Known from",
        VERIFICATION_WORDS[record.verification],
        "; ".join(record.sources),
        as_of=f"read {fmt.date(record.as_of)}",
    )
    names = tuple(Detail("Also called", name) for name in record.aliases)
    variants = tuple(Detail(f"In {scheme}", name) for name, scheme in record.variants.items())
    model = (Detail("Name", record.id), Detail("Family", record.family), *names, *variants, *_published(record), known)
    return (DetailGroup("Model", model), *architecture_details(architecture))


def _published(record: ModelRecord) -> tuple[Detail, ...]:
    published = record.published
    if published is None:
        return ()
    return (Detail("Size as published", published.value, published.source, published.difference or ""),)
