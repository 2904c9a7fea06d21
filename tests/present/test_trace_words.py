"""The words of traced runs."""

import pytest

from planner.present.trace.view import CATEGORY_TITLES, operator_name, short_source_line
from planner.trace.facts import CATEGORIES


def test_every_category_has_a_title():
    assert list(CATEGORY_TITLES) == list(CATEGORIES)


@pytest.mark.parametrize(
    ("operator", "name"),
    [
        ("aten.mm.default", "mm"),
        ("aten::addmm", "addmm"),
        ("aten::_foreach_addcdiv_.ScalarList", "_foreach_addcdiv_"),
        ("mamba.scan", "mamba.scan"),
    ],
)
def test_operators_lose_what_most_share(operator, name):
    assert operator_name(operator) == name


@pytest.mark.parametrize("line", ["net.py:4", "/home/me/net.py:4", "C:\\me\\net.py:4"])
def test_lines_are_short_on_any_system(line):
    assert short_source_line(line) == "net.py:4"
