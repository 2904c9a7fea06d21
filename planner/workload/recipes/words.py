"""The names that the programs share: those of transformers' optimizers and attention."""

from typing import Final

from planner.workload.choices import Attention
from planner.workload.optimizers import Optimizer, OptimizerStep
from planner.workload.recipes.draft import Draft

OPTIMIZERS: Final[dict[str, tuple[Optimizer, OptimizerStep | None]]] = {
    "adamw_torch": ("adamw", "foreach"),
    "adamw_torch_fused": ("adamw", None),
    "adamw_8bit": ("adamw-8bit", None),
    "adamw_bnb_8bit": ("adamw-8bit", None),
    "paged_adamw_8bit": ("paged-adamw-8bit", None),
    "paged_adamw_32bit": ("paged-adamw-32bit", None),
    "adafactor": ("adafactor-transformers", None),
    "adagrad": ("adagrad", None),
    "rmsprop": ("rmsprop", None),
    "sgd": ("sgd", None),
    "lion_32bit": ("lion", None),
    "lion_8bit": ("lion-8bit", None),
    "paged_lion_32bit": ("paged-lion", None),
    "paged_lion_8bit": ("paged-lion-8bit", None),
    "galore_adamw": ("galore-adamw", None),
    "muon": ("muon", None),
}
"""Ours by the names of transformers, and how they step where that is not our default.

**Source**: `OptimizerNames` and `Trainer.get_optimizer_cls_and_kwargs` of transformers 5.23; `adamw_torch` is
`torch.optim.AdamW` without `fused`, which takes its foreach step on a GPU. `muon` is axolotl's.
"""

ATTENTION: Final[dict[str, Attention]] = {
    "eager": "eager",
    "sdpa": "sdpa",
    "flash_attention_2": "flash",
    "flash_attention_3": "flash",
    "kernels-community/flash-attn2": "flash",
    "kernels-community/flash-attn3": "flash",
    "kernels-community/vllm-flash-attn3": "flash",
}
"""Ours by the names that transformers takes as `attn_implementation`."""

WITHOUT_ADAPTER: Final = "no adapter is trained"
FULL_SEQUENCES: Final = "sequences are counted at their full length"


def read_optimizer(draft: Draft, key: str, default: str) -> None:
    """Take the optimizer that `key` names, or the program's `default`."""
    name = draft.word(key)
    found = OPTIMIZERS.get(name or default)
    if found is None:
        draft.skips(key, f"the optimizer {name}; AdamW is counted")
        return
    optimizer, step = found
    if name is None:
        draft.assumes(key, default, "optimizer", optimizer)
    else:
        draft.sets(key, "optimizer", optimizer)
    if name is not None and step is not None:
        draft.sets(key, "optimizer_step", step)


def read_attention(draft: Draft, key: str) -> None:
    """Take the attention that `key` names; transformers takes SDPA by itself."""
    name = draft.word(key)
    if name is None:
        return
    if name in ATTENTION:
        draft.sets(key, "attention", ATTENTION[name])
    else:
        draft.skips(key, f"the attention {name}; SDPA is counted")


def read_clipping(draft: Draft, key: str, default: float) -> None:
    """Take whether gradients are clipped; a norm of 0 means no."""
    norm = draft.number(key)
    if norm is not None:
        draft.sets(key, "gradient_clipping", norm > 0)
    else:
        draft.assumes(key, default, "gradient_clipping", True)
