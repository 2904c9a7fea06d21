"""The public names are explained, and the examples of `help(planner)` do what they say."""

import doctest
import inspect

import pytest

import planner

NAMES = [name for name in planner.__all__ if name != "__version__"]


def test_the_examples_work():
    found = doctest.testmod(planner)
    assert found.attempted > 20
    assert not found.failed


@pytest.mark.parametrize("name", NAMES)
def test_every_name_is_described_and_used(name):
    assert inspect.getdoc(getattr(planner, name))
    assert planner.__doc__ is not None
    assert f"planner.{name}" in planner.__doc__
