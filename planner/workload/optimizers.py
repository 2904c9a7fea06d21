"""The optimizers that a step can have: what they are called and how they step."""

from dataclasses import dataclass
from typing import Final, Literal

Optimizer = Literal[
    "adamw",
    "adam",
    "nadam",
    "rmsprop",
    "adagrad",
    "adamw-8bit",
    "adamw-32bit-bnb",
    "paged-adamw-8bit",
    "paged-adamw-32bit",
    "adafactor",
    "adafactor-transformers",
    "sgd",
    "sgd-momentum",
    "lion",
    "lion-8bit",
    "paged-lion",
    "paged-lion-8bit",
    "muon",
    "galore-adamw",
    "soap",
    "shampoo",
]
OptimizerStep = Literal["fused", "foreach", "loop"]
Library = Literal["torch", "bitsandbytes", "transformers", "galore-torch", "soap", "distributed-shampoo"]


@dataclass(frozen=True, slots=True)
class OptimizerKind:
    """An optimizer by its title and library, and the ways it can step, the usual one first."""

    title: str
    library: Library
    steps: tuple[OptimizerStep, ...]


_ANY: Final[tuple[OptimizerStep, ...]] = ("fused", "foreach", "loop")
_FUSED: Final[tuple[OptimizerStep, ...]] = ("fused",)
_LOOP: Final[tuple[OptimizerStep, ...]] = ("loop",)
_FOREACH: Final[tuple[OptimizerStep, ...]] = ("foreach", "loop")

OPTIMIZERS: Final[dict[Optimizer, OptimizerKind]] = {
    "adamw": OptimizerKind("AdamW", "torch", _ANY),
    "adam": OptimizerKind("Adam", "torch", ("foreach", "fused", "loop")),
    "nadam": OptimizerKind("NAdam", "torch", _FOREACH),
    "rmsprop": OptimizerKind("RMSprop", "torch", _FOREACH),
    "adagrad": OptimizerKind("Adagrad", "torch", _FOREACH),
    "adamw-8bit": OptimizerKind("AdamW 8-bit", "bitsandbytes", _FUSED),
    "adamw-32bit-bnb": OptimizerKind("AdamW 32-bit of bitsandbytes", "bitsandbytes", _FUSED),
    "paged-adamw-8bit": OptimizerKind("paged AdamW 8-bit", "bitsandbytes", _FUSED),
    "paged-adamw-32bit": OptimizerKind("paged AdamW 32-bit", "bitsandbytes", _FUSED),
    "adafactor": OptimizerKind("Adafactor", "torch", ("loop", "foreach")),
    "adafactor-transformers": OptimizerKind("Adafactor of transformers", "transformers", _LOOP),
    "sgd": OptimizerKind("SGD", "torch", _ANY),
    "sgd-momentum": OptimizerKind("SGD with momentum", "torch", _ANY),
    "lion": OptimizerKind("Lion", "bitsandbytes", _FUSED),
    "lion-8bit": OptimizerKind("Lion 8-bit", "bitsandbytes", _FUSED),
    "paged-lion": OptimizerKind("paged Lion", "bitsandbytes", _FUSED),
    "paged-lion-8bit": OptimizerKind("paged Lion 8-bit", "bitsandbytes", _FUSED),
    "muon": OptimizerKind("Muon with AdamW", "torch", _LOOP),
    "galore-adamw": OptimizerKind("GaLore AdamW", "galore-torch", _LOOP),
    "soap": OptimizerKind("SOAP", "soap", _LOOP),
    "shampoo": OptimizerKind("Shampoo in blocks", "distributed-shampoo", _FOREACH[:1]),
}
"""Every optimizer by name.

**Source**: the signatures of torch.optim 2.13 (AdamW, SGD: `foreach` and `fused`; Adafactor: `foreach`, a loop by
default; Muon: a loop; the others `foreach` on a GPU by default); bitsandbytes updates each tensor in one kernel;
transformers' Adafactor, galore_torch's AdamW and SOAP loop; DistributedShampoo steps with `torch._foreach` calls.
"""


def optimizer_words() -> dict[Optimizer, str]:
    """Return the optimizers with their titles as they stand alone, those of a library together."""
    libraries = list(dict.fromkeys(kind.library for kind in OPTIMIZERS.values()))
    grouped = sorted(OPTIMIZERS.items(), key=lambda item: libraries.index(item[1].library))
    return {name: f"{kind.title[0].upper()}{kind.title[1:]}" for name, kind in grouped}


def library_of(optimizer: Optimizer) -> str:
    """Return the library that an optimizer is of, as it is written."""
    library = OPTIMIZERS[optimizer].library
    return "PyTorch" if library == "torch" else library


def step_words() -> dict[OptimizerStep, str]:
    """Return the ways to step, in words."""
    return {"fused": "Fused", "foreach": "All tensors at once", "loop": "One tensor at a time"}
