import pytest

from planner.errors import ModelFileError
from planner.trace.candidates import CandidateParameter, find_trace_candidates, runs_as_script

SOURCE = '''
"""What a person writes."""
import torch
from torch import nn

raise SystemExit("this file is read, never run")

class Helper:
    def run(self): ...

class Block(nn.Module):
    """A block.

    With more to say.
    """
    def __init__(self, width, bias=True, *rest, scale: float = 0.5, name, **more):
        ...
    def forward(self, x, mask=None): ...

class Deeper(Block):
    pass

class Odd(torch.jit.ScriptModule):
    pass

class Loop(Loop): ...

class Duck:
    def forward(self, /, x): ...

def make(width=8):
    """Make it."""
    return Block(width)

def _hidden(): ...

def example():
    if torch.cuda.is_available():
        return Block(3), (torch.zeros(2),)
    return None

async def later(): ...
'''


@pytest.fixture
def found(tmp_path):
    file = tmp_path / "net.py"
    file.write_text(SOURCE, encoding="utf-8")
    return {candidate.name: candidate for candidate in find_trace_candidates(file)}


def test_modules_and_functions_are_found_without_running_the_file(found):
    assert list(found) == ["Block", "Deeper", "Odd", "Duck", "make", "example", "later"]
    assert [candidate.kind for candidate in found.values()] == ["class"] * 4 + ["function"] * 3


def test_arguments_and_inputs_have_their_defaults(found):
    assert found["Block"].arguments == (
        CandidateParameter("width", None),
        CandidateParameter("bias", "True"),
        CandidateParameter("scale", "0.5"),
        CandidateParameter("name", None),
    )
    assert found["Block"].inputs == (CandidateParameter("x", None), CandidateParameter("mask", "None"))
    assert found["Block"].summary == "A block."
    assert found["Duck"].inputs == (CandidateParameter("x", None),)


def test_methods_inherited_within_the_file_count(found):
    assert found["Deeper"].arguments == found["Block"].arguments
    assert found["Deeper"].inputs == found["Block"].inputs
    assert found["Odd"].arguments == ()


def test_a_function_that_returns_a_pair_has_its_own_inputs(found):
    assert found["example"].returns_inputs
    assert not found["make"].returns_inputs
    assert found["make"].arguments == (CandidateParameter("width", "8"),)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"class A(\n", "is not Python: line 1, '(' was never closed"),
        (b"\0", "is not Python: source code string cannot contain null bytes"),
        (b"x = " + b"(" * 5000, "is not Python"),
        (b"#" * 2**21, "large"),
    ],
)
def test_a_file_that_is_not_python_is_an_error(tmp_path, content, reason):
    file = tmp_path / "net.py"
    file.write_bytes(content)
    with pytest.raises(ModelFileError) as error:
        find_trace_candidates(file)
    assert reason in error.value.message


def test_a_file_may_have_a_mebibyte(tmp_path):
    file = tmp_path / "net.py"
    file.write_bytes(b"#" * 2**20)
    assert find_trace_candidates(file) == ()
    file.write_bytes(b"#" * (2**20 + 1))
    with pytest.raises(ModelFileError, match="too large"):
        find_trace_candidates(file)


def test_a_missing_file_is_an_error(tmp_path):
    with pytest.raises(ModelFileError, match="cannot be read"):
        find_trace_candidates(tmp_path / "none.py")


def test_syntax_warnings_are_not_shown(tmp_path):
    file = tmp_path / "net.py"
    file.write_text("def make():\n    return '\\d'\n", encoding="utf-8")
    assert [candidate.name for candidate in find_trace_candidates(file)] == ["make"]


GUARD = 'if __name__ == "__main__":\n    main()\n'


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("def main():\n    loss.backward()\n\n" + GUARD, True),
        ("class Net(nn.Module): ...\nfor batch in batches:\n    optimizer.step()\n", True),
        ("class Net(nn.Module): ...\nL.Trainer().fit(Net())\n", True),
        ("model = load()\nprint(model(x))\n", True),
        ("class Net(nn.Module): ...\n\ndef main():\n    print(Net()(x))\n\n" + GUARD, False),  # a demonstration
        ("class Net(nn.Module): ...\n\ndef step(net):\n    loss.backward()\n", False),
        ('"""Only words."""\nWIDTH = 8\nif WIDTH > 4:\n    DEPTH = 2\n', False),
    ],
)
def test_a_script_is_known_by_what_it_runs(tmp_path, source, expected):
    file = tmp_path / "train.py"
    file.write_text(source)
    assert runs_as_script(file) is expected
