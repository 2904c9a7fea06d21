"""Which attention a CUDA build chooses, and what it then runs."""

import pytest
import torch
from cuda_runs import Log, on_cuda, on_this_build
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from planner.trace.worker.cuda.attention import AttentionCall, Backend, additive_mask, choose_backend

AMPERE, ADA, HOPPER, BLACKWELL, CONSUMER_BLACKWELL = (8, 0), (8, 9), (9, 0), (10, 0), (12, 0)
TURING, VOLTA = (7, 5), (7, 0)
HALF, BRAIN, SINGLE = torch.float16, torch.bfloat16, torch.float32


def call(
    dtype: torch.dtype = BRAIN,
    queries: int = 128,
    keys: int | None = None,
    head: int = 64,
    value_head: int | None = None,
    heads: int = 8,
    key_heads: int | None = None,
    batch: int = 2,
    mask: Tensor | None = None,
    dropout: float = 0.0,
    causal: bool = False,
    gqa: bool = False,
    grad: bool = False,
) -> AttentionCall:
    keys, key_heads = keys or queries, key_heads or heads
    query = torch.empty(batch, heads, queries, head, dtype=dtype, requires_grad=grad)
    key = torch.empty(batch, key_heads, keys, head, dtype=dtype)
    value = torch.empty(batch, key_heads, keys, value_head or head, dtype=dtype)
    return AttentionCall(query, key, value, mask, dropout, causal, gqa)


@pytest.mark.parametrize(
    ("settings", "capability", "backend"),
    [
        ({}, AMPERE, "flash"),
        ({}, ADA, "flash"),
        ({}, CONSUMER_BLACKWELL, "flash"),
        ({}, HOPPER, "cudnn"),
        ({}, BLACKWELL, "cudnn"),
        ({}, (13, 0), "math"),
        ({"dtype": HALF}, TURING, "efficient"),
        ({"dtype": BRAIN}, TURING, "math"),
        ({"dtype": SINGLE}, TURING, "efficient"),
        ({"dtype": SINGLE}, AMPERE, "efficient"),
        ({"dtype": SINGLE}, HOPPER, "efficient"),
        ({"dtype": torch.float64}, AMPERE, "math"),
        ({"head": 20}, AMPERE, "flash"),
        ({"head": 20}, HOPPER, "flash"),
        ({"head": 20, "dtype": SINGLE}, AMPERE, "efficient"),
        ({"head": 22, "dtype": SINGLE}, AMPERE, "math"),
        ({"head": 256}, AMPERE, "flash"),
        ({"head": 256}, HOPPER, "flash"),
        ({"head": 264}, AMPERE, "efficient"),
        ({"head": 264, "grad": True}, AMPERE, "efficient"),
        ({"head": 192, "value_head": 128}, HOPPER, "cudnn"),
        ({"head": 192, "value_head": 128}, AMPERE, "efficient"),
        ({"head": 208, "grad": True}, ADA, "efficient"),
        ({"head": 208}, ADA, "flash"),
        ({"head": 232, "grad": True}, ADA, "flash"),
        ({"head": 232, "grad": True, "dropout": 0.1}, ADA, "efficient"),
        ({"head": 208, "grad": True}, AMPERE, "flash"),
        ({"causal": True}, AMPERE, "flash"),
        ({"causal": True, "queries": 1, "keys": 128}, AMPERE, "efficient"),
        ({"dropout": 0.1}, HOPPER, "flash"),
        ({"dropout": 0.125}, HOPPER, "cudnn"),
        ({"queries": 128, "keys": 1}, HOPPER, "flash"),
        ({"key_heads": 2, "gqa": True}, AMPERE, "flash"),
        ({"key_heads": 2, "gqa": True}, HOPPER, "cudnn"),
        ({"key_heads": 2, "gqa": True, "dtype": SINGLE}, AMPERE, "math"),
        ({"key_heads": 3, "gqa": True}, AMPERE, "math"),
        ({"key_heads": 2}, AMPERE, "math"),
    ],
)
def test_the_backend_follows_the_conditions_of_sdp_utils(
    settings: dict[str, object], capability: tuple[int, int], backend: Backend
) -> None:
    assert choose_backend(call(**settings), capability) == backend


