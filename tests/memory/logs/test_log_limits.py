"""Hostile, huge and random text: no crash, no hang, bounded memory."""

import random

import pytest
from effort import refused_at_once
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.errors import LogError
from planner.memory.logs.read import FORMATS, MAX_MEASURED, read_log
from planner.memory.logs.reading import (
    MAX_BYTES,
    MAX_LINE,
    MAX_MATCHED_LINES,
    LogText,
    decode_log,
)

_PIECES = [
    *(
        "Model loading took ",
        "GiB",
        " GiB for weights",
        "MiB / ",
        "MiB |",
        "|   0  NVIDIA L4   Off |",
        "\n",
        "\r",
        ",",
    ),
    *(" buffer size = ", "CUDA0 KV", "memory_breakdown_print: |   - ", "PyTorch CUDA memory summary, device ID 0"),
    *(
        "| Allocated memory      |",
        "allocated_bytes.all.peak",
        "reserved_bytes.all.peak",
        "'",
        '"',
        ": ",
        "{",
        "[",
        "}",
    ),
    *(
        "CUDA out of memory. Tried to allocate ",
        "GPU 0 has a total capacity of ",
        "Process 7 has ",
        " memory in use",
    ),
    *(
        "_mem_gpu_alloc_delta = ",
        "train",
        "MB",
        "GPU peak memory allocation: ",
        "peak_memory_alloc:",
        "# GPU blocks: ",
    ),
    *("KV cache size: ", " tokens", '"total_size"', '"allocated_size"', "memory.used [MiB]", "pid, ", "\x1b[32m"),
    *("0", "-7.83", "1,024", "99999999999999999999", ".", " ", "²", "٣"),
]


def _read(text):
    try:
        return read_log(text)
    except LogError:
        return None


@given(st.text(max_size=400))
def test_any_text_is_read_or_refused(text):
    _read(text)


@given(st.lists(st.sampled_from(_PIECES), max_size=60).map("".join))
@settings(max_examples=300)
def test_pieces_of_logs_in_any_order_are_read_or_refused(text):
    reading = _read(text)
    for item in reading.measured if reading else ():
        assert item.low_bytes <= item.bytes <= item.high_bytes
        assert item.line >= 1


@pytest.mark.fuzz
def test_many_pieces_of_logs_are_read_or_refused_soon():
    # Hypothesis takes ten times as long to make a text as it takes to read it, and seldom joins 30 pieces.
    source = random.Random(20)
    for _ in range(20_000):
        text = "".join(source.choices(_PIECES, k=source.randrange(source.choice((10, 60, 201)))))
        with refused_at_once(text):
            _read(text)


@pytest.mark.parametrize("name", FORMATS)
def test_each_reader_ends_on_what_it_does_not_know(name):
    assert list(FORMATS[name].read(LogText("nothing\nhere"))) == []


@pytest.mark.parametrize(
    "text",
    [
        "1" * MAX_BYTES,
        "GiB for weights\n" * 100_000,
        ("Model loading took " + "1," * 30_000 + "\n") * 200,
        "{" * MAX_BYTES,
        '[{"total_size":1,"allocated_size":' + "[]," * 400_000,
        '[{"total_size":1,"allocated_size":' + "1," * 2_000_000,
        '[{"total_size":1,"allocated_size":' + "[" * 100_000,
        " buffer size = \n" * 500_000,
        "CUDA out of memory. Tried to allocate " * 100_000,
    ],
    ids=["digits", "marks", "numbers", "braces", "lists", "values", "deep", "lines", "one-line"],
)
def test_hostile_text_takes_no_longer_than_it_is_long(text):
    with refused_at_once():
        assert _read(text) is None


def test_a_text_beyond_the_limit_is_refused():
    with pytest.raises(LogError, match="characters"):
        read_log(" " * (MAX_BYTES + 1))
    with pytest.raises(LogError, match="bytes"):
        decode_log(b" " * (MAX_BYTES + 1))


def test_what_is_left_out_of_a_very_long_log_is_said():
    line = "INFO Model loading took 1.00 GiB\n"
    reading = read_log(line * (MAX_MATCHED_LINES + 1))
    assert "too long" in reading.notes[0]
    wide = read_log((line[:-1] + " " * MAX_LINE + "\n") * 20)
    assert "too long" in wide.notes[0]
    assert read_log(line * 5).notes == ()


def test_amounts_are_bounded():
    text = "".join(f"(Worker_TP{rank} pid=1) INFO Model loading took 1.00 GiB\n" for rank in range(MAX_MEASURED + 50))
    assert len(read_log(text).measured) == MAX_MEASURED
