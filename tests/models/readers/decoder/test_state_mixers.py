"""State sizes of Mamba, Mamba-2 and delta nets, against the caches that transformers fills."""

import pytest
from decoder_cases import hybrid, state_elements
from reader_cases import (
    MAMBA2,
    STATES,
    Case,
)

CACHED = tuple(case for case in STATES if not case.name.startswith(("Rwkv", "RecurrentGemma")))


@pytest.mark.oracle
@pytest.mark.parametrize("case", CACHED, ids=lambda case: case.name)
def test_the_cache_holds_the_same_states(case: Case) -> None:
    import torch
    from transformers_networks import assert_same, build

    found = assert_same(case.name, **case.changes)
    network = build(case.name, **case.changes).to_empty(device="cpu").to(torch.bfloat16).eval()
    for parameter in network.parameters():
        torch.nn.init.zeros_(parameter)
    with torch.no_grad():
        output = network(torch.ones(2, 7, dtype=torch.long), use_cache=True)
    cache = next(output[name] for name in ("cache", "past_key_values", "cache_params") if name in output)
    kept = [layer for layer in cache.layers if getattr(layer, "conv_states", {}).get(0) is not None]
    recurrent = [layer.recurrent_states[0] for layer in kept]
    assert {state.dtype for state in recurrent if state is not None} <= {torch.float32}
    assert state_elements(found) == [
        (layer.conv_states[0][0].numel(), 0 if state is None else state[0].numel())
        for layer, state in zip(kept, recurrent, strict=True)
    ]


def test_mamba2_keeps_its_convolution_inputs_and_one_matrix_per_head() -> None:
    inner, groups, state, kernel = 8 * 16, 2, 32, 4
    assert state_elements(hybrid("mamba2", MAMBA2)) == [((inner + 2 * groups * state) * kernel, inner * state)] * 4
