"""What the profiles of training say of themselves, and what their kernels keep by their own lists."""

import pytest
from small_models import GPT2, llama, other, small_llama

from planner.memory.estimate import estimate_memory
from planner.memory.software import training_memory
from planner.models.architecture import Architecture
from planner.workload.defaults import with_defaults
from planner.workload.training import Training

T, H, Q, KV, WIDE, A, L = 1024, 4096, 4096, 4096, 11008, 32, 32


@pytest.mark.parametrize(
    ("profile", "version"), [("liger", "Liger-Kernel 0.8.2"), ("unsloth", "2026.8.19"), ("torchtune", "torchtune 0.7")]
)
def test_a_profile_names_the_version_it_was_read_in(profile: str, version: str) -> None:
    notes = estimate_memory(small_llama(), Training.model_validate({"profile": profile})).notes
    assert any(version in note for note in notes)


def test_transformers_itself_has_no_note_of_a_profile() -> None:
    assert not any("As " in note for note in estimate_memory(small_llama(), Training()).notes)


def test_liger_says_where_it_has_no_kernels() -> None:
    unknown = estimate_memory(other("gpt2", GPT2, n_layer=2), Training(profile="liger")).notes
    known = estimate_memory(small_llama(), Training(profile="liger")).notes
    assert any("no kernels for gpt2" in note for note in unknown)
    assert not any("no kernels" in note for note in known)


def kept(architecture: Architecture, profile: str, **how: object) -> int:
    asked = {"profile": profile, "compute": "bf16", "sequence_length": T} | how
    workload = with_defaults(Training.model_validate(asked), architecture, 1)
    assert isinstance(workload, Training)
    assert training_memory(workload.profile).fused.norms
    return training_memory(workload.profile).setup(architecture, workload).saved.total


def test_layers_keep_what_the_functions_of_liger_save() -> None:
    # save_for_backward of each: LigerRMSNormFunction X and RSTD (W is the parameter), LigerSiLUMulFunction a and b;
    # nn.Linear its input: the norms' outputs, attention's and the product; the kernel q, k, v, its output and sums.
    norms = 2 * (2 * H + 4)
    linears = 2 * (H + H) + 2 * WIDE
    attention = 2 * (Q + KV + KV + Q) + 4 * A
    gates = 2 * (WIDE + WIDE)
    behind = 2 * H + 4 + 2 * H
    assert kept(llama(), "liger") == T * (L * (norms + linears + attention + gates) + behind)


def test_adapters_of_unsloth_keep_their_input_once() -> None:
    # LoRA_QKV saves X, LoRA_W its input, which is attention's output, LoRA_MLP X, e and g; A and B are parameters.
    norms = 2 * (2 * H + 4)
    inputs = 2 * (H + H)
    attention = 2 * (Q + KV + KV + Q) + 4 * A
    gates = 2 * (WIDE + WIDE)
    found = kept(llama(), "unsloth", method="lora", compute="amp-bf16", weights="bf16")
    assert found == pytest.approx(T * L * (norms + inputs + attention + gates), rel=0.01)
