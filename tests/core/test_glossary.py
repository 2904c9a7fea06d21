"""The glossary is complete and sorted, and titles of fields spell its terms as it does."""

import re
from itertools import pairwise

import pytest

from planner.glossary import Term, glossary
from planner.workload.fields import all_fields

TERMS = glossary()
CITED = r"[Ff]ields? ([A-Z][\w -]*?(?:(?:, | and )[A-Z][\w -]*?)*)(?= of |;|\.|,| with | together |$)"


def test_terms_are_sorted_and_unique_whatever_their_case():
    names = [entry.term.casefold() for entry in TERMS]
    assert len(TERMS) > 80
    assert all(first < second for first, second in pairwise(names))


@pytest.mark.parametrize("entry", TERMS, ids=lambda entry: entry.term)
def test_each_entry_has_a_short_definition_a_place_and_a_source(entry: Term):
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
