import pytest
from made_files import tiny_tensors, write_gguf, write_model
from small_models import small_llama

from planner.memory.estimate import estimate_memory
from planner.memory.gguf import file_bytes, tensor_bytes
from planner.memory.weights import is_gguf, weight_bytes
from planner.models.readers.model_file import read_model_file
from planner.workload.defaults import with_defaults
from planner.workload.workload import Inference


@pytest.fixture
def gguf(tmp_path):
    return read_model_file(write_gguf(tmp_path / "tiny.gguf"))


@pytest.fixture
def unnamed(gguf):
    """A GGUF file whose mixture has no name here."""
    return gguf.evolve(quantization=None)


def test_a_gguf_file_takes_its_own_bytes_and_others_by_formula(gguf):
    assert weight_bytes(gguf, "Q8_0") == gguf.stored_bytes == file_bytes(gguf, "Q8_0")
    assert tensor_bytes(gguf, "Q8_0")["output"] == 128 * 64 * 34 // 32
    assert weight_bytes(gguf, "bf16") == 2 * gguf.parameters
    assert weight_bytes(gguf, "Q4_0") == file_bytes(gguf, "Q4_0") < gguf.stored_bytes


def test_weights_are_as_stored_unless_said_otherwise(gguf, unnamed):
    assert with_defaults(Inference(), gguf, 1).weights == "Q8_0"
    assert with_defaults(Inference(weights="stored"), gguf, 1).weights == "Q8_0"
    assert with_defaults(Inference(), unnamed, 1).weights == "stored"
    assert with_defaults(Inference(weights="stored"), small_llama(), 1).weights == "bf16"
    assert with_defaults(Inference(weights="nf4"), gguf, 1).weights == "nf4"


def test_a_mixture_without_a_name_is_counted_too(unnamed):
    assert is_gguf(unnamed, "stored")
    assert (
        weight_bytes(unnamed, "stored")
        == unnamed.stored_bytes
        == tensor_bytes(unnamed, "stored")["layers"]
        + sum(tensor_bytes(unnamed, "stored")[place] for place in ("embedding", "output", "other"))
    )
    memory = estimate_memory(unnamed, Inference())
    assert memory.total_bytes > unnamed.stored_bytes // 2
    assert any("llama.cpp" in note for note in memory.notes)


def test_safetensors_of_mixed_formats_are_no_gguf(tmp_path):
    mixed = tiny_tensors() | {"model.norm.weight": ("F32", [64])}
    found = read_model_file(write_model(tmp_path, mixed))
    assert found.stored_as == "stored"
    assert not is_gguf(found, "stored")
    terms = {term.name: term for term in estimate_memory(found, Inference()).terms}
    assert terms["weights"].bytes == found.stored_bytes == 2 * found.parameters + 2 * 64
    assert [part.name for part in terms["weights"].parts] == ["tensors in BF16", "tensors in F32"]


def test_without_files_as_stored_is_what_the_configuration_says():
    llama = small_llama()
    assert weight_bytes(llama, "stored") == weight_bytes(llama, "bf16")
    assert llama.stored_bytes == 0
