"""Inputs as people write them."""

import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import SpecError
from planner.trace.notation import (
    arguments_text,
    assumed_values_text,
    input_text,
    parse_arguments,
    parse_assumed_values,
    parse_input,
)
from planner.trace.request import DTYPES, Argument, AssumedValue, Input, ListInput, PlainInput, TensorInput


def tensor(*shape, dtype="float32", high=None):
    return TensorInput(shape=shape, dtype=dtype, high=high)


def nest(kind, *items):
    return ListInput(kind=kind, items=items)


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("x=8x3x224x224:float32", "x", tensor(8, 3, 224, 224)),
        ("8x128", "", tensor(8, 128)),
        (" x = 8 × 128 : bf16 ", "x", tensor(8, 128, dtype="bfloat16")),
        ("ids=4x512:int64<50257", "ids", tensor(4, 512, dtype="int64", high=50257)),
        ("ids=4x512:long", "ids", tensor(4, 512, dtype="int64")),
        ("mask=8:bool", "mask", tensor(8, dtype="bool")),
        ("t=:float32", "t", tensor()),
        ("none=0x4", "none", tensor(0, 4)),
        ("state=(8x128:float32,8x128:float32)", "state", nest("tuple", tensor(8, 128), tensor(8, 128))),
        ("[8x3, (4x4,), []]", "", nest("list", tensor(8, 3), nest("tuple", tensor(4, 4)), nest("list"))),
        ("scale=0.5", "scale", PlainInput(value=0.5)),
        ("count=8", "count", PlainInput(value=8)),
        ("low=-1e-3", "low", PlainInput(value=-1e-3)),
        ("cache=None", "cache", PlainInput(value=None)),
        ("deep=True", "deep", PlainInput(value=True)),
        ("deep=true", "deep", PlainInput(value=True)),
        ("cache= null", "cache", PlainInput(value=None)),
        ("ids=4x512:i64<100", "ids", tensor(4, 512, dtype="int64", high=100)),
        ("kind='a, (b)= c'", "kind", PlainInput(value="a, (b)= c")),
        ('"=="', "", PlainInput(value="==")),
        ("pair=(8x3, 2, 'x')", "pair", nest("tuple", tensor(8, 3), PlainInput(value=2), PlainInput(value="x"))),
    ],
)
def test_inputs_are_parsed(text, name, value):
    parsed = parse_input(text)
    assert parsed == Input(name=name, value=value)
    # 1, 1.0 and True are equal, and are not the same input.
    assert repr(parsed) == repr(Input(name=name, value=value))
    assert repr(parse_input(input_text(parsed))) == repr(parsed)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "it is incomplete"),
        ("x=", "it is incomplete"),
        ("x=8y3", "'8y3' is neither a shape nor a value"),
        ("x=8x", "'8x' is neither"),
        ("x=8x3:float33", "there is no element type 'float33'"),
        ("x=8x3:int64<0", "upper bound of random integers must be at least 1"),
        ("x=-8x3", "'-8x3' is neither"),
        ("x=(8x3", "it is incomplete"),
        ("x=(8x3;4)", "'8x3;4' is neither"),
        ("x=(8x3 (4x4))", "a comma or ) is missing"),
        ("x=8x3)", "')' is unexpected"),
        ("x=(8x3]", "a comma or ) is missing"),
        ("x=(,)", "',' is neither"),
        ("x='open", '"\'" is neither'),
        ("x={1: 2}", "is neither"),
        ("x=1j", "'1j' is neither"),
        ("x=" + "(" * 30, "nested more than 20 deep"),
        ("x=" + "9" * 5000, "is neither"),
        ("x=" + "9" * 40 + "x1", "is neither"),
        ("x=b'text'", "is"),
    ],
)
def test_an_invalid_input_has_a_reason(text, reason):
    with pytest.raises(SpecError, match="is not valid: ") as caught:
        parse_input(text)
    assert reason in caught.value.reason
    assert caught.value.hint


tensors = st.builds(
    TensorInput,
    shape=st.lists(st.integers(0, 10**6), max_size=5).map(tuple),
    dtype=st.sampled_from(DTYPES),
    high=st.none() | st.integers(1, 10**6),
)
numbers = st.integers(-(10**12), 10**12) | st.floats(allow_nan=False, allow_infinity=False)
plain = st.builds(PlainInput, value=st.none() | st.booleans() | numbers | st.text(max_size=20))
nests = st.recursive(
    tensors | plain,
    lambda inner: st.builds(
        ListInput, kind=st.sampled_from(("tuple", "list")), items=st.lists(inner, max_size=3).map(tuple)
    ),
    max_leaves=8,
)


@given(st.builds(Input, name=st.from_regex(r"[a-z_]\w{0,8}", fullmatch=True) | st.just(""), value=nests))
def test_the_text_of_an_input_parses_to_the_same_input(one):
    assert repr(parse_input(input_text(one))) == repr(one)


def test_arguments_are_read_and_written():
    text = "width=64, bias=False, name='a, b', scale=0.5, sizes=(1, 2), none=None, sign=-1"
    arguments = parse_arguments(text)
    assert arguments[0] == Argument(name="width", value=64)
    assert arguments[4].value == (1, 2)
    assert arguments_text(arguments) == text
    assert parse_arguments(" ") == ()
    assert parse_arguments("sizes=[1, 2]")[0].value == (1, 2)


@pytest.mark.parametrize("text", ["64", "width=", "f(x)=3", "width=torch.float32", "**more", "a={}", "a=1)(b=2", "x\0"])
def test_an_invalid_argument_has_a_reason(text):
    with pytest.raises(SpecError) as error:
        parse_arguments(text)
    assert "width=64" in error.value.hint


@pytest.mark.parametrize("parse", [parse_arguments, parse_input])
def test_what_is_typed_gets_no_warning_of_python(parse):
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        with pytest.raises(SpecError):
            parse("a=0xfor x")
    assert not warned


def test_assumed_values_are_read_and_written():
    values = parse_assumed_values(" mask=0.15, solver.py:42=30 ")
    assert values == (AssumedValue(name="mask", value=0.15), AssumedValue(name="solver.py:42", value=30))
    assert assumed_values_text(values) == "mask=0.15, solver.py:42=30"


@pytest.mark.parametrize("text", ["mask", "mask=much", "masks=0.5", "mask=-1"])
def test_an_invalid_assumed_value_has_a_hint(text):
    with pytest.raises(SpecError) as error:
        parse_assumed_values(text)
    assert error.value.hint
    assert parse_assumed_values("") == ()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("mask", "not NAME=VALUE"),
        ("mask=many", "not a number"),
        ("speed=3", "neither a source line"),
        ("mask=-1", "least 0"),
    ],
)
def test_wrong_assumed_values_say_why(text, problem):
    with pytest.raises(SpecError, match=problem):
        parse_assumed_values(text)
