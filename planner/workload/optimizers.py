"""The optimizers that a step can have: what they are called and how they step."""

from dataclasses import dataclass
from typing import Final, Literal

Optimizer = Literal[
    "adamw",
    "adamw-8bit",
    "adamw-32bit-bnb",
    "paged-adamw-8bit",
    "paged-adamw-32bit",
    "adafactor",
    "sgd",
    "sgd-momentum",
    "lion",
    "lion-8bit",
    "muon",
    "galore-adamw",
]
OptimizerStep = Literal["fused", "foreach", "loop"]
Library = Literal["torch", "bitsandbytes", "galore-torch"]


@dataclass(frozen=True, slots=True)
class OptimizerKind:
    """An optimizer by its title and library, and the ways it can step, the usual one first."""

    title: str
    library: Library
    steps: tuple[OptimizerStep, ...]


_ANY: Final[tuple[OptimizerStep, ...]] = ("fused", "foreach", "loop")
_FUSED: Final[tuple[OptimizerStep, ...]] = ("fused",)
_LOOP: Final[tuple[OptimizerStep, ...]] = ("loop",)

OPTIMIZERS: Final[dict[Optimizer, OptimizerKind]] = {
    "adamw": OptimizerKind("AdamW", "torch", _ANY),
    "adamw-8bit": OptimizerKind("AdamW 8-bit", "bitsandbytes", _FUSED),
    "adamw-32bit-bnb": OptimizerKind("AdamW 32-bit of bitsandbytes", "bitsandbytes", _FUSED),
    "paged-adamw-8bit": OptimizerKind("paged AdamW 8-bit", "bitsandbytes", _FUSED),
    "paged-adamw-32bit": OptimizerKind("paged AdamW 32-bit", "bitsandbytes", _FUSED),
    "adafactor": OptimizerKind("Adafactor", "torch", ("loop", "foreach")),
    "sgd": OptimizerKind("SGD", "torch", _ANY),
    "sgd-momentum": OptimizerKind("SGD with momentum", "torch", _ANY),
    "lion": OptimizerKind("Lion", "bitsandbytes", _FUSED),
    "lion-8bit": OptimizerKind("Lion 8-bit", "bitsandbytes", _FUSED),
    "muon": OptimizerKind("Muon with AdamW", "torch", _LOOP),
    "galore-adamw": OptimizerKind("GaLore AdamW", "galore-torch", _LOOP),
}
"""Every optimizer by name.

**Source**: the signatures of torch.optim 2.13 (AdamW, SGD: `foreach` and `fused`; Adafactor: `foreach`, a loop by
default; Muon: a loop); bitsandbytes updates each tensor in one kernel; galore_torch's AdamW loops.
"""
