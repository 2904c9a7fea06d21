import json
import os
import struct
from pathlib import Path

import pytest
from made_files import safetensors_bytes, safetensors_header, tensor_bytes, write_safetensors

from planner.errors import ModelFileError
from planner.models.readers.safetensors import MAX_HEADER_BYTES, read_header
from planner.models.readers.sources import open_local

ONE = {"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}


def read(path: Path):
    with open_local(path) as file:
        return read_header(file)


def refusal(path: Path) -> str:
    with pytest.raises(ModelFileError) as caught:
        read(path)
    assert caught.value.message.startswith(str(path))
    assert caught.value.hint
    return caught.value.reason


def test_tensors_come_with_their_exact_bytes(tmp_path):
    tensors = {
        "w": ("BF16", [3, 5]),
        "packed": ("I32", [4, 2]),
        "scale": ("F8_E4M3", [7]),
        "half": ("F4", [6]),
        "scalar": ("F64", []),
        "empty": ("F16", [0, 9]),
    }
    found = read(write_safetensors(tmp_path / "x.safetensors", tensors))
    assert {tensor.name: (tensor.format, list(tensor.shape)) for tensor in found} == tensors
    assert [tensor.bytes for tensor in found if tensor.bytes] == [30, 32, 7, 3, 8]
    assert sum(tensor.bytes for tensor in found) == tensor_bytes(tensors)


def test_it_reads_what_the_library_writes_and_nothing_of_the_data(tmp_path):
    safetensors = pytest.importorskip("safetensors.numpy")
    numpy = pytest.importorskip("numpy")
    file = tmp_path / "x.safetensors"
    safetensors.save_file(
        {"b": numpy.zeros((3, 4), "float16"), "ä/ü": numpy.zeros(5, "int8")}, file, metadata={"format": 'p"t', "x": ""}
    )
    assert {tensor.name: (tensor.format, tensor.shape, tensor.bytes) for tensor in read(file)} == {
        "b": ("F16", (3, 4), 24),
        "ä/ü": ("I8", (5,), 5),
    }


def test_data_in_any_order_and_space_around_the_header(tmp_path):
    file = tmp_path / "x.safetensors"
    header = {
        "second": {"shape": [1], "data_offsets": [8, 12], "dtype": "F32"},
        "first": {"data_offsets": [0, 8], "dtype": "F32", "shape": [2]},
    }
    file.write_bytes(safetensors_bytes(json.dumps(header, indent=2).encode() + b"   ", 12))
    assert [tensor.name for tensor in read(file)] == ["first", "second"]
    file.write_bytes(safetensors_bytes({}))
    assert read(file) == ()


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        (b"", "has the end instead of '{'"),
        (b"[]", "has '[' instead of '{'"),
        (b"\xff{}", "not text in UTF-8"),
        (b"{} {}", "has text after its object"),
        (b'{"a"', "has the end instead of ':'"),
        (b'{"a": ', "Expecting value"),
        (b'{"a": 1', "must have dtype, shape and data_offsets"),
        (b'{"a', "has no complete string at character 1"),
        (b'{"a\n": 1}', "has no complete string"),
        (b'{"a\\q": 1}', "Invalid"),
        (b'{"a": NaN}', "NaN is not a number"),
        (b'{"a": {"dtype": 1, "dtype": 2}}', "a key occurs twice"),
        (b'{"a": ' + b"[" * 3000, "nested too deep"),
        (b'{"a": ' + b"[" * 5000, "nested too deep"),
        (b'{"a": "' + b"x" * 9000 + b'"}', "Unterminated string"),
        (b'{"__metadata__": []}', "has '[' instead of '{'"),
        (b'{"__metadata__": {"a": 1}}', "has no complete string"),
        (b'{"__metadata__": {}, "__metadata__": {}}', "the key '__metadata__' occurs twice"),
        (b'{"__metadata__": {"a": ""} "b"', "instead of ',', at character"),
        (json.dumps(ONE).encode()[:-1] + b"," + json.dumps(ONE).encode()[1:], "the key 'a' occurs twice"),
    ],
    ids=range(20),
)
def test_what_is_no_header_is_refused(tmp_path, header, reason):
    file = tmp_path / "x.safetensors"
    file.write_bytes(safetensors_bytes(header, 8))
    assert reason in refusal(file)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"dtype": "F31"}, "dtype 'F31' is not known"),
        ({"dtype": ["F32"]}, "is not known"),
        ({"dtype": "x" * 500}, "…"),
        ({"shape": 2}, "shape must be a list"),
        ({"shape": [2.0]}, "shape must be a list"),
        ({"shape": [True]}, "shape must be a list"),
        ({"shape": [-2]}, "shape must be a list"),
        ({"shape": [2**62, 2**62]}, "do not fill"),
        ({"shape": [3]}, "hold 8 bytes, which its shape and dtype do not fill"),
        ({"data_offsets": [0, 4, 8]}, "a beginning and an end"),
        ({"data_offsets": [8, 0]}, "a beginning and an end"),
        ({"data_offsets": [-8, 0]}, "whole numbers"),
        ({"data_offsets": None}, "whole numbers"),
        ({"data_offsets": [0, 2**70]}, "whole numbers"),
        ({"data_offsets": [4, 12]}, "4 bytes before tensor 'a' belong to no tensor"),
        ({"extra": 1}, "must have dtype, shape and data_offsets"),
    ],
    ids=str,
)
def test_impossible_tensors_are_refused(tmp_path, changes, reason):
    file = tmp_path / "x.safetensors"
    file.write_bytes(safetensors_bytes({"a": ONE["a"] | changes}, 8))
    assert reason in refusal(file)


