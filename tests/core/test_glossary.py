"""The glossary is complete and sorted, and titles of fields spell its terms as it does."""

import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from planner import glossary as module
from planner.glossary import CHAPTERS, GlossaryTerm, find_term, glossary, is_glossary_read, terms_to_read
from planner.paths import resources_dir
from planner.workload.fields import all_fields

TERMS = glossary()
DRAWINGS = sorted((resources_dir() / "drawings").glob("*.svg"))
CITED = r"[Ff]ields? ([A-Z][\w -]*?(?:(?:, | and )[A-Z][\w -]*?)*)(?= of |;|\.|,| with | together |$)"


def test_terms_are_sorted_and_unique_whatever_their_case():
    names = [entry.term.casefold() for entry in TERMS]
    assert len(TERMS) > 80
    assert all(first < second for first, second in pairwise(names))


@pytest.mark.parametrize("entry", TERMS, ids=lambda entry: entry.term)
def test_each_entry_has_a_short_definition_a_place_and_a_source(entry: GlossaryTerm):
    assert all((entry.term, entry.definition, entry.shows_as))
    assert len(re.findall(r"[.!?](?=\s|$)", entry.definition)) <= 2
    assert entry.definition.endswith(".")
    assert entry.shows_as.endswith(".")
    assert re.fullmatch(r"https://\S+", entry.source)


def test_titles_of_fields_spell_terms_as_the_glossary_does():
    terms = {entry.term.casefold(): entry.term for entry in TERMS}
    for field in all_fields():
        spelling = terms.get(re.sub(r"[\s-]+", "-", field.title).casefold(), terms.get(field.title.casefold()))
        assert spelling in (None, field.title), field.name


def test_titles_that_the_glossary_cites_are_those_of_fields():
    titles = {field.title for field in all_fields()}
    used = {entry.term for entry in TERMS} & titles
    assert {"Micro-batch size", "Sequence length", "Context length"} <= used
    for entry in TERMS:
        for cited in re.findall(CITED, entry.shows_as):
            named = re.split(r", | and ", cited)
            assert set(named) <= titles, (entry.term, named)


def named(label: str) -> str | None:
    found = find_term(label)
    return None if found is None else found.term


def test_a_label_names_a_term_by_its_name_an_alias_or_as_a_whole():
    assert named("&KV cache") == "KV cache"
    assert named("Sequence length") == "Sequence length"
    assert named("VRAM") == "GPU memory"
    assert named("Memory, GiB") == "GPU memory"
    assert named("Color of the card") is None


def test_a_longer_label_names_the_longest_term_that_it_contains():
    assert named("KV cache, 0.50 GiB, 3 %, counted exactly, collapsed") == "KV cache"
    assert named("Bandwidth per watt, GB/s/W") is None  # a whole label only
    assert named("Peak of the gradient accumulation") == "Gradient accumulation"


def test_a_term_that_counts_only_as_a_whole_label_is_not_found_inside_another():
    assert named("GPU") == "GPU"
    assert named("GPU-hours") is None


def test_no_two_terms_answer_to_the_same_name():
    names = [
        " ".join(re.findall(r"\w+", name.casefold()))
        for entry in TERMS
        for name in {entry.term, *entry.aliases, *entry.labels}
    ]
    assert len(names) == len(set(names)), sorted(name for name in set(names) if names.count(name) > 1)


def test_most_fields_of_a_workload_name_a_term():
    unexplained = {field.title for field in all_fields() if find_term(field.title) is None}
    assert unexplained == {
        "Software",
        "Version",
        "Image size",
        "VAE tiling",
        "VAE slicing",
        "Mixed GPUs",
    }


def test_each_chapter_has_its_terms_in_their_order():
    chapters = terms_to_read()
    assert list(chapters) == list(CHAPTERS)
    assert sum(map(len, chapters.values())) == len(TERMS)
    for entries in chapters.values():
        assert [entry.place for entry in entries] == list(range(1, len(entries) + 1))


def test_the_glossary_is_not_read_before_it_is_needed():
    module.glossary.cache_clear()
    assert not is_glossary_read()
    glossary()
    assert is_glossary_read()


def test_each_drawing_belongs_to_a_term_and_each_term_s_drawing_exists():
    assert {entry.drawing for entry in TERMS} - {""} == {file.stem for file in DRAWINGS}


@pytest.mark.parametrize("file", DRAWINGS, ids=lambda file: file.stem)
def test_a_drawing_is_a_small_picture_in_the_theme_s_colors(file):
    text = file.read_text(encoding="utf-8")
    assert ElementTree.fromstring(text).get("viewBox") == "0 0 320 140"
    assert "#" not in text
