"""Each public name loads, explains itself and is in an example; a name that is not there says so."""

import ast
import doctest
import subprocess
import sys
from pathlib import Path

import pytest

import planner

NAMES = [name for name in planner.__all__ if name != "__version__"]


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_explains_itself(name):
    own = getattr(planner, name)
    assert own.__name__ == name
    assert own.__doc__
    assert own.__doc__.strip().endswith(".")
    assert planner.__doc__ is not None
    assert f"planner.{name}" in planner.__doc__


def test_the_examples_work():
    found = doctest.testmod(planner)
    assert found.attempted > 20
    assert not found.failed


def test_the_version_is_one():
    assert all(part.isdigit() for part in planner.__version__.split("."))


def test_all_of_them_are_imported_by_a_star():
    program = "from planner import *; print(*sorted(set(dir()) & set(__import__('planner').__all__)))"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, encoding="utf-8", check=True)
    assert run.stdout.split() == sorted(planner.__all__)


def test_all_of_them_are_listed():
    assert dir(planner) == planner.__all__


def test_type_checkers_know_all_of_them():
    tree = ast.parse(Path(planner.__file__).read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    imported = {name.name: node.module for node in block.body for name in node.names}
    assert imported == planner._HOMES


def test_a_name_that_is_not_there_is_named():
    with pytest.raises(AttributeError, match="module 'planner' has no attribute 'forecast'"):
        _ = planner.forecast
    run = subprocess.run(
        [sys.executable, "-c", "import planner; planner.evalute"], capture_output=True, encoding="utf-8", check=False
    )
    assert "Did you mean: 'evaluate'?" in run.stderr
