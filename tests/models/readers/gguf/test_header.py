"""Values of GGUF metadata: read, taken from tensors, or refused."""

import os
import struct

import pytest
from gguf_cases import KEYS
from made_files import Typed, array, gguf_bytes, gguf_string, tiny_gguf, u64, write_gguf

from planner.errors import ModelFileError
from planner.ggml import GGML_TYPES
from planner.models.readers.gguf import header as gguf_file
from planner.models.readers.gguf.header import GgufFile, GgufTensor, OmittedValue, read_gguf
from planner.models.readers.gguf.model import architecture_of_gguf
from planner.models.readers.model_file import read_model_file
from planner.models.readers.sources import open_local

SMALL = {"general.architecture": "llama"}
TENSOR = {"a": ("F32", [4])}


def read(path):
    with open_local(path) as file:
        return read_gguf(file)


@pytest.fixture
def file(tmp_path):
    return tmp_path / "x.gguf"


def refusal(file, content: bytes) -> str:
    file.write_bytes(content)
    with pytest.raises(ModelFileError) as caught:
        read(file)
    assert caught.value.message.startswith(str(file))
    assert caught.value.hint
    return caught.value.reason


@pytest.mark.parametrize("version", [2, 3])
def test_values_of_every_type_are_read_and_long_ones_passed_over(file, version):
    metadata = {
        "u8": Typed(0, b"\xff"),
        "i8": Typed(1, b"\xff"),
        "u16": Typed(2, b"\xff\xff"),
        "i16": Typed(3, b"\xff\xff"),
        "u32": 4_000_000_000,
        "i32": Typed(5, b"\xff\xff\xff\xff"),
        "f32": 0.5,
        "bool": True,
        "text": "ä",
        "bytes": Typed(8, gguf_string(b"\xff")),
        "u64": u64(2**64 - 1),
        "i64": Typed(11, b"\xff" * 8),
        "f64": Typed(12, struct.pack("<d", 0.25)),
        "numbers": [1, -2],
        "none": array(4, 0, b""),
        "most": array(0, 4_096, bytes(4_096)),
        "many": array(0, 4_097, bytes(4_097)),
        "texts": ["a", "b" * 100],
        "long": "x" * 70_000,
    }
    file.write_bytes(gguf_bytes(metadata, TENSOR, version=version))
    assert dict(read(file).metadata) == {
        "u8": 255,
        "i8": -1,
        "u16": 65535,
        "i16": -1,
        "u32": 4_000_000_000,
        "i32": -1,
        "f32": 0.5,
        "bool": True,
        "text": "ä",
        "bytes": "\ufffd",
        "u64": 2**64 - 1,
        "i64": -1,
        "f64": 0.25,
        "numbers": (1, -2),
        "none": (),
        "most": (0,) * 4_096,
        "many": OmittedValue(4_097),
        "texts": OmittedValue(2),
        "long": OmittedValue(70_000),
    }


@pytest.mark.parametrize("kind", GGML_TYPES, ids=lambda kind: kind.name)
def test_every_type_takes_its_blocks(file, kind):
    file.write_bytes(gguf_bytes({}, {"a": (kind.name, [2 * kind.block_elements, 3]), "b": ("F32", [])}))
    first, second = read(file).tensors
    taken = 6 * kind.block_elements, 6 * kind.block_bytes
    assert first == GgufTensor("a", kind.name, (2 * kind.block_elements, 3), *taken)
    assert second.bytes == 4


def test_a_vocabulary_larger_than_what_is_read_at_once(file):
    metadata = {"tokens": array(8, 200_000, gguf_string("tokens") * 200_000), "after": 1}
    file.write_bytes(gguf_bytes(metadata, TENSOR))
    assert read(file).metadata == {"tokens": OmittedValue(200_000), "after": 1}


def test_an_alignment_of_its_own(file):
    tensors = {"a": ("F32", [1]), "b": ("F32", [1])}
    file.write_bytes(gguf_bytes({"general.alignment": 64}, tensors))
    assert len(read(file).tensors) == 2
    assert file.stat().st_size % 64 == 4


HEAD = gguf_bytes(SMALL, TENSOR)


