"""Megatron-LM's optimizer (18 bytes per parameter, or 6 and a share of 12), and what its layers save."""

import pytest
from sharded_runs import CARDS, run
from small_models import DEEPSEEK, GPT2, MIXTRAL, bundled, llama, other

from planner.memory.estimate import estimate_memory
from planner.memory.parallel.tensor import tensor_share
from planner.memory.precision import Precision
from planner.memory.software.megatron import saved_by_megatron, saved_by_megatron_layer
from planner.models.architecture import Architecture
from planner.workload.parallel import Parallel
from planner.workload.workload import Training


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


BF16 = Precision(2, 2, 2, autocast=False)
STATISTICS = 2 * 2 * 4
"""Mean and reciprocal deviation of two norms."""
CLASSIC = other("gpt2", GPT2)
"""Layers of classic shape: an inner width of 4h, as many heads of keys as of queries, dropout everywhere."""
H, HEADS = 768, 12


def ledger(network: Architecture, attention="flash"):
    return saved_by_megatron_layer(network.main.groups[-1].layer, network.hidden, BF16, attention)


def per_token(network: Architecture, attention="flash") -> int:
    found = ledger(network, attention)
    return found.norms + found.attention + found.feed_forward + found.dropout


def test_a_classic_layer_keeps_34_h():
    assert per_token(CLASSIC, "eager") == 34 * H + STATISTICS


def test_unfused_attention_keeps_5_a_s():
    assert ledger(CLASSIC, "eager").scores == 5 * HEADS
    assert ledger(CLASSIC).scores == 0


def test_without_dropout_scores_are_kept_once_and_masks_are_not():
    plain = other("gpt2", GPT2 | {"attn_pdrop": 0.0, "resid_pdrop": 0.0, "embd_pdrop": 0.0})
    assert ledger(plain, "eager").scores == 2 * HEADS
    assert per_token(plain, "eager") == 32 * H + STATISTICS


@pytest.mark.parametrize("cards", [2, 4])
def test_cards_that_share_matrices_keep_10_h_and_a_share_of_24_h(cards):
    assert per_token(tensor_share(CLASSIC, cards), "eager") == 10 * H + STATISTICS + 24 * H // cards


@pytest.mark.parametrize("cards", [2, 4])
def test_cards_that_share_the_tokens_too_keep_a_share_of_everything(cards):
    found = per_token(tensor_share(CLASSIC, cards, sequence=True), "eager")
    assert found == (34 * H + STATISTICS) // cards


def test_rotated_queries_and_keys_are_new_tensors_beside_the_projection():
    network = llama(num_key_value_heads=8)
    q, kv, i = 4096, 1024, 11_008
    assert ledger(network).attention == 2 * (q + 2 * kv) + 2 * (q + kv) + 2 * q + 4 * 32
    assert ledger(network).feed_forward == 6 * i
    assert ledger(network).norms == 2 * (4 * 4096 + 4)


def test_queries_of_grouped_heads_are_copied_without_rotation_too():
    layer = CLASSIC.main.groups[0].layer
    grouped = layer.evolve(mixer=layer.mixer.evolve(kv_heads=4))
    kv = 4 * 64
    found = saved_by_megatron_layer(grouped, H, BF16, "flash")
    assert found.attention == 2 * (H + 2 * kv) + 2 * H + 2 * H + 4 * HEADS


def test_normed_keys_have_statistics():
    plain, normed = llama(), llama()
    layer = normed.main.groups[0].layer
    normed_layer = layer.evolve(mixer=layer.mixer.evolve(qk_norm="head"))
    more = saved_by_megatron_layer(normed_layer, 4096, BF16, "flash").attention - ledger(plain).attention
    assert more == 4 * (32 + 32)


def test_experts_keep_what_they_read_for_each_visit():
    network = other("mixtral", MIXTRAL)
    assert ledger(network).feed_forward == 2 * 2 * (4096 + 3 * 14_336) + 8 * 8


def test_latents_are_kept_as_elsewhere():
    deepseek = other("deepseek_v3", DEEPSEEK)
    assert ledger(deepseek).attention > 0
    assert ledger(deepseek, "eager").scores > 0