def test_overlapping_and_missing_data_are_refused(tmp_path):
    file = tmp_path / "x.safetensors"
    twice = {"a": ONE["a"], "b": ONE["a"] | {"data_offsets": [4, 12]}}
    file.write_bytes(safetensors_bytes(twice, 12))
    assert "tensor 'b' overlaps the one before it: data_offsets 4 is below 8" in refusal(file)
    file.write_bytes(safetensors_bytes(ONE, 7))
    assert "is cut short: its tensors have 8 bytes, and the file holds 7" in refusal(file)
    file.write_bytes(safetensors_bytes(ONE, 9))
    assert "1 bytes after the last tensor belong to none" in refusal(file)


def test_a_header_longer_than_the_file_or_than_any_is_refused(tmp_path):
    file = tmp_path / "x.safetensors"
    file.write_bytes(b"")
    assert "cut short: bytes 0 to 8 of 0 are needed" in refusal(file)
    file.write_bytes(b"1234567")
    assert "cut short" in refusal(file)
    file.write_bytes(struct.pack("<Q", 1000) + b"{}")
    assert "cut short: bytes 8 to 1,008 of 10" in refusal(file)
    for length in (MAX_HEADER_BYTES + 1, 2**63, 2**64 - 1):
        file.write_bytes(struct.pack("<Q", length) + b"{}")
        assert "the header has" in refusal(file)


def test_a_file_that_shrinks_while_it_is_read_is_cut_short(tmp_path):
    file = tmp_path / "x.safetensors"
    header = safetensors_header({"a": ("F32", [2])})
    file.write_bytes(safetensors_bytes(header, 8))
    with open_local(file) as source:
        os.truncate(file, 20)
        with pytest.raises(ModelFileError, match="cut short"):
            read_header(source)


def test_pipes_folders_and_missing_files_are_refused_without_waiting(tmp_path):
    assert "cannot be read (No such file" in refusal(tmp_path / "none")
    assert "is not a regular file" in refusal(tmp_path)
    assert "cannot be read" in refusal(Path("a\0b"))
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        assert "is not a regular file" in refusal(tmp_path / "pipe")