@pytest.mark.parametrize(
    ("shape", "capability", "backend"),
    [
        ((128, 128), AMPERE, "efficient"),
        ((2, 1, 128, 128), AMPERE, "efficient"),
        ((128, 128), HOPPER, "cudnn"),
        ((2, 1, 128, 128), HOPPER, "cudnn"),
        ((2, 8, 128, 64), HOPPER, "efficient"),
        ((8, 128, 128), HOPPER, "efficient"),
    ],
)
def test_a_mask_rules_flash_out(shape: tuple[int, ...], capability: tuple[int, int], backend: Backend) -> None:
    assert choose_backend(call(mask=torch.zeros(shape, dtype=BRAIN)), capability) == backend


def test_a_mask_that_needs_a_gradient_rules_cudnn_out() -> None:
    mask = torch.zeros(128, 128, dtype=BRAIN, requires_grad=True)
    assert choose_backend(call(mask=mask), HOPPER) == "efficient"


def test_elements_of_a_head_must_lie_side_by_side() -> None:
    spread = torch.empty(2, 8, 64, 128, dtype=BRAIN).transpose(2, 3)
    assert choose_backend(AttentionCall(spread, spread, spread, None, 0.0, False, False), AMPERE) == "math"


def test_three_dimensions_and_nothing_to_attend_to_are_left_to_products() -> None:
    flat = torch.empty(8, 128, 64, dtype=BRAIN)
    assert choose_backend(AttentionCall(flat, flat, flat, None, 0.0, False, False), AMPERE) == "math"
    empty = torch.empty(2, 8, 0, 64, dtype=BRAIN)
    assert choose_backend(AttentionCall(empty, empty, empty, None, 0.0, False, False), AMPERE) == "math"


def test_batches_must_agree() -> None:
    one = call(batch=1)
    assert choose_backend(call()._replace(key=one.key, value=one.value), AMPERE) == "math"


@pytest.mark.parametrize(
    ("allowed", "backend"),
    [
        (SDPBackend.MATH, "math"),
        (SDPBackend.EFFICIENT_ATTENTION, "efficient"),
        (SDPBackend.FLASH_ATTENTION, "flash"),
        (SDPBackend.CUDNN_ATTENTION, "cudnn"),
    ],
)
def test_what_a_person_switched_off_is_passed_over(allowed: SDPBackend, backend: Backend) -> None:
    with sdpa_kernel([allowed]):
        assert choose_backend(call(), HOPPER) == backend


def test_deterministic_algorithms_rule_cudnn_out() -> None:
    torch.use_deterministic_algorithms(True)
    try:
        assert choose_backend(call(), HOPPER) == "flash"
    finally:
        torch.use_deterministic_algorithms(False)


def tensors(dtype: torch.dtype, head: int = 64, queries: int = 16) -> list[Tensor]:
    return [torch.randn(2, 4, queries, head, dtype=dtype, requires_grad=True, device="cuda") for _ in range(3)]


def test_flash_keeps_the_output_and_one_fp32_sum_for_each_query() -> None:
    with on_cuda() as log:
        scaled_dot_product_attention(*tensors(BRAIN), is_causal=True).sum().backward()
    output, sums, *seeds = log.tensors("_scaled_dot_product_flash_attention.default")
    assert output == ((2, 4, 16, 64), BRAIN)
    assert sums == ((2, 4, 16), torch.float32)
    assert [dtype for _, dtype in seeds] == [torch.uint64, torch.uint64, BRAIN]
    assert log.names.count("_scaled_dot_product_flash_attention_backward.default") == 1


def test_flash_pads_heads_to_a_multiple_of_eight() -> None:
    with on_cuda() as log:
        result = scaled_dot_product_attention(*tensors(BRAIN, head=20))
    assert result.shape == (2, 4, 16, 20)
    assert [made.tensors[0][0] for made in log.made if made.operator == "constant_pad_nd.default"] == [
        (2, 4, 16, 24)
    ] * 3


