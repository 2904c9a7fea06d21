r"""Run launch files for real on this machine, and print what came of it.

    python benchmarks/launch_runs.py [--accelerate COMMAND] [--slurm] [--llama-server FILE --gguf-python PYTHON]

Each part runs if its program is given:

- accelerate: `accelerate.yaml` as it is written, for DDP and for FSDP2 on two GPUs, trains a small network in two
  processes on the CPU, where accelerate shares by DDP whatever the file says.
- Slurm (Debian's slurm-wlm and munge): a controller of its own with two nodes of 8 GPUs takes the batch script of each
  plan and program by `sbatch --test-only`, and refuses one for three nodes.
- llama-server (built from source): each flag of the plans stands in its `--help`; it starts with the flags of a plan of
  a tiny GGUF (made with the package gguf), answers, and its log is compared with the estimate.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "launch"))

from launched import PLANS, training, written  # noqa: E402

import planner  # noqa: E402
from planner.errors import SpecError  # noqa: E402
from planner.launch.launch import launch_settings  # noqa: E402
from planner.launch.software import LAUNCHERS  # noqa: E402
from planner.memory.logs.read import read_log  # noqa: E402
from planner.plan.files import named_plan  # noqa: E402
from planner.plan.logs.comparison import compare_plan  # noqa: E402

CATALOG = planner.load_catalog()
TRAIN = """\
import torch
from accelerate import Accelerator

accelerator = Accelerator(cpu=True)
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
inputs = torch.randn(256, 32)
pairs = torch.utils.data.TensorDataset(inputs, inputs.sum(1, keepdim=True))
model, optimizer, batches = accelerator.prepare(model, optimizer, torch.utils.data.DataLoader(pairs, batch_size=16))
losses = []
for _ in range(5):
    for batch, wanted in batches:
        loss = torch.nn.functional.mse_loss(model(batch), wanted)
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
state = accelerator.state
accelerator.print("RESULT", state.num_processes, state.mixed_precision, losses[0], losses[-1])
"""
SLURM = """\
ClusterName=plan
SlurmctldHost=localhost
SlurmctldPort=16817
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
StateSaveLocation={folder}/state
SlurmctldPidFile={folder}/slurmctld.pid
SlurmctldLogFile={folder}/slurmctld.log
ProctrackType=proctrack/pgid
SelectType=select/cons_tres
GresTypes=gpu
SuspendProgram=/bin/true
ResumeProgram=/bin/true
SuspendTime=3600
NodeName=node[1-2] NodeAddr=127.0.0.1 CPUs=96 RealMemory=1000000 Gres=gpu:8 State=CLOUD
PartitionName=all Nodes=node[1-2] Default=YES State=UP
"""
GGUF = """\
import sys

import gguf
import numpy as np

width, layers, heads, cached, inner, words = 256, 4, 8, 4, 512, 512
file = gguf.GGUFWriter(sys.argv[1], "llama")
file.add_name("tiny")
file.add_block_count(layers)
file.add_context_length(4096)
file.add_embedding_length(width)
file.add_feed_forward_length(inner)
file.add_head_count(heads)
file.add_head_count_kv(cached)
file.add_layer_norm_rms_eps(1e-5)
file.add_rope_dimension_count(width // heads)
file.add_vocab_size(words)
file.add_file_type(1)
tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *(f"t{n}" for n in range(words - 259))]
file.add_tokenizer_model("llama")
file.add_tokenizer_pre("default")
file.add_token_list(tokens)
file.add_token_scores([0.0] * words)
file.add_token_types([2, 3, 3, *[6] * 256, *[1] * (words - 259)])
file.add_bos_token_id(1)
file.add_eos_token_id(2)
file.add_unk_token_id(0)
numbers = np.random.default_rng(0)


def matrix(name, rows, columns):
    file.add_tensor(f"{name}.weight", (numbers.standard_normal((rows, columns)) * 0.02).astype(np.float16))


