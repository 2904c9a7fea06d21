"""Optimizers: their states, step implementations and temporary memory.

`planner.memory.training` computes the sizes for the tensors of a model.
"""

from typing import Final, Literal, NamedTuple

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
    "ademamix",
    "ademamix-8bit",
    "paged-ademamix",
    "paged-ademamix-8bit",
    "schedule-free-adamw",
    "muon",
    "galore-adamw",
    "soap",
    "shampoo",
]
OptimizerStep = Literal["fused", "foreach", "loop"]
Library = Literal[
    "torch", "bitsandbytes", "transformers", "schedulefree", "galore-torch", "soap", "distributed-shampoo"
]


StateUnit = Literal["element", "scale", "tensor", "row-or-column", "square", "triangle", "projector", "projected"]
"""Unit for which an optimizer state stores numbers: an element of a tensor, a block of 256 elements with one scale, a
tensor, a row or column of a matrix, an element of its square or triangular factors, projector or projection."""
StateTensors = Literal["all", "quantised", "matrices", "inner-matrices"]
"""Tensors that have an optimizer state: all; matrices (more than one dimension); inner matrices (in linear layers or
routers); or quantised tensors (large tensors that are not embeddings)."""
StateQuantity = Literal[
    "parameters",
    "width",
    "quantised",
    "scale-block",
    "inner-matrices",
    "projectors",
    "projected",
    "rows-and-columns",
    "vectors",
    "matrix-count",
    "vector-count",
    "squares",
    "triangles",
]
"""Symbols in the formulas of optimizer states."""
WorkspaceKind = Literal["copies-of-all", "copies", "fp32-copies", "newton-schulz", "decomposition", "bases", "blocks"]
"""Kind of temporary memory in an optimizer step: copies of tensors, or buffers of one algorithm."""


class StateAmount(NamedTuple):
    """Size of an optimizer state: `numbers` values per `unit` of `bytes` each (None: as wide as the parameter)."""

    numbers: int
    unit: StateUnit = "element"
    bytes: int | None = None


class OptimizerState(NamedTuple):
    """An optimizer state: its name, formula, size, and the tensors that have it."""

    name: str
    formula: str
    source: str
    amounts: tuple[StateAmount, ...]
    tensors: StateTensors = "all"


class StepWorkspace(NamedTuple):
    """Temporary memory of an optimizer step: `copies` times the tensors or buffers of `kind`."""

    kind: WorkspaceKind
    formula: str
    source: str
    copies: int = 1


class OptimizerKind(NamedTuple):
    """An optimizer with its library, step implementations (the default first), states and temporary memory.

    A tensor has the first of `states` that applies to it. `formula` covers all states, in the quantities `symbols`.
    `foreach` and `loop` are the temporary memory of these implementations; fused ones need none. `paged` states of
    large tensors are in memory that the driver can move to RAM. `fp32_only` optimizers need trained parameters in fp32,
    `whole_matrices` those need matrices that are not sharded. `torch_class` of torch.optim is the optimizer, with
    `momentum` if there is any; a trace runs it.
    """

    title: str
    library: Library
    steps: tuple[OptimizerStep, ...]
    formula: str = ""
    symbols: tuple[StateQuantity, ...] = ("parameters", "width")
    states: tuple[OptimizerState, ...] = ()
    foreach: StepWorkspace | None = None
    loop: StepWorkspace | None = None
    paged: bool = False
    fp32_only: bool = False
    whole_matrices: bool = False
    torch_class: str = ""
    momentum: float = 0.0


_ANY: Final[tuple[OptimizerStep, ...]] = ("fused", "foreach", "loop")
_FUSED: Final[tuple[OptimizerStep, ...]] = ("fused",)
_LOOP: Final[tuple[OptimizerStep, ...]] = ("loop",)
_FOREACH: Final[tuple[OptimizerStep, ...]] = ("foreach", "loop")

