"""Solutions of a search as text."""

import pytest

from planner.plan.solve import SolveResult
from planner.present.memory.solved import solved_sentence, solved_text, solved_title


def found(value=None, bounded_by="memory", reason="", asked="batch", prompt=None):
    return SolveResult(asked=asked, value=value, bounded_by=bounded_by, reason=reason, prompt=prompt)


@pytest.mark.parametrize(
    ("surely", "barely", "words"),
    [
        (found(7), found(8), "7 (up to 8 may fit)"),
        (found(7000), found(7000), "7,000"),
        (found(), found(8), "none for sure; a batch of 8 may fit"),
        (found(), found(reason="not even 1 fits"), "none, not even 1 fits"),
        (found(1024, "model"), found(1024, "model"), "1,024, the model's maximum"),
        (found(8), found(4), "8 (4 may be enough)"),
    ],
)
def test_the_value_that_fits_comes_before_the_tight_one(surely, barely, words):
    assert solved_text(surely, barely) == words
    assert solved_sentence(surely, barely) == f"Largest batch that fits: {words}."
    assert solved_title("batch") == "Largest batch that fits"


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("context_length", "none for sure; 2 tokens may fit"),
        ("gpu_layers", "none for sure; 2 layers may fit"),
        ("count", "none for sure; 2 GPUs may be enough"),
    ],
)
def test_a_value_that_may_fit_has_its_unit(asked, words):
    assert solved_text(found(asked=asked), found(2, asked=asked)) == words


def test_the_longest_context_names_the_prompt_that_the_plan_leaves_open():
    longest = found(60_039, asked="context_length", prompt=4_096)
    assert solved_text(longest, longest) == "60,039 tokens, with a prompt of 4,096"


def test_all_layers_include_the_output_layer():
    layers = found(33, "model", asked="gpu_layers")
    assert solved_text(layers, layers) == "33: all 32 and the output layer"
