"""Texts from anywhere are read within limits, or refused with the place of what is wrong."""

import gzip
import io
import json
import struct
import zipfile
from math import inf

import pytest

from planner.parsing import MOST_DEPTH, json_values, parse_json, parse_yaml, unpack_gzip, unpack_zip
from planner.storage import UnreadableFileError


def refusal(parse, *arguments, **options):
    with pytest.raises(UnreadableFileError) as refused:
        parse(*arguments, **options)
    assert refused.value.hint
    return refused.value.reason


def test_json_in_bytes_or_text_is_read():
    assert parse_json(b'\xef\xbb\xbf{"a": [1, 2.5, null, true, "\\u00e9"]}') == {"a": [1, 2.5, None, True, "é"]}
    assert parse_json("[-1e29]") == [-1e29]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"\xff", "is not JSON: it is not text in UTF-8"),
        (b'{"a":\n 1,}', "is not JSON: Expecting property name enclosed in double quotes in line 2"),
        (b"", "is not JSON: Expecting value in line 1"),
        (b"[" * 100_000, "is nested too deep: more than 64 levels"),
        (b"[" * 65 + b"]" * 65, "is nested too deep: more than 64 levels"),
        (b'{"cards": [{"memory_bytes": %d}]}' % 10**30, "cards.0.memory_bytes: an integer of more than 30 digits"),
        (b'{"a": {"b": ' + b"9" * 4301 + b"}}", "a.b: a number of too many digits is not a number below 10³⁰"),
        (b'{"a": -' + b"9" * 4301 + b"}", "a: a number of too many digits is not a number below 10³⁰"),
        (b'{"a": 1' + b"0" * 4000 + b"}", "a: an integer of more than 30 digits is not a number below 10³⁰"),
        (b'{"a": [1e31]}', "a.0: 1e+31 is not a number below 10³⁰"),
        (b"[NaN]", "0: nan is not a number below 10³⁰"),
        (b"[Infinity]", "0: a number of too many digits"),
        (b"1e400", "a number of too many digits"),
        (b'{"deep": ' + b"[" * 500 + b"]" * 500 + b', "a": 1e99}', "a: 1e+99"),
    ],
)
def test_json_beyond_a_limit_is_refused_with_its_place(text, reason):
    assert refusal(parse_json, text).startswith(reason)


def test_json_of_the_greatest_depth_is_read():
    text = "[" * MOST_DEPTH + "]" * MOST_DEPTH
    assert json.dumps(parse_json(text)) == text


def test_json_of_too_many_values_is_refused_before_it_takes_memory():
    assert parse_json("[1,2,3]", most_values=3) == [1, 2, 3]
    assert refusal(parse_json, "[1,2,3,4]", most_values=3) == "has more than 3 values"


def test_repeated_keys_are_refused_on_request():
    assert parse_json('{"a": 1, "a": 2}') == {"a": 2}
    assert parse_json('{"a": 1, "b": 2}', unique_keys=True) == {"a": 1, "b": 2}
    assert refusal(parse_json, '{"a": {"b": 1, "b": 2}}', unique_keys=True) == "the key 'b' occurs twice"
    too_long = '{"a": 1, "b": ' + "9" * 5000 + "}"
    assert refusal(parse_json, too_long, unique_keys=True).startswith("b: a number of too many digits")


def test_infinity_is_read_where_it_is_allowed():
    assert parse_json('{"limit": [0.0, Infinity]}', allow_infinity=True) == {"limit": [0.0, inf]}
    assert refusal(parse_json, '{"limit": [-Infinity]}', allow_infinity=True).startswith("limit.0")
    assert refusal(parse_json, '{"limit": NaN}', allow_infinity=True).startswith("limit: nan")


def test_half_of_a_character_is_refused_unless_it_is_allowed():
    assert parse_json(r'{"a": "\ud83d\ude00"}') == {"a": "\U0001f600"}
    assert refusal(parse_json, r'{"a": ["\uD800"]}') == "a.0: has half of a character (a surrogate)"
    assert refusal(parse_json, '{"\udc80": NaN}') == r"\udc80: nan is not a number below 10³⁰"
    assert refusal(parse_json, '{"\udc80": 1}') == "has half of a character (a surrogate)"
    assert parse_json(r'["\udc80"]', allow_surrogates=True) == ["\udc80"]


