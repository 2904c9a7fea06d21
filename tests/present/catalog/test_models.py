"""Models as table rows, and the details of their architecture."""

import pytest

from planner.models.architecture import (
    Architecture,
    Attention,
    LatentAttention,
    Layer,
    LayerGroup,
    Mlp,
    Moe,
    Norm,
    Stack,
    StateMixer,
    StoredTensors,
    Tensor,
)
from planner.present.catalog.models import (
    MODEL_COLUMNS,
    architecture_details,
    is_sparse,
    model_details,
    stored_format_text,
)
from planner.present.format import THIN

NORM = Norm(kind="rms")


HEADS = Attention(heads=32, kv_heads=8, head_dim=128)


MLP = Mlp(intermediate=14336, gated=True)


def _tensor(role, *shape, copies=1):
    return Tensor(name=f"{role}.weight", shape=shape, role=role, copies=copies)


def _group(count, **parts):
    parts = {"mixer": HEADS, "feed_forward": MLP, "tensors": (_tensor("linear", 10, 10),), **parts}
    return LayerGroup(layer=Layer(norm=NORM, norm_count=2, **parts), count=count)


def _network(*groups, **changes):
    stack = Stack(name="decoder", hidden=4096, groups=groups, before=(_tensor("embedding", 1000, 10),))
    fields = {"model_type": "llama", "kind": "decoder", "hidden": 4096, "vocabulary": 1000, "stacks": (stack,)}
    return Architecture(**{**fields, **changes})


def _lines(architecture):
    return {
        (group.title, detail.title): detail.text.replace(THIN, " ")
        for group in architecture_details(architecture)
        for detail in group.details
    }


def test_the_details_of_a_dense_decoder():
    lines = _lines(_network(_group(32), max_context=8192, tied_head=True, stored_dtype="bf16"))
    assert lines == {
        ("Parameters", "All"): "13,200",
        ("Parameters", "Projections"): "3,200",
        ("Parameters", "Embeddings"): "10,000",
        ("Layers", "Number"): "32",
        ("Layers", "Width"): "4,096",
        ("Layers", "32 layers"): "32 heads of 128, 8 key/value heads; gated feed-forward 14,336 wide",
        ("Input and output", "Kind"): "decoder, llama",
        ("Input and output", "Longest context"): "8,192 tokens",
        ("Input and output", "Vocabulary"): "1,000",
        ("Input and output", "Output head"): "tied to the embedding",
        ("Input and output", "Stored as"): "BF16",
    }


def test_equal_layers_are_joined_and_sliding_windows_kept_apart():
    windowed = HEADS.evolve(window=1024)
    lines = _lines(_network(_group(5, mixer=windowed), _group(1), _group(5, mixer=windowed), _group(1)))
    assert "window of 1,024 tokens" in lines["Layers", "10 layers"]
    assert "window" not in lines["Layers", "2 layers"]


def test_the_details_of_a_mixture_of_experts():
    moe = Moe(experts=8, top_k=2, intermediate=512)
    experts = (_tensor("expert", 10, 10, copies=8), _tensor("router", 8))
    network = _network(_group(1, feed_forward=moe, tensors=experts))
    assert is_sparse(network)
    assert not is_sparse(_network(_group(1)))
    lines = _lines(network)
    assert lines["Parameters", "Active per token"] == "10,208"
    assert lines["Parameters", "Experts"] == "800"
    assert lines["Layers", "1 layer"].endswith("2 of 8 gated experts 512 wide")
    shared = _network(_group(1, feed_forward=moe.evolve(shared_intermediate=1024, gated=False)))
    assert _lines(shared)["Layers", "1 layer"].endswith("2 of 8 experts 512 wide and shared ones 1,024 wide")


