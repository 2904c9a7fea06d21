"""Evaluation loops of scripts end once their passes repeat, and only then."""

import pytest
from scripted import NET, peak_bytes, real_peak_bytes, script, traced

TRAINING = """
optimizer = torch.optim.Adam(net.parameters())
for number in range(3):
    evaluate()
    loss = net(torch.randn(32, 64)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
EVALUATION = """
import sys
passes = 0
@torch.no_grad()
def evaluate():
    global passes
    net.{mode}()
    losses, kept, rows = torch.zeros(50), [], torch.zeros(4000, 64)
    for number in range(int(sys.argv[1])):
        passes += 1
        output = net({input})
        losses[number % 50] = output.square().mean().item()
        {after}
    else:
        print("mean", losses.mean())
    net.train()
    if kept:
        torch.cat([piece.repeat(20, 1) for piece in kept])
"""


def evaluating(mode="eval", given="torch.randn(4000, 64)", after="pass"):
    """Return a script that evaluates before each step."""
    return NET + EVALUATION.format(mode=mode, input=given, after=after) + TRAINING


def ended_loops(recording):
    """Return the notes on loops that were ended."""
    return [note for note in recording.notes if "evaluation loop" in note]


def test_an_evaluation_without_end_ends_with_the_peak_of_a_short_one(tmp_path):
    real = real_peak_bytes(script(tmp_path, evaluating(), "12"))
    recording = traced(script(tmp_path, evaluating(), str(10**9)))
    assert abs(peak_bytes(recording) - real) <= 64
    (note,) = ended_loops(recording)
    assert "at train.py:13 was ended after 8 passes in a row" in note


@pytest.mark.parametrize(
    "options",
    [
        {"after": "kept.append(output)"},  # what is kept grows
        {"given": "rows[:passes * 100]"},  # shapes change
        {"mode": "train"},  # it may collect what is trained on
        {},  # it is over by itself after the last pass that counts
    ],
    ids=["keeps its outputs", "changes shapes", "in training mode", "too short"],
)
def test_a_loop_whose_passes_may_differ_runs_to_its_end(tmp_path, options):
    passes = 12 if options else 8
    source = evaluating(**options).replace("range(3)", "range(1)") + f"assert passes == {passes}\n"
    request = script(tmp_path, source, str(passes))
    recording = traced(request)
    assert not ended_loops(recording)
    assert abs(peak_bytes(recording) - real_peak_bytes(request)) <= 64


def test_what_a_generator_reads_is_not_ended_before_its_caller(tmp_path):
    source = evaluating(given="next(batches)").replace("    for number", "    batches = endless()\n    for number")
    endless = "def endless():\n    for _ in range(20):\n        yield torch.randn(4000, 64)\n"
    recording = traced(script(tmp_path, endless + source, "20"))
    (note,) = ended_loops(recording)
    assert "train.py:17" in note
