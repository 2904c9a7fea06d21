"""Which kinds of activations an estimate names."""

import pytest
from small_models import llama, small_llama
from training_snapshots import snapshots

from planner.memory.estimate import estimate_memory
from planner.memory.training.saved import _per_token_formula
from planner.workload.workload import Training


def test_parts_say_what_the_activations_are():
    result = estimate_memory(small_llama(), Training(compute="bf16", micro_batch=64, sequence_length=512))
    names = {part.name for part in result.term("activations").parts}
    assert {"norms and their inputs", "feed-forward blocks"} <= names
    checkpointed = Training(compute="bf16", micro_batch=64, sequence_length=512, activation_checkpointing="full")
    parts = estimate_memory(small_llama(vocab_size=16), checkpointed).term("activations").parts
    assert {part.name for part in parts} >= {
        "checkpoints (each layer's input)",
        "activations and gradients of one recomputed layer",
    }


def test_parts_name_one_layer_where_the_backward_pass_has_freed_the_rest():
    found = snapshots(llama(num_hidden_layers=40), sequence_length=512)
    snapshot = next(m for m in found.snapshots if "first layer" in m.explanation)
    term = next(term for term in snapshot.written() if term.name == "activations")
    assert [part.name for part in term.parts] == ["activations and gradients of one layer"]
    assert term.formula == "O"


@pytest.mark.parametrize(
    ("kept_bytes", "layers", "expected"),
    [
        (1_001, [(2, 30)], "1,001"),  # no whole bytes a token
        (1_000, [(2, 60)], "1,000"),  # less than the layers say
        (1_000, [(2, 30)], "T × (2 × 30 + 40)"),
        (1_000, [(2, 30), (1, 40)], "T × (2 × 30 + 1 × 40)"),
        (600, [(1, 30), (1, 30)], "T × 2 × 30"),
    ],
)
def test_the_formula_counts_bytes_per_token_in_the_layers_and_beside_them(kept_bytes, layers, expected):
    assert _per_token_formula(kept_bytes, 10, layers) == expected
