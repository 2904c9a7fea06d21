"""Casts and gradients of full fine-tuning, by hand, and in fp8."""

import pytest
from pydantic import ValidationError
from small_models import llama, other
from training_snapshots import alive, snapshots

from planner.memory.estimate import estimate_memory
from planner.memory.precision import Precision
from planner.memory.training.full import FP8_NOTES, fp8_cast_terms, head_matrix_elements, tied_gradient_terms
from planner.workload.training import Training

P = 6_738_415_616  # Llama 2 7B


def test_autocast_keeps_a_cast_of_every_projection_and_the_head():
    matrices = 32 * (4 * 4096**2 + 3 * 4096 * 11_008) + 32_000 * 4096
    assert alive(snapshots(llama(), compute="amp-bf16"), "loss")["temporaries"] == 2 * matrices
    checkpointed = snapshots(llama(), compute="amp-bf16", activation_checkpointing="full")
    assert alive(checkpointed, "forward")["temporaries"] == 2 * matrices
    assert alive(checkpointed, "loss")["temporaries"] == 2 * 32_000 * 4096


def test_gradients_come_layer_by_layer():
    found = snapshots(llama())
    assert "gradients" not in alive(found, "loss")
    assert alive(found, "backward", "starts at the head")["gradients"] == 2 * 32_000 * 4096
    # The first layer's down projection comes before the rest of it.
    layer = 4 * 4096**2 + 2 * 4096 * 11_008 + 2 * 4096
    assert alive(found, "backward", "first layer")["gradients"] == 2 * (P - layer - 32_000 * 4096)
    assert alive(found, "backward", "embedding")["gradients"] == 2 * P


def small_bart():
    sizes = {"d_model": 64, "vocab_size": 2000, "encoder_ffn_dim": 128, "decoder_ffn_dim": 128}
    sizes |= {f"{side}_{name}": 2 for side in ("encoder", "decoder") for name in ("layers", "attention_heads")}
    return other("bart", sizes)


def test_a_tied_embeddings_gradients_meet():
    tied = llama(tie_word_embeddings=True)
    backward = alive(snapshots(tied), "backward", "embedding")
    assert backward["temporaries"] == 2 * 2 * 32_000 * 4096  # the dense gradient, and its sum with the head's


def test_a_tied_embeddings_gradients_are_added_in_place_where_nothing_else_holds_them():
    bart, decoder = small_bart(), llama(tie_word_embeddings=True)
    bf16, autocast = Precision(2, 2, 2, autocast=False), Precision(2, 2, 4, autocast=True)

    def gradients(architecture, precision, **place):
        (term,) = tied_gradient_terms(architecture, precision, **place)
        return next(symbol.value for symbol in term.symbols if symbol.name == "n")

    assert [gradients(decoder, precision) for precision in (bf16, autocast)] == [2, 1]
    assert [gradients(bart, bf16, of_decoder=of_decoder) for of_decoder in (True, False)] == [2, 1]


def test_a_decoders_embedding_is_reached_before_the_encoder():
    bart = small_bart()
    found = alive(snapshots(bart, sequence_length=16), "backward", "decoder's embedding")
    # The head's gradient and the embedding's are added to a third one, while the encoder's layers are still saved.
    assert found["temporaries"] == 2 * 2 * 2000 * 64
    decoder = bart.main.groups[0].layer.parameters * 2
    assert found["gradients"] == 2 * (2000 * 64 + decoder)
    first = alive(snapshots(bart, sequence_length=16), "backward", "decoder's first layer")
    assert 0 < found["activations"] < first["activations"]


def test_frozen_positions_have_neither_gradients_nor_optimizer_states():
    sizes = {"d_model": 64, "vocab_size": 100, "max_position_embeddings": 512}
    sizes |= {f"{side}_{name}": 4 for side in ("encoder", "decoder") for name in ("layers", "attention_heads")}
    pegasus = other("pegasus", sizes | {"encoder_ffn_dim": 128, "decoder_ffn_dim": 128})
    trained = pegasus.parameters - 2 * 512 * 64
    step = alive(snapshots(pegasus, sequence_length=16), "step")
    assert (step["gradients"], step["optimizer_states"]) == (2 * trained, 2 * 2 * trained)
    # A pattern that names them does not train them.
    named = alive(snapshots(pegasus, sequence_length=16, trainable=("layers.1", "embed_positions")), "step")
    assert (
        named["gradients"]
        == alive(snapshots(pegasus, sequence_length=16, trainable=("layers.1",)), "step")["gradients"]
    )


LLAMA, MIXTRAL = "meta-llama/Llama-3.1-8B", "mistralai/Mixtral-8x7B-v0.1"


