import pytest

from planner.trace.request import TORCH_NAMES, torch_optimizer
from planner.workload.optimizers import OPTIMIZERS

WAYS = [(name, step) for name in TORCH_NAMES for step in OPTIMIZERS[name].steps]


def test_optimizer_names_are_those_of_workloads():
    assert set(TORCH_NAMES) <= set(OPTIMIZERS)
    assert all(OPTIMIZERS[name].library == "torch" for name in TORCH_NAMES)
    assert torch_optimizer("lion-8bit", "fused") is None


@pytest.mark.parametrize(("name", "step"), WAYS)
def test_pytorch_accepts_every_optimizer_step(name, step):
    torch = pytest.importorskip("torch")
    from planner.trace.worker.optimizers import make_optimizer

    kind, arguments = torch_optimizer(name, step)
    made = make_optimizer(kind, arguments, [torch.nn.Parameter(torch.zeros(2, 2))], "cuda")
    assert type(made).__name__ == kind
    taken = made.param_groups[0]
    assert all(taken[argument.name] == argument.value for argument in arguments)
