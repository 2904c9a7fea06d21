"""Values of GGUF metadata: read, taken from tensors, or refused."""

import pytest
from gguf_cases import KEYS
from made_files import array, gguf_bytes, tiny_gguf

from planner.errors import ModelFileError
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
def test_impossible_metadata_is_refused(metadata, reason):
    good = head("llama", {}, ())
    whole = {**good.metadata, **metadata} if any(key.startswith("llama.") for key in metadata) else metadata
    with pytest.raises(ModelFileError) as caught:
        architecture_of_gguf(GgufFile(whole, good.tensors), "x.gguf")
    assert reason in caught.value.message
    assert caught.value.message.startswith("x.gguf: ")
    assert caught.value.hint


def test_the_vocabulary_comes_from_the_embedding_else_from_the_tokens():
    file = head("llama", {"vocab_size": 99}, ())
    rest = tuple(tensor for tensor in file.tensors if tensor.name != "token_embd.weight")
    assert architecture_of_gguf(file, "x").vocabulary == 128
    assert architecture_of_gguf(GgufFile(file.metadata, rest), "x").vocabulary == 99
    tokens = {**file.metadata, "tokenizer.ggml.tokens": OmittedValue(77)}
    assert architecture_of_gguf(GgufFile(tokens, rest), "x").vocabulary == 77


def test_a_list_of_equal_values_per_layer_reads_like_one_value(tmp_path):
    metadata, tensors = tiny_gguf()
    file = tmp_path / "x.gguf"
    file.write_bytes(gguf_bytes(metadata | {"llama.attention.head_count_kv": array(4, 2, b"\2\0\0\0" * 2)}, tensors))
    assert read_model_file(file).main.groups[0].layer.mixer.kv_heads == 2
