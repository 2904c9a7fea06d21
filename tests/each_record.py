"""One test for all records of a kind: the check of one record is far shorter than a test of its own for it would be."""

import functools
import inspect
from collections.abc import Callable, Iterable

import pytest


def for_each(name: str, values: Iterable[object]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a check once for each of `values`, given as its argument `name`, in one test that names all that fail."""
    cases = list(values)
    assert cases, "there is nothing to check"

    def decorated(check: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(check)
        def test(**fixtures: object) -> None:
            failed, skipped = [], []
            for case in cases:
                try:
                    check(**{name: case}, **fixtures)
                except pytest.skip.Exception as reason:
                    skipped.append(str(reason))
                except AssertionError as error:
                    failed.append(f"{getattr(case, 'id', case)}: {error}")
            if failed:
                pytest.fail(f"{len(failed)} of {len(cases)} fail:\n" + "\n".join(failed), pytrace=False)
            if len(skipped) == len(cases):
                pytest.skip(skipped[0])

        signature = inspect.signature(check)
        others = [parameter for key, parameter in signature.parameters.items() if key != name]
        test.__signature__ = signature.replace(parameters=others)  # type: ignore[attr-defined]
        return test

    return decorated
