"""Each model type of transformers' own lists is read by a formula, traced, or refused by name with the reason."""

import json
from pathlib import Path

import pytest
import transformers
from model_types import LISTS, ListedType, assert_reads_the_same, listed_types, outcome, traced_parameters

from planner.errors import TraceError
from planner.models.readers.registry import readers

pytestmark = pytest.mark.sweep

# What became of each type with transformers 5.23; `pytest -m walk` walks the lists again.
WALK = json.loads((Path(__file__).parents[1] / "golden" / "model-types.json").read_text(encoding="utf-8"))
OUTCOMES = WALK["outcomes"]
IS_SAME_VERSION = transformers.__version__ == WALK["transformers"]
LEAST_SHARES = {
    "causal LM": 0.95,
    "image and text": 0.85,
    "sequence to sequence": 0.85,
    "speech": 0.70,
    "masked LM": 0.85,
    "image classification": 0.70,
}
ALL = tuple(listed_types())
QUICK = ("apertus", "parakeet_ctc", "resnet")


def ids(types: tuple[ListedType, ...]) -> list[str]:
    return [f"{listed.task}: {listed.model_type}" for listed in types]


@pytest.mark.parametrize("task", LISTS)
def test_most_types_of_each_list_are_read_or_traced(task: str) -> None:
    found = list(OUTCOMES[task].values())
    assert sum(each in ("read", "traced") for each in found) >= LEAST_SHARES[task] * len(found)
    assert all(each in ("read", "traced") or len(each.removeprefix("refused: ")) > 9 for each in found)


@pytest.mark.parametrize("task", LISTS)
def test_those_said_to_be_read_have_a_reader(task: str) -> None:
    read = {name for name, each in OUTCOMES[task].items() if each == "read"}
    assert read <= readers().keys()
    # What has a reader and is traced is the decoder of an encoder-decoder alone.
    assert task == "causal LM" or read == OUTCOMES[task].keys() & readers().keys()


@pytest.mark.skipif(not IS_SAME_VERSION, reason="the walk was made with another version of transformers")
def test_the_walk_covers_transformers_own_lists() -> None:
    assert {(listed.task, listed.model_type) for listed in ALL} == {
        (task, name) for task, names in OUTCOMES.items() for name in names
    }


@pytest.mark.parametrize("model_type", QUICK)
def test_a_type_without_a_formula_is_traced_with_the_parameters_that_transformers_counts(model_type: str) -> None:
    assert traced_parameters(next(listed for listed in ALL if listed.model_type == model_type)) > 0


@pytest.mark.walk
@pytest.mark.skipif(not IS_SAME_VERSION, reason="the walk was made with another version of transformers")
@pytest.mark.parametrize("listed", ALL, ids=ids(ALL))
def test_each_type_is_read_traced_or_refused_as_recorded(listed: ListedType) -> None:
    recorded = OUTCOMES[listed.task][listed.model_type]
    assert outcome(listed).partition(":")[0] == recorded.partition(":")[0]


@pytest.mark.oracle
@pytest.mark.parametrize(
    "listed",
    READ := tuple(listed for listed in ALL if OUTCOMES[listed.task].get(listed.model_type) == "read"),
    ids=ids(READ),
)
def test_formulas_count_what_transformers_builds(listed: ListedType) -> None:
    try:
        assert_reads_the_same(listed)
    except TraceError as error:
        pytest.skip(f"transformers builds nothing from its own defaults: {error.reason}")
