"""Command lines that start a script."""

import os
import re

import pytest

from planner.errors import SpecError
from planner.trace.launcher import (
    command_words,
    join_words,
    launched_ranks,
    launcher_environment,
    launcher_notes,
    parse_command,
    split_words,
    traced_ranks,
)
from planner.trace.request import Target, TraceParallel, TraceRequest


def command(line: str) -> Target:
    return parse_command(line.split())


@pytest.mark.parametrize(
    ("line", "kind", "place", "arguments", "ranks"),
    [
        ("train.py", "script", "train.py", (), 1),
        ("python train.py --lr 0.1", "script", "train.py", ("--lr", "0.1"), 1),
        ("python3.11 -u runs/train.py other.py", "script", "runs/train.py", ("other.py",), 1),
        ("python -m package.train --x", "program", "package.train", ("--x",), 1),
        ("torchrun --nproc_per_node=8 train.py --x 1", "script", "train.py", ("--x", "1"), 8),
        ("torchrun --nnodes 2 --nproc-per-node 4 train.py", "script", "train.py", (), 8),
        ("torchrun --nnodes=1:4 --nproc_per_node=gpu train.py", "script", "train.py", (), 4),
        ("torchrun --nproc_per_node 2 -m package.train", "program", "package.train", (), 2),
        ("python -m torch.distributed.run --nproc_per_node=4 train.py", "script", "train.py", (), 4),
        ("accelerate launch --config_file a.yaml --num_processes 2 train.py", "script", "train.py", (), 2),
        ("accelerate launch --num_processes 2 --module package.train", "program", "package.train", (), 2),
        ("deepspeed --num_gpus=4 train.py --deepspeed", "script", "train.py", ("--deepspeed",), 4),
        ("CUDA_VISIBLE_DEVICES=0,1 python train.py", "script", "train.py", (), 1),
    ],
)
def test_what_a_command_line_runs(line, kind, place, arguments, ranks):
    target = command(line)
    assert (target.kind, target.place, target.command_arguments) == (kind, place, arguments)
    assert launched_ranks(target) == ranks


@pytest.mark.parametrize(
    "line", ["torchrun --nproc_per_node=8", "python", "python -m", "python -m torch.distributed.run"]
)
def test_a_command_line_without_a_script_says_so(line):
    with pytest.raises(SpecError, match="names no script") as caught:
        command(line)
    assert "torchrun" in caught.value.hint


def test_the_first_rank_has_its_environment():
    variables = launcher_environment(command("torchrun --nproc_per_node=8 train.py"))
    assert variables["WORLD_SIZE"] == "8"
    assert variables["RANK"] == variables["LOCAL_RANK"] == "0"
    sizes = launcher_environment(command("torchrun --nnodes=2 --nproc_per_node=4 train.py"))
    assert (sizes["WORLD_SIZE"], sizes["LOCAL_WORLD_SIZE"], sizes["GROUP_WORLD_SIZE"]) == ("8", "4", "2")
    assert launcher_environment(command("torchrun train.py"))["WORLD_SIZE"] == "1"
    assert launcher_environment(command("python -m torch.distributed.launch train.py"))["WORLD_SIZE"] == "1"
    assert launcher_environment(command("python train.py")) == {}


def test_what_is_set_before_or_by_a_launcher_reaches_the_script():
    assert launcher_environment(command("A=1 B=x=y python train.py")) == {"A": "1", "B": "x=y"}
    launched = command("accelerate launch --mixed_precision bf16 --gradient_accumulation_steps=4 train.py")
    assert launcher_environment(launched) == {
        "ACCELERATE_MIXED_PRECISION": "bf16",
        "ACCELERATE_GRADIENT_ACCUMULATION_STEPS": "4",
    }


def test_what_has_no_effect_is_named():
    assert launcher_notes(command("python -u train.py")) == []
    assert launcher_notes(command("train.py")) == []
    assert launcher_notes(command("A=1 torchrun --nproc_per_node=2 --standalone --rdzv-backend=c10d train.py")) == [
        "One of 2 ranks is traced; the others are not started.",
        "Options of torchrun without effect on the trace: --standalone --rdzv_backend=c10d.",
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "torchrun --nproc_per_node 2 \\\n  train.py --lr 0.1\n",
            ["torchrun", "--nproc_per_node", "2", "train.py", "--lr", "0.1"],
        ),
        ("python 'my train.py' --note \"a; b | c\"", ["python", "my train.py", "--note", "a; b | c"]),
        ("train.py --tag a#1", ["train.py", "--tag", "a#1"]),
        ("train.py ~/data --out=~", ["train.py", os.path.expanduser("~/data"), "--out=~"]),
        ("", []),
    ],
)
def test_a_pasted_command_line_is_divided_as_in_a_shell(text, words):
    assert list(split_words(text)) == words
    assert split_words(join_words(words)) == tuple(words)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("python train.py > log.txt", "'>' is for a shell"),
        ("cd runs && python train.py", "'&&' is for a shell"),
        ("python train.py | tee log", "'|' is for a shell"),
        ("python train.py 'a", "not closed"),
    ],
)
def test_what_only_a_shell_can_do_is_refused(text, problem):
    with pytest.raises(SpecError, match=re.escape(problem)):
        split_words(text)


@pytest.mark.parametrize(
    "line", ["train.py", "python -m package.train --x", "torchrun --nproc_per_node=8 train.py --x 1"]
)
def test_a_script_gives_its_command_line_again(line):
    assert command_words(command(line)) == tuple(line.split())


def test_one_of_the_launched_or_requested_ranks_is_traced():
    assert traced_ranks(TraceRequest(target=command("torchrun --nproc_per_node=8 train.py"))) == 8
    parallel = TraceParallel(ranks=4, strategy="ddp")
    assert traced_ranks(TraceRequest(target=Target(kind="file", place="net.py", name="Net"), parallel=parallel)) == 4
