"""Checkpoints without data: what a script saves of its tensors, and loads again, are their shapes."""

import importlib.util
import io
import os
import pickle
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import IO, Any, Final

import torch
from torch import nn
from torch._subclasses.fake_tensor import unset_fake_temporarily

from planner.trace.worker.cuda.dispatch import patched_attributes
from planner.trace.worker.tensors import map_tensors

_MARK: Final = b"tensors without data\n"


@contextmanager
def checkpoints_without_data() -> Iterator[None]:
    """Save the shapes of tensors in place of their data, and load such files as new tensors."""
    original_load = torch.load

    def save(obj: object, f: Any, *_args: Any, **_kwargs: Any) -> None:
        if hasattr(f, "write"):
            _write(obj, f)
        else:
            with open(f, "wb") as file:
                _write(obj, file)

    def load(f: Any, map_location: object = None, *args: Any, **kwargs: Any) -> Any:
        if hasattr(f, "read"):
            content = _loaded(f, original_load, args, kwargs)
        else:
            with open(f, "rb") as file:
                content = _loaded(file, original_load, args, kwargs | {"mmap": None})
        if isinstance(map_location, str | torch.device):
            return map_tensors(content, lambda tensor: tensor.to(map_location))
        return content

    with ExitStack() as stack:
        stack.enter_context(patched_attributes(torch, save=save, load=load))
        if importlib.util.find_spec("safetensors") is not None:
            import safetensors.torch as safetensors

            stack.enter_context(
                patched_attributes(
                    safetensors,
                    save_file=lambda tensors, filename, metadata=None: save(tensors, filename),
                    load_file=_load_file(safetensors),
                )
            )
        yield


def _loaded(file: Any, original_load: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return what is in a checkpoint, with new tensors for those that were saved."""
    start = file.tell()
    if file.read(len(_MARK)) != _MARK:
        file.seek(start)
        with unset_fake_temporarily():
            content = original_load(file, "meta", *args, **kwargs)
        file = io.BytesIO()
        _write(content, file)
        file.seek(len(_MARK))
    return _ShapeUnpickler(file).load()


def _load_file(safetensors: Any) -> Any:
    """Return the replacement of `safetensors.torch.load_file`."""

    def load_file(filename: str | os.PathLike[str], *_args: Any, **_kwargs: Any) -> Any:
        with open(filename, "rb") as file:
            if file.read(len(_MARK)) == _MARK:
                return _ShapeUnpickler(file).load()
        with safetensors.safe_open(filename, framework="pt") as content:
            slices = {name: content.get_slice(name) for name in content.keys()}  # noqa: SIM118  # no mapping
            return {
                name: torch.empty(part.get_shape(), dtype=safetensors._TYPES[part.get_dtype()])
                for name, part in slices.items()
            }

    return load_file


def _write(obj: object, file: IO[bytes]) -> None:
    content = io.BytesIO()
    _ShapePickler(content).dump(obj)
    file.write(_MARK + content.getvalue())


class _ShapePickler(pickle.Pickler):
    """Pickler that writes the shape of a tensor, and which storage it is a view of."""

    def persistent_id(self, obj: Any) -> Any:
        if not isinstance(obj, torch.Tensor):
            return None
        storage = obj.untyped_storage()
        view = (tuple(obj.shape), obj.stride(), obj.storage_offset())
        return storage._cdata, storage.nbytes(), obj.dtype, view, isinstance(obj, nn.Parameter), obj.requires_grad


class _ShapeUnpickler(pickle.Unpickler):
    """Unpickler that makes a tensor for each shape; views of one storage share one again."""

    def __init__(self, file: Any) -> None:
        super().__init__(file)
        self._storages: dict[int, torch.Tensor] = {}

    def persistent_load(self, pid: Any) -> torch.Tensor:
        key, size, dtype, (shape, stride, offset), is_parameter, requires_grad = pid
        if key not in self._storages:
            self._storages[key] = torch.empty(size // dtype.itemsize, dtype=dtype)
        tensor = self._storages[key].as_strided(shape, stride, offset)
        return nn.Parameter(tensor, requires_grad) if is_parameter else tensor.requires_grad_(requires_grad)
