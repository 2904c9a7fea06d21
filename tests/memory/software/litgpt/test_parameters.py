"""Adapted parts of a network in LitGPT."""

from small_models import llama

from planner.memory.software.litgpt.parameters import AdaptedParts, adapted_parts, litgpt_adapters
from planner.workload.training import Lora

QUERY_VALUE = AdaptedParts(frozenset({"query", "value"}), 8, dropout=True)


EVERYTHING = AdaptedParts(frozenset({"query", "key", "value", "projection", "mlp", "head"}), 8, dropout=True)


def test_adapters_of_queries_and_values_are_merged():
    # Lit-GPT's own tables: 4,194,304 trainable parameters of Llama 2 7B at rank 8.
    trained = litgpt_adapters(llama(), QUERY_VALUE)
    assert sum(tensor.size * count for tensor, count in trained) == 4_194_304
    heads = [tensor for tensor, _ in litgpt_adapters(llama(), EVERYTHING) if tensor.name.startswith("head")]
    assert [tensor.shape for tensor in heads] == [(8, 4096), (32_000, 8)]
    assert litgpt_adapters(llama(), AdaptedParts(frozenset({"projection"}), 8, dropout=False))[0][0].shape == (8, 4096)


def test_targets_have_litgpts_names_or_those_of_transformers():
    assert adapted_parts(Lora(targets=("q_proj", "v_proj"))).names == {"query", "value"}
    assert adapted_parts(Lora()).names == {"query", "key", "value", "projection", "mlp"}
    assert adapted_parts(Lora(targets=("head",))).merged_adapter_count == 0
