"""The phases of text generation, and the notes on them."""

import pytest
from inference_terms import alive
from small_models import LLAMA, bundled, other, small_llama

from planner.memory.estimate import estimate_memory
from planner.workload.workload import Inference, Training


def test_the_first_token_finds_the_prompt_in_sliding_layers_too():
    mistral = other("mistral", LLAMA, sliding_window=64)
    shares = alive(mistral, "decode", "first token", context_length=1001, prompt_length=1000)
    assert shares["kv_cache"] == 1000 * 2 * 32 * 4096 * 2


def test_images_are_not_counted_and_a_note_says_so():
    model = bundled().models.model("meta-llama/Llama-3.2-11B-Vision")
    blind = model.evolve(stacks=model.stacks[1:])
    assert model.stacks[0].name == "vision"
    for workload in (Inference(), Training()):
        result, without = (estimate_memory(network, workload) for network in (model, blind))
        assert any("vision tower" in note for note in result.notes)
        # The tower's layers work on nothing; its parameters are there.
        assert result.term("activations") == without.term("activations")
        assert result.term("weights").bytes - without.term("weights").bytes >= 2 * model.stacks[0].parameters


def test_a_cache_that_grows_leaves_blocks_behind_that_nvidia_smi_shows():
    def told(**how) -> bool:
        return any("nvidia-smi may show" in note for note in estimate_memory(small_llama(), Inference(**how)).notes)

    assert told(prompt_length=100, context_length=356)
    assert not told(prompt_length=100, context_length=355)
    assert not told(prompt_length=1000, context_length=1000, profile="vllm")


@pytest.mark.parametrize(("tokens", "batch"), [(32, 1), (1, 2)])
def test_a_matrix_in_nf4_is_dequantized_for_more_than_one_token(tokens, batch):
    model = small_llama()
    largest = max(tensor.size for group in model.main.groups for tensor in group.layer.tensors)
    asked = {"prompt_length": tokens, "batch": batch, "context_length": tokens}
    for scheme in ("nf4", "nf4-dq"):
        assert alive(model, "prefill", weights=scheme, **asked)["temporaries"] == 2 * largest
    assert "temporaries" not in alive(model, "prefill", weights="int8", **asked)
    assert "temporaries" not in alive(model, "prefill", weights="nf4", prompt_length=1, context_length=1)


def test_notes_say_what_another_engine_would_add():
    notes = estimate_memory(small_llama(), Inference(kv_cache="q8_0", context_length=9000)).notes
    assert any("quantized KV cache" in note for note in notes)
    assert any("9,000 tokens exceed the model's maximum context length of 4,096" in note for note in notes)
