"""Megatron-LM's optimizer: 18 bytes per parameter, or 6 and a share of 12."""

import pytest
from sharded_runs import CARDS, run
from small_models import llama


@pytest.mark.parametrize("zero", [0, 1])
def test_megatron_keeps_18_bytes_or_6_and_a_share_of_12(zero):
    model = llama()
    found = run(model, parallel={"zero": zero}, profile="megatron", compute="bf16")
    padded = model.parameters  # 32,000 rows are a multiple of 128
    assert found["weights"] == 2 * padded
    assert found["gradients"] == 4 * padded
    states = found["master_weights"] + found["optimizer_states"]
    assert states == pytest.approx(12 * padded / (CARDS if zero else 1), rel=1e-4)


def test_megatron_keeps_its_gradients_from_the_first_pass_on():
    assert run(llama(), phase="forward", profile="megatron")["gradients"] == 4 * llama().parameters


def test_megatron_in_fp32_has_no_second_parameters():
    found = run(llama(), profile="megatron", compute="fp32")
    assert "master_weights" not in found
    assert found["weights"] == 4 * llama().parameters
