"""YAML is read within limits, or refused with the place of what is wrong."""

import pytest
from refusals import refusal

from planner.parsing.yaml_text import parse_yaml


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
