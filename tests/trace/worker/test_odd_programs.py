"""Compilers and odd tensors: each program is traced, as it really runs where that can be told, or refused in words."""

import re
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from random_programs import one_thread
from scripted import peak_bytes, real_peak_bytes, script, traced
from watched import file_target

from planner.trace.messages import TraceFailure
from planner.trace.request import TraceRequest
from planner.trace.worker.refusals import explain_failure

HEAD = """import copy, functools, io, pickle
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint
"""
DATA = """x = torch.ones(256, 256, requires_grad=True)
net = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 256))
"""
SLACK_BYTES = 8192
INSIDE = re.compile(
    r"[Ff]ake ?[Tt]ensor|meta|aten|ATen|[Dd]ispatch|backend|torch\._C|Ledger|SymInt|Impl|Internal|_dynamo|functorch"
)
"""Words that only PyTorch's insides use."""

TRACED = {
    "compiled function": """
f = torch.compile(lambda x: (x * 2).relu(), mode='max-autotune', fullgraph=True)
f(x).sum().backward()
""",
    "compiled decorator": """
@torch.compile(dynamic=True)
def f(x):
    return net(x)
f(x).sum().backward()
""",
    "compiled module": """
net.compile()
net(x).sum().backward()
""",
    "TorchScript of a module": """
net = torch.jit.script(net)
net(x).sum().backward()
""",
    "TorchScript of a function": """
@torch.jit.script
def f(x: torch.Tensor, n: int):
    for _ in range(n):
        x = x * 2
    return x
f(x, 3)
""",
    "TorchScript's trace": """
net = torch.jit.trace(net, x)
net(x).sum().backward()
""",
    "torch.export": """
net = torch.export.export(net, (x,)).module()
y = net(x)
""",
    "torch.fx": """
from torch import fx
net = fx.symbolic_trace(net)
net(x).sum().backward()
""",
    "numpy": """
a = torch.arange(6.0).numpy()
assert a.tolist() == [0, 1, 2, 3, 4, 5]
y = net(x).detach().numpy()
assert y.shape == (256, 256)
""",
    "lists": """
assert torch.arange(3).tolist() == [0, 1, 2]
assert len(x.sum(1).tolist()) == 256
""",
    "lists of tensors": """
a = torch.arange(3.0)
assert torch.tensor([a[1], a[2]]).tolist() == a.new_tensor([a[1], a[2]]).tolist() == [1, 2]
assert torch.LongTensor([row for row in torch.arange(3)]).tolist() == [0, 1, 2]
y = torch.tensor([[number, 1.0] for number in net(x)[0].detach()])
""",
    "sparse products": """
i = torch.stack([torch.arange(512) % 256, torch.arange(512) // 2])
a = torch.sparse_coo_tensor(i, torch.ones(512), (256, 256)).coalesce()
b = a + torch.sparse.FloatTensor(i, torch.ones(512), (256, 256))
assert a._nnz() == 512 and a.indices().shape == (2, 512)
y = torch.sparse.mm(a.t() * 2, net(x)) + torch.spmm(b.float(), x)
y.sum().backward()
""",
    "large sparse products": """
a = torch.sparse_coo_tensor(torch.arange(60000).reshape(2, -1) % 256, torch.ones(30000), (256, 256))
torch.spmm(a, net(x)).sum().backward()
""",
    "arrays": """
import numpy
a = numpy.ones((512, 512), dtype=numpy.float32)
kept = [torch.from_numpy(a), torch.as_tensor(a), torch.FloatTensor(a), torch.tensor(a)]
kept += [torch.from_numpy(net(x).detach().numpy()[1:]) for _ in range(4)]
torch.cat(kept[4:])
""",
    "numbers of many": """
a = net(x).argmax(1)
assert len(a.tolist()) == 256 and len((net(x) * 2).tolist()[0]) == 256
loss = net(x).mean().item()
assert copy.deepcopy({'loss': loss})['loss'] == pickle.loads(pickle.dumps(loss)) == loss
""",
    "inference mode": """
a = torch.ones(8, 256)
with torch.inference_mode():
    b = a * 2
    y = [net(x) * a[row] + a[1:2] + b[row] + net[0].weight.t() for row in (0, 0, 1)]
    y[0].view(-1)[0], b.view(-1)[0], a.view(-1)[0]
net(x).sum().backward()
""",
    "addresses": """
a = net.state_dict()
assert len({value.untyped_storage().data_ptr() for value in a.values()}) == 4
assert net[0].weight.t().untyped_storage().data_ptr() == a['0.weight'].untyped_storage().data_ptr()
assert net[0].weight[2:].data_ptr() - a['0.weight'].data_ptr() == 2 * 256 * 4
""",
    "sparse gradients": """
e, bags = nn.Embedding(4096, 64, sparse=True), nn.EmbeddingBag(512, 64, sparse=True, mode='sum')
optimizer = torch.optim.SparseAdam([*e.parameters(), *bags.parameters()])
for _ in range(2):
    optimizer.zero_grad()
    (e(torch.arange(1000)).sum() + bags(torch.arange(200), torch.arange(0, 200, 4)).sum()).backward()
    optimizer.step()
""",
    "sparse masks": """
m = torch.eye(256, dtype=torch.bool).to_sparse()
assert m._nnz() == 256
y = x.detach().sparse_mask(m).to_dense()
""",
    "pickled": """
a = pickle.loads(pickle.dumps(net))
a(x).sum().backward()
""",
    "deep copies": """
a = copy.deepcopy(net)
a(copy.deepcopy(x)).sum().backward()
""",
    "shallow copies": """
a = copy.copy(x.detach())
y = net(a)
""",
    "torch.func": """
p = dict(net.named_parameters())
y = torch.func.grad(lambda x: torch.func.functional_call(net, p, (x,)).sum())(x)
""",
    "gradients by sample": """
p = {k: v.detach() for k, v in net.named_parameters()}
f = lambda p, x: torch.func.functional_call(net, p, (x[None],)).sum()
y = torch.vmap(torch.func.grad(f), (None, 0))(p, x[:4].detach())
""",
    "vmap": "y = torch.vmap(lambda x: x @ x)(torch.ones(4, 256, 256))",
    "Jacobians": """
y = torch.func.jacrev(lambda x: x**2)(torch.ones(64))
y = torch.func.jacfwd(lambda x: x.sin())(torch.ones(64))
""",
    "forward-mode derivatives": "y = torch.func.jvp(lambda x: x.sin(), (torch.ones(256),), (torch.ones(256),))",
    "reentrant checkpoints": "checkpoint(net, x, use_reentrant=True).sum().backward()",
    "checkpoints": "checkpoint(net, x, use_reentrant=False, preserve_rng_state=False).sum().backward()",
    "complex numbers": """
c = torch.complex(x, x)
(c @ c.conj().T).abs().sum().backward()
""",
    "Fourier transforms": """
y = torch.fft.irfft(torch.fft.rfft(x))
y.sum().backward()
""",
    "custom derivative": """
class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2
    @staticmethod
    def backward(ctx, g):
        return g * 2
Double.apply(x).sum().backward()
""",
    "custom operator": """
@torch.library.custom_op('odd::double', mutates_args=())
def double(x: torch.Tensor) -> torch.Tensor:
    return (x + x.exp()) * 2
y = double(x.detach())
""",
    "condition": "y = torch.cond(x.shape[0] > 3, lambda x: x + 1, lambda x: x - 1, (x,))",
    "loop": """
from torch._higher_order_ops import while_loop
y = while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (torch.tensor(0), x.detach()))
""",
    "flexible attention": """
from torch.nn.attention.flex_attention import flex_attention
q = torch.ones(1, 2, 128, 16)
y = flex_attention(q, q, q)
""",
    "jagged tensor": """
n = torch.nested.nested_tensor([torch.ones(100, 64), torch.ones(200, 64)], layout=torch.jagged)
y = nn.Linear(64, 256)(n)
y.values().sum().backward()
""",
    "hooks on saved tensors": """
with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
    y = net(x).sum()
y.backward()
""",
    "fake quantization": "torch.fake_quantize_per_tensor_affine(x, 0.1, 0, 0, 255).sum().backward()",
    "least squares": """
a = net(torch.ones(512, 256)).detach()
y = torch.linalg.lstsq(a[:, :64], a)
assert (y.solution.shape, y.residuals.shape, y.rank.shape) == ((64, 256), (0,), ())
""",
    "meta device": """
with torch.device('meta'):
    a = nn.Linear(256, 256)
a.to_empty(device='cpu')
y = a(x)
""",
    "moved to the meta device": """
a = copy.deepcopy(net).to('meta')
assert all(value.is_meta for value in a.parameters()) and not x.is_meta
y = torch.func.functional_call(a, dict(net.named_parameters()), x)
y.sum().backward()
""",
}
NOT_COMPARED = {
    *("TorchScript of a module", "TorchScript of a function", "TorchScript's trace", "torch.export"),
    *("compiled function", "compiled decorator", "compiled module", "condition", "loop", "flexible attention"),
}
"""Programs in the real run of which a compiler decides what is stored, or TorchScript, or PyTorch's exporter."""