matrix("token_embd", words, width)
matrix("output", words, width)
file.add_tensor("output_norm.weight", np.ones(width, np.float32))
for layer in range(layers):
    for name, rows, columns in (
        ("attn_q", width, width), ("attn_k", width // heads * cached, width),
        ("attn_v", width // heads * cached, width), ("attn_output", width, width),
        ("ffn_gate", inner, width), ("ffn_up", inner, width), ("ffn_down", width, inner),
    ):
        matrix(f"blk.{layer}.{name}", rows, columns)
    for name in ("attn_norm", "ffn_norm"):
        file.add_tensor(f"blk.{layer}.{name}.weight", np.ones(width, np.float32))
file.write_header_to_file()
file.write_kv_data_to_file()
file.write_tensors_to_file()
file.close()
"""
PORT = 18_080


def main() -> int:
    """Run the parts whose programs are given; end with 1 if one of them fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--accelerate", type=Path)
    parser.add_argument("--slurm", action="store_true")
    parser.add_argument("--llama-server", type=Path)
    parser.add_argument("--gguf-python", default=sys.executable)
    arguments = parser.parse_args()
    done: list[bool] = []
    with tempfile.TemporaryDirectory() as root:
        folder = Path(root)
        if arguments.accelerate:
            done += [_trains(arguments.accelerate, folder / f"zero-{stage}", stage) for stage in (0, 3)]
        if arguments.slurm:
            done.append(_slurm_takes_all(folder / "slurm"))
        if arguments.llama_server:
            done.append(_knows_flags(arguments.llama_server))
            done.append(_serves(arguments.llama_server, arguments.gguf_python, folder))
    return int(not all(done))


def _trains(accelerate: Path, folder: Path, stage: int) -> bool:
    """Train with the files of a plan on two cards, as they are."""
    plan = training(count=2, parallel={"zero": stage}, sequence_length=256)
    plan = plan.evolve(model=planner.ModelChoice(id="HuggingFaceTB/SmolLM2-135M"))
    folder.mkdir()
    for file in launch_settings(plan, CATALOG, "accelerate").files:
        (folder / file.name).write_text(file.text)
    (folder / "train.py").write_text(TRAIN)
    path = f"{accelerate.parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": "", "OMP_NUM_THREADS": "1"}
    run = subprocess.run(
        ["bash", "run.sh"], cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    found = re.search(r"RESULT (\d+) (\w+) (\S+) (\S+)", run.stdout)
    if found is None:
        print(run.stderr[-2000:])
        return False
    processes, precision, first, last = int(found[1]), found[2], float(found[3]), float(found[4])
    print(f"accelerate, ZeRO-{stage}: {processes} processes, {precision}; loss {first:.3f} → {last:.3f}")
    return processes == 2 and last < first


def _slurm_takes_all(folder: Path) -> bool:
    """Give the batch scripts of all plans to a controller."""
    scripts = {
        f"{program} {name}": found.files[0].text
        for name, plan in PLANS.items()
        for program in LAUNCHERS
        if not isinstance(found := written(plan, CATALOG, program, "slurm"), SpecError)
    }
    two = training(gpu="h100-sxm5-80gb", count=16, parallel={"zero": 3}, activation_checkpointing="full")
    scripts["on two nodes"] = launch_settings(two, CATALOG, "accelerate", "slurm").files[0].text
    too_many = scripts["on two nodes"].replace("--nodes=2", "--nodes=3")
    with _slurm(folder) as environment:
        refused = {name: said for name, text in scripts.items() if (said := _test_only(text, folder, environment))}
        told = _test_only(too_many, folder, environment)
    print(
        f"sbatch --test-only: {len(scripts) - len(refused)} of {len(scripts)} scripts taken; three nodes of two: {told}"
    )
    print(*(f"  {name}: {said}" for name, said in refused.items()), sep="\n", end="\n" if refused else "")
    return not refused and bool(told)


def _test_only(text: str, folder: Path, environment: dict[str, str]) -> str:
    """Return why the script is refused, nothing if it would start."""
    script = folder / "job.sbatch"
    script.write_text(text)
    run = subprocess.run(
        ["sbatch", "--test-only", str(script)], env=environment, capture_output=True, text=True, check=False
    )
    return run.stderr.strip() if run.returncode or "to start at" not in run.stderr else ""


@contextmanager
def _slurm(folder: Path) -> Iterator[dict[str, str]]:
    """Start Slurm's controller with munge, both in a folder of their own; yield the environment of its clients."""
    (folder / "state").mkdir(parents=True)
    folder.parent.chmod(0o755)
    key = folder / "key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o600)
    (folder / "slurm.conf").write_text(SLURM.format(folder=folder))
    environment = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf")}
    munge = [f"--{name}={folder}/{file}" for name, file in (
        ("key-file", "key"), ("socket", "munge.sock"), ("pid-file", "munge.pid"), ("log-file", "munge.log"),
        ("seed-file", "seed"),
    )]  # fmt: skip
    started = [
        subprocess.Popen(["munged", "--foreground", *munge], stderr=subprocess.DEVNULL),
        subprocess.Popen(["slurmctld", "-D"], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL),
    ]
    try:
        for _ in range(60):
            if not subprocess.run(["sinfo"], env=environment, capture_output=True, check=False).returncode:
                break
            time.sleep(0.5)
        yield environment
    finally:
        for process in reversed(started):
            process.terminate()
            process.wait()


def _knows_flags(server: Path) -> bool:
    """Compare the flags of all plans with the help of the server."""
    said = subprocess.run([server, "--help"], capture_output=True, text=True, check=False).stdout
    known = set(re.findall(r"(?<!\S)--?[a-z][\w-]*", said))
    flags = {
        row.key
        for plan in PLANS.values()
        if not isinstance(found := written(plan, CATALOG, "llama-server", "shell"), SpecError)
        for row in found.settings
    }
    print(
        f"llama-server --help: {len(flags & known)} of {len(flags)} flags; not there: {sorted(flags - known) or 'none'}"
    )
    return flags <= known


def _serves(server: Path, python: str, folder: Path) -> bool:
    """Start the server with a plan's flags, ask it, and compare its log with the estimate."""
    model = folder / "tiny-F16.gguf"
    subprocess.run([python, "-c", GGUF, str(model)], check=True)
    workload = planner.Inference(profile="llama.cpp", batch=2, context_length=2048, gpu_layers=0)
    plan = named_plan(str(model), CATALOG).evolve(gpu="l40s", workload=workload)
    settings = launch_settings(plan, CATALOG, "llama-server")
    log = folder / "llama-server.log"
    script = folder / "run.sh"
    started = f"\nexec {server} --port {PORT} --verbosity 4 "  # from 4 on, it prints the sizes of its buffers
    script.write_text(settings.files[0].text.replace("\nllama-server ", started))
    with log.open("w") as output:
        process = subprocess.Popen(["bash", str(script)], stdout=output, stderr=subprocess.STDOUT, cwd=folder)
        try:
            answer = _ask(process)
        finally:
            process.terminate()
            process.wait()
    print(f"llama-server: answered {len(answer)} characters" if answer else log.read_text()[-2000:])
    comparison = compare_plan(settings.plan, CATALOG, read_log(log.read_text()))
    agrees = bool(comparison.rows)
    for row in comparison.rows:
        estimate = "" if row.predicted_bytes is None else f"{row.predicted_bytes:,}"
        print(f"  {row.name:10} estimate {estimate:>12} bytes   log {row.actual_bytes:>12,} bytes")
        agrees &= row.is_in_range is not False or row.agrees
    print(*(f"  {note}" for note in comparison.notes), sep="\n")
    return bool(answer) and agrees


def _ask(process: subprocess.Popen[bytes]) -> str:
    """Return what the server answers; nothing if it ends before."""
    body = json.dumps({"prompt": "t1", "n_predict": 4}).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{PORT}/completion", body, {"Content-Type": "application/json"})
    for _ in range(240):
        if process.poll() is not None:
            return ""
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return str(json.load(response)["content"]) or "nothing"
        except OSError:
            time.sleep(0.5)
    return ""


if __name__ == "__main__":
    sys.exit(main())
