import pytest

from planner.errors import SpecError
from planner.trace.notation import arguments_text, parse_arguments
from planner.trace.request import Argument


def test_arguments_are_read_and_written():
    text = "width=64, bias=False, name='a, b', scale=0.5, sizes=(1, 2), none=None, sign=-1"
    arguments = parse_arguments(text)
    assert arguments[0] == Argument(name="width", value=64)
    assert arguments[4].value == (1, 2)
    assert arguments_text(arguments) == text
    assert parse_arguments(" ") == ()
    assert parse_arguments("sizes=[1, 2]")[0].value == (1, 2)


@pytest.mark.parametrize("text", ["64", "width=", "f(x)=3", "width=torch.float32", "**more", "a={}", "a=1)(b=2", "x\0"])
def test_what_is_not_understood_is_said(text):
    with pytest.raises(SpecError) as error:
        parse_arguments(text)
    assert "width=64" in error.value.hint