class Refused(NamedTuple):
    """A program that is refused at its line with the mark, with words of the reason and of the hint."""

    program: str
    reason: str
    hint: str


REFUSED = {
    "product of sparse tensors": Refused("a = torch.eye(4).to_sparse()\ny = a @ a  # here", "sparse", "dense"),
    "compressed rows": Refused("y = torch.eye(4).to_sparse_csr()  # here", "sparse", "dense"),
    "blocks": Refused("y = torch.eye(4).to_sparse_bsr((2, 2))  # here", "sparse", "dense"),
    "nested tensor": Refused("y = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])  # here", "nested", "Pad"),
    "quantized tensor": Refused(
        "y = torch.quantize_per_tensor(x.detach(), 0.1, 0, torch.quint8)  # here", "quantized", "before its conversion"
    ),
    "quantized channels": Refused(
        "y = torch.quantize_per_channel(torch.ones(2, 2), torch.ones(2), torch.zeros(2), 0, torch.qint8)  # here",
        "quantized",
        "before its conversion",
    ),
    "quantized layers": Refused(
        "y = torch.ao.quantization.quantize_dynamic(net, {nn.Linear}, dtype=torch.qint8)  # here",
        "quantized",
        "before its conversion",
    ),
    "oneDNN's format": Refused("y = torch.ones(4, 4).to_mkldnn()  # here", "no data", ".numpy()"),
    "class of tensors": Refused(
        "class Mine(torch.Tensor):\n    pass\ny = torch.ones(4).as_subclass(Mine)  # here",
        "class of its own, Mine",
        "plain",
    ),
    "storage": Refused("y = torch.ones(4).storage()[0]  # here", "no data", ".tolist()"),
    "operator of another build": Refused(
        "import uuid\nname = 'odder_' + uuid.uuid4().hex\nlibrary = torch.library.Library(name, 'DEF')\n"
        "library.define('triple(Tensor x) -> Tensor')\nlibrary.impl('triple', lambda x: x * 3, 'CUDA')\n"
        "y = getattr(torch.ops, name).triple(x)  # here",
        "odder",
        "register_fake",
    ),
    "scan": Refused(
        "from torch._higher_order_ops.scan import scan\n"
        "y = scan(lambda c, x: (c + x, c * 1), torch.zeros(256), x.detach())  # here",
        "scan runs functions",
        "Leave this line out",
    ),
    "module moved from meta": Refused("net.to('meta').to('cpu')  # here", "meta device", "to_empty"),
    "runs of values": Refused("y = torch.unique_consecutive(net(x))  # here", "depends on tensor values", "part"),
    "packages of kernels": Refused("import flash_attn  # here", "flash_attn is not installed", "scaled_dot_product"),
    "Triton": Refused("import triton.language as tl  # here", "triton is not installed", "need a GPU"),
}  # fmt: skip


