"""What a layer saves where part of it is frozen, adapted or fused: rules that hold of every family."""

import pytest
from tuned_networks import network

from planner.memory.training.adapters.layer import feed_forward_norm_bytes, saved_by_tuned_layer
from planner.memory.training.adapters.settings import AdapterSettings, Formats, LayerSettings
from planner.memory.training.adapters.trained import LayerTuning, projection_indices
from planner.memory.training.autograd.layer import saved_by_layer

FORMATS = {
    "bf16": Formats(2, 2, 2, 2, autocast=False),
    "fp32": Formats(4, 4, 4, 4, autocast=False),
    "amp-bf16": Formats(4, 2, 2, 4, autocast=True),
}


NAMES = (
    "llama",
    "qwen3",
    "gemma3",
    "olmo2",
    "gpt2",
    "gpt_neox",
    "falcon",
    "phi",
    "cohere",
    "mixtral",
    "deepseek_v3",
    "qwen2_moe",
    "opt",
    "bert",
    "t5",
    "bart",
)
"""Families whose networks a configuration describes without the defaults of transformers."""


def layers(name):
    return [(group.layer, stack.hidden) for stack in network(name).stacks for group in stack.groups]


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize("compute", FORMATS)
@pytest.mark.parametrize("name", NAMES)
def test_with_everything_trained_a_layer_keeps_what_plain_training_keeps(name, compute, attention):
    formats = FORMATS[compute]
    for layer, hidden in layers(name):
        trained = LayerTuning(("trained",) * len(layer.tensors))
        plain = saved_by_layer(layer, hidden, formats.precision, attention)
        assert saved_by_tuned_layer(layer, hidden, LayerSettings(formats, attention, None), trained) == plain


@pytest.mark.parametrize("compute", FORMATS)
@pytest.mark.parametrize("name", NAMES)
def test_the_more_is_trained_the_more_is_kept(name, compute):
    settings = LayerSettings(FORMATS[compute], "sdpa", None)
    for layer, hidden in layers(name):
        count = len(layer.tensors)
        statuses = [("frozen",) * count, ("trained",) * count]
        sites = projection_indices(layer, hidden)
        part = tuple("trained" if place in sites.forward_out else "frozen" for place in range(count))
        norms = tuple("trained" if tensor.role == "norm" else "frozen" for tensor in layer.tensors)
        frozen, whole = (
            saved_by_tuned_layer(layer, hidden, settings, LayerTuning(each)).total(1, 64, 64) for each in statuses
        )
        for some in (part, norms):
            reached, alone = (
                saved_by_tuned_layer(layer, hidden, settings, LayerTuning(some, reached)).total(1, 64, 64)
                for reached in (True, False)
            )
            assert 0 <= alone <= reached
            assert frozen <= reached <= whole


def test_the_first_layer_keeps_one_norm_less_where_queries_are_trained():
    layer, hidden = layers("llama")[0]
    queries = tuple("trained" if "q_proj" in tensor.name else "frozen" for tensor in layer.tensors)
    first, next_ = (
        saved_by_tuned_layer(layer, hidden, LayerSettings(FORMATS["bf16"], "sdpa", None), LayerTuning(queries, reached))
        for reached in (False, True)
    )
    assert next_.norms - first.norms == 4 * hidden + 4  # the fp32 copy of its input, and the root


@pytest.mark.parametrize("name", ["falcon", "gpt_neox"])
def test_a_parallel_layer_has_no_norm_that_the_feed_forward_block_frees(name):
    layer, hidden = layers(name)[0]
    trained = LayerTuning(("trained",) * len(layer.tensors))
    settings = LayerSettings(FORMATS["bf16"], "sdpa", None)
    assert feed_forward_norm_bytes(layer, hidden, settings, trained) == 0
    assert feed_forward_norm_bytes(layer.evolve(parallel=False, norm_count=2), hidden, settings, trained) > 0


def test_experts_computed_all_at_once_are_cast_under_autocast():
    layer, hidden = next((layer, hidden) for layer, hidden in layers("mixtral") if layer.feed_forward)
    every = layer.evolve(feed_forward=layer.feed_forward.evolve(every_expert=True))
    trained = LayerTuning(("trained",) * len(layer.tensors))
    amp = LayerSettings(FORMATS["amp-bf16"], "sdpa", None)
    assert saved_by_tuned_layer(every, hidden, amp, trained) == saved_by_layer(
        every, hidden, amp.formats.precision, "sdpa"
    )


@pytest.mark.parametrize("name", ["olmo2", "bert", "bart"])
def test_norms_behind_blocks_are_reached_from_the_first_layer_on(name):
    layer, hidden = layers(name)[0]
    assert layer.post_norms
    adapters = AdapterSettings(8, 4, 4, dropout=False, dora=False, converts=True)
    settings = LayerSettings(FORMATS["bf16"], "sdpa", adapters)
    adapted = tuple("adapted" if tensor.role == "linear" else "frozen" for tensor in layer.tensors)
    first, next_ = (
        saved_by_tuned_layer(layer, hidden, settings, LayerTuning(adapted, reached)) for reached in (False, True)
    )
    assert first.norms == next_.norms > 0
    out = projection_indices(layer, hidden).forward_out
    last = tuple("adapted" if place in out else "frozen" for place in range(len(adapted)))
    assert saved_by_tuned_layer(layer, hidden, settings, LayerTuning(last, False)).norms < first.norms
