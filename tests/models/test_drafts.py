"""Networks that draft tokens: parameters by hand, and those that their makers publish."""

import pytest
from small_models import DEEPSEEK, LLAMA, bundled, llama, other

from planner.errors import SpecError
from planner.models.drafts import with_draft


def parameters(architecture, method):
    return with_draft(architecture, method).draft.parameters


def test_an_eagle_head_is_a_layer_and_a_projection():
    layer = 4 * 4096**2 + 3 * 4096 * 11_008 + 2 * 4096
    assert parameters(llama(), "eagle") == layer + 2 * 4096**2


def test_an_eagle3_head_reads_twice_the_width_and_has_a_small_output():
    layer = (3 * 2 + 1) * 4096**2 + 3 * 4096 * 11_008 + 2 * 4096
    found = with_draft(llama(), "eagle3").draft
    assert found.parameters == layer + 3 * 4096**2 + 32_000 * 4096
    assert found.stored_as == "bf16"


@pytest.mark.parametrize(
    ("model", "billions"),
    [
        ("meta-llama/Llama-2-7b-hf", 0.24),
        ("meta-llama/Llama-2-13b-hf", 0.37),
        ("meta-llama/Llama-2-70b-hf", 0.99),
        ("meta-llama/Meta-Llama-3-8B", 0.25),
        ("Qwen/Qwen2-7B", 0.26),
    ],
)
def test_eagle_heads_are_as_large_as_published(model, billions):
    """SafeAILab/EAGLE README.md, table of draft models."""
    models = bundled().models
    found = models.model(models.ids_written_as(model)[0])
    assert round(parameters(found, "eagle") / 1e9, 2) == billions


def test_a_head_is_like_the_last_layer_also_where_another_kind_is_listed_last():
    model = bundled().models.model("google/gemma-3-27b-it")
    last = max(model.main.groups, key=lambda group: group.places[-1]).layer
    assert with_draft(model, "eagle").draft.main.groups[0].layer.mixer == last.mixer
    assert last.mixer.window


def test_the_prediction_layer_of_deepseek_v3_is_as_large_as_published():
    """deepseek-ai/DeepSeek-V3 README_WEIGHTS.md: 11.5 billion parameters, without the shared embedding and head."""
    model = bundled().models.model("deepseek-ai/DeepSeek-V3")
    found = with_draft(model, "mtp").draft
    assert found.parameters == pytest.approx(11.5e9, rel=0.01)
    assert found.stored_as == model.stored_as == "fp8-block128"


def test_a_prediction_layer_is_the_last_one_with_a_projection_and_norms():
    model = other("deepseek_v3", DEEPSEEK, num_nextn_predict_layers=1)
    last = max(model.main.groups, key=lambda group: group.places)
    assert parameters(model, "mtp") == last.layer.parameters + 2 * 7168**2 + 3 * 7168


def test_the_prediction_layer_of_qwen_is_one_with_attention_as_the_configuration_of_its_text_says():
    """vLLM `qwen3_5_mtp`: a layer with attention, `fc` from 2h to h, and three norms; embedding and head are shared."""
    model = bundled().models.model("Qwen/Qwen3.6-27B")
    hidden, heads, key_heads, width, block = 5120, 24, 4, 256, 17408
    attention = hidden * width * (2 * heads + 2 * key_heads) + heads * width * hidden + 2 * width
    layer = attention + 3 * hidden * block + 2 * hidden
    assert (model.further_layers, parameters(model, "mtp")) == (1, layer + 2 * hidden**2 + 3 * hidden)


def test_nothing_and_repeated_words_need_no_network():
    assert with_draft(llama(), None).draft is with_draft(llama(), "ngram").draft is None


@pytest.mark.parametrize(
    ("method", "draft", "message"),
    [
        ("mtp", None, "names no layer that predicts further tokens"),
        ("model", None, "is not known here"),
        ("model", llama(vocab_size=1_000), "it knows 1,000 tokens, and the model 32,000"),
        (
            "model",
            other("bert", {**LLAMA, "max_position_embeddings": 512, "type_vocab_size": 2}),
            "does not draft text",
        ),
    ],
)
def test_what_cannot_draft_is_refused(method, draft, message):
    with pytest.raises(SpecError, match=message):
        with_draft(llama(), method, draft)


def test_heads_of_models_with_experts_are_refused_as_unknown():
    with pytest.raises(SpecError, match="those of others choose their own"):
        with_draft(other("deepseek_v3", DEEPSEEK), "eagle3")
