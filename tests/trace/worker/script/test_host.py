"""Host memory and the card: only what is moved to the card counts."""

import pytest
from scripted import NET, peak_bytes, script, traced
from watched import file_target

from planner.trace.request import TraceRequest
from planner.trace.worker.job import record_trace

MIB = 1 << 20
MOVES = {
    "stays": ("x = torch.ones(MIB)", 0),
    "cuda": ("x = torch.ones(MIB).cuda()", 4),
    "to": ("x = torch.ones(MIB).to('cuda')", 4),
    "device": ("x = torch.ones(MIB).to(torch.device('cuda', 0), non_blocking=True)", 4),
    "number": ("x = torch.ones(MIB).to(0)", 4),
    "keyword": ("x = torch.ones(MIB).to(device='cuda', dtype=torch.float64)", 8),
    "made there": ("x = torch.randn(MIB, device='cuda')", 4),
    "filled there": ("x = torch.full((MIB,), 1.0, device='cuda')", 4),
    "values there": ("x = torch.tensor([1.0] * 1024, device='cuda'); y = x.expand(1024, 1024) * 1", 4),
    "numbered there": ("x = torch.arange(MIB, device=torch.device('cuda:0'))", 8),
    "made on the host": ("x = torch.zeros(MIB, device='cpu')", 0),
    "dtype only": ("x = torch.ones(MIB).to(torch.float64)", 0),
    "like another": ("y = torch.ones(1).cuda(); x = torch.ones(MIB).to(y)", 4),
    "batch of it": ("data = torch.ones(8, MIB); x = data[0].to('cuda')", 4),
    "copied once": ("x = torch.ones(MIB).cuda(); y = x.cuda(); z = x.to('cuda')", 4),
    "used there": ("x = torch.ones(MIB).cuda(); y = x * torch.ones(MIB)", 8),
    "indexed by the host": ("x = torch.ones(2, MIB).cuda(); y = x[torch.zeros(1, dtype=torch.long)]", 12),
    "copied back": ("x = torch.ones(MIB).cuda(); y = x.cpu(); z = torch.cat([y, y]); w = x.to('cpu')", 4),
    "copied into": ("x = torch.zeros(MIB).cuda(); x.copy_(torch.ones(MIB)); y = torch.zeros(MIB); y.copy_(x)", 4),
    "freed": ("x = torch.ones(MIB).cuda(); x = None; y = torch.ones(MIB).cuda()", 4),
    "module": ("net = nn.Linear(1024, 1024, bias=False).cuda()", 4),
    "module to": ("net = nn.Linear(1024, 1024, bias=False).to('cuda', torch.float16)", 2),
    "module on the host": ("net = nn.Linear(1024, 1024, bias=False); y = net(torch.ones(1024, 1024))", 0),
    "pinned": ("x = torch.ones(MIB).pin_memory().cuda(non_blocking=True)", 4),
    "loaded": ("torch.save({'x': torch.ones(MIB)}, 'x.pt'); x = torch.load('x.pt', map_location='cuda')", 4),
    "loaded to the host": ("torch.save(torch.ones(MIB).cuda(), 'x.pt'); x = torch.load('x.pt', 'cpu')", 4),
    "gradient of another format": (
        "x = torch.ones(MIB, device='cuda', requires_grad=True); x.half().sum().backward(); y = x.detach() * 2",
        12,
    ),
    "scalar": ("x = torch.ones(MIB).cuda(); y = x * torch.tensor(2.0)", 8),
}


@pytest.mark.parametrize(("code", "mebibytes"), MOVES.values(), ids=MOVES.keys())
def test_only_what_is_moved_counts(tmp_path, code, mebibytes):
    kept = "small = torch.ones(1).cuda()\n"
    request = script(tmp_path, f"import torch\nfrom torch import nn\nMIB = 1 << 20\n{kept}{code}\n", device="cuda")
    assert peak_bytes(traced(request)) == pytest.approx(mebibytes * MIB, abs=8192)


