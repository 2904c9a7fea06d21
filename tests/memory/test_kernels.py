"""Which attention kernel computes a layer, and the masks that it needs."""

from small_models import LLAMA, llama, other
from training_snapshots import alive, snapshots

from planner.memory.inference.scratch import DecodeCopy, largest_decode_copy, scratch_bytes
from planner.memory.kernels import mask_bytes, needs_explicit_mask
from planner.memory.precision import Precision

BF16 = Precision(2, 2, 2, autocast=False)


FP32 = Precision(4, 4, 4, autocast=False)


def test_groups_in_fp32_are_answered_by_matrix_products():
    # 3h and queries; scaled queries, keys and values for each head; scores, softmax and what computes it, in fp32, with
    # a byte that says which are masked; and the causal mask, seen or not and added. In decoding 3q: keys, values, and
    # scaled keys.
    grouped = llama(num_key_value_heads=8)
    per_token = 4 * (3 * 4096 + 4096 + 3 * 4096) + 32 * 2000 * 13
    assert scratch_bytes(grouped, 2, 2000, FP32, "sdpa") == 2 * 2000 * per_token + 5 * 2000 * 2000
    assert largest_decode_copy(grouped, 100, FP32, "sdpa") == DecodeCopy(100, 3 * 4096)


def test_one_key_head_that_nobody_told_of_is_answered_by_matrix_products():
    falcon = other("falcon", LLAMA)
    kv, q = 128, 4096
    assert largest_decode_copy(falcon, 100, BF16, "sdpa") == DecodeCopy(100, 2 * (3 * kv + q))
    assert largest_decode_copy(falcon, 100, BF16, "eager") == DecodeCopy(100, q)


def test_a_short_window_needs_a_mask_in_prefill():
    # 10,000 tokens: the rotation needs 4q; in the kernel there are 2q and the mask, 20 KB a token; it is held as true
    # or false for each pair throughout.
    sizes = LLAMA | {"intermediate_size": 64}
    masked = other("mistral", sizes, sliding_window=256)
    free = other("mistral", sizes, sliding_window=16_384)
    s = 10_000
    assert scratch_bytes(free, 1, s, BF16, "sdpa") == s * 2 * (3 * 4096 + 4 * 4096)
    assert scratch_bytes(masked, 1, s, BF16, "sdpa") == s * 2 * (3 * 4096 + 2 * 4096 + s) + s * s
    assert scratch_bytes(masked, 1, s, BF16, "flash") == scratch_bytes(free, 1, s, BF16, "flash")


def test_falcon_gives_the_fused_kernel_a_mask_without_a_window():
    falcon, free = (other(name, LLAMA).main for name in ("falcon", "gpt_neox"))
    assert [needs_explicit_mask(falcon.groups[0].layer, 100, kind) for kind in ("sdpa", "flash")] == [True, False]
    assert not needs_explicit_mask(free.groups[0].layer, 100, "sdpa")
    # One of booleans for all sequences.
    assert mask_bytes(falcon, 4, 100, BF16, "sdpa") == 100 * 100
    assert mask_bytes(free, 4, 100, BF16, "sdpa") == 0


def test_a_windowed_layer_gives_the_fused_kernel_a_mask():
    def activations(window):
        model = other("mistral", LLAMA, num_hidden_layers=2, sliding_window=window)
        return alive(snapshots(model, sequence_length=1024), "forward")["activations"]

    assert activations(256) - activations(4096) == 2 * 1024 * 1024 * 2  # two layers, s × s numbers in bf16
