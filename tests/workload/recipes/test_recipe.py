"""Recipes: titles, and the keys that estimates leave out."""

from planner.workload.recipes.recipe import FORMATS, NEUTRAL, IgnoredKey, Recipe, split_keys
from planner.workload.training import Training


def test_unsupported_and_unknown_keys_are_not_estimated() -> None:
    ignored = (
        IgnoredKey(key="seed", reason=NEUTRAL),
        IgnoredKey(key="torch_compile", reason="not estimated: compilation of the model"),
        IgnoredKey(key="hello", reason="unknown"),
    )
    recipe = Recipe(format="trl", workload=Training(), ignored=ignored)
    assert [entry.key for entry in recipe.not_estimated] == ["torch_compile", "hello"]
    assert recipe.title == FORMATS["trl"].title


def test_keys_are_separated_by_blanks_and_lines() -> None:
    assert split_keys("seed  output_dir\nlogging_steps") == {"seed", "output_dir", "logging_steps"}
