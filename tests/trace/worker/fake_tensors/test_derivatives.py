"""What autograd does in place on plain tensors, and not on fake ones: traced as on plain ones."""

from collections.abc import Callable

import pytest
import torch
from levels import hidden_state, real_levels, traced_levels
from torch import nn
from torch.nn import functional


def residual() -> None:
    """A gradient that goes both ways is not changed while both need it."""
    state = hidden_state()
    (functional.gelu(state + functional.gelu(state)) * 2.0).sum().backward()


def two_uses() -> None:
    state = hidden_state()
    (torch.relu(state) * functional.gelu(state)).sum().backward()


def two_sums() -> None:
    """The same gradient goes to two sums: the one cannot add to it in place before the other is through."""
    first, second = hidden_state(), hidden_state()
    ((first + second) * torch.relu(first) * torch.relu(second)).sum().backward()


def gradient_that_is_held() -> None:
    state = hidden_state()
    inner = torch.relu(state)
    kept: list[torch.Tensor] = []
    inner.register_hook(kept.append)
    (inner + torch.relu(inner) + functional.gelu(inner)).sum().backward()


def tied_weight() -> None:
    weight = torch.randn(300, 64, requires_grad=True)
    tokens = torch.zeros(4, 8, dtype=torch.int64)
    functional.linear(functional.embedding(tokens, weight), weight).sum().backward()


def parts() -> None:
    state = hidden_state()
    one, two, three = state.split((64, 64, 128), 1)
    ((one * two).sum() + three.sum()).backward()


def selections() -> dict[str, Callable[[torch.Tensor], torch.Tensor]]:
    """Return operators that select elements: their derivatives write the gradients into zeros."""
    rows = torch.arange(64) % 7
    places = torch.zeros(64, 128, dtype=torch.int64)
    return {
        "index": lambda state: state[rows],
        "two indices": lambda state: state[rows, rows],
        "gather": lambda state: state.gather(1, places),
        "index_select": lambda state: state.index_select(1, rows),
        "max of rows": lambda state: state.max(1).values,
        "min of columns": lambda state: state.min(0).values,
        "topk": lambda state: state.topk(128, 1).values,
        "take_along_dim": lambda state: state.take_along_dim(places, 1),
        "sort": lambda state: state.sort(1).values,
        "median of rows": lambda state: state.median(1).values,
        "mode": lambda state: state.mode(1).values,
        "kthvalue": lambda state: state.kthvalue(3, 1).values,
        "quantile": lambda state: state.quantile(0.5, 1),
        "cummax": lambda state: state.cummax(1).values,
        "take": lambda state: state.take(rows),
        "trace": lambda state: state.trace(),
    }


@pytest.mark.parametrize("name", selections())
def test_gradients_of_selected_elements_are_written_into_zeros(name: str) -> None:
    def work() -> None:
        (selections()[name](hidden_state()) * 1.0).sum().backward()

    assert max(traced_levels(work)) == pytest.approx(max(real_levels(work)), abs=32)


@pytest.mark.parametrize("name", ["index", "gather", "sort"])
def test_transformed_functions_write_out_of_place(name: str) -> None:
    """`torch.func.grad` wraps tensors, to which PyTorch does not write in place in a real run either."""

    def work() -> None:
        torch.func.grad(lambda state: (selections()[name](state) * state.sum()).sum())(torch.randn(64, 256))

    assert max(traced_levels(work)) == pytest.approx(max(real_levels(work)), abs=32)


@pytest.mark.parametrize("weights", [(), ("pos_weight",), ("weight",)])
def test_a_binary_cross_entropy_changes_its_own_results(weights: tuple[str, ...]) -> None:
    def work() -> None:
        options = {name: torch.ones(256) for name in weights}
        functional.binary_cross_entropy_with_logits(hidden_state(), torch.ones(64, 256), **options).backward()

    assert max(traced_levels(work)) == pytest.approx(max(real_levels(work)), abs=32)


@pytest.mark.parametrize("work", [residual, two_uses, two_sums, gradient_that_is_held, tied_weight, parts])
def test_gradients_come_together_as_in_a_real_run(work: Callable[[], None]) -> None:
    assert max(traced_levels(work)) == pytest.approx(max(real_levels(work)), abs=64)


def test_the_bias_of_a_recurrent_layer_is_added_in_place() -> None:
    def work() -> None:
        with torch.no_grad():
            nn.GRU(32, 64, batch_first=True)(torch.randn(4, 20, 32))

    assert max(traced_levels(work)) == pytest.approx(max(real_levels(work)), abs=64)