_TORCH: Final = "torch.optim: state tensors are made with zeros_like(parameter)"
_BNB_8: Final = "bitsandbytes optim/optimizer.py: block-wise 8-bit states, min_8bit_size 4096, blocks of 256"
_BNB_32: Final = "bitsandbytes optim/optimizer.py: states of 32-bit optimizers are torch.float32"
_SCHEDULE_FREE: Final = "schedulefree 1.4.1 AdamWScheduleFree.step"
_TRAINER: Final = "transformers Trainer registers every nn.Embedding for 32-bit states under 8-bit optimizers"
_ADAFACTOR: Final = "torch.optim.Adafactor: row_var and col_var of matrices, variance of vectors"
_HF_ADAFACTOR: Final = (
    "transformers 5.23 optimization.Adafactor: exp_avg_sq_row, exp_avg_sq_col and the root mean square of each tensor"
)
_MUON: Final = "torch.optim.Muon: momentum_buffer, for matrices only; other tensors have AdamW's states"
_GALORE: Final = "galore_torch: GaLoreProjector.get_orthogonal_matrix, AdamW.step"
_SOAP: Final = "nikhilvyas/SOAP soap.py (a1e5535, 2024-12): init_preconditioner, max_precond_dim 10000"
_SHAMPOO: Final = (
    "facebookresearch/optimizers DistributedShampoo (f606606, 2026-08) by default: RootInvShampooPreconditionerConfig, "
    "blocks of 1,024, factors packed as triangles in fp32"
)
_ROOT: Final = "torch.optim _single_tensor_rmsprop and _single_tensor_adagrad: the root of one tensor's squares"

_MOMENTS: Final = OptimizerState("moments", "2 × P × w", _TORCH, (StateAmount(2),))
_SQUARES: Final = OptimizerState("mean of squares", "P × w", _TORCH, (StateAmount(1),))
_IN_8_BITS: Final[tuple[StateQuantity, ...]] = ("parameters", "quantised", "scale-block")
_ALL_AT_ONCE: Final = StepWorkspace(
    "copies-of-all", "P_t × w", "torch.optim _multi_tensor_adamw: torch._foreach_sqrt of all second moments at once"
)
_ADAM_LOOP: Final = StepWorkspace(
    "copies", "2 × n × w", "torch.optim _single_tensor_adamw: the root of one second moment, and its quotient", 2
)


def _adam_kind(title: str, steps: tuple[OptimizerStep, ...]) -> OptimizerKind:
    return OptimizerKind(
        title=title,
        library="torch",
        torch_class=title,
        steps=steps,
        formula="2 × P × w",
        states=(_MOMENTS,),
        foreach=_ALL_AT_ONCE,
        loop=_ADAM_LOOP,
    )


def _bitsandbytes_32_bit(title: str, moments: int, *, paged: bool = False) -> OptimizerKind:
    """Return a bitsandbytes optimizer with `moments` 32-bit states per parameter."""
    name = "32-bit moments" if moments > 1 else "32-bit momentum"
    formula = f"P × {4 * moments}"
    return OptimizerKind(
        title=title,
        library="bitsandbytes",
        steps=_FUSED,
        formula=formula,
        symbols=("parameters",),
        states=(OptimizerState(name, formula, _BNB_32, (StateAmount(moments, bytes=4),)),),
        paged=paged,
    )


def _bitsandbytes_8_bit(title: str, moments: int, *, paged: bool = False) -> OptimizerKind:
    """Return a bitsandbytes optimizer with `moments` 8-bit states; embeddings and small tensors have 32-bit states."""
    name, times = ("moments", f" × {moments}") if moments > 1 else ("momentum", "")
    quantised, unquantized = f"Q{times} × (1 + 4 / B)", f"(P − Q) × {4 * moments}"
    amounts = (StateAmount(moments, bytes=1), StateAmount(moments, "scale", 4))
    return OptimizerKind(
        title=title,
        library="bitsandbytes",
        steps=_FUSED,
        formula=f"{quantised} + {unquantized}",
        symbols=_IN_8_BITS,
        states=(
            OptimizerState(f"8-bit {name}", quantised, _BNB_8, amounts, "quantised"),
            OptimizerState(
                f"32-bit {name} of embeddings and small tensors",
                unquantized,
                _TRAINER,
                (StateAmount(moments, bytes=4),),
            ),
        ),
        paged=paged,
    )