def as_module(folder, program: str, **fields: object) -> TraceRequest:
    """Return the request for a module that runs the program in its forward pass."""
    body = "\n".join(f"            {line}" for line in (DATA + program).splitlines())
    source = f"{HEAD}class Net(nn.Module):\n    def forward(self, given):\n        with torch.enable_grad():\n{body}\n"
    source += "        return given * 2\n"
    inputs = ({"value": {"kind": "tensor", "shape": (2, 2)}},)
    return TraceRequest.model_validate(
        {"target": file_target(folder, source, "Net", "train.py"), "inputs": inputs, "unknown_values": "typical"}
        | fields
    )


def as_script(folder, program: str, **fields: object) -> TraceRequest:
    """Return the request for a script that is the program."""
    source = HEAD + DATA + program + "\ntotal = x.sum()\n"
    return script(folder, source, task="inference", **({"unknown_values": "typical"} | fields))


WAYS = {"module": as_module, "script": as_script}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
@pytest.mark.parametrize("program", TRACED.values(), ids=TRACED.keys())
def test_an_odd_program_is_traced(tmp_path, program, way):
    assert peak_bytes(traced(way(tmp_path, program, device="cpu"))) > 0


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [name for name in TRACED if name not in NOT_COMPARED])
def test_an_odd_program_has_the_peak_of_its_real_run(tmp_path, name):
    request = as_script(tmp_path, TRACED[name])
    with one_thread():
        real_bytes = real_peak_bytes(request)
        assert peak_bytes(traced(request)) == pytest.approx(real_bytes, rel=0.005, abs=SLACK_BYTES)


