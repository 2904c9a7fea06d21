"""Temporary memory of optimizer steps, against the optimizers themselves, or against their documented sums."""

import math
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")


from torch.utils._pytree import tree_leaves  # noqa: E402  # only where there is a torch
from watched_storages import Peak  # noqa: E402

from planner.memory.training.optimizer_states import optimizer_term  # noqa: E402
from planner.memory.training.optimizer_steps import soap_step_bytes, step_term  # noqa: E402
from planner.models.architecture import Tensor  # noqa: E402
from planner.workload.optimizers import OPTIMIZERS, Optimizer, OptimizerStep  # noqa: E402

SHAPES = ((400, 300), (300,), (100, 200))


TRAINED = tuple(
    (Tensor(name=f"{place}", shape=shape, role="linear" if len(shape) > 1 else "norm"), 1)
    for place, shape in enumerate(SHAPES)
)


SMALL = 16


"""Bytes for each tensor that are not counted: numbers of steps, and roots of their counts."""


def run(make: Callable[[list[Any]], Any], dtype: Any) -> tuple[int, int]:
    """Return the bytes of the states after three steps, and of what the last one held at the most beside them."""
    parameters = [torch.nn.Parameter(torch.randn(shape).to(dtype)) for shape in SHAPES]
    optimizer = make(parameters)
    for _ in range(3):
        for parameter in parameters:
            parameter.grad = torch.randn_like(parameter)
        states = [state for state in tree_leaves(list(optimizer.state.values())) if isinstance(state, torch.Tensor)]
        with Peak([*parameters, *(parameter.grad for parameter in parameters), *states]) as watched:
            optimizer.step()
    kept = [state for state in tree_leaves(list(optimizer.state.values())) if isinstance(state, torch.Tensor)]
    return sum(state.untyped_storage().nbytes() for state in kept), watched.peak


OF_TORCH = [name for name, kind in OPTIMIZERS.items() if kind.torch_class]


@pytest.mark.parametrize("size", [4, 2])
@pytest.mark.parametrize(("name", "step"), [(name, step) for name in OF_TORCH for step in OPTIMIZERS[name].steps])
def test_states_and_steps_are_those_of_torch(name: Optimizer, step: OptimizerStep, size: int) -> None:
    kind = OPTIMIZERS[name]
    given: dict[str, Any] = {"momentum": kind.momentum} if kind.momentum else {}
    chosen = {"fused": {"fused": True}, "foreach": {"foreach": True}, "loop": {"foreach": False}}[step]
    made, held = run(
        lambda parameters: getattr(torch.optim, kind.torch_class)(parameters, **given, **chosen),
        {4: torch.float32, 2: torch.bfloat16}[size],
    )
    states = optimizer_term(TRAINED, name, size)
    assert made == pytest.approx(states.bytes if states else 0, abs=SMALL * len(SHAPES))
    beside = step_term(TRAINED, name, step, size)
    assert held == pytest.approx(beside.bytes if beside else 0, rel=0.02, abs=1024)


@pytest.mark.parametrize(("step", "held"), [("foreach", 280_600), ("loop", 240_600)])
def test_schedule_free_adamw_keeps_its_base_sequence_beside_squares(step: OptimizerStep, held: int) -> None:
    # What AdamWScheduleFree of schedulefree 1.4.1 kept and held of these shapes in bf16.
    states = optimizer_term(TRAINED, "schedule-free-adamw", 2)
    beside = step_term(TRAINED, "schedule-free-adamw", step, 2)
    assert states is not None
    assert beside is not None
    assert states.bytes == 561_200
    assert beside.bytes == pytest.approx(held, rel=0.003)


@pytest.mark.parametrize(("shape", "size"), [((160, 120), 4), ((120, 160), 2), ((192, 192), 4), ((192, 192), 2)])
def test_muon_keeps_one_momentum_and_works_in_bf16(shape: tuple[int, int], size: int) -> None:
    matrix = torch.nn.Parameter(torch.randn(shape).to({4: torch.float32, 2: torch.bfloat16}[size]))
    muon = torch.optim.Muon([matrix])
    for _ in range(2):
        matrix.grad = torch.randn_like(matrix)
        states = [state for state in tree_leaves(list(muon.state.values())) if isinstance(state, torch.Tensor)]
        with Peak([matrix, matrix.grad, *states]) as watched:
            muon.step()
    trained = ((Tensor(name="matrix", shape=shape, role="linear"), 1),)
    states = optimizer_term(trained, "muon", size)
    beside = step_term(trained, "muon", "loop", size)
    assert states is not None
    assert beside is not None
    assert states.bytes == math.prod(shape) * size
    assert watched.peak == pytest.approx(beside.bytes, rel=0.02)


@pytest.mark.oracle
@pytest.mark.parametrize("size", [4, 2])
def test_transformers_has_an_adafactor_of_its_own_in_fp32(size: int) -> None:
    optimization = pytest.importorskip("transformers.optimization")
    made, held = run(optimization.Adafactor, {4: torch.float32, 2: torch.bfloat16}[size])
    states = optimizer_term(TRAINED, "adafactor-transformers", size)
    beside = step_term(TRAINED, "adafactor-transformers", "loop", size)
    assert states is not None
    assert beside is not None
    assert made == states.bytes
    assert held == pytest.approx(beside.bytes, rel=0.01)


@pytest.mark.parametrize(("shape", "held"), [((300, 200), 1_600_000), ((600, 200), 3_520_000), ((512, 512), 7_340_032)])
def test_soap_holds_several_copies_of_one_tensor(shape: tuple[int, int], held: int) -> None:
    # Counted in its own step; where bases are made anew it was less than what is said, for QR works elsewhere then.
    usual, anew = soap_step_bytes(Tensor(name="m", shape=shape, role="linear"))
    assert usual == pytest.approx(held, rel=0.001)
    assert anew >= usual
    assert soap_step_bytes(Tensor(name="v", shape=(700,), role="norm")) == (4 * 4 * 700, 4 * 4 * 700)


def test_preconditioners_say_what_they_hold_while_they_step() -> None:
    for name in ("soap", "shampoo"):
        beside = step_term(TRAINED, name, OPTIMIZERS[name].steps[0], 4)
        assert beside is not None
        assert beside.certainty == "assumed"
        assert beside.low_bytes < beside.bytes
