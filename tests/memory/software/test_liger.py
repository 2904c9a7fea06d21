"""Liger's kernels: what they save, and where it has none."""

from small_models import GPT2, llama, other, small_llama

from planner.memory.estimate import estimate_memory
from planner.memory.software import training_memory
from planner.models.architecture import Architecture
from planner.workload.defaults import with_defaults
from planner.workload.training import Training

T, H, Q, KV, WIDE, A, L = 1024, 4096, 4096, 4096, 11008, 32, 32


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
