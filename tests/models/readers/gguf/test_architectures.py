"""The metadata that llama.cpp's converter writes for a configuration reads as the configuration itself does."""

import pytest
from gguf_cases import BASE, CASES, KEYS
from made_files import array, gguf_bytes, tiny_gguf

from planner.errors import ModelFileError
from planner.models.readers.config_json import read_config
from planner.models.readers.gguf.architectures import GGUF_ARCHITECTURES
from planner.models.readers.gguf.header import GgufFile, GgufTensor, OmittedValue
from planner.models.readers.gguf.model import architecture_of_gguf
from planner.models.readers.model_file import read_model_file


def head(
    architecture: str, keys: dict[str, object], tensors: tuple[str, ...], without: tuple[str, ...] = ()
) -> GgufFile:
    """The head of a file of these keys: lists as they are read, a token embedding and an output among its tensors."""
    stated = {name: value for name, value in (KEYS | keys).items() if name not in without}
    metadata = {"general.architecture": architecture} | {
        f"{architecture}.{name}": value for name, value in stated.items()
    }
    found = {name: tuple(value) if isinstance(value, list) else value for name, value in metadata.items()}
    shapes = {"per_layer_token_embd.weight": (32, 128), "blk.0.ffn_down.weight": (96, 64)}
    names = {"output.weight": (64, 128)} | {name: shapes.get(name, (64,)) for name in tensors}
    kept = {"token_embd.weight": (64, 128)} | {name: shape for name, shape in names.items() if name not in without}
    return GgufFile(found, tuple(GgufTensor(name, "F32", shape, 1, 4) for name, shape in kept.items()))


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.architecture}-{case.model_type}")
def test_metadata_reads_like_the_configuration(case):
    found = architecture_of_gguf(head(case.architecture, case.keys, case.tensors, case.without), "x.gguf")
    expected = read_config(BASE | {"model_type": case.model_type} | case.config, "config.json")
    assert found.model_type == case.model_type
    assert found.stacks == expected.stacks
    assert found.head == expected.head
    assert (found.parameters, found.tied_head, found.max_context) == (
        expected.parameters,
        expected.tied_head,
        expected.max_context,
    )


def test_every_architecture_has_a_case():
    assert {case.architecture for case in CASES} == set(GGUF_ARCHITECTURES)


def test_widths_come_from_tensors_where_old_files_do_not_state_them():
    file = head("qwen2moe", {"expert_count": 4, "expert_used_count": 2}, ("blk.0.attn_q.bias",))
    wide = (
        GgufTensor("blk.0.ffn_up_exps.weight", "F32", (64, 40, 4), 1, 4),
        GgufTensor("blk.0.ffn_up_shexp.weight", "F32", (64, 56), 1, 4),
        GgufTensor("blk.0.ffn_down.weight", "F32", (88, 64), 1, 4),
    )
    found = architecture_of_gguf(file._replace(tensors=file.tensors + wide), "x.gguf")
    block = found.main.groups[0].layer.feed_forward
    assert (block.intermediate, block.shared_intermediate) == (40, 56)
    phi = head("phi2", {}, ())
    assert (
        architecture_of_gguf(phi._replace(tensors=phi.tensors + wide[2:]), "x")
        .main.groups[0]
        .layer.feed_forward.intermediate
        == 88
    )


def test_layers_that_predict_further_tokens_are_not_counted():
    keys = {"block_count": 5, "nextn_predict_layers": 1}
    file = head("llama", keys, ("blk.3.attn_norm.weight", "blk.4.nextn.eh_proj.weight", "rope_freqs.weight"))
    found = architecture_of_gguf(file, "x.gguf")
    assert found.main.layer_count == 4
    assert found.stored_bytes == 4 * 4
    assert found.reader_notes[0] == "1 tensors of multi-token prediction layers, 4 bytes, are not counted"
    assert found.reader_notes[1].startswith("the file holds 3 parameters, but 'llama' with these sizes has ")


@pytest.mark.parametrize(
    ("kind", "number", "quantization", "stored_as"),
    [
        ("Q4_K", 15, "Q4_K_M", "Q4_K_M"),
        ("F16", 1, "F16", "F16"),
        ("IQ2_XXS", 19, None, "stored"),
        ("Q4_K", 12345, None, "stored"),
        ("Q4_K", "Q4", None, "stored"),
        ("BF16", None, None, "stored"),
    ],
)
def test_the_mixture_is_named_where_it_has_a_name(kind, number, quantization, stored_as):
    file = head("llama", {}, ())
    tensors = (*file.tensors, GgufTensor("blk.0.attn_q.weight", kind, (64, 64), 1, 7))
    metadata = {**file.metadata, "general.file_type": number} if number is not None else file.metadata
    found = architecture_of_gguf(GgufFile(metadata, tensors), "x.gguf")
    assert (found.quantization, found.stored_as) == (quantization, stored_as)


