"""Whatever bytes a file holds, reading it gives a network or says why not: quickly, and in little memory."""

import json
import struct
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from effort import refused_at_once
from hypothesis import given
from hypothesis import strategies as st
from made_files import (
    TINY,
    Tensors,
    Typed,
    gguf_bytes,
    safetensors_bytes,
    safetensors_header,
    tensor_bytes,
    tiny_gguf,
    tiny_tensors,
    u64,
)

from planner.errors import ModelFileError
from planner.models.readers.config_json import parse_config, read_config
from planner.models.readers.gguf.header import MAX_STRINGS, read_gguf
from planner.models.readers.gguf.model import architecture_of_gguf
from planner.models.readers.model_file import infer_config, read_adapter
from planner.models.readers.safetensors import MAX_HEADER_BYTES, read_header, read_index
from planner.models.readers.sources import check_span
from planner.models.readers.stored import with_stored_sizes
from planner.units import MIB

pytestmark = pytest.mark.sweep

MOST_BYTES = 256 * MIB


class Held:
    """A file in memory, of which more may be claimed than there is: the rest is zeros, as in a sparse file."""

    place = "held"

    def __init__(self, data: bytes, size: int | None = None) -> None:
        self._data = data
        self.size = len(data) if size is None else size

    def read(self, offset: int, count: int) -> bytes:
        check_span(self, offset, count)
        return self._data[offset : offset + count].ljust(count, b"\0")


LLAMA = read_config(TINY, "config.json")
TENSORS = tiny_tensors() | {"model.layers.0.mlp.up_proj.qweight": ("I32", [8, 64])}
ADAPTER = {"peft_type": "LORA", "r": 8, "target_modules": ["q_proj"], "rank_pattern": {"k": 4}}


def read_weights(data: bytes, _: Path) -> None:
    with_stored_sizes(LLAMA, read_header(Held(data)))


def read_weights_alone(data: bytes, _: Path) -> None:
    read_config(infer_config(read_header(Held(data)), Path("held")), "held")


def read_gguf_model(data: bytes, _: Path) -> None:
    architecture_of_gguf(read_gguf(Held(data)), "held")


def read_index_file(data: bytes, _: Path) -> None:
    read_index(data, "held")


def read_configuration(data: bytes, _: Path) -> None:
    read_config(parse_config(data, "held"), "held")


def read_adapter_file(data: bytes, folder: Path) -> None:
    file = folder / "adapter_config.json"
    file.write_bytes(data)
    read_adapter(file)


def _weights(tensors: Tensors) -> bytes:
    header = {"__metadata__": {"format": "pt"}} | safetensors_header(tensors)
    return safetensors_bytes(header, tensor_bytes(tensors))


def _moe() -> bytes:
    metadata, tensors = tiny_gguf()
    experts = {"blk.0.ffn_up_exps.weight": ("Q4_K", [256, 2, 2])}
    keys = {"llama.expert_count": 2, "llama.expert_used_count": 1, "llama.attention.head_count_kv": [2, 2]}
    return gguf_bytes(metadata | keys, tensors | experts)


INDEX = {"metadata": {"total_size": 1}, "weight_map": dict.fromkeys(TENSORS, "a.safetensors")}
READERS: tuple[tuple[Callable[[bytes, Path], None], bytes], ...] = (
    (read_weights, _weights(TENSORS)),
    (read_weights_alone, _weights(tiny_tensors(heads=128, keys=64))),
    (read_gguf_model, gguf_bytes(*tiny_gguf())),
    (read_gguf_model, _moe()),
    (read_index_file, json.dumps(INDEX).encode()),
    (read_configuration, json.dumps(TINY | {"rope_scaling": {"factor": 2.0}}).encode()),
    (read_adapter_file, json.dumps(ADAPTER).encode()),
)


def peak_bytes() -> int:
    """Return the most memory that this process has had; 0 where the system does not say."""
    if sys.platform == "win32":
        return 0
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def refuse_or_read(read: Callable[[bytes, Path], None], data: bytes, folder: Path) -> bool:
    """Read `data`; return whether it was refused, with a place and a hint, and never anything but that."""
    with refused_at_once():
        refusal = refusal_of(read, data, folder)
    assert refusal is None or (refusal.hint and refusal.message.startswith(("held: ", str(folder))))
    return refusal is not None


def refusal_of(read: Callable[[bytes, Path], None], data: bytes, folder: Path) -> ModelFileError | None:
    try:
        read(data, folder)
    except ModelFileError as error:
        return error
    return None


