"""Time and memory that tracing takes.

    python benchmarks/trace_speed.py [--runs N]

Prints, each the median of several fresh processes: the tracing of two training steps of Llama 2 7B (8 × 512 tokens,
autocast, AdamW; a step that needs 117 GiB) with the memory of the tracing process, and the tracing of two steps of
GPT-2 small (8 × 512 tokens, fp32) beside the same two steps really run on the CPU in the same process. Seconds are of
the processor, on one thread, after PyTorch and the model's class have been loaded by tracing a small network of the
same kind. At last the whole of `gpu-planner trace` for two training steps of ResNet-50, in turns with `import torch`;
the package's byte code is written before, as installers leave it.
"""

import argparse
import compileall
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from speed import alternating

ONE_RUN = """
import json, resource, sys, time
import torch
from planner.trace.request import TraceRequest
from planner.trace.analysis.memory import facts_of
from planner.trace.worker.build import build_run
from planner.trace.worker.job import record_trace
from planner.trace.worker.running import run
from planner.trace.worker.observer import (RunObserver)

asked = json.loads(sys.argv[1])
request = TraceRequest.model_validate(asked["request"])
small = request.evolve(target=request.target.evolve(config=json.dumps(asked["small"])), sequence_length=16)
record_trace(small, lambda *_: None)
begin = time.process_time()
recording = record_trace(request, lambda *_: None)
found = {"traced": time.process_time() - begin, "peak": facts_of(recording).allocated_bytes}
found["resident"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
if asked["really"]:
    torch.set_num_threads(1)
    begin = time.process_time()
    run(build_run(request, RunObserver()), request, RunObserver())
    found["real"] = time.process_time() - begin
print(json.dumps(found))
"""
LLAMA_7B = {"model_type": "llama"}
GPT2_SMALL = {"model_type": "gpt2", "bos_token_id": 0, "eos_token_id": 0}
GIB = 2**30
_HERE = Path(__file__).resolve().parent
RESNET_50 = f"{_HERE / 'nets' / 'convolutional.py'}:resnet50"
IMPORT_TORCH = "import torch"
TRACE = f"from planner.cli.main import main; main(['trace', {RESNET_50!r}, '--task', 'training'])"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3, help="fresh processes for each figure (default 3)")
    runs = parser.parse_args().runs
    llama = [measured(LLAMA_7B, {"num_hidden_layers": 2}, autocast="bf16", device="cpu") for _ in range(runs)]
    print(f"Llama 2 7B, two steps that need {llama[0]['peak'] / GIB:.1f} GiB")
    print(f"  tracing                {middle(llama, 'traced'):8.2f} s     aim ≤ 3 s")
    print(f"  memory of the process  {middle(llama, 'resident') / GIB:8.2f} GiB   aim ≤ 0.5 GiB")
    on_cuda = [measured(LLAMA_7B, {"num_hidden_layers": 2}, autocast="bf16", device="cuda") for _ in range(runs)]
    print(f"  tracing, as on CUDA    {middle(on_cuda, 'traced'):8.2f} s")
    gpt2 = [measured(GPT2_SMALL, {"n_layer": 2}, really=True, device="cpu") for _ in range(runs)]
    traced, real = middle(gpt2, "traced"), middle(gpt2, "real")
    print(f"GPT-2 small, two steps that need {gpt2[0]['peak'] / GIB:.1f} GiB")
    print(f"  tracing                {traced:8.2f} s")
    print(f"  running for real       {real:8.2f} s")
    print(f"  times faster           {real / traced:8.1f}       aim ≥ 30")
    print_command(runs)


def print_command(runs: int) -> None:
    """Print the time of one command that traces ResNet-50, beside that of importing PyTorch, in fresh processes."""
    compileall.compile_dir(_HERE.parent / "planner", quiet=1)
    with tempfile.TemporaryDirectory() as home:
        os.environ |= {"GPU_PLANNER_HOME": home, "OMP_NUM_THREADS": "1"}
        command, imported = alternating(TRACE, IMPORT_TORCH, runs)
    print("ResNet-50, two steps, from the shell")
    print(f"  gpu-planner trace      {command:8.2f} s")
    print(f"  import torch           {imported:8.2f} s")
    print(f"  times as long          {command / imported:8.2f}       aim ≤ 4")


def measured(config: dict[str, Any], smaller: dict[str, int], *, really: bool = False, **how: str) -> dict[str, float]:
    """Return the figures that a fresh process measured while tracing the network of `config`."""
    target = {"kind": "config", "place": str(config["model_type"]), "config": json.dumps(config)}
    request = {"target": target, "task": "training", "batch": 8, "sequence_length": 512, **how}
    asked = {"request": request, "small": config | smaller, "really": really}
    done = subprocess.run(
        [sys.executable, "-c", ONE_RUN, json.dumps(asked)],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"},
    )
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def middle(figures: list[dict[str, float]], name: str) -> float:
    """Return the median of one figure."""
    return median(run[name] for run in figures)


if __name__ == "__main__":
    main()
