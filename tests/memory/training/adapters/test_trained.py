"""Which tensors are trained: all, those of patterns, or adapters."""

import pytest
from tuned_networks import kept, needed, network

from planner.errors import SpecError
from planner.memory.training.adapters.trained import layer_name, tune_tensors
from planner.memory.training.optimizer_states import parameter_count
from planner.models.architecture import Tensor
from planner.workload.training import Lora

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


LINEARS = ("q_proj", "v_proj", "query_key_value", "c_attn", "query", "value", "q", "v", "q_a_proj")


FORWARD = ("down_proj", "fc2", "dense_4h_to_h", "mlp.c_proj", "wo", "shared_expert.down_proj", "output.dense")


def own_targets(architecture, names):
    """Return those of `names` that a linear layer of the network has."""
    paths = [tensor.name for stack in architecture.stacks for group in stack.groups for tensor in group.layer.tensors]
    ends = [f".{path}".removesuffix(".weight") for path in paths]
    return tuple(name for name in names if any(end.endswith(f".{name}") for end in ends))


@pytest.mark.parametrize(
    "how",
    [
        {"compute": "bf16"},
        {},
        {"weights": "fp32"},
        {"compute": "bf16", "lora": {"adapter_dtype": "bf16"}},
        {"activation_checkpointing": "full"},
    ],
    ids=str,
)
@pytest.mark.parametrize("name", NAMES)
def test_adapters_on_some_linears_keep_no_more_than_on_all(name, how):
    architecture = network(name)
    every = needed(architecture, method="lora", **how)
    for names in (LINEARS, FORWARD):
        targets = own_targets(architecture, names)
        if not targets:
            continue
        lora = Lora.model_validate(how.get("lora", {}) | {"targets": targets})
        some = needed(architecture, **how | {"method": "lora", "lora": lora})
        assert kept(some) <= kept(every)
        assert sum(term.bytes for term in some.terms) == some.total_bytes
    dropped = needed(architecture, **how | {"method": "lora", "lora": how.get("lora", {}) | {"dropout": 0.1}})
    assert kept(dropped) >= kept(every)


@pytest.mark.parametrize(
    "patterns", [("*norm*", "*ln_*", "*layer_norm*"), ("layers.3",), ("layers.0", "*embed*", "*wte*")]
)
@pytest.mark.parametrize("compute", ["bf16", "amp-bf16"])
@pytest.mark.parametrize("name", ["llama", "gpt2", "gpt_neox", "falcon", "qwen3"])
def test_frozen_parameters_have_neither_gradients_nor_states(name, compute, patterns):
    architecture = network(name)
    met = [pattern for pattern in patterns if _trains(architecture, pattern, compute)]
    part, whole = needed(architecture, compute=compute, trainable=tuple(met)), needed(architecture, compute=compute)
    for term in ("gradients", "optimizer_states"):
        held = [share.bytes for phase in part.phases for share in phase.shares if share.name == term]
        all_ = [share.bytes for phase in whole.phases for share in phase.shares if share.name == term]
        assert max(held) < max(all_)


def _trains(architecture, pattern, compute):
    try:
        needed(architecture, compute=compute, trainable=(pattern,))
    except SpecError:
        return False
    return True


def test_tensors_outside_layers_are_tuned_by_the_same_names():
    tensors = (
        Tensor(name="block.to_q.weight", shape=(4, 8), role="linear", copies=3),
        Tensor(name="block.to_q.bias", shape=(4,), role="bias", copies=3),
        Tensor(name="block.proj.weight", shape=(4, 8, 1, 1), role="conv"),
    )
    everything, nothing = tune_tensors(tensors, None)
    assert parameter_count(everything) == 3 * (32 + 4) + 32
    assert nothing == ()
    adapters, names = tune_tensors(tensors, Lora(rank=2, targets=("to_q",)))
    assert parameter_count(adapters) == 3 * 2 * (4 + 8)
    assert names == ("block.to_q.weight",)
    with pytest.raises(SpecError, match="no linear layer of the model is named 'proj'"):
        tune_tensors(tensors, Lora(targets=("proj",)))


def test_layers_are_named_by_their_last_part_that_is_no_number():
    assert [layer_name(path) for path in ("attn.to_q.weight", "attn.to_out.0.weight", "to_v")] == [
        "to_q",
        "to_out.0",
        "to_v",
    ]