def test_consecutive_json_values_are_read_up_to_the_first_that_is_refused():
    assert list(json_values(' [1], {"a": 2}\n3 ')) == [[1], {"a": 2}, 3]
    assert list(json_values("[1] [1e40] [2]")) == [[1]]
    assert list(json_values("[1] [2")) == [[1]]
    assert list(json_values("[1]" + "[" * 100_000)) == [[1]]
    assert list(json_values("")) == []
    assert list(json_values("{}" * 1_000_001)) == []


def test_yaml_is_read():
    assert parse_yaml(b"\xef\xbb\xbfa: [1, 2.5]\nb:\n  c: x\n") == {"a": [1, 2.5], "b": {"c": "x"}}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"\xff", "is not YAML: it is not text in UTF-8"),
        (b"a: b: c", "is not YAML: mapping values are not allowed"),
        (b"a: &x [1]\nb: *x", "is not YAML: line 2 uses the reference *x"),
        (b"a: !!python/object:os.system x", "is not YAML: line 1 has a tag"),
        (b"a: " + b"[" * 40 + b"]" * 40, "is not YAML: line 1 is nested too deep"),
        (b"- 1\n" * 20_001, "is not YAML: line 19,999 is nested too deep, or the file is too large"),
        (b"a: 1\nb: 2\na: 3", "the key 'a' occurs a second time in line 3"),
        (b"a: 2026-02-30", "is not YAML: day is out of range"),
        (b"a:\n  b: 1.0e+40", "a.b: 1e+40 is not a number below 10³⁰"),
        (b"a: " + b"9" * 5000, "is not YAML: Exceeds the limit"),
        (b"a: .nan", "a: nan is not a number"),
    ],
)
def test_yaml_beyond_a_limit_is_refused_with_its_place(text, reason):
    assert refusal(parse_yaml, text).startswith(reason)


def test_yaml_that_its_library_finds_nested_too_deep_is_refused():
    # Newer versions of libyaml have a limit of their own, in other words.
    said = refusal(parse_yaml, b"[" * 50_000)
    assert "is not YAML: " in said
    assert "nest" in said


def packed(**members: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def test_the_one_file_of_an_archive_comes_out():
    assert unpack_zip(packed(aws=b"a,b\n1,2\n"), "aws", 100) == b"a,b\n1,2\n"


@pytest.mark.parametrize(
    "content",
    [b"", b"no zip", b"PK\x03\x04 cut", packed(aws=b"x" * 1000)[:-30]],
    ids=["empty", "no zip", "start alone", "end cut off"],
)
def test_what_is_no_archive_is_refused(content):
    assert refusal(unpack_zip, content, "aws", 10_000).startswith("cannot be unpacked (")


def test_other_files_in_an_archive_are_refused():
    assert refusal(unpack_zip, packed(aws=b"x", more=b"y"), "aws", 9) == "contains 2 files instead of aws"
    assert refusal(unpack_zip, packed(**{"../aws": b"x"}), "aws", 9) == "contains ../aws instead of aws"
    assert refusal(unpack_zip, packed(), "aws", 9) == "contains 0 files instead of aws"


def test_a_bomb_is_not_unpacked():
    bomb = packed(aws=b"0" * 5_000_000)
    assert len(bomb) < 10_000
    assert refusal(unpack_zip, bomb, "aws", 1_000_000) == "unpacks to more than 1,000,000 bytes"
    assert refusal(unpack_gzip, gzip.compress(bytes(5_000_000)), 999) == "unpacks to more than 999 bytes"


def test_a_bomb_that_lies_about_its_size_is_not_unpacked_either():
    bomb = bytearray(packed(aws=b"0" * 5_000_000))
    for signature, offset in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        at = bomb.index(signature) + offset
        bomb[at : at + 4] = struct.pack("<I", 10)
    refusal(unpack_zip, bytes(bomb), "aws", 1_000_000)


def test_a_damaged_file_is_refused():
    damaged = bytearray(packed(aws=bytes(range(256)) * 40))
    damaged[60] ^= 0xFF
    assert refusal(unpack_zip, bytes(damaged), "aws", 100_000).startswith("cannot be unpacked")
    assert refusal(unpack_gzip, gzip.compress(b"text")[:-5], 100).startswith("cannot be unpacked")


def test_a_file_behind_a_password_is_refused():
    locked = bytearray(packed(aws=b"x"))
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        locked[locked.index(signature) + offset] |= 1
    assert refusal(unpack_zip, bytes(locked), "aws", 100).startswith("cannot be unpacked")


def test_what_a_gzip_file_holds_comes_out():
    assert unpack_gzip(gzip.compress(b"text"), 4) == b"text"
