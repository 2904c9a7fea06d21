"""Operators that a program defines itself in Python."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from torch._library.custom_ops import CustomOpDef

from planner.trace.worker.cuda.dispatch import patched_attributes
from planner.trace.worker.ledger import AllocationLedger


@contextmanager
def custom_operators(ledger: AllocationLedger) -> Iterator[None]:
    """Run the function of a custom operator on fake tensors, operator by operator, if it has no other for them."""
    original_init = CustomOpDef.__init__

    def init(operator: Any, namespace: str, name: str, schema: str, fn: Callable[..., Any], *args: Any) -> None:
        def run(*inputs: Any, **options: Any) -> Any:
            with ledger.recorded():
                return fn(*inputs, **options)

        original_init(operator, namespace, name, schema, fn, *args)
        operator._abstract_fn = run

    with patched_attributes(CustomOpDef, __init__=init):
        yield
