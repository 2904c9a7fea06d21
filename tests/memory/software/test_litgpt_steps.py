"""LitGPT's steps by hand: what its own modules keep, which the blocks of transformers do not."""

import pytest
from small_models import DEEPSEEK, GPT2, bundled, llama, other, small_llama

from planner.errors import SpecError
from planner.memory.estimate import estimate_memory, timeline_of
from planner.memory.software.litgpt.ledger import BlockSettings, graph_matrix_elements, quantised_inputs, saved_by_block
from planner.memory.software.litgpt.parts import AdaptedParts, litgpt_adapters, parts_of
from planner.memory.software.litgpt.setup import Outputs, litgpt_losses, litgpt_weights
from planner.memory.weights import parameter_counts
from planner.workload.defaults import with_defaults
from planner.workload.training import Lora, Training

QUERY_VALUE = AdaptedParts(frozenset({"query", "value"}), 8, dropout=True)
EVERYTHING = AdaptedParts(frozenset({"query", "key", "value", "projection", "mlp", "head"}), 8, dropout=True)
H, INNER, Q, KV, A = 4096, 14_336, 4096, 1024, 32


def layer(name="meta-llama/Llama-3.1-8B"):
    return bundled().models.model(name).main.groups[0].layer


def kept(parts, *, reached=True, stream=2, quantised=False, name="meta-llama/Llama-3.1-8B"):
    return saved_by_block(layer(name), H, BlockSettings(stream, 2, parts, quantised), reached)


def step(architecture, **how):
    asked = Training.model_validate(
        {"profile": "litgpt", "compute": "bf16", "micro_batch": 2, "sequence_length": 256} | how
    )
    return timeline_of(architecture, with_defaults(asked, architecture, 1))


def of(snapshots, name, term):
    return max(sum(t.bytes for t in m.terms if t.name == term) for m in snapshots.snapshots if m.name == name)


def test_a_block_with_adapters_on_queries_and_values():
    ledger = kept(QUERY_VALUE)
    assert ledger.norms == 2 * (4 * H + 4)  # fp32 copies, and nothing of what frozen projections read
    assert ledger.attention == 2 * 3 * Q + 2 * Q + 4 * A  # keys and values as wide as all heads
    assert ledger.feed_forward == 3 * 2 * INNER
    assert ledger.adapters == 2 * H + H + 2 * 2 * 8 + 2 * (Q + KV)


def test_a_block_with_adapters_everywhere():
    ledger = kept(EVERYTHING)
    each = 2 * 8
    assert ledger.adapters == (3 * H + 3 * each) + (3 * Q + each) + 2 * (3 * H + each) + (3 * INNER + each)


def test_without_dropout_adapters_share_what_they_read():
    ledger = kept(EVERYTHING._replace(dropout=False))
    each = 2 * 8
    assert ledger.adapters == (2 * H + 3 * each) + (2 * Q + each) + (2 * H + 2 * each) + (2 * INNER + each)


def test_the_first_block_keeps_nothing_before_its_first_adapter():
    first, next_ = kept(QUERY_VALUE, reached=False), kept(QUERY_VALUE)
    assert next_.total(1, 1, 0) - first.total(1, 1, 0) == (4 * H + 4) + H
    behind = AdaptedParts(frozenset({"mlp"}), 8, dropout=True)
    only_forward = kept(behind, reached=False)
    assert (only_forward.norms, only_forward.attention) == (0, 0)
    assert only_forward.adapters == 2 * (2 * H + 16) + 3 * INNER + 16


def test_a_parallel_block_reads_one_tensor_and_a_merged_result_is_kept_for_its_values():
    ledger = kept(QUERY_VALUE, name="stabilityai/stablelm-base-alpha-3b")
    assert ledger.norms == 2 * H + 2 * 8
    assert ledger.attention == 2 * (2 * H + 3 * H + H) + 4 * A
    first = kept(QUERY_VALUE, reached=False, name="stabilityai/stablelm-base-alpha-3b")
    assert (first.norms, first.feed_forward) == (0, 0)


def test_full_training_keeps_what_norms_and_projections_read():
    ledger = kept(None)
    assert ledger.norms == 2 * (8 * H + 4) + 2 * H
    assert ledger.attention == 2 * 3 * Q + 2 * 2 * Q + 4 * A
    assert ledger.feed_forward == 3 * 2 * INNER + 2 * INNER + 2 * H


def test_bitsandbytes_holds_on_to_what_quantised_projections_read():
    dropped = BlockSettings(2, 2, QUERY_VALUE, quantised=True)
    assert quantised_inputs(layer(), H, dropped) == (2 * (2 * H + INNER + Q), 2 * (2 * H + INNER + Q))
    assert quantised_inputs(layer(), H, dropped, False) == (2 * (H + INNER + Q), 2 * (H + INNER + Q))
    shared = BlockSettings(2, 2, EVERYTHING._replace(dropout=False), quantised=True)
    assert quantised_inputs(layer(), H, shared) == (0, 2 * (2 * H + INNER + Q))
    assert quantised_inputs(layer(), H, dropped._replace(quantised=False)) == (0, 0)


def test_autocast_casts_frozen_matrices_where_a_derivative_goes_through():
    mixed = BlockSettings(4, 2, QUERY_VALUE)
    whole = H * (Q + 2 * KV) + H * Q + 3 * H * INNER
    assert graph_matrix_elements(layer(), H, mixed) == whole
    assert graph_matrix_elements(layer(), H, mixed, False) == whole - H * (Q + 2 * KV)


