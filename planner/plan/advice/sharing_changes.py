"""Changes of where the states, gradients and parameters of training are kept."""

from typing import Final

from planner.plan.advice.change import Change

_ZERO: Final = "Rajbhandari et al. 2020, arXiv 1910.02054 §7: ZeRO-1 and 2 send what replicas do, ZeRO-3 half more"
_OFFLOAD: Final = "Ren et al. 2021, arXiv 2101.06840: ZeRO-Offload"
_INFINITY: Final = "Rajbhandari et al. 2021, arXiv 2104.07857: ZeRO-Infinity"

SHARING_CHANGES: Final[tuple[Change, ...]] = (
    Change(
        name="ZeRO-1",
        lever="sharing",
        sentence="Let each replica keep a part of the optimizer's states.",
        source=_ZERO,
        settings={"parallel": {"zero": 1}},
        applies={"task": ("training",), "parallel.zero": (0,)},
        needs="DeepSpeed, or PyTorch's ZeroRedundancyOptimizer",
        keeps="the mathematics",
        shares_states=True,
    ),
    Change(
        name="ZeRO-2",
        lever="sharing",
        sentence="Let each replica keep a part of the states and of the gradients.",
        source=_ZERO,
        settings={"parallel": {"zero": 2}},
        applies={"task": ("training",), "parallel.zero": (0, 1)},
        needs="DeepSpeed, or FSDP",
        keeps="the mathematics",
        shares_states=True,
    ),
    Change(
        name="ZeRO-3",
        lever="sharing",
        sentence="Let each replica keep a part of states, gradients and parameters, and fetch the rest as it goes.",
        source=_ZERO,
        settings={"parallel": {"zero": 3}},
        applies={"task": ("training",), "parallel.zero": (0, 1, 2)},
        cost="time",
        slower_by_about=None,
        costs="half as much communication again",
        needs="DeepSpeed, or FSDP",
        keeps="the mathematics",
        shares_states=True,
    ),
    Change(
        name="optimizer states in RAM",
        lever="offload",
        sentence="Keep the optimizer's states in RAM, where the processor makes the step.",
        source=_OFFLOAD,
        settings={"parallel": {"zero": 2, "offload": "optimizer"}},
        applies={"task": ("training",), "parallel.zero": (0, 1, 2), "parallel.offload": ("none",)},
        cost="much-time",
        slower_by_about=None,
        costs="the processor makes the step",
        needs="DeepSpeed, and RAM for the states",
        keeps="the mathematics",
    ),
    Change(
        name="parameters and states in RAM",
        lever="offload",
        sentence="Keep parameters and states in RAM, and fetch each layer as it goes.",
        source=_INFINITY,
        settings={"parallel": {"zero": 3, "offload": "parameters"}},
        applies={"task": ("training",), "parallel.offload": ("none", "optimizer")},
        cost="much-time",
        slower_by_about=None,
        costs="every layer crosses the bus in each pass",
        needs="DeepSpeed or FSDP, and RAM for both",
        keeps="the mathematics",
    ),
)
