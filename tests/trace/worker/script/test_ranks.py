"""One rank of a launched script."""

import os

import pytest
from scripted import LOOP, script, traced

from planner.trace.recording import CATEGORIES

REPLICATED = LOOP.replace(
    "optimizer =",
    """import os
import torch.distributed as dist
dist.init_process_group("nccl")
assert (dist.get_rank(), dist.get_world_size()) == (0, int(os.environ["WORLD_SIZE"]))
weights = sum(parameter.numel() for parameter in net.parameters())
net = nn.parallel.DistributedDataParallel(net, device_ids=[int(os.environ["LOCAL_RANK"])])
optimizer =""",
)


def communication_bytes(recording):
    columns = recording.allocations
    return sum(
        size
        for size, category, freed in zip(columns.bytes, columns.category, columns.freed, strict=True)
        if CATEGORIES[category] == "communication" and freed < 0
    )


def test_one_of_several_ranks_has_the_buckets_of_its_gradients(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "cache"))  # which PyTorch sets when it first compiles
    before = dict(os.environ)
    recording = traced(script(tmp_path, REPLICATED, launcher=("torchrun", "--nproc_per_node=8")))
    assert communication_bytes(recording) == 4 * recording.parameters
    assert "One of 8 ranks is traced; the others are not started." in recording.notes
    assert dict(os.environ) == before


SYNCHRONIZED = """
import torch
from torch import nn
torch.distributed.init_process_group("nccl")
net = nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8))).cuda()
with torch.autocast("cuda", torch.float16):
    normalized = net(torch.randn(4, 3, 32, 32, device="cuda"))
normalized.float().sum().backward()
"""


@pytest.mark.usefixtures("traces_in_this_process")
def test_batch_norms_over_several_ranks_have_the_cards_operators(tmp_path):
    recording = traced(script(tmp_path, SYNCHRONIZED, launcher=("torchrun", "--nproc_per_node=2"), device="cuda"))
    sizes = dict(zip(recording.allocations.operator, recording.allocations.bytes, strict=True))
    by_name = {recording.operators[number]: size for number, size in sizes.items()}
    assert by_name["aten::batch_norm_elemt"] == by_name["aten::batch_norm_backward_elemt"] == 2 * 4 * 8 * 30 * 30
    assert by_name["aten::batch_norm_gather_stats_with_counts"] == by_name["aten::batch_norm_backward_reduce"] == 4 * 8


def test_processes_that_a_script_spawns_are_one(tmp_path):
    source = """
import torch, torch.distributed as dist, torch.multiprocessing as mp
from torch import nn
def worker(rank, size):
    dist.init_process_group("gloo", init_method="tcp://127.0.0.1:23456", world_size=size, rank=rank)
    net = nn.parallel.DistributedDataParallel(nn.Linear(8, 8))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    while True:
        net(torch.ones(4, 8)).sum().backward()
        optimizer.step()
        dist.barrier()
if __name__ == "__main__":
    mp.spawn(worker, args=(4,), nprocs=4, join=True)
"""
    recording = traced(script(tmp_path, source))
    assert "One of 4 processes is traced; the others are not started." in recording.notes
    assert communication_bytes(recording) == 4 * 72


def test_of_processes_that_train_the_same_one_is_traced(tmp_path):
    source = """
import torch, torch.multiprocessing as mp
from torch import nn
def echo(connection):
    connection.send(connection.recv())
def worker(rank, net):
    ours, theirs = mp.Pipe()
    answering = mp.get_context("fork").Process(target=echo, args=(theirs,))
    answering.start()
    ours.send(rank)
    assert ours.recv() == 0
    answering.join()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    net(torch.ones(4, 8)).sum().backward()
    optimizer.step()
if __name__ == "__main__":
    processes = [mp.Process(target=worker, args=(rank, nn.Linear(8, 8))) for rank in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
"""
    recording = traced(script(tmp_path, source))
    assert "Of several processes that run worker one is traced; the others are not started." in recording.notes
    assert recording.parameters == 72
    assert "The script ran to its end, in which every optimizer took 1 steps." in recording.notes


def test_a_device_mesh_starts_the_group_of_ranks(tmp_path):
    source = """
import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, parallelize_module
net = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU()).cuda()
mesh = init_device_mesh("cuda", (torch.accelerator.device_count(),))
net = parallelize_module(net, mesh, {"0": ColwiseParallel()})
net(torch.ones(4, 64, device="cuda")).sum().backward()
"""
    recording = traced(script(tmp_path, source, launcher=("torchrun", "--nproc_per_node=2"), device="cuda"))
    assert "[32, 64] float32" in recording.shapes


SHARDED = """
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import {imports}
dist.init_process_group("nccl")
torch.cuda.set_device(0)
{shard}
optimizer = torch.optim.SGD(net.parameters(), 0.1)
for _ in range(2):
    net(torch.ones(4, 64, device="cuda")).sum().backward()
    optimizer.step()
"""
BUILT_AS_SHARDS = """
with torch.device("meta"):
    net = nn.Linear(64, 64)
fully_shard(net, mesh=init_device_mesh("cuda", (2,)))
net.to_empty(device="cuda").reset_parameters()
"""
IN_HALF_PRECISION = "net = FSDP(nn.Linear(64, 64), device_id=0, mixed_precision=MixedPrecision(torch.bfloat16))"


@pytest.mark.parametrize(
    ("imports", "shard", "shapes"),
    [
        ("fully_shard", BUILT_AS_SHARDS, {"[32, 64] float32"}),
        (
            "FullyShardedDataParallel as FSDP, MixedPrecision",
            IN_HALF_PRECISION,
            {"[2080] float32", "[2080] bfloat16", "[4160] bfloat16"},
        ),
    ],
    ids=["FSDP2, built on the meta device", "FSDP's first version"],
)
def test_a_rank_has_its_shards(tmp_path, imports, shard, shapes):
    source = SHARDED.format(imports=imports, shard=shard)
    recording = traced(script(tmp_path, source, launcher=("torchrun", "--nproc_per_node=2"), device="cuda"))
    assert shapes <= set(recording.shapes)


def test_accelerate_reads_what_its_launcher_sets(tmp_path):
    pytest.importorskip("accelerate")
    source = LOOP.replace(
        "for number",
        "from accelerate import Accelerator\naccelerator = Accelerator()\n"
        "assert accelerator.mixed_precision == 'bf16'\n"
        "net, optimizer = accelerator.prepare(net, optimizer)\nfor number",
    )
    launcher = ("accelerate", "launch", "--mixed_precision", "bf16")
    recording = traced(script(tmp_path, source, launcher=launcher))
    assert any("bfloat16" in shape for shape in recording.shapes)