@pytest.mark.parametrize("length", [*range(0, len(HEAD), 3), len(HEAD) - 1])
def test_a_file_cut_anywhere_is_refused(file, length):
    assert "is cut short" in (reason := refusal(file, HEAD[:length])) or "not a GGUF file" in reason


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"GGML" + HEAD[4:], "does not begin with GGUF"),
        (gguf_bytes(SMALL, TENSOR, version=1), "has GGUF version 1;"),
        (gguf_bytes(SMALL, TENSOR, version=4), "has GGUF version 4;"),
        (gguf_bytes(SMALL, TENSOR, version=3 << 24), "is for big-endian machines"),
        (gguf_bytes(SMALL, TENSOR, counts=(10**9, 1)), "would have 1,000,000,000 tensors"),
        (gguf_bytes(SMALL, TENSOR, counts=(1, 2**63)), "9,223,372,036,854,775,808 keys"),
        (gguf_bytes(SMALL, TENSOR, counts=(2, 1)), "tensor '' lies at 0"),
        (gguf_bytes({b"\xff": 1}, {}), "key 1 is not text in UTF-8: '\\ufffd'"),
        (gguf_bytes({b"x" * 70_000: 1}, {}), "key 1 has 70,000 bytes, more than 65,535"),
        (gguf_bytes({b"a": 1, "a": 2}, {}), "the key 'a' occurs twice"),
        (gguf_bytes({"a": Typed(13, b"")}, {}), "'a' has a value of type 13, which is not supported"),
        (gguf_bytes({"a": array(9, 1, b"")}, {}), "'a' has a value of type 9"),
        (gguf_bytes({"a": array(8, 2**63, b"")}, {}), "strings in arrays; at most 2,000,000 are read"),
        (gguf_bytes({"a": array(10, 2**61, b"")}, {}), "is cut short"),
        (gguf_bytes({"a": array(8, 2, struct.pack("<Q", 2**64 - 9))}, {}), "is cut short"),
        (gguf_bytes({"a": Typed(8, struct.pack("<Q", 2**64 - 1))}, {}), "is cut short"),
        (gguf_bytes({"general.alignment": 0}, {}), "general.alignment must be a power of two"),
        (gguf_bytes({"general.alignment": 48}, TENSOR), "general.alignment must be a power of two"),
        (gguf_bytes({"general.alignment": 2**30}, {}), "general.alignment must be a power of two"),
        (gguf_bytes({"general.alignment": True}, {}), "general.alignment must be a power of two"),
        (gguf_bytes({}, {"n" * 64: ("F32", [1])}), "a tensor's name has 64 bytes, more than 63"),
        (gguf_bytes({}, {"a": ("F32", [1] * 5)}), "tensor 'a' has 5 dimensions"),
        (gguf_bytes({}, {"a": ("4", [32])}), "tensor 'a' has type 4, which is not supported"),
        (gguf_bytes({}, {"a": ("Q4_K", [255])}), "rows of 255 do not divide into blocks of Q4_K"),
        (gguf_bytes({}, {"a": ("F32", [2**62, 2**62])}, data=0), "are too many"),
        (gguf_bytes({}, {"a": ("F32", [2**40])}, data=0), "is cut short"),
        (
            gguf_bytes({}, TENSOR | {"b": ("F32", [1])}, offsets={"b": 16}),
            "tensor 'b' lies at 16; after those before it",
        ),
        (gguf_bytes({}, TENSOR | {"b": ("F32", [1])}, offsets={"b": 0}), "that is 32"),
        (gguf_bytes({}, TENSOR, offsets={"a": 2**64 - 1}), "tensor 'a' lies at 18,446,744,073,709,551,615"),
    ],
    ids=range(29),
)
def test_what_cannot_be_is_refused(file, content, reason):
    assert reason in refusal(file, content)


def test_a_tensor_twice_is_refused(file):
    once = gguf_bytes({}, {"a": ("F32", [8])})
    entry = once[24 : 24 + 8 + 1 + 4 + 8 + 4]
    second = entry + struct.pack("<Q", 32)
    assert "tensor 'a' occurs twice" in refusal(
        file, b"GGUF" + struct.pack("<IQQ", 3, 2, 0) + entry + bytes(8) + second
    )


def test_metadata_beyond_any_model_is_refused(file, monkeypatch):
    monkeypatch.setattr(gguf_file, "MAX_KEPT_BYTES", 100)
    file.write_bytes(gguf_bytes({"a": "x" * 99}, {}))
    assert read(file).metadata == {"a": "x" * 99}
    assert "the metadata has more than 100 bytes" in refusal(file, gguf_bytes({"a": "x" * 101}, {}))
    assert "the metadata has more than 100 bytes" in refusal(file, gguf_bytes({"a" * 60: 1, "b" * 60: 1}, {}))


def test_several_models_in_a_folder_must_be_chosen_from(tmp_path):
    write_gguf(tmp_path / "a.gguf")
    write_gguf(tmp_path / "b.gguf")
    with pytest.raises(ModelFileError, match=r"holds 2 models: a.gguf, b.gguf"):
        read_model_file(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_a_pipe_is_refused_without_waiting(file):
    os.mkfifo(file)
    with pytest.raises(ModelFileError, match="not a regular file"):
        read_model_file(file)


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
