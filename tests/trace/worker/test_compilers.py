"""Compiled code of scripts: run as it was written, with a bound."""

from scripted import LOOP, peak_bytes, script, traced

COMPILED = LOOP.replace("for number", "net = torch.compile(net)\nnet.compile()\nfor number")


def test_compiled_code_runs_as_it_was_written_and_may_need_less(tmp_path):
    written = traced(script(tmp_path, LOOP))
    decorated = (
        "import torch\n@torch.compile(fullgraph=True)\ndef double(x):\n    return x * 2\nassert double(2) == 4\n"
    )
    recording = traced(script(tmp_path, decorated + COMPILED))
    assert peak_bytes(recording) == peak_bytes(written)
    (difference,) = (one for one in recording.differences if one.name == "compiled code")
    assert -peak_bytes(recording) < difference.low_bytes < 0 == difference.high_bytes
    assert not any(one.name == "compiled code" for one in written.differences)
