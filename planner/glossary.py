"""Glossary of the field's terms, read from `resources/glossary.toml`, and the terms that a text of the window names."""

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from typing import Final, Literal, NamedTuple

from planner.paths import resources_dir

Chapter = Literal[
    "Hardware", "Numbers", "Models", "Running", "Training", "Memory", "Several GPUs", "Speed", "Health", "Cost"
]
CHAPTERS: Final[Mapping[Chapter, str]] = {
    "Hardware": "What a GPU is, what it is made of, and what else computes neural networks.",
    "Numbers": "How numbers are stored, which decides how much memory a model takes and how fast it runs.",
    "Models": "What a model consists of, and what it reads and writes.",
    "Running": "What happens when a trained model answers.",
    "Training": "What happens when a model learns, or learns something more.",
    "Memory": "What fills the memory of a GPU, and what makes room.",
    "Several GPUs": "How several GPUs share a model or its data, and how they talk.",
    "Speed": "What limits the speed, and how well a GPU is used.",
    "Health": "What a running GPU reports.",
    "Cost": "What renting and buying cost.",
}
"""Chapters of GPU basics with their first sentence, in reading order."""


class GlossaryTerm(NamedTuple):
    """A glossary entry: a term with its definition, where the app shows it, and a source.

    Attributes:
        aliases: Other names of the term, which a label may contain.
        labels: Labels of the window that mean the term only as a whole, such as `Memory` for GPU memory.
        as_whole: Whether the term's own name, too, counts only as a whole label.
        chapter: Chapter of GPU basics; terms of a chapter are read in the order of `place`.
        drawing: Name of the drawing in `resources/drawings`, without its suffix; empty without one.
    """

    term: str
    definition: str
    shows_as: str
    source: str
    aliases: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    as_whole: bool = False
    chapter: Chapter = "Hardware"
    place: int = 0
    drawing: str = ""


@cache
def glossary() -> tuple[GlossaryTerm, ...]:
    """Return all glossary entries in alphabetical order."""
    with (resources_dir() / "glossary.toml").open("rb") as file:
        entries = tomllib.load(file)["terms"]
    names = ("aliases", "labels")
    return tuple(GlossaryTerm(**{**entry, **{name: tuple(entry.get(name, ())) for name in names}}) for entry in entries)


def is_glossary_read() -> bool:
    """Return whether the glossary has been read, so that looking a term up takes no time."""
    return bool(glossary.cache_info().currsize)


def find_term(text: str) -> GlossaryTerm | None:
    """Return the glossary term that a label names: as a whole, or else by the longest name that it contains."""
    named, contained = _terms_by_name()
    words = _words(text)
    if found := named.get(words):
        return found
    spans = (
        words[start : start + length] for length in range(len(words), 0, -1) for start in range(len(words) - length + 1)
    )
    return next((contained[span] for span in spans if span in contained), None)


def terms_to_read() -> Mapping[Chapter, tuple[GlossaryTerm, ...]]:
    """Return the terms of each chapter of GPU basics, in reading order."""
    ordered = sorted(glossary(), key=lambda entry: entry.place)
    return {chapter: tuple(entry for entry in ordered if entry.chapter == chapter) for chapter in CHAPTERS}


@cache
def _terms_by_name() -> tuple[dict[tuple[str, ...], GlossaryTerm], dict[tuple[str, ...], GlossaryTerm]]:
    """Return the terms by the words of each whole label, and by the words of each name that a label may contain."""
    named: dict[tuple[str, ...], GlossaryTerm] = {}
    contained: dict[tuple[str, ...], GlossaryTerm] = {}
    for entry in glossary():
        for name in (entry.term, *entry.aliases, *entry.labels):
            named[_words(name)] = entry
        for name in (*(() if entry.as_whole else (entry.term,)), *entry.aliases):
            contained[_words(name)] = entry
    return named, contained


def _words(text: str) -> tuple[str, ...]:
    return tuple(re.findall(r"\w+", text.replace("&", "").casefold()))
