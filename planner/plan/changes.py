"""What a plan can be changed by to need less memory, and what each change costs.

A `Change` is one record of the table below: to add another way to save memory is to add a record. What a change saves
is not written here: the whole estimate is asked with it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from planner.hardware.gpu import Gpu
from planner.workload.workload import Workload

Cost = Literal["none", "time", "less", "hardware"]
"""none; time: it takes longer; less: less is done than was asked for; hardware: other or more cards."""
Risk = Literal["none", "small", "real"]
"""What may become of the quality of the trained model, or of the answers."""

COSTS: Final[tuple[Cost, ...]] = ("none", "time", "less", "hardware")
RISKS: Final[tuple[Risk, ...]] = ("none", "small", "real")

_BF16_CAPABILITY: Final = 8.0


@dataclass(frozen=True, slots=True)
class Change:
    """One way to need less memory.

    `lever` names what it turns: of two changes with one lever, one is enough. `applies` are the values that fields of
    the workload, its defaults filled in, must have. `settings` are the fields of the workload that change, a mapping
    within one those of the part of that name; `hardware` are fields of the plan. `slower_by_about` is a factor on the
    time, none where it is longer by an amount that is not known; `kept` is the part of what was asked for that is still
    done. `needs` is what else must be there, `keeps` what stays as it was. `native_bf16` limits a change to cards that
    compute bf16 themselves, or to those that do not.
    """

    name: str
    lever: str
    sentence: str
    source: str
    settings: Mapping[str, object] = field(default_factory=dict)
    applies: Mapping[str, tuple[object, ...]] = field(default_factory=dict)
    hardware: Mapping[str, object] = field(default_factory=dict)
    cost: Cost = "none"
    slower_by_about: float | None = 1.0
    costs: str = ""
    kept: float = 1.0
    risk: Risk = "none"
    needs: str = ""
    keeps: str = ""
    native_bf16: bool | None = None

    def applies_to(self, workload: Workload, gpu: Gpu | None) -> bool:
        """Return whether it changes something about `workload`, whose defaults are filled in, on `gpu`."""
        if self.native_bf16 is not None and gpu is not None and computes_bf16(gpu) != self.native_bf16:
            return False
        return all(getattr(workload, name, None) in values for name, values in self.applies.items())


def computes_bf16(gpu: Gpu) -> bool:
    """Return whether `gpu` computes bf16 itself; NVIDIA's cards before Ampere emulate it.

    **Source**: CUDA C++ Programming Guide, arithmetic instructions by compute capability: bf16 from 8.0 on.
    """
    if gpu.vendor != "NVIDIA" or not gpu.compute_capability:
        return True
    return float(gpu.compute_capability) >= _BF16_CAPABILITY


_CHECKPOINTING: Final = "Chen et al. 2016, arXiv 1604.06174: one more forward pass, a third of a step's operations"
_EIGHT_BIT: Final = "Dettmers et al. 2022, arXiv 2110.02861: 8-bit states match 32-bit ones, and are no slower"
_ADAPTIVE: Final = "Zhang et al. 2020, arXiv 1912.03194: SGD falls behind Adam on attention models"
_PURE_BF16: Final = "Zamirai et al. 2020, arXiv 2010.06192: updates rounded to bf16 get lost"
_AUTOCAST: Final = "Micikevicius et al. 2018, arXiv 1710.03740: mixed precision matches fp32"
_SDPA: Final = "PyTorch scaled_dot_product_attention: the same result without the scores of every pair of tokens"
_HALF: Final = "half of fp32's bits; checkpoints are trained and published in 16 bits"
_LLM_INT8: Final = (
    "Dettmers et al. 2022, arXiv 2208.07339; Hugging Face blog, bitsandbytes integration: BLOOM 15 to 23 % slower"
)
_NF4: Final = "Dettmers et al. 2023, arXiv 2305.14314: NF4 loses little against 16 bits"
_AWQ: Final = "Lin et al. 2024, arXiv 2306.00978: 4-bit weights lose little against 16 bits"
_FP8_CACHE: Final = "vLLM, quantised KV cache: fp8 halves it with little loss"
_LAST_LOGITS: Final = "Hugging Face transformers, logits_to_keep: generating reads the logits of the last token only"

_SIXTEEN: Final = ("bf16", "fp16")
_PLAIN: Final = ("fp32", *_SIXTEEN)
_FULL_PRECISION: Final = ("fp32", "tf32")

CHANGES: Final[tuple[Change, ...]] = (
    Change(
        name="SDPA attention",
        lever="attention",
        sentence="Attend with PyTorch's fused kernels, which never hold the scores of every pair of tokens.",
        source=_SDPA,
        settings={"attention": "sdpa"},
        applies={"attention": ("eager", "flash")},
        keeps="the mathematics",
    ),
    Change(
        name="8-bit AdamW",
        lever="optimizer",
        sentence="Keep both moments of AdamW in 8 bits, with a scale for each block.",
        source=_EIGHT_BIT,
        settings={"optimizer": "adamw-8bit"},
        applies={"optimizer": ("adamw",)},
        risk="small",
        needs="bitsandbytes",
    ),
    Change(
        name="SGD with momentum",
        lever="optimizer",
        sentence="Keep one moment instead of two.",
        source=_ADAPTIVE,
        settings={"optimizer": "sgd-momentum"},
        applies={"optimizer": ("adamw", "adamw-8bit")},
        risk="real",
    ),
    Change(
        name="plain SGD",
        lever="optimizer",
        sentence="Keep no moments.",
        source=_ADAPTIVE,
        settings={"optimizer": "sgd"},
        applies={"optimizer": ("sgd-momentum",)},
        risk="real",
    ),
    Change(
        name="full checkpointing",
        lever="recomputation",
        sentence="Keep only each layer's input, and compute the rest again in the backward pass.",
        source=_CHECKPOINTING,
        settings={"activation_checkpointing": "full"},
        applies={"activation_checkpointing": ("none",)},
        cost="time",
        slower_by_about=4 / 3,
        keeps="the mathematics",
    ),
    Change(
        name="bf16 autocast",
        lever="precision",
        sentence="Compute in bf16 where that is safe; the parameters stay in fp32.",
        source=_AUTOCAST,
        settings={"compute": "amp-bf16"},
        applies={"task": ("training",), "compute": _FULL_PRECISION},
        risk="small",
        native_bf16=True,
    ),
    Change(
        name="fp16 autocast",
        lever="precision",
        sentence="Compute in fp16 where that is safe, with scaled gradients; the parameters stay in fp32.",
        source=_AUTOCAST,
        settings={"compute": "amp-fp16"},
        applies={"task": ("training",), "compute": _FULL_PRECISION},
        risk="small",
        native_bf16=False,
    ),
    Change(
        name="everything in bf16",
        lever="precision",
        sentence="Keep the parameters, gradients and the optimizer's states in bf16.",
        source=_PURE_BF16,
        settings={"compute": "bf16", "weights": None},
        applies={"task": ("training",), "compute": (*_FULL_PRECISION, "amp-bf16")},
        risk="real",
        native_bf16=True,
    ),
    Change(
        name="weights in bf16",
        lever="weights",
        sentence="Keep each weight in 16 bits.",
        source=_HALF,
        settings={"weights": "bf16", "compute": "bf16"},
        applies={"task": ("inference",), "weights": ("fp32",)},
        risk="small",
        native_bf16=True,
    ),
    Change(
        name="weights in fp16",
        lever="weights",
        sentence="Keep each weight in 16 bits.",
        source=_HALF,
        settings={"weights": "fp16", "compute": "fp16"},
        applies={"task": ("inference",), "weights": ("fp32",)},
        risk="small",
        native_bf16=False,
    ),
    Change(
        name="weights in INT8",
        lever="weights",
        sentence="Keep the weights of the projections in 8 bits; outliers are computed in 16.",
        source=_LLM_INT8,
        settings={"weights": "int8"},
        applies={"task": ("inference",), "weights": _PLAIN},
        cost="time",
        slower_by_about=1.2,
        costs="more for small models",
        risk="small",
        needs="bitsandbytes",
    ),
    Change(
        name="weights in NF4",
        lever="weights",
        sentence="Keep the weights of the projections in 4 bits, with a scale for each 64.",
        source=_NF4,
        settings={"weights": "nf4"},
        applies={"task": ("inference",), "weights": (*_PLAIN, "int8")},
        cost="time",
        slower_by_about=None,
        costs="speed depends on the kernels",
        risk="small",
        needs="bitsandbytes",
    ),
    Change(
        name="weights in AWQ 4-bit",
        lever="weights",
        sentence="Run a copy of the model whose projections were quantised to 4 bits with sample texts.",
        source=_AWQ,
        settings={"weights": "awq4-128"},
        applies={"task": ("inference",), "weights": (*_PLAIN, "int8")},
        cost="time",
        slower_by_about=None,
        costs="speed depends on the kernels",
        risk="small",
        needs="a checkpoint that was quantised so",
    ),
    Change(
        name="KV cache in fp8",
        lever="cache",
        sentence="Keep cached keys and values in 8 bits.",
        source=_FP8_CACHE,
        settings={"kv_cache": "fp8"},
        applies={"kv_cache": _PLAIN},
        risk="small",
        needs="an engine with an fp8 cache, such as vLLM",
    ),
    Change(
        name="logits of the last token only",
        lever="logits",
        sentence="Compute the logits of the prompt's last token, from which the answer is generated.",
        source=_LAST_LOGITS,
        settings={"prompt_logits": "last"},
        applies={"prompt_logits": ("all",)},
        keeps="the answers, not the scores of the prompt",
    ),
)
"""Every change that is one value for another; those that look for a number are in `ladders`."""
