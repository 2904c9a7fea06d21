"""Gradients of the trained parameters."""

from functools import lru_cache

from planner.memory.result import Term
from planner.memory.terms import model, number_format, term


@lru_cache(maxsize=256)
def gradients_term(trainable: int, gradient_bytes: int) -> Term:
    """Return the memory of one gradient of `gradient_bytes` for each of `trainable` parameters.

    **Formula**: P_t · w, in the format of the parameters.

    **Source**: torch.autograd: a leaf's `.grad` has the leaf's dtype.
    """
    return term(
        "gradients",
        trainable * gradient_bytes,
        "P_t × w",
        (
            model("P_t", trainable, "trained parameters"),
            number_format("w", gradient_bytes, "bytes per gradient, as the parameters"),
        ),
        "torch.autograd: .grad has the dtype of its parameter",
    )
