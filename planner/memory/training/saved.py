"""What the forward pass keeps, written down: each kind of bytes per token, with its formula."""

from operator import attrgetter

from planner.memory.result import Part, Term
from planner.memory.terms import checked, model
from planner.memory.terms import workload as chosen
from planner.memory.training.autograd.layer import Ledger
from planner.memory.training.autograd.network import Saved
from planner.memory.training.checkpointing import CORE_ATTENTION, OPERATORS
from planner.workload.workload import Training

_SOURCE = "saved tensors of PyTorch 2.13 operators and transformers 5.23 modules, operation by operation"


def activations_term(saved: Saved, alive: int, workload: Training) -> Term:
    """Return the activations of `workload` at a snapshot when `alive` bytes of them are there.

    **Formula**: Σ over what is kept, or one layer where the backward pass has freed the rest.
    """
    tokens = workload.micro_batch * (workload.sequence_length or 0)
    selective = workload.activation_checkpointing == "selective"
    shares = _shares(saved, alive, tokens, selective=selective)
    return checked(
        "activations",
        alive,
        " + ".join(symbol for symbol, _ in shares),
        (
            *(model(symbol, part.bytes, f"bytes of {part.name}") for symbol, part in shares),
            chosen("T", tokens, f"tokens: {workload.micro_batch:,} × {workload.sequence_length:,}"),
        ),
        f"{_SOURCE}; {CORE_ATTENTION if workload.profile == 'megatron' else OPERATORS}" if selective else _SOURCE,
        tuple(part for _, part in shares),
    )


def _shares(saved: Saved, alive: int, tokens: int, *, selective: bool) -> list[tuple[str, Part]]:
    """Return what the `alive` bytes are made of, each with its symbol."""
    if alive < saved.total:
        return [("O", _part("one layer and its gradients", alive, f"{alive:,}"))]
    checkpoints = "checkpoints, each layer's input" + (" and what its products put out" if selective else "")
    found = [
        (symbol, _part(name, kept, _per_token(kept, tokens, [(count, pick(ledger)) for count, ledger in saved.layers])))
        for symbol, name, kept, pick in (
            ("N", "norms and their inputs", saved.norms, attrgetter("norms")),
            ("Q", "queries, keys, values and attention output", saved.attention, attrgetter("attention")),
            ("F", "feed-forward blocks", saved.feed_forward, attrgetter("feed_forward")),
            ("S", "attention scores and masks", saved.scores, _not_per_layer),
            ("D", "dropout masks", saved.dropout, attrgetter("dropout")),
            ("A", "what adapters read", saved.adapters, attrgetter("adapters")),
            ("C", checkpoints, saved.checkpoints, _not_per_layer),
        )
        if kept
    ]
    extra = alive - saved.total
    if extra:
        name = "one layer computed again, with its gradients" if saved.recomputed else "gradients of the last layer"
        found.append(("G", _part(name, extra, _per_token(extra, tokens, []))))
    return found


def _part(name: str, count_bytes: int, formula: str) -> Part:
    return Part(name=name, bytes=count_bytes, formula=formula, source=_SOURCE)


def _per_token(kept: int, tokens: int, layers: list[tuple[int, int]]) -> str:
    """Return `kept` as bytes per token: layers × what each keeps, and what stands outside the layers."""
    if tokens == 0 or kept % tokens:
        return f"{kept:,}"
    numbers: dict[int, int] = {}
    for count, each in layers:
        numbers[each] = numbers.get(each, 0) + count
    rest = kept // tokens - sum(count * each for each, count in numbers.items())
    if rest < 0:
        return f"{kept:,}"
    shown = [f"{count} × {each:,}" for each, count in numbers.items() if each]
    shown += [f"{rest:,}"] if rest else []
    return f"T × {shown[0]}" if len(shown) == 1 else f"T × ({' + '.join(shown)})"


def _not_per_layer(_ledger: Ledger) -> int:
    return 0