def test_attention_to_an_encoder_is_kept_for_its_tokens():
    t5 = bundled().models.model("google-t5/t5-small")
    found = ledger(t5)
    assert found.source > 0
    assert found.norms == 3 * (2 * 512 + 4) + 3 * 2 * 512


def test_a_layer_without_attention_or_without_a_block_keeps_the_other():
    vision = bundled().models.model("meta-llama/Llama-3.2-11B-Vision")
    crossed = next(group.layer for group in vision.main.groups if group.layer.mixer is None)
    assert saved_by_megatron_layer(crossed, vision.hidden, BF16, "flash").scores == 0
    layer = CLASSIC.main.groups[0].layer
    alone = saved_by_megatron_layer(layer.evolve(feed_forward=None), H, BF16, "flash")
    assert alone.feed_forward == 0


def saved(network: Architecture, checkpointing="none", attention="eager"):
    return saved_by_megatron(network, 2, 128, BF16, attention, checkpointing)


def test_a_network_keeps_its_layers_and_the_edges():
    tokens = 2 * 128
    layers = 12 * tokens * (34 * H + STATISTICS + 5 * HEADS * 128)
    # A mask of the dropped embeddings; the last norm's input, its statistics, and what the head reads.
    assert saved(CLASSIC).total == layers + tokens * H + tokens * (4 * H + 8)


def test_full_checkpoints_keep_the_inputs_of_layers():
    found = saved(CLASSIC, "full")
    tokens = 2 * 128
    assert found.kept.checkpoints == 12 * tokens * 2 * H
    assert found.recomputed == tokens * (34 * H + STATISTICS + 5 * HEADS * 128)
    assert found.kept.attention == found.kept.feed_forward == found.kept.scores == 0


def test_selective_checkpoints_compute_scores_again():
    whole, selective = saved(CLASSIC), saved(CLASSIC, "selective")
    assert whole.total - selective.total == 12 * 2 * 128 * 5 * HEADS * 128 == whole.kept.scores
    assert selective.recomputed == 2 * 128 * 5 * HEADS * 128


def test_unfused_scores_decide_the_backward_pass_of_long_sequences():
    short, long = (saved_by_megatron(CLASSIC, 1, length, BF16, "eager", "none").point.bytes for length in (16, 8192))
    assert long > 512 * short
    assert saved_by_megatron(CLASSIC, 1, 8192, BF16, "flash", "none").point.bytes == 8192 * 2 * (4 * H + H)


def test_experts_and_latents_have_gradients_in_flight():
    mixtral = saved_by_megatron(other("mixtral", MIXTRAL), 1, 64, BF16, "flash", "none")
    assert mixtral.point.bytes == 64 * 2 * (2 * 2 * 14_336 + 4096)
    deepseek = saved_by_megatron(other("deepseek_v3", DEEPSEEK), 1, 8192, BF16, "eager", "none")
    assert deepseek.point.bytes > mixtral.point.bytes


@pytest.mark.parametrize(("loss", "per_logit"), [("full-logits", 6), ("chunked", None)])
def test_one_copy_of_the_logits_is_the_softmax_and_the_gradient(loss, per_logit):
    workload = Training(profile="megatron", compute="bf16", sequence_length=2048, loss=loss)
    result = estimate_memory(llama(), workload)
    found = next(phase for phase in result.phases if phase.name == "loss")
    logits = next(share.bytes for share in found.shares if share.name == "logits")
    assert logits == (2048 * 32_000 * per_logit if per_logit else logits)
    assert any("Megatron-LM 0.20" in note for note in result.notes)


def test_the_logits_of_a_card_say_what_they_are_made_of():
    workload = Training(
        profile="megatron", compute="bf16", sequence_length=1024, attention="eager", parallel=Parallel(tensor=4)
    )
    result = estimate_memory(CLASSIC, workload, count=4)
    term = result.term("logits")
    assert term is not None
    values = {symbol.name: symbol.value for symbol in term.symbols}
    assert values["V"] == 12_672
    assert term.bytes == 1024 * 12_672 * 6


def test_autocast_is_left_to_megatron():
    auto, plain = (
        estimate_memory(llama(), Training(profile="megatron", compute=compute, sequence_length=512))
        for compute in ("amp-bf16", "bf16")
    )
    assert auto.total_bytes == plain.total_bytes
