"""The optimizers of workloads that PyTorch has, by its names."""

from typing import Final

from planner.trace.request import Argument
from planner.workload.optimizers import Optimizer, OptimizerStep

MOMENTUM: Final = 0.9
"""Whatever momentum is, as long as it is not zero: SGD then keeps one buffer for each parameter."""
TORCH_NAMES: Final[dict[str, str]] = {
    "adamw": "AdamW",
    "sgd": "SGD",
    "sgd-momentum": f"SGD(momentum={MOMENTUM})",
    "adafactor": "Adafactor",
    "adam": "Adam",
    "nadam": "NAdam",
    "rmsprop": "RMSprop",
    "adagrad": "Adagrad",
}
"""The classes of torch.optim, with the arguments that make them the workload's optimizer."""
_STEPS: Final[dict[OptimizerStep, Argument]] = {
    "fused": Argument(name="fused", value=True),
    "foreach": Argument(name="foreach", value=True),
    "loop": Argument(name="foreach", value=False),
}


def torch_optimizer(name: Optimizer, step: OptimizerStep) -> tuple[str, tuple[Argument, ...]] | None:
    """Return the class of torch.optim and its arguments for an optimizer that steps so; none if PyTorch has none."""
    written = TORCH_NAMES.get(name)
    if written is None:
        return None
    momentum = (Argument(name="momentum", value=MOMENTUM),) if name == "sgd-momentum" else ()
    return written.partition("(")[0], (*momentum, _STEPS[step])
