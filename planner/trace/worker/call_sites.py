"""Origin of operator calls: the module's path and the user's source line."""

import sys
from collections.abc import Mapping
from pathlib import Path
from types import CodeType, FrameType, TracebackType
from typing import Any, Final, Literal, Self

import torch
from torch import nn

_TORCH_FOLDER: Final = Path(torch.__file__).parent
_TORCH_AND_WORKER: Final = (str(_TORCH_FOLDER), str(Path(__file__).parent), "<")
_PLUMBING: Final = (str(Path(__file__).parent), str(_TORCH_FOLDER / "_"), str(_TORCH_FOLDER / "utils"), "<")
"""Code between a library's line and the operator that it runs."""
_DISTRIBUTED_FOLDERS: Final = (str(_TORCH_FOLDER / "distributed"), str(_TORCH_FOLDER / "nn" / "parallel"))
_VIEWS_IN_A_ROW: Final = 16

_CodeKind = Literal["user", "torch", "ranks"]


class NameTable:
    """Distinct names, numbered in the order of first appearance."""

    def __init__(self, *first: str) -> None:
        self._numbers: dict[str, int] = {}
        for name in first:
            self.number(name)

    def number(self, name: str) -> int:
        """Return the number of `name`."""
        return self._numbers.setdefault(name, len(self._numbers))

    def names(self) -> tuple[str, ...]:
        """Return the names in order of their numbers."""
        return tuple(self._numbers)


class CallSites:
    """Tracker of the running module and of the current line of the user's code.

    In the backward pass no Python code runs: the call site is then the site of the forward operator that is
    differentiated, identified by autograd's sequence number.
    """

    def __init__(self) -> None:
        self.modules = NameTable("")
        self.lines = NameTable("")
        self._path_numbers: dict[int, int] = {}
        self._owner_numbers: dict[int, int] = {}
        self._running_modules: list[int] = []
        self._forward_places: dict[int, tuple[int, int]] = {}
        self._code_kinds: dict[CodeType, _CodeKind] = {}
        self.is_distributed = False
        """Whether PyTorch's distributed code called the operator whose line was looked up last."""
        self._hooks: list[Any] = []

    def __enter__(self) -> Self:
        before, after = (
            nn.modules.module.register_module_forward_pre_hook,
            nn.modules.module.register_module_forward_hook,
        )
        self._hooks = [before(self._enter_module), after(self._leave_module, always_call=True)]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for hook in self._hooks:
            hook.remove()

    def register(self, modules: Mapping[str, nn.Module]) -> None:
        """Register the paths of `modules`, their submodules, and their parameters."""
        for name, root in modules.items():
            for path, module in root.named_modules(prefix=name):
                number = self._path_numbers.setdefault(id(module), self.modules.number(path))
                for parameter in module.parameters(recurse=False):
                    self._owner_numbers.setdefault(id(parameter), number)

    def owner_number(self, parameter: torch.Tensor | None) -> int | None:
        """Return the number of the module that owns `parameter`, if known."""
        return None if parameter is None else self._owner_numbers.get(id(parameter))

    @property
    def in_module(self) -> bool:
        """Return whether a module's forward pass runs, even as recomputation in the backward pass."""
        return bool(self._running_modules)

    def current_module_and_line(self) -> tuple[int, int]:
        """Return the numbers of the running module and of the user's current line."""
        module = self._running_modules[-1] if self._running_modules else 0
        line = self._current_line()
        node = torch._C._current_autograd_node()
        if node is None or self._running_modules:
            if torch.is_grad_enabled():
                # The operator's own node was numbered just before its kernel; what follows under the same number is
                # not differentiable.
                self._forward_places.setdefault(torch._C._autograd._get_sequence_nr() - 1, (module, line))
            return module, line
        return self._forward_module_and_line(node._sequence_nr()) or (0, line)

    def user_and_library_line(self) -> tuple[str, str]:
        """Return the user's current line, empty if only PyTorch's code runs, and the line of the library it calls."""
        number = self._current_line()
        user_line = self.lines.names()[number]
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename.startswith(_PLUMBING):
            frame = frame.f_back
        return user_line, f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame else user_line

    def _forward_module_and_line(self, number: int) -> tuple[int, int] | None:
        """Return the numbers of module and line of the operator with this autograd sequence number, or None."""
        # Views allocate nothing, so they are not recorded; their derivatives get the place of the operator before them.
        return next(
            (place for back in range(_VIEWS_IN_A_ROW) if (place := self._forward_places.get(number - back))), None
        )

    def _current_line(self) -> int:
        """Return the number of the innermost line of the user's code on the stack, 0 if there is none."""
        frame: FrameType | None = sys._getframe(2)
        self.is_distributed = False
        while frame is not None:
            code = frame.f_code
            kind = self._code_kinds.get(code)
            if kind is None:
                kind = self._code_kinds[code] = _code_kind(code.co_filename)
            if kind == "user":
                return self.lines.number(f"{code.co_filename}:{frame.f_lineno}")
            self.is_distributed |= kind == "ranks"
            frame = frame.f_back
        return 0

    def _enter_module(self, module: nn.Module, _inputs: object) -> None:
        """Note that a module's forward pass begins."""
        path_number = self._path_numbers.get(id(module))
        self._running_modules.append(
            self._running_modules[-1] if path_number is None and self._running_modules else path_number or 0
        )

    def _leave_module(self, _module: nn.Module, _inputs: object, _output: object) -> None:
        """Note that a module's forward pass ends."""
        if self._running_modules:
            self._running_modules.pop()


def _code_kind(file: str) -> _CodeKind:
    """Return whether a file is the user's code, PyTorch's code, or PyTorch's distributed code."""
    if file.startswith(_DISTRIBUTED_FOLDERS):
        return "ranks"
    return "torch" if file.startswith(_TORCH_AND_WORKER) else "user"
