"""Embedding models and rerankers: no scores over the vocabulary, whatever network they are made of."""

import pytest

from planner.memory.estimate import estimate_memory
from planner.memory.logits import output_width
from planner.models.catalog import load_models
from planner.models.readers.config_json import read_config
from planner.paths import catalog_dir
from planner.workload.training import Training
from planner.workload.workload import Inference

CATALOG = load_models(catalog_dir() / "models")
EMBEDDING = ("BAAI/bge-m3", "intfloat/multilingual-e5-large", "Qwen/Qwen3-Embedding-0.6B")
SMALL = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "vocab_size": 1000,
}


@pytest.mark.parametrize("name", EMBEDDING)
def test_an_embedding_has_no_logits(name: str) -> None:
    architecture = CATALOG.model(name)
    assert output_width(architecture) == 0
    found = estimate_memory(architecture, Inference(batch=8, prompt_length=512, context_length=512))
    assert found.term("logits") is None
    assert all(share.name != "logits" for phase in found.phases for share in phase.shares)


def test_a_reranker_has_one_score_for_each_pair() -> None:
    architecture = CATALOG.model("BAAI/bge-reranker-v2-m3")
    assert (architecture.labels, output_width(architecture)) == (1, 1)
    assert architecture.parameters == 567_755_777  # as code that pins the checkpoint states it
    assert estimate_memory(architecture, Inference(batch=8)).term("kv_cache") is None


@pytest.mark.parametrize(
    ("named", "headless"),
    [(["LlamaModel"], True), (["LlamaForCausalLM"], False), (["GPT2LMHeadModel"], False), (None, False)],
)
@pytest.mark.parametrize("tied", [True, False])
def test_a_decoder_without_its_head_is_named_so(named: list[str] | None, headless: bool, tied: bool) -> None:
    config = {**SMALL, "tie_word_embeddings": tied, **({"architectures": named} if named else {})}
    architecture = read_config(config, "test")
    assert (output_width(architecture) == 0) == headless
    whole = read_config({**SMALL, "tie_word_embeddings": tied}, "test")
    missing = 0 if tied or not headless else 64 * 1000
    assert whole.parameters - architecture.parameters == missing


def test_an_embedding_is_trained_without_logits() -> None:
    found = estimate_memory(CATALOG.model("BAAI/bge-m3"), Training(micro_batch=4, sequence_length=256))
    assert found.term("logits") is None
    assert found.term("optimizer_states") is not None