def test_blocks_that_litgpt_is_not_described_for_keep_nothing():
    latent = other("deepseek_v3", DEEPSEEK).main.groups[0].layer
    settings = BlockSettings(2, 2, EVERYTHING, quantised=True)
    assert saved_by_block(latent, H, settings).total(1, 1, 0) == 0
    assert (quantised_inputs(latent, H, settings), graph_matrix_elements(latent, H, settings)) == ((0, 0), 0)


def test_logits_are_fp32_and_the_step_before_still_names_its_own():
    losses = litgpt_losses(Outputs(1024, 2, 1000, 2))
    every = 1024 * 1000
    assert losses.forward.bytes == 10 * every
    assert losses.loss.bytes == 8 * every + 8 * 256 * 1000
    assert (losses.head.bytes, losses.layers.bytes) == (6 * every, 4 * every)
    whole = litgpt_losses(Outputs(1024, 2, 1000, 2, whole=True))
    assert whole.loss.bytes == 12 * every + 8 * 128 * 1000
    assert litgpt_losses(Outputs(1024, 2, 1000, 4)).forward.bytes == 8 * every


def test_nothing_is_tied_and_the_head_is_quantised():
    tied, apart = small_llama(tie_word_embeddings=True), small_llama()
    assert litgpt_weights(tied, "bf16", 2).bytes == litgpt_weights(apart, "bf16", 2).bytes
    counts = parameter_counts(apart)
    beside = counts.total - counts.linear - counts.token_embedding
    assert litgpt_weights(tied, "nf4", 2).bytes == litgpt_weights(apart, "nf4", 2).bytes
    assert litgpt_weights(apart, "nf4", 2).bytes == (counts.total - beside) * 9 // 16 + 2 * beside


def test_adapters_of_queries_and_values_are_merged():
    # Lit-GPT's own tables: 4,194,304 trainable parameters of Llama 2 7B at rank 8.
    trained = litgpt_adapters(llama(), QUERY_VALUE)
    assert sum(tensor.size * count for tensor, count in trained) == 4_194_304
    heads = [tensor for tensor, _ in litgpt_adapters(llama(), EVERYTHING) if tensor.name.startswith("head")]
    assert [tensor.shape for tensor in heads] == [(8, 4096), (32_000, 8)]
    assert litgpt_adapters(llama(), AdaptedParts(frozenset({"projection"}), 8, dropout=False))[0][0].shape == (8, 4096)


def test_all_parameters_of_a_tied_network_are_trained_with_a_head_of_their_own():
    tied, apart = (of(step(small_llama(tie_word_embeddings=tie)), "step", "gradients") for tie in (True, False))
    assert tied == apart


@pytest.mark.parametrize("how", [{}, {"method": "lora"}, {"method": "qlora"}], ids=str)
def test_a_step_is_told_in_terms(how):
    result = estimate_memory(small_llama(), Training(profile="litgpt", compute="bf16", sequence_length=256, **how))
    assert sum(term.bytes for term in result.terms) == result.total_bytes
    assert any("LitGPT" in note for note in result.notes)


def test_quantised_steps_hold_the_inputs_of_the_step_before_until_their_loss():
    snapshots = step(small_llama(), method="qlora", lora=Lora(dropout=0.1))
    held = {name: of(snapshots, name, "buffers") for name in ("load", "forward", "loss", "backward")}
    assert held["load"] == 0
    assert held["forward"] == held["loss"] == 2 * held["backward"] > 0
    model = small_llama()
    assert of(snapshots, "forward", "temporaries") == 4 * model.vocabulary * model.hidden
    plain = step(small_llama(), method="qlora", lora=Lora(targets=("head",)))
    assert of(plain, "loss", "activations") < of(snapshots, "loss", "activations")


def test_autocast_makes_a_copy_of_a_frozen_head_for_each_part_and_one_of_a_trained_head():
    model = small_llama()
    frozen, trained = (
        of(step(model, compute="amp-bf16", weights="fp32", **how), "loss", "temporaries")
        for how in ({"method": "lora"}, {})
    )
    head = 2 * model.vocabulary * model.hidden
    assert frozen > trained
    parts = 256 // 128
    assert frozen > parts * head


@pytest.mark.parametrize(
    ("architecture", "how", "field"),
    [
        (other("deepseek_v3", DEEPSEEK), {}, "profile"),
        (small_llama(), {"trainable": ("*norm*",)}, "trainable"),
        (small_llama(), {"activation_checkpointing": "full"}, "activation_checkpointing"),
        (small_llama(), {"method": "lora", "weights": "int8", "compute": "bf16"}, "weights"),
        (small_llama(), {"attention": "eager"}, "attention"),
        (small_llama(), {"loss": "fused-linear"}, "loss"),
        (small_llama(), {"method": "lora", "lora": {"dora": True}}, "lora.dora"),
        (other("gpt2", GPT2), {"method": "lora", "lora": {"targets": ("c_attn",)}}, "lora.targets"),
    ],
    ids=["network", "pattern", "checkpoints", "int8", "eager", "loss", "dora", "target"],
)
def test_what_litgpt_does_not_do_is_refused(architecture, how, field):
    with pytest.raises(SpecError) as raised:
        step(architecture, **how)
    assert raised.value.field == field


def test_several_cards_are_refused():
    with pytest.raises(SpecError, match="several cards"):
        estimate_memory(small_llama(), Training(profile="litgpt", compute="bf16"), count=2)


def test_targets_have_litgpts_names_or_those_of_transformers():
    assert parts_of(Lora(targets=("q_proj", "v_proj"))).names == {"query", "value"}
    assert parts_of(Lora()).names == {"query", "key", "value", "projection", "mlp"}
    assert parts_of(Lora(targets=("head",))).merged == 0