def failure_of(request: TraceRequest) -> TraceFailure:
    """Return how the failure of a trace is explained."""
    with pytest.raises(Exception, match=r".") as caught:
        traced(request)
    return explain_failure(caught.value, "forward", [Path(request.target.place)])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
@pytest.mark.parametrize("refused", REFUSED.values(), ids=REFUSED.keys())
def test_an_odd_program_is_refused_in_words(tmp_path, refused, way, device):
    request = way(tmp_path, refused.program, device=device)
    failure = failure_of(request)
    with open(request.target.place) as file:
        number = next(number for number, line in enumerate(file, 1) if line.endswith("# here\n"))
    assert refused.reason in failure.reason
    assert refused.hint in failure.hint
    assert f"train.py, line {number}: " in failure.reason or f'train.py", line {number}' in failure.traceback
    said = re.sub(r"^ .*", "", f"{failure.reason}\n{failure.hint}\n{failure.traceback}", flags=re.MULTILINE)
    assert INSIDE.search(said.replace("meta device", "").replace("device('meta')", "")) is None, said


@pytest.mark.filterwarnings("ignore")
def test_a_sparse_tensor_on_a_card_is_refused_as_one(tmp_path):
    program = "y = torch.sparse_csr_tensor([0, 1, 1], [0], [1.0], (2, 3), device='cuda')"
    assert "a sparse tensor" in failure_of(as_script(tmp_path, program, device="cuda")).reason


def test_a_persons_own_error_keeps_its_text(tmp_path):
    for program, reason in (
        ("y = x @ torch.ones(3)", "size mismatch"),
        ("y = x.nothing", "'Tensor' object has no attribute 'nothing'"),
        ("raise ValueError(f'odd {x}')", "ValueError: odd"),
    ):
        failure = failure_of(as_script(tmp_path, program))
        assert reason in failure.reason


def test_saving_is_for_scripts(tmp_path):
    program = f"torch.save(net, {str(tmp_path / 'net.pt')!r})"
    failure = failure_of(as_module(tmp_path, program))
    assert "train.py, line 13: tensors are saved" in failure.reason
    assert "scratch folder" in failure.hint
    assert not (tmp_path / "net.pt").exists()
    assert traced(as_script(tmp_path, program)).spans
    assert not (tmp_path / "net.pt").exists()


def test_unknown_values_of_arrays_are_assumed(tmp_path):
    recording = traced(as_script(tmp_path, "y = net(x).detach().numpy()\nassert y.mean() == 1"))
    assert recording.allocations.bytes


@pytest.mark.filterwarnings("ignore")
def test_flexible_attention_is_fused_if_it_is_compiled(tmp_path):
    program = """from torch.nn.attention.flex_attention import flex_attention
q = torch.ones(1, 8, 1024, 16, device="cuda", requires_grad=True)
flex_attention(q, q, q).sum().backward()
"""
    compiled = program.replace("q =", "flex_attention = torch.compile(flex_attention)\nq =")
    scores_bytes = 8 * 1024 * 1024 * torch.float32.itemsize
    assert peak_bytes(traced(as_script(tmp_path, compiled, device="cuda"))) < scores_bytes
    assert peak_bytes(traced(as_script(tmp_path, program, device="cuda"))) > 2 * scores_bytes
