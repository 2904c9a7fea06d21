"""The batch and the sequence length of a request, wherever it says them: in its fields or in its inputs' shapes."""

from collections.abc import Callable

from planner.trace.request import Input, InputValue, ListInput, TensorInput, TraceRequest

_TOKENS = ("int64", "int32")
_Resize = Callable[[TensorInput], TensorInput]


def batch_of(request: TraceRequest) -> int | None:
    """Return the batch: the first dimension of the first input, or the field; none where the target decides."""
    first = _first_tensor(request)
    return request.batch if first is None else first.shape[0]


def with_batch(request: TraceRequest, batch: int | None) -> TraceRequest:
    """Return the request with another batch; every input of the same first dimension follows."""
    old = _first_tensor(request)
    if old is None or batch is None:
        return request.evolve(batch=batch)
    return _resized(request, lambda tensor: _with_size(tensor, 0, old.shape[0], batch))


def has_sequence(request: TraceRequest) -> bool:
    """Return whether the request says a sequence length: models do, and inputs of token numbers, batch × tokens."""
    return request.target.kind == "config" or request.sequence_length is not None or _tokens(request) is not None


def sequence_of(request: TraceRequest) -> int | None:
    """Return the sequence length: the second dimension of token numbers, or the field; none where the model decides."""
    tokens = _tokens(request)
    return request.sequence_length if tokens is None else tokens.shape[1]


def with_sequence(request: TraceRequest, length: int | None) -> TraceRequest:
    """Return the request with another sequence length; every input of the same second dimension follows."""
    old = _tokens(request)
    if old is None or length is None:
        return request.evolve(sequence_length=length)
    return _resized(request, lambda tensor: _with_size(tensor, 1, old.shape[1], length))


def _with_size(tensor: TensorInput, place: int, old: int, new: int) -> TensorInput:
    if len(tensor.shape) <= place or tensor.shape[place] != old:
        return tensor
    return tensor.evolve(shape=(*tensor.shape[:place], new, *tensor.shape[place + 1 :]))


def _resized(request: TraceRequest, resize: _Resize) -> TraceRequest:
    inputs = tuple(Input(name=given.name, value=_resized_value(given.value, resize)) for given in request.inputs)
    return request.evolve(inputs=inputs)


def _resized_value(value: InputValue, resize: _Resize) -> InputValue:
    if isinstance(value, ListInput):
        return value.evolve(items=tuple(_resized_value(item, resize) for item in value.items))
    return resize(value) if isinstance(value, TensorInput) else value


def _tokens(request: TraceRequest) -> TensorInput | None:
    first = _first_tensor(request)
    return first if first is not None and first.dtype in _TOKENS and len(first.shape) == 2 else None


def _first_tensor(request: TraceRequest) -> TensorInput | None:
    waiting = [given.value for given in request.inputs]
    while waiting:
        value = waiting.pop(0)
        if isinstance(value, TensorInput) and value.shape:
            return value
        if isinstance(value, ListInput):
            waiting = [*value.items, *waiting]
    return None