@pytest.mark.parametrize(
    ("parts", "phrase"),
    [
        ({"mixer": HEADS.evolve(kv_heads=32), "feed_forward": None}, "32 heads of 128"),
        ({"mixer": HEADS.evolve(heads=1, kv_heads=1), "feed_forward": None}, "1 head of 128"),
        (
            {
                "mixer": LatentAttention(
                    heads=128, kv_lora_rank=512, qk_nope_head_dim=128, qk_rope_head_dim=64, v_head_dim=128
                ),
                "feed_forward": Mlp(intermediate=3072, gated=False),
            },
            "128 heads on a latent of 576; feed-forward 3,072 wide",
        ),
        (
            {
                "mixer": StateMixer(name="mamba2", conv_state_elements=1, recurrent_state_elements=1, inner_dim=4096),
                "second_mixer": HEADS.evolve(kv_heads=1),
                "feed_forward": None,
            },
            "mamba2, 4,096 wide; 32 heads of 128, 1 key/value head",
        ),
        ({"mixer": HEADS, "cross_attention": HEADS, "feed_forward": None}, "8 key/value heads; cross-attention"),
        ({"mixer": None, "feed_forward": None}, ""),
    ],
)
def test_each_kind_of_layer_has_a_phrase(parts, phrase):
    assert _lines(_network(_group(1, **parts)))["Layers", "1 layer"].endswith(phrase)


def test_several_stacks_are_named():
    vision = Stack(name="vision", hidden=1024, groups=(_group(4),))
    network = _network(_group(2))
    both = network.evolve(kind="vision-language", stacks=(vision, *network.stacks))
    lines = _lines(both)
    assert lines["Vision", "Number"] == "4"
    assert lines["Decoder", "Number"] == "2"


def test_an_image_encoder_has_classes_and_no_tokens():
    lines = _lines(_network(_group(2), kind="vision-encoder", vocabulary=None, labels=1000))
    assert lines["Input and output", "Classes"] == "1,000"
    assert lines["Input and output", "Stored as"] == "not known; BF16 is assumed"
    assert ("Input and output", "Vocabulary") not in lines


def test_tied_own_and_missing_output_heads():
    own = _network(_group(1), head=(_tensor("head", 1000, 10),))
    assert _lines(own)["Input and output", "Output head"] == "its own"
    assert _lines(_network(_group(1)))["Input and output", "Output head"] == "none"
    assert _lines(own)["Input and output", "Longest context"] == "not stated"


def test_parameter_counts_are_exact_and_rounded():
    big = _network(_group(1, tensors=(_tensor("linear", 4096, 4096, 500),)))
    assert _lines(big)["Parameters", "All"] == "8,388,618,000 (8.39 B)"


def test_stored_formats_come_from_the_checkpoints_files():
    stored = tuple(
        StoredTensors(format=name, place="layers", elements=10, bytes=count)
        for name, count in (("Q4_K", 1_000_000), ("Q6_K", 3_000_000), ("Q4_K", 500_000))
    )
    details = [detail for group in architecture_details(_network(_group(1), stored=stored)) for detail in group.details]
    said = {detail.title: detail.text for detail in details}
    assert said["In its files"].partition(": ")[2].startswith("Q6_K")


def test_no_cell_of_any_model_is_empty(catalog):
    for record in catalog.models.records:
        for column in MODEL_COLUMNS:
            assert column.text(record)
            if column.tooltip:
                assert column.tooltip(record)


def test_every_model_has_details_with_a_source(catalog):
    for record in catalog.models.records:
        groups = model_details(record, catalog.models.model(record.id))
        (known,) = [detail for detail in groups[0].details if detail.title == "Based on"]
        assert known.source
        assert known.tooltip.count("\n") == 1


def test_the_published_size_and_variants_are_shown(catalog):
    published = next(record for record in catalog.models.records if record.published and record.variants)
    titles = [detail.title for detail in model_details(published, catalog.models.model(published.id))[0].details]
    assert "Size as published" in titles
    assert any(title.startswith("In ") for title in titles)


def test_the_stored_format_is_said_in_words():
    network = _network(_group(2))
    assert stored_format_text(network.evolve(quantization="fp8-block128")) == "FP8 (blocks of 128)"
    assert stored_format_text(network.evolve(stored_dtype="fp16")) == "FP16"
    mixed = tuple(StoredTensors(place="other", format=name, elements=4, bytes=8) for name in ("BF16", "F32"))
    assert stored_format_text(network.evolve(stored=mixed)) == "several formats"
