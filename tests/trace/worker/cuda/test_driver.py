"""The simulated card as code sees it: `torch.cuda` and `torch.accelerator` answer as on one."""

import pytest
import torch
from scripted import NET, peak_bytes, script, traced

from planner.trace.request import TracedCard
from planner.trace.worker.cuda.driver import visible_cards

CARD = TracedCard(name="RTX 4090", memory_bytes=24 << 30, multiprocessors=128)
MIB = 1 << 20
PROGRAMS = {
    "devices of tensors": """
x, y = torch.ones(4, device="cuda"), torch.ones(4)
assert (x.device.type, x.device.index, x.is_cuda, x.get_device()) == ("cuda", 0, True, 0)
assert (y.device.type, y.is_cuda, y.get_device(), y.pin_memory().is_pinned()) == ("cpu", False, -1, True)
assert torch.zeros_like(x).is_cuda and x.new_tensor([1.0]).is_cuda and y.type_as(x).is_cuda
assert next(nn.Linear(2, 2).cuda().parameters()).is_cuda
""",
    "streams": """
s, x = torch.cuda.Stream(priority=-1), torch.ones(4, device="cuda")
before = torch.cuda.current_stream()
with torch.cuda.stream(s):
    assert torch.cuda.current_stream() == s != before
torch.cuda.current_stream().wait_stream(s)
x.record_stream(s)
with s:
    event = s.record_event()
assert torch.cuda.current_stream() == before == torch.cuda.default_stream() and s.query()
assert len({s, before}) == 2
""",
    "events": """
a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
a.record()
b.record()
torch.cuda.synchronize()
assert a.elapsed_time(b) > 0 and b.query()
""",
    "libraries beside it": """
assert torch.cuda.nccl.version() >= (2,)
torch.cuda.tunable.enable(False)
torch.cuda.memory.caching_allocator_enable(True)
x = torch.ones(4, device="cuda")
assert torch.cuda.device_memory_used() > 0
assert nn.parallel.data_parallel(nn.Linear(2, 2).cuda(), torch.ones(3, 2), [0, 1]).shape == (3, 2)
assert nn.parallel.data_parallel(nn.Bilinear(2, 2, 2).cuda(), (torch.ones(3, 2), torch.ones(3, 2))).is_cuda
""",
    "types of tensors": """
x = torch.cuda.FloatTensor(2, 3)
assert x.is_cuda and x.shape == (2, 3) and isinstance(x, torch.cuda.FloatTensor)
assert x.type() == "torch.cuda.FloatTensor"
assert torch.cuda.LongTensor([1, 2]).dtype == torch.int64 and not isinstance(torch.ones(1), torch.cuda.FloatTensor)
assert torch.ones(2).type("torch.cuda.HalfTensor").dtype == torch.float16
assert torch.ones(2).type(torch.cuda.HalfTensor).is_cuda
assert torch.ones(2).type(torch.float64).type() == "torch.DoubleTensor"
torch.set_default_tensor_type(torch.cuda.FloatTensor)
assert torch.ones(4).is_cuda
torch.set_default_tensor_type(torch.FloatTensor)
""",
    "generators": """
g = torch.Generator("cuda").manual_seed(0)
x = torch.randn(4, generator=g, device="cuda")
assert g.device.type == "cuda" and torch.Generator().device.type == "cpu" and isinstance(g, torch.Generator)
states = torch.cuda.get_rng_state_all()
torch.cuda.set_rng_state_all(states)
torch.cuda.manual_seed_all(1)
with torch.random.fork_rng(devices=[0]):
    torch.randn(4, device="cuda")
""",
    "memory": """
x = torch.zeros(MIB, device="cuda")
assert torch.cuda.memory_allocated() == torch.cuda.max_memory_allocated() == 4 * MIB
y = torch.zeros(MIB, device="cuda")
del y
assert torch.cuda.memory_allocated() == 4 * MIB and torch.cuda.max_memory_allocated() == 8 * MIB
torch.cuda.reset_peak_memory_stats()
assert torch.cuda.max_memory_allocated() == 4 * MIB <= torch.cuda.memory_reserved() <= torch.cuda.max_memory_reserved()
statistics = torch.cuda.memory_stats()
assert statistics["allocated_bytes.all.current"] == 4 * MIB and statistics["num_ooms"] == 0
assert "4096 KiB" in torch.cuda.memory_summary()
free, total = torch.cuda.mem_get_info()
assert total == 24 << 30 and free == total - torch.cuda.memory_reserved()
del x
torch.cuda.empty_cache()
assert torch.cuda.memory_reserved() == 0 and torch.cuda.mem_get_info() == (total, total)
torch.cuda.memory._record_memory_history()
torch.cuda.set_per_process_memory_fraction(0.5)
""",
    "figures of the GPU": """
p = torch.cuda.get_device_properties(0)
assert (p.name, p.total_memory, p.major, p.minor, p.multi_processor_count) == ("RTX 4090", 24 << 30, 8, 9, 128)
assert p.max_threads_per_multi_processor == 1536 and torch.cuda.get_device_name() == "RTX 4090"
assert torch.cuda.get_device_capability() == (8, 9) and torch.cuda.is_bf16_supported()
assert "sm_89" in torch.cuda.get_arch_list()
""",
    "build": """
assert torch.cuda.is_available() and torch.version.cuda and torch.backends.cuda.is_built()
assert torch.backends.cudnn.is_available() and torch.backends.cudnn.version() > 90_000
torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.benchmark = True
torch.backends.cuda.preferred_linalg_library("cusolver")
torch.backends.cuda.cufft_plan_cache.clear()
""",
    "selection": """
assert torch.cuda.device_count() == 1 and torch.cuda.current_device() == 0
with torch.cuda.device(1):
    assert torch.cuda.current_device() == 1 and torch.ones(1, device="cuda").device.index == 1
torch.cuda.set_device("cuda:0")
assert torch.cuda.current_device() == 0
""",
    "accelerator": """
d = torch.accelerator.current_accelerator()
assert d.type == "cuda" and torch.accelerator.is_available() and torch.ones(1).to(d).is_cuda
assert torch.accelerator.device_count() == 1 and torch.accelerator.current_device_index() == 0
torch.accelerator.synchronize()
torch.accelerator.set_device_index(0)
""",
    "ranges": """
torch.cuda.nvtx.range_push("a")
torch.cuda.nvtx.range_pop()
with torch.cuda.nvtx.range("b"), torch.autograd.profiler.emit_nvtx(), torch.cuda.profiler.profile():
    torch.cuda.cudart().cudaProfilerStart()
""",
    "mixed precision of old": """
from torch.cuda.amp import GradScaler, autocast
net, scaler = nn.Linear(8, 8).cuda(), GradScaler()
optimizer = torch.optim.SGD(net.parameters(), 0.1)
with autocast():
    y = net(torch.ones(4, 8).cuda())
assert y.dtype == torch.float16
scaler.scale(y.float().sum()).backward()
scaler.step(optimizer)
scaler.update()
""",
    "default device": """
torch.set_default_device("cuda")
assert torch.ones(1).is_cuda and nn.Linear(2, 2).weight.is_cuda
""",
    "pools": """
with torch.cuda.use_mem_pool(torch.cuda.MemPool()):
    torch.ones(1, device="cuda")
assert torch.cuda.utilization() == 0 and torch.cuda.get_allocator_backend() == "native"
""",
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_code_for_a_card_runs(tmp_path, program):
    head = "import torch\nfrom torch import nn\nMIB = 1 << 20\n"
    fields = {"device": "cuda", "compute_capability": "8.9", "card": CARD, "task": "inference"}
    traced(script(tmp_path, head + program + "\nkept = torch.ones(1, device='cuda')\n", **fields))
    assert not torch.cuda.is_available()
    assert torch.get_default_device().type == "cpu"


def test_an_assumed_card_is_named(tmp_path):
    source = (
        "import torch\nx = torch.ones(8).cuda()\nfree, total = torch.cuda.mem_get_info()\nassert total > 79 << 30\n"
    )
    assert any("A100" in note for note in traced(script(tmp_path, source, device="cuda")).notes)


def test_a_captured_graph_runs_once_and_may_keep_its_memory(tmp_path):
    source = """
import torch
x = torch.ones(1 << 20, device="cuda")
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    y = (x * 2) * 2
for _ in range(3):
    graph.replay()
"""
    recording = traced(script(tmp_path, source, device="cuda"))
    (difference,) = (one for one in recording.differences if "graphs" in one.name)
    assert peak_bytes(recording) == 12 * MIB
    assert difference.high_bytes == 8 * MIB
    assert any("CUDA graph" in note for note in recording.notes)


def test_the_fullest_of_several_cards_is_the_result(tmp_path):
    source = """
import torch
a = torch.ones(1 << 20, device="cuda:0")
b = torch.ones(3 << 20).to("cuda:1")
c = b * 2
assert (a.device.index, b.device.index, c.device.index) == (0, 1, 1)
a.cuda(1)
"""
    recording = traced(script(tmp_path, source, device="cuda"))
    assert peak_bytes(recording) == 28 * MIB
    assert any("cuda:1, the fullest" in note for note in recording.notes)


def test_a_module_sees_the_card_too(tmp_path):
    source = NET + "assert torch.cuda.max_memory_allocated() == 0\nnet.cuda()\nassert next(net.parameters()).is_cuda\n"
    assert traced(script(tmp_path, source, device="cuda")).allocations.bytes


@pytest.mark.parametrize(
    ("environment", "cards"), [({}, 1), ({"CUDA_VISIBLE_DEVICES": "0,1"}, 2), ({"LOCAL_WORLD_SIZE": "8"}, 8)]
)
def test_visible_cards_are_those_of_the_environment(monkeypatch, environment, cards):
    for name in ("CUDA_VISIBLE_DEVICES", "LOCAL_WORLD_SIZE"):
        monkeypatch.setenv(name, environment.get(name, "")) if name in environment else monkeypatch.delenv(name, False)
    assert visible_cards() == cards