def test_what_was_not_changed_is_read(tmp_path):
    assert not any(refuse_or_read(read, data, tmp_path) for read, data in READERS)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=8,
)
ENTRIES = st.fixed_dictionaries(
    {
        "dtype": st.sampled_from(["F32", "BF16", "I32", "F4"]) | JSON,
        "shape": st.lists(st.integers(-1, 2**64), max_size=4) | JSON,
        "data_offsets": st.lists(st.integers(-1, 2**64), min_size=2, max_size=2) | JSON,
    }
)


@given(
    st.dictionaries(st.sampled_from(sorted(TENSORS)) | st.text(max_size=8), ENTRIES | JSON, max_size=4),
    st.integers(0, 64),
)
def test_any_header_is_read_or_refused(header, data):
    for read in (read_weights, read_weights_alone):
        refuse_or_read(read, safetensors_bytes(header, data), Path("held"))


@given(JSON | st.fixed_dictionaries({"weight_map": st.dictionaries(st.text(max_size=5), st.text() | JSON)}))
def test_any_index_is_read_or_refused(index):
    refuse_or_read(read_index_file, json.dumps(index).encode(), Path("held"))


NUMBER_VALUES = st.integers(0, 2**32 - 1) | st.booleans() | st.floats(width=32)
VALUES = (
    NUMBER_VALUES
    | st.text(max_size=8)
    | st.integers(0, 2**64 - 1).map(u64)
    | st.lists(st.integers(-(2**31), 2**31 - 1), min_size=1, max_size=5)
    | st.builds(Typed, st.integers(0, 14), st.binary(max_size=24))
)
METADATA, GGUF_TENSORS = tiny_gguf()


@given(
    st.dictionaries(st.sampled_from(sorted(METADATA)) | st.text(max_size=6), VALUES, max_size=4),
    st.dictionaries(
        st.sampled_from(sorted(GGUF_TENSORS)), st.tuples(st.just("F32"), st.lists(st.integers(0, 200), max_size=5))
    ),
)
def test_any_metadata_is_read_or_refused(changes, tensors):
    metadata = {**METADATA, **changes, "general.alignment": 32}
    refuse_or_read(read_gguf_model, gguf_bytes(metadata, {**GGUF_TENSORS, **tensors}, data=50_000), Path("held"))


@pytest.mark.parametrize(
    "claimed",
    [
        pytest.param(b"GGUF" + struct.pack("<IQQ", 3, 10**9, 0), id="tensors"),
        pytest.param(b"GGUF" + struct.pack("<IQQ", 3, 99_999, 0), id="empty-tensors"),
        pytest.param(b"GGUF" + struct.pack("<IQQ", 3, 0, 65_000), id="empty-keys"),
        pytest.param(
            b"GGUF" + struct.pack("<IQQQ", 3, 0, 3, 1) + b"a" + struct.pack("<IIQ", 9, 8, MAX_STRINGS), id="strings"
        ),
        pytest.param(
            b"GGUF" + struct.pack("<IQQQ", 3, 0, 3, 1) + b"a" + struct.pack("<IIQ", 9, 10, 2**36), id="numbers"
        ),
    ],
)
def test_files_that_claim_much_and_hold_nothing_are_refused_at_once(claimed):
    before = peak_bytes()
    with refused_at_once(), pytest.raises(ModelFileError):
        read_gguf(Held(claimed, size=2**40))
    assert peak_bytes() - before < MOST_BYTES


@pytest.mark.parametrize(
    "header",
    [
        pytest.param(
            {f"t{n}": {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]} for n in range(60_000)}, id="tensors"
        ),
        pytest.param({"__metadata__": {f"key{number}": "" for number in range(60_000)}}, id="notes"),
    ],
)
def test_more_tensors_and_notes_than_any_file_has_are_refused(header):
    held = Held(safetensors_bytes(header))
    with refused_at_once(), pytest.raises(ModelFileError, match="has more than 50,000 keys"):
        read_header(held)


@pytest.mark.parametrize(
    "filling", [b"[],", b'{"a":1},', b'"a":{},', b" ", b'"', b"\\u0041", b"\xf0\x9f\x98\x80"], ids=repr
)
@pytest.mark.parametrize("start", [b'{"a":[', b'{"__metadata__":{"a":"', b'{"a', b"{"], ids=repr)
def test_the_longest_header_takes_little_memory(start, filling):
    text = (start + filling * (MAX_HEADER_BYTES // len(filling)))[:MAX_HEADER_BYTES]
    before = peak_bytes()
    with refused_at_once(), pytest.raises(ModelFileError):
        read_header(Held(struct.pack("<Q", len(text)) + text))
    assert peak_bytes() - before < MOST_BYTES
