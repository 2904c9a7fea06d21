"""Texts from anywhere are read within limits, or refused with the place of what is wrong."""

import json
from math import inf

import pytest
from refusals import refusal

from planner.parsing import MOST_DEPTH, flattened, json_values, parse_json


def test_json_in_bytes_or_text_is_read():
    assert parse_json(b'\xef\xbb\xbf{"a": [1, 2.5, null, true, "\\u00e9"]}') == {"a": [1, 2.5, None, True, "é"]}
    assert parse_json("[-1e29]") == [-1e29]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"\xff", "is not JSON: it is not text in UTF-8"),
        (b'{"a":\n 1 "b"}', "is not JSON: a comma is missing in line 2, column 4"),
        (b'["a\nb"]', "is not JSON: there is a mistake in line 1, column 4"),
        (b" ", "is not JSON: it is empty"),
        (b"model: gpt2", "is not JSON: it starts with other text"),
        (b'{"a":\n1,\n', "is not JSON: it ends too early, in line 3"),
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


def test_nested_fields_have_their_path():
    plan = {"gpu": "rtx-4090", "model": {"id": "x", "trace": None}, "corrections": {}, "words": ["a", 1]}
    assert dict(flattened(plan)) == {"gpu": "rtx-4090", "model.id": "x", "model.trace": None, "words": ["a", 1]}
