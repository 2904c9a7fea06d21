"""Hostile, huge and random text: no crash, no hang, bounded memory."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.errors import LogError
from planner.memory.logs.read import FORMATS, MAX_MEASURED, read_log
from planner.memory.logs.text import (
    MAX_BYTES,
    MAX_LINE,
    MAX_MATCHED_LINES,
    LogText,
    decode_log,
    exact_amount,
    rounded_amount,
    truncated_amount,
)
from planner.units import GIB, MIB

_PIECES = st.sampled_from(
    [
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
)


def _read(text):
    try:
        return read_log(text)
    except LogError:
        return None


@given(st.text(max_size=400))
def test_any_text_is_read_or_refused(text):
    _read(text)


@given(st.lists(_PIECES, max_size=60).map("".join))
@settings(max_examples=300)
def test_pieces_of_logs_in_any_order_are_read_or_refused(text):
    reading = _read(text)
    for item in reading.measured if reading else ():
        assert item.low_bytes <= item.bytes <= item.high_bytes
        assert item.line >= 1


@pytest.mark.fuzz
@given(st.lists(_PIECES, max_size=200).map("".join))
@settings(max_examples=20_000, deadline=1000)
def test_many_pieces_of_logs(text):
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
    started = time.process_time()
    assert _read(text) is None
    assert time.process_time() - started < 10


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


def test_lines_have_their_numbers_and_colours_are_taken_off():
    log = LogText("first\n\x1b[32mINFO\x1b[0m Model loading took\r1 GiB\n\nlast Model loading took")
    lines = list(log.lines_with("Model loading took"))
    assert [(line.number, line.text) for line in lines] == [
        (2, "INFO Model loading took 1 GiB"),
        (4, "last Model loading took"),
    ]
    assert log.before(lines[0]) == "first"
    assert LogText("mark").before(next(LogText("mark").lines_with("mark"))) == ""
    assert list(log.after(lines[1], 3)) == []
    assert [line.number for line in LogText("a\nb\nc").after(next(LogText("a\nb\nc").lines_with("a")), 1)] == [2]


def test_a_quoted_line_is_short():
    item = read_log("Model loading took 1.00 GiB" + "x" * 1_000).measured[0]
    assert item.text.endswith("…")


@pytest.mark.parametrize("data", [b"\x80\x04\x95", b"PK\x03\x04rest"])
def test_pickles_are_never_read(data):
    with pytest.raises(LogError, match="pickle") as error:
        decode_log(data)
    assert "json.dump" in error.value.hint


def test_files_of_powershell_and_of_no_encoding_are_text():
    assert decode_log("Größe".encode("utf-16")) == "Größe"
    assert decode_log(b"\xef\xbb\xbfa\xff") == "a\ufffd"


def test_amounts_know_what_their_digits_leave_open():
    assert rounded_amount("1.50", GIB) == (GIB * 3 // 2, round(1.495 * GIB), round(1.505 * GIB))
    assert rounded_amount("1.5", GIB, 2) == rounded_amount("1.50", GIB)
    assert rounded_amount("-0.05", GIB).bytes < 0
    assert truncated_amount("1,000", MIB) == (1000 * MIB, 1000 * MIB, 1001 * MIB - 1)
    assert exact_amount(7) == (7, 7, 7)