def test_the_memory_efficient_kernel_rounds_its_sums_up_to_32_queries() -> None:
    with on_cuda() as log:
        scaled_dot_product_attention(*tensors(SINGLE, queries=33))
    assert log.tensors("_scaled_dot_product_efficient_attention.default")[1] == ((2, 4, 64), torch.float32)


def test_without_gradients_the_memory_efficient_kernel_keeps_no_sums() -> None:
    with on_cuda() as log, torch.no_grad():
        scaled_dot_product_attention(*tensors(SINGLE))
    assert log.tensors("_scaled_dot_product_efficient_attention.default")[1] == ((2, 4, 0), torch.float32)


def test_a_boolean_mask_is_made_additive_and_its_rows_aligned() -> None:
    with on_cuda() as log:
        mask = torch.ones(20, 20, dtype=torch.bool, device="cuda")
        scaled_dot_product_attention(*tensors(SINGLE, queries=20), attn_mask=mask)
    assert log.tensors("where.self") == (((20, 20), SINGLE),)
    assert log.tensors("constant_pad_nd.default") == (((20, 24), SINGLE),)


def test_an_aligned_mask_is_taken_as_it_is() -> None:
    with on_cuda() as log:
        scaled_dot_product_attention(*tensors(SINGLE), attn_mask=torch.zeros(16, 16, device="cuda"))
    assert "constant_pad_nd.default" not in log.names
    assert "where.self" not in log.names


ALIASES = {"mul.Tensor": "mul.Scalar", "add_.Tensor": "add.Tensor"}
"""How a number is multiplied, and that PyTorch adds the mask out of place to fake tensors, are not told apart."""
VIEWS = ("transpose.int", "expand.default", "view.default", "_unsafe_view.default", "scalar_tensor.default")


def allocations(log: Log) -> list[str]:
    made = [(ALIASES.get(one.operator, one.operator), one.tensors) for one in log.made]
    return sorted(str(one) for one in made if one[0] not in VIEWS)


@pytest.mark.parametrize("dtype", [HALF, BRAIN, SINGLE])
@pytest.mark.parametrize("masked", ["not", "causal", "boolean"])
def test_products_are_composed_as_this_build_composes_them_for_cuda(dtype: torch.dtype, masked: str) -> None:
    def attend(device: str) -> None:
        q, k, v = (torch.empty(2, 4, 16, 10, dtype=dtype, device=device) for _ in range(3))
        mask = torch.ones(16, 16, dtype=torch.bool, device=device) if masked == "boolean" else None
        scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=0.1, is_causal=masked == "causal")

    theirs = on_this_build(attend, "cuda")
    with on_cuda() as ours, torch.no_grad(), sdpa_kernel([SDPBackend.MATH]):
        attend("cuda")
    assert allocations(ours) == allocations(theirs)


def test_products_repeat_the_keys_of_grouped_heads() -> None:
    with on_cuda() as log:
        query = torch.randn(2, 8, 16, 64, device="cuda")
        key = torch.randn(2, 2, 16, 64, device="cuda")
        result = scaled_dot_product_attention(query, key, key, enable_gqa=True, scale=-0.5)
    assert result.shape == query.shape
    assert "_safe_softmax.default" in log.names


def test_in_inference_mode_the_output_is_the_same() -> None:
    with on_cuda(), torch.inference_mode():
        result = scaled_dot_product_attention(*tensors(BRAIN))
        composed = torch.ops.aten.scaled_dot_product_attention.default.decompose(*tensors(BRAIN))
    assert result.shape == composed.shape == (2, 4, 16, 64)


def test_an_additive_mask_is_left_as_it_is() -> None:
    with FakeTensorMode():
        mask = torch.zeros(4, 4)
        assert additive_mask(mask, SINGLE) is mask
    assert additive_mask(None, SINGLE) is None