OPTIMIZERS: Final[dict[Optimizer, OptimizerKind]] = {
    "adamw": _adam_kind("AdamW", _ANY),
    "adam": _adam_kind("Adam", ("foreach", "fused", "loop")),
    "nadam": _adam_kind("NAdam", _FOREACH),
    "rmsprop": OptimizerKind(
        title="RMSprop",
        library="torch",
        torch_class="RMSprop",
        steps=_FOREACH,
        formula="P × w",
        states=(_SQUARES,),
        foreach=_ALL_AT_ONCE,
        loop=StepWorkspace("copies", "n × w", _ROOT),
    ),
    "adagrad": OptimizerKind(
        title="Adagrad",
        library="torch",
        torch_class="Adagrad",
        steps=_FOREACH,
        formula="P × w",
        states=(_SQUARES,),
        foreach=StepWorkspace(
            "copies-of-all",
            "2 × P_t × w",
            "torch.optim _multi_tensor_adagrad: the roots of all sums, and all quotients",
            2,
        ),
        loop=StepWorkspace("copies", "n × w", _ROOT),
    ),
    "adamw-8bit": _bitsandbytes_8_bit("AdamW 8-bit", 2),
    "adamw-32bit-bnb": _bitsandbytes_32_bit("AdamW 32-bit of bitsandbytes", 2),
    "paged-adamw-8bit": _bitsandbytes_8_bit("paged AdamW 8-bit", 2, paged=True),
    "paged-adamw-32bit": _bitsandbytes_32_bit("paged AdamW 32-bit", 2, paged=True),
    "adafactor": OptimizerKind(
        title="Adafactor",
        library="torch",
        torch_class="Adafactor",
        steps=("loop", "foreach"),
        formula="S × w + v × w",
        symbols=("parameters", "width", "rows-and-columns", "vectors"),
        states=(
            OptimizerState("rows and columns", "S × w", _ADAFACTOR, (StateAmount(1, "row-or-column"),), "matrices"),
            OptimizerState("variances of vectors", "v × w", _ADAFACTOR, (StateAmount(1),)),
        ),
        foreach=StepWorkspace(
            "copies-of-all",
            "P_t × w",
            "torch.optim Adafactor: the variance is multiplied out from its rows and columns",
        ),
        loop=StepWorkspace(
            "copies", "n × w", "torch.optim Adafactor: the variance is multiplied out from its rows and columns"
        ),
    ),
    "adafactor-transformers": OptimizerKind(
        title="Adafactor of transformers",
        library="transformers",
        steps=_LOOP,
        formula="S × 4 + v × 4 + 4 × (G_m + G_v)",
        symbols=("rows-and-columns", "vectors", "matrix-count", "vector-count"),
        states=(
            OptimizerState(
                "rows and columns in fp32",
                "S × 4 + 4 × G_m",
                _HF_ADAFACTOR,
                (StateAmount(1, "row-or-column", 4), StateAmount(1, "tensor", 4)),
                "matrices",
            ),
            OptimizerState(
                "variances of vectors in fp32",
                "v × 4 + 4 × G_v",
                _HF_ADAFACTOR,
                (StateAmount(1, "element", 4), StateAmount(1, "tensor", 4)),
            ),
        ),
        loop=StepWorkspace(
            "fp32-copies",
            "n × 4 × c",
            "transformers 5.23 optimization.Adafactor.step: squared gradient and update in fp32; for "
            "16-bit parameters, also fp32 copies of gradient and parameter",
        ),
    ),
    "sgd": OptimizerKind(title="SGD", library="torch", steps=_ANY, torch_class="SGD"),
    "sgd-momentum": OptimizerKind(
        title="SGD with momentum",
        library="torch",
        torch_class="SGD",
        momentum=0.9,
        steps=_ANY,
        formula="P × w",
        states=(OptimizerState("momentum", "P × w", _TORCH, (StateAmount(1),)),),
    ),
    "lion": _bitsandbytes_32_bit("Lion", 1),
    "lion-8bit": _bitsandbytes_8_bit("Lion 8-bit", 1),
    "paged-lion": _bitsandbytes_32_bit("paged Lion", 1, paged=True),
    "paged-lion-8bit": _bitsandbytes_8_bit("paged Lion 8-bit", 1, paged=True),
    "ademamix": _bitsandbytes_32_bit("AdEMAMix", 3),
    "ademamix-8bit": _bitsandbytes_8_bit("AdEMAMix 8-bit", 3),
    "paged-ademamix": _bitsandbytes_32_bit("paged AdEMAMix", 3, paged=True),
    "paged-ademamix-8bit": _bitsandbytes_8_bit("paged AdEMAMix 8-bit", 3, paged=True),
    "schedule-free-adamw": OptimizerKind(
        title="schedule-free AdamW",
        library="schedulefree",
        steps=_FOREACH,
        formula="2 × P × w",
        states=(OptimizerState("base sequence z and mean of squares", "2 × P × w", _SCHEDULE_FREE, (StateAmount(2),)),),
        foreach=StepWorkspace("copies-of-all", "P_t × w", f"{_SCHEDULE_FREE}: the roots of all second moments at once"),
        loop=StepWorkspace("copies", "n × w", f"{_SCHEDULE_FREE}: the root of one second moment"),
    ),
    "muon": OptimizerKind(
        title="Muon with AdamW",
        library="torch",
        steps=_LOOP,
        formula="M × w + 2 × (P − M) × w",
        symbols=("parameters", "width", "inner-matrices"),
        states=(
            OptimizerState("momentum of matrices", "M × w", _MUON, (StateAmount(1),), "inner-matrices"),
            OptimizerState("AdamW moments of all other tensors", "2 × (P − M) × w", _MUON, (StateAmount(2),)),
        ),
        loop=StepWorkspace(
            "newton-schulz",
            "n × w + 2 × (2 × n + 2 × k × k)",
            "torch.optim._muon: the update, its bf16 copy, and the products of Newton and Schulz",
        ),
    ),
    "galore-adamw": OptimizerKind(
        title="GaLore AdamW",
        library="galore-torch",
        steps=_LOOP,
        formula="(p + 2 × m) × w + 2 × (P − M) × w",
        symbols=("parameters", "width", "inner-matrices", "projectors", "projected"),
        states=(
            OptimizerState(
                "projections and projected moments",
                "(p + 2 × m) × w",
                _GALORE,
                (StateAmount(1, "projector"), StateAmount(2, "projected")),
                "inner-matrices",
            ),
            OptimizerState("moments of all other tensors", "2 × (P − M) × w", _GALORE, (StateAmount(2),)),
        ),
        loop=StepWorkspace(
            "decomposition",
            "4 × (2 × n + U + V) + n × w",
            "galore_torch: the singular value decomposition of one gradient, in fp32",
        ),
    ),
    "soap": OptimizerKind(
        title="SOAP",
        library="soap",
        steps=_LOOP,
        formula="2 × P × w + 8 × D",
        symbols=("parameters", "width", "squares"),
        states=(
            OptimizerState(
                "moments, preconditioners and their bases",
                "2 × P × w + 8 × D",
                _SOAP,
                (StateAmount(2), StateAmount(2, "square", 4)),
            ),
        ),
        loop=StepWorkspace("bases", "4 × (4 × m × n + m² + 7 × n²)", f"{_SOAP}; every tenth step decomposes anew"),
        fp32_only=True,
        # `init_preconditioner` leaves tensors of one dimension alone: on flat shares nothing would be preconditioned.
        whole_matrices=True,
    ),
    "shampoo": OptimizerKind(
        title="Shampoo in blocks",
        library="distributed-shampoo",
        steps=_FOREACH[:1],
        formula="P × w + 4 × D",
        symbols=("parameters", "width", "triangles"),
        states=(
            OptimizerState(
                "filtered gradients, factors and their roots",
                "P × w + 4 × D",
                _SHAMPOO,
                (StateAmount(1), StateAmount(1, "triangle", 4)),
            ),
        ),
        foreach=StepWorkspace("blocks", "2 × P_t × w + 7 × d² × 4", _SHAMPOO, 2),
    ),
}
"""Every optimizer by name.

**Source** of step implementations: the signatures of torch.optim 2.13 (AdamW, SGD: `foreach` and `fused`; Adafactor:
`foreach`, a loop by default; Muon: a loop; the others `foreach` on a GPU by default); bitsandbytes updates each tensor
in one kernel, and its AdEMAMix keeps two averages of gradients and one of squares (`init_state`); transformers'
Adafactor, galore_torch's AdamW and SOAP loop; schedulefree and DistributedShampoo step with `torch._foreach` calls.
"""


def optimizer_titles() -> dict[Optimizer, str]:
    """Return the capitalized titles of all optimizers by name, grouped by library."""
    libraries = list(dict.fromkeys(kind.library for kind in OPTIMIZERS.values()))
    grouped = sorted(OPTIMIZERS.items(), key=lambda item: libraries.index(item[1].library))
    return {name: f"{kind.title[0].upper()}{kind.title[1:]}" for name, kind in grouped}


def optimizer_library(optimizer: Optimizer) -> str:
    """Return the display name of an optimizer's library."""
    library = OPTIMIZERS[optimizer].library
    return "PyTorch" if library == "torch" else library


def optimizer_step_titles() -> dict[OptimizerStep, str]:
    """Return the titles of the optimizer step implementations."""
    return {"fused": "Fused", "foreach": "Foreach (all tensors at once)", "loop": "Loop (one tensor at a time)"}
