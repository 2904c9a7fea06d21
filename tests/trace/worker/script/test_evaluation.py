"""Evaluation loops of scripts are shortened once their passes repeat, and only then."""

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
def keeper():
    arrays = []
    def keep(net, array):
        arrays.append(array)
    return keep
keep = keeper()
@torch.no_grad()
def evaluate():
    global passes
    net.{mode}()
    losses, kept, pseudo, rows = torch.zeros(50), [], [], torch.zeros(4000, 64)
    for number in range(int(sys.argv[1])):
        passes += 1
        output = net({input})
        losses[number % 50] = output.square().mean().item()
        {after}
    else:
        print("mean", losses.mean())
    net.train()
    if pseudo:
        kept.append(torch.tensor(pseudo)[:, None].float())
    if kept:
        torch.cat([piece.repeat(20, 1) for piece in kept])
"""


def evaluating(mode="eval", given="torch.randn(4000, 64)", after="pass"):
    """Return a script that evaluates before each step."""
    return NET + EVALUATION.format(mode=mode, input=given, after=after) + TRAINING


def ended_loops(recording):
    """Return the notes on loops that were ended."""
    return [note for note in recording.notes if "evaluation loop" in note]


@pytest.mark.parametrize(
    "after",
    [
        "pass",
        "kept.append(losses[0].item())",  # a number for each pass, as for a mean
        "if number == int(sys.argv[1]) - 1: rows = torch.zeros(9000, 64)",  # the last pass does more
    ],
    ids=["keeps nothing", "gathers numbers", "ends larger"],
)
def test_an_evaluation_without_end_has_the_peak_of_a_short_one(tmp_path, after):
    source = evaluating(after=after).replace("torch.cat([piece.repeat(20, 1) for piece in kept])", "pass")
    real = real_peak_bytes(script(tmp_path, source, "12"))
    recording = traced(script(tmp_path, source, str(10**9)))
    assert abs(peak_bytes(recording) - real) <= 64
    (note,) = ended_loops(recording)
    assert "at train.py:19 was shortened: after 8 passes in a row" in note


@pytest.mark.parametrize(
    "options",
    [
        {"after": "kept.append(output)"},  # what is kept grows
        {"after": "kept.append(torch.from_numpy(output.numpy()))"},  # arrays are kept, which no ledger sees
        {"after": "pseudo.extend(output.argmax(1).tolist())"},  # it may train on what it predicts
        {"after": "keep(net, output.argmax(1).numpy())"},  # kept where only a function has it
        {"given": "rows[:passes * 100]"},  # shapes change
        {"mode": "train"},  # it may collect what is trained on
        {},  # it is over by itself after the last pass that counts
    ],
    ids=["tensors", "arrays", "predictions", "arrays elsewhere", "changes shapes", "in training mode", "too short"],
)
def test_a_loop_whose_passes_may_differ_runs_to_its_end(tmp_path, options):
    passes = 12 if options else 8
    source = evaluating(**options).replace("range(3)", "range(1)") + f"assert passes == {passes}\n"
    request = script(tmp_path, source, str(passes), unknown_values="typical")
    recording = traced(request)
    assert not ended_loops(recording)
    assert abs(peak_bytes(recording) - real_peak_bytes(request)) <= 64


def test_what_a_generator_reads_is_not_ended_before_its_caller(tmp_path):
    source = evaluating(given="next(batches)").replace("    for number", "    batches = endless()\n    for number")
    endless = "def endless():\n    for _ in range(20):\n        yield torch.randn(4000, 64)\n"
    recording = traced(script(tmp_path, endless + source, "20"))
    (note,) = ended_loops(recording)
    assert "train.py:23" in note


def test_passes_over_data_of_other_shapes_are_run_however_late_they_come(tmp_path):
    lengths = "[1000] * 20 + [4000] + [2000] * 40 + [3000]"
    loop = f"enumerate(torch.randn(length, 64) for length in {lengths})"
    source = evaluating(given="rows").replace("number in range(int(sys.argv[1]))", f"number, rows in {loop}")
    source = source.replace("range(3)", "range(1)")
    real = real_peak_bytes(script(tmp_path, source))
    recording = traced(script(tmp_path, source + "assert passes == 8 + 1 + 8 + 1\n"))
    assert len(ended_loops(recording)) == 1
    assert abs(peak_bytes(recording) - real) <= 64


def test_an_iterator_with_a_name_is_left_to_the_script(tmp_path):
    source = evaluating().replace("in range(int(sys.argv[1]))", "in numbers").replace("range(3)", "range(1)")
    request = script(tmp_path, f"numbers = iter(range(40))\n{source}assert passes == 40\n")
    assert not ended_loops(traced(request))


def test_what_a_text_stands_for_is_not_known_so_that_its_pass_is_run(tmp_path):
    source = evaluating().replace("range(int(sys.argv[1]))", "[f'{number:04}.png' for number in range(20)]")
    source = source.replace("number % 50", "int(number[:4])").replace("range(3)", "range(1)") + "assert passes == 20\n"
    assert not ended_loops(traced(script(tmp_path, source)))
