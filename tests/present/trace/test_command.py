"""The trace of a script as a command, which the command line reads again."""

import shlex

import pytest

from planner.cli.trace.command import _target_of_command, make_parser
from planner.cli.trace.options import request_from_arguments
from planner.plan.trace_request import operator_fields
from planner.present.trace.command import command_text, shell_command
from planner.trace.launcher import parse_command
from planner.trace.notation import parse_assumed_values
from planner.trace.request import TraceRequest

LINES = (
    "train.py",
    "train.py --lr 0.1",
    "torchrun --nproc_per_node=2 train.py --note 'two words'",
    "-m package.train",
    "python -m package.train --x 1",
)


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize(
    "fields",
    [
        {"device": "cuda"},
        {"device": "cpu", "steps": 3, "assume": parse_assumed_values("mask=0.5, train.py:3=2")},
    ],
)
def test_the_command_line_reads_the_same_request(line, fields, catalog, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("")
    gpu = catalog.hardware.gpu("rtx-4090")
    operators = operator_fields(gpu) if fields["device"] == "cuda" else {}
    asked = TraceRequest(target=parse_command(shlex.split(line)), task="training", **operators | fields)
    words = shlex.split(shell_command(asked, gpu))[2:]
    end = words.index("--") if "--" in words else len(words)
    arguments = make_parser().parse_args(words[:end])
    target = _target_of_command(arguments, words[end + 1 :], catalog.models)
    read = request_from_arguments(arguments, target, gpu)
    assert arguments.gpu == "rtx-4090"
    assert read == asked


def test_a_script_is_named_from_its_working_folder():
    target = parse_command(("torchrun", "/home/me/runs/train.py"))
    request = TraceRequest(target=target.evolve(folder="/home/me/my runs"), task="training")
    assert (
        shell_command(request, None) == "cd '/home/me/my runs' && gpu-planner trace -- torchrun /home/me/runs/train.py"
    )
    inside = request.evolve(target=target.evolve(folder="/home/me"))
    assert shell_command(inside, None) == "cd /home/me && gpu-planner trace -- torchrun runs/train.py"
    assert command_text(inside.target) == "torchrun runs/train.py"