def test_a_step_on_the_card_counts_all_but_the_data(tmp_path):
    source = (
        NET
        + """
data = torch.randn(100_000, 64)
net.cuda()
optimizer = torch.optim.Adam(net.parameters())
for batch in data.split(32):
    loss = net(batch.cuda()).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
    )
    on_card = traced(script(tmp_path, source, device="cuda"))
    alone = traced(script(tmp_path, source.replace("100_000", "64"), device="cuda"))
    assert peak_bytes(on_card) == peak_bytes(alone)
    weights = 4 * (64 * 128 + 128 + 128 * 8 + 8)
    assert 4 * weights < peak_bytes(on_card) < 8 * weights


NETWORKS = {
    "convolutions": (
        "nn.Sequential(nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 8, 3))",
        "4, 3, 32, 32",
    ),
    "LSTM": ("nn.LSTM(32, 64, 2, dropout=0.1)", "10, 4, 32"),
    "attention": ("nn.TransformerEncoderLayer(64, 4, batch_first=True)", "4, 16, 64"),
}
STEP = """
def first(output):
    return output[0] if isinstance(output, tuple) else output

def step(net, x, optimizer):
    loss = first(net(x)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(("network", "shape"), NETWORKS.values(), ids=NETWORKS.keys())
def test_a_network_on_the_card_is_that_of_a_target(tmp_path, network, shape):
    head = f"import torch\nfrom torch import nn\n{STEP}\ndef make():\n    return {network}, torch.ones({shape}), step\n"
    source = (
        head
        + """
net, x, step = make()
net.cuda()
x = x.cuda()
optimizer = torch.optim.Adam(net.parameters())
while True:
    step(net, x, optimizer)
"""
    )
    target = file_target(tmp_path, head, "make", "net_of_target.py")
    whole = record_trace(TraceRequest(target=target, task="training", optimizer="Adam"), lambda *_: None)
    assert peak_bytes(traced(script(tmp_path, source, device="cuda"))) == pytest.approx(peak_bytes(whole), abs=64)


def test_a_tensor_says_where_it_is(tmp_path):
    source = """
import torch
data = torch.ones(8)
batch = data.to("cuda")
assert (data.device.type, batch.device, (batch * 2).device.type) == ("cpu", torch.device("cuda:0"), "cuda")
assert torch.randn(4, device=batch.device).device.type == "cuda"
assert batch.cpu().device.type == "cpu"
"""
    assert traced(script(tmp_path, source, device="cuda")).spans


def test_data_parallel_has_one_card(tmp_path):
    source = (
        NET
        + """
net = nn.DataParallel(net).cuda()
assert net(torch.randn(4, 64)).device.type == "cuda"
"""
    )
    assert any("one GPU" in note for note in traced(script(tmp_path, source, device="cuda")).notes)


def test_a_dropout_of_the_card_is_on_the_card(tmp_path):
    source = "import torch\nx = torch.ones(1 << 20, requires_grad=True)\ny = torch.dropout(x.cuda(), 0.5, True)\n"
    assert peak_bytes(traced(script(tmp_path, source, device="cuda"))) == 9 << 20


TWO_CARDS = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(256, 1024), nn.Linear(1024, 512).to("cuda:1")

    def forward(self, x):
        y = self.first(x)
        z = self.second(y.to("cuda:1"))
        assert (y.device.index, z.device.index) == (0, 1)
        if z.requires_grad:
            y.register_hook(lambda gradient: expect(gradient.device.index, 0))
            z.register_hook(lambda gradient: expect(gradient.device.index, 1))
        return z

def expect(found, wanted):
    assert found == wanted
"""


@pytest.mark.parametrize("task", ["inference", "training"])
def test_each_card_of_a_module_has_its_own_memory(tmp_path, task):
    target = file_target(tmp_path, TWO_CARDS, "Net", f"two_cards_{task}.py")
    inputs = ({"value": {"kind": "tensor", "shape": (512, 256)}},)
    fields = {"task": task, "loss": "mean", "optimizer": "SGD", "steps": 1}
    recording = record_trace(TraceRequest(target=target, inputs=inputs, **fields), lambda *_: None)
    if task == "inference":
        # The second card holds its layer, the copy of the input and the output.
        assert peak_bytes(recording) == 4 * (1024 * 512 + 512 + 512 * 1024 + 512 * 512)
    assert any(note.startswith("2 GPUs are used (cuda:0 ") for note in recording.notes)


def test_a_loader_draws_numbers_on_the_host_if_all_else_is_made_on_the_card(tmp_path):
    source = """
import torch
torch.set_default_device("cuda")
data = torch.utils.data.TensorDataset(torch.ones(64, 1024))
batch, = next(iter(torch.utils.data.DataLoader(data, batch_size=8)))
assert batch.device.type == "cuda"
"""
    assert traced(script(tmp_path, source, device="cuda")).spans


@pytest.mark.filterwarnings("ignore")
def test_torchscript_finds_the_factories_of_sparse_tensors(tmp_path):
    program = """
@torch.jit.script
def scattered(places: torch.Tensor, values: torch.Tensor):
    return torch.sparse_coo_tensor(places, values, [4, 4])
y = scattered(torch.zeros(2, 3, dtype=torch.int64).cuda(), torch.ones(3).cuda()).to_dense()
"""
    assert peak_bytes(traced(script(tmp_path, NET + program, device="cuda"))) >= 2 * 3 * 8 + 3 * 4 + 4 * 4 * 4