def by_phase(result, phase):
    return next(found for found in result.phases if found.name == phase)


def share(phase, name):
    return sum(part.bytes for part in phase.shares if part.name == name)


@pytest.fixture
def llama_8b(catalog):
    return catalog.models.model(LLAMA)


def test_autocast_with_fp8_keeps_no_copies_of_linear_layers(llama_8b):
    fp8, autocast = (estimate_memory(llama_8b, Training(compute=compute)) for compute in ("fp8", "amp-bf16"))
    head = 128_256 * 4_096
    assert share(by_phase(fp8, "forward"), "temporaries") == 2 * head
    linear = 32 * (2 * 4_096 * 4_096 + 2 * 1_024 * 4_096 + 3 * 4_096 * 14_336)
    assert share(by_phase(autocast, "forward"), "temporaries") == 2 * (head + linear)
    kept = [share(by_phase(result, "forward"), "activations") for result in (fp8, autocast)]
    assert kept[0] == kept[1]
    assert set(FP8_NOTES) <= set(fp8.notes)


def test_what_fp8_casts_for_one_product_by_hand(llama_8b):
    workload = Training(micro_batch=2, sequence_length=1_024, compute="fp8")
    tokens, read, made = 2_048, 4_096, 14_336
    (forward,), (backward,) = (fp8_cast_terms(llama_8b, workload, backward=back) for back in (False, True))
    assert forward.bytes == tokens * made + read * made  # down: reads 14,336
    assert backward.bytes == tokens * read + read * made + 2 * tokens * made  # gate and up: make 14,336
    assert backward.high_bytes == backward.bytes + 8 * read * made


def test_parameters_in_bf16_have_no_copies_with_or_without_fp8(llama_8b):
    fp8, bf16 = (estimate_memory(llama_8b, Training(compute=compute, weights="bf16")) for compute in ("fp8", "bf16"))
    assert by_phase(fp8, "step").bytes == by_phase(bf16, "step").bytes
    assert by_phase(fp8, "loss").bytes == by_phase(bf16, "loss").bytes


def test_experts_and_routers_are_no_linear_layers(catalog):
    mixtral = catalog.models.model(MIXTRAL)
    fp8 = estimate_memory(mixtral, Training(compute="fp8"))
    head, routers = 32_000 * 4_096, 32 * 8 * 4_096
    assert share(by_phase(fp8, "forward"), "temporaries") == 2 * (head + routers)


def test_fp8_goes_with_fused_kernels_and_with_sharding(llama_8b, catalog):
    gpu = catalog.hardware.gpu("h100-sxm5-80gb")
    liger = estimate_memory(llama_8b, Training(compute="fp8", profile="liger"))
    assert set(FP8_NOTES) <= set(liger.notes)
    sharded = Training.model_validate({"compute": "fp8", "parallel": {"zero": 3}})
    one = estimate_memory(llama_8b, sharded, gpu, count=8)
    assert sum(term.bytes for term in one.terms) == one.total_bytes


@pytest.mark.parametrize(
    ("card", "runs"),
    [
        ("h100-sxm5-80gb", True),
        ("rtx-4090", True),
        ("rtx-3090", False),
        ("instinct-mi300x", True),
        ("instinct-mi250x", False),
    ],
)
def test_cards_without_fp8_products_say_so(llama_8b, catalog, card, runs):
    result = estimate_memory(llama_8b, Training(compute="fp8"), catalog.hardware.gpu(card))
    assert any("torchao's fp8" in reason for reason in result.unsupported) != runs


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"method": "lora"}, "fp8 and adapters both replace the linear layers"),
        ({"profile": "megatron"}, "Megatron-LM has its own linear layers"),
        ({"weights": "fp16"}, "parameters in fp16 cannot be trained in fp8; choose fp32 or bf16"),
    ],
)
def test_where_other_layers_stand_it_is_refused(fields, reason):
    with pytest.raises(ValidationError, match=reason):
        Training.model_validate({"compute": "fp8", **fields})


def test_a_head_may_read_less_than_the_stream():
    sizes = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}
    albert = sizes | {"embedding_size": 16, "vocab_size": 1000}
    assert head_matrix_elements(other("albert", albert)) == 1000 * 16
    assert head_matrix_elements(other("albert", albert, tie_word_embeddings=False)) == 1000 * 16
    assert head_matrix_elements(other("albert", albert, architectures=["AlbertModel"])) == 0
    dino = sizes | {"image_size": 28, "patch_size": 14, "id2label": {str(label): "" for label in range(10)}}
    # The class token and the mean of the patches.
    assert head_matrix_elements(other("dinov2", dino, architectures=["Dinov2ForImageClassification"])) == 10 * 2 * 64