@pytest.mark.parametrize(
    ("metadata", "reason"),
    [
        ({}, "'general.architecture' is missing or no text"),
        ({"general.architecture": 3}, "'general.architecture' is missing"),
        ({"general.architecture": "frobnicator"}, "'general.architecture' is 'frobnicator'; known are arcee, "),
        ({"general.architecture": "clip"}, "is an image or audio projector"),
        ({"general.architecture": "llama", "general.type": "adapter"}, "is an adapter, which needs its base model"),
        ({"general.architecture": "llama", "general.type": "imatrix"}, "is an importance matrix"),
        ({"general.architecture": "llama", "general.type": "mmproj"}, "is an image or audio projector"),
        ({"general.architecture": "llama"}, "'llama.embedding_length' is missing"),
        ({"llama.block_count": 0}, "'llama.block_count' must hold whole numbers from 1"),
        ({"llama.block_count": 10**9}, "'llama.block_count' must hold whole numbers from 1 to 100,000"),
        ({"llama.block_count": 1.5}, "'llama.block_count' must hold whole numbers"),
        ({"llama.block_count": "two"}, "'llama.block_count' must hold whole numbers"),
        ({"llama.block_count": ()}, "'llama.block_count' must hold whole numbers"),
        ({"llama.block_count": OmittedValue(5)}, "'llama.block_count' must hold whole numbers"),
        ({"llama.attention.head_count": (4, 8)}, "'llama.attention.head_count' differs between layers"),
        ({"llama.attention.head_count_kv": (2, 4)}, "'llama.attention.head_count_kv' differs between layers"),
        ({"llama.attention.head_count": 3}, "num_key_value_heads must divide the 3"),
        ({"llama.embedding_length": 10**8}, "'llama.embedding_length' must hold whole numbers"),
        ({"llama.nextn_predict_layers": 4}, "'llama.nextn_predict_layers' must hold"),
    ],
    ids=range(19),
)
def test_metadata_that_cannot_be_is_refused(metadata, reason):
    good = head("llama", {}, ())
    whole = {**good.metadata, **metadata} if any(key.startswith("llama.") for key in metadata) else metadata
    with pytest.raises(ModelFileError) as caught:
        architecture_of_gguf(GgufFile(whole, good.tensors), "x.gguf")
    assert reason in caught.value.message
    assert caught.value.message.startswith("x.gguf: ")
    assert caught.value.hint


@pytest.mark.parametrize(
    ("architecture", "keys", "reason"),
    [
        ("mamba", {"ssm.inner_size": 100}, "must be a multiple of embedding_length, 64"),
        ("deepseek2", {"rope.dimension_count": 8, "attention.key_length": 8}, "must be more than rope.dimension_count"),
    ],
)
def test_sizes_that_contradict_each_other_are_refused(architecture, keys, reason):
    with pytest.raises(ModelFileError, match=reason):
        architecture_of_gguf(head(architecture, keys, ()), "x.gguf")


def test_the_vocabulary_comes_from_the_embedding_else_from_the_tokens():
    file = head("llama", {"vocab_size": 99}, ())
    rest = tuple(tensor for tensor in file.tensors if tensor.name != "token_embd.weight")
    assert architecture_of_gguf(file, "x").vocabulary == 128
    assert architecture_of_gguf(GgufFile(file.metadata, rest), "x").vocabulary == 99
    tokens = {**file.metadata, "tokenizer.ggml.tokens": OmittedValue(77)}
    assert architecture_of_gguf(GgufFile(tokens, rest), "x").vocabulary == 77


def test_a_vocabulary_alone_is_no_model(tmp_path):
    file = tmp_path / "ggml-vocab.gguf"
    file.write_bytes(gguf_bytes(tiny_gguf()[0], {}))
    with pytest.raises(ModelFileError, match="contains a vocabulary without a network"):
        read_model_file(file)


def test_lists_for_each_layer_may_all_say_the_same(tmp_path):
    metadata, tensors = tiny_gguf()
    file = tmp_path / "x.gguf"
    file.write_bytes(gguf_bytes(metadata | {"llama.attention.head_count_kv": array(4, 2, b"\2\0\0\0" * 2)}, tensors))
    assert read_model_file(file).main.groups[0].layer.mixer.kv_heads == 2


def test_layers_of_kinds_that_do_not_fit_their_number_are_refused():
    keys = {"attention.sliding_window_pattern": [1, 0], "attention.key_length": 32, "attention.key_length_swa": 16}
    with pytest.raises(ModelFileError, match="layer_types has 2 entries for 4 layers"):
        architecture_of_gguf(head("gemma4", keys | {"attention.head_count_kv": [2, 2, 1]}, ()), "x.gguf")
