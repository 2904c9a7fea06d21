"""Mixture-of-experts blocks: layers with experts, active parameters and refused configurations."""

import pytest
from decoder_cases import EXPERTS, LATENT, by_layer, tiny

from planner.errors import ModelFileError
from planner.models.architecture import (
    Architecture,
    Mlp,
    Moe,
)


@pytest.mark.parametrize(
    ("model_type", "changes"),
    [
        ("deepseek_v3", {**LATENT, "mlp_layer_types": ["dense"]}),
        ("mixtral", {**EXPERTS, "num_experts_per_tok": 9}),
    ],
    ids=str,
)
def test_experts_that_contradict_the_layers_are_refused(model_type: str, changes: dict[str, object]) -> None:
    with pytest.raises(ModelFileError):
        tiny(model_type, **changes)


def test_a_token_uses_two_of_eight_experts() -> None:
    found = tiny("qwen2_moe", **EXPERTS, shared_expert_intermediate_size=48, decoder_sparse_step=2)
    dense, sparse = by_layer(found)[:2]
    assert isinstance(dense.feed_forward, Mlp)
    assert sparse.feed_forward == Moe(experts=8, top_k=2, intermediate=32, shared_intermediate=48, shared_gate=True)
    routed = 8 * 3 * 64 * 32
    assert found.parameters - found.active_parameters == 4 * routed * 6 // 8


def test_which_layers_hold_experts() -> None:
    def sparse(architecture: Architecture) -> list[bool]:
        return [isinstance(layer.feed_forward, Moe) for layer in by_layer(architecture)]

    ernie = {"moe_num_experts": 4, "moe_k": 2, "moe_intermediate_size": 32, "moe_layer_interval": 2}
    found = tiny("ernie4_5_moe", **ernie)
    assert sparse(found) == [False, True] * 4
    assert any(tensor.name.endswith("e_score_correction_bias") for tensor in by_layer(found)[1].tensors)
    assert sparse(tiny("ernie4_5_moe", **ernie, moe_layer_end_index=3)) == [False, True] * 2 + [False] * 4
    assert sparse(tiny("ernie4_5_moe", **ernie | {"moe_layer_interval": 1}, moe_layer_start_index=0)) == [True] * 8
    llama4 = {**EXPERTS, "intermediate_size_mlp": 96}
    assert sparse(tiny("llama4_text", **llama4, moe_layers=[0])) == [True] + [False] * 7
    assert sparse(tiny("llama4_text", **llama4, interleave_moe_layer_step=2)) == [False, True] * 4
    assert sparse(tiny("qwen3_moe", **EXPERTS, mlp_only_layers=[0])) == [False] + [True] * 7
    assert sparse(tiny("glm4_moe", **EXPERTS, first_k_dense_replace=3)) == [False] * 3 + [True] * 5
