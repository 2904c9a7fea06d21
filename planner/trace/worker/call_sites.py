"""Origin of operator calls: the module's path and the user's source line."""

import sys
from collections.abc import Mapping
from pathlib import Path
from types import CodeType, FrameType, TracebackType
from typing import Any, Final, Literal, Self

import torch
from torch import nn

_TORCH: Final = Path(torch.__file__).parent
_OURS: Final = (str(_TORCH), str(Path(__file__).parent), "<")
_SPREADS: Final = (str(_TORCH / "distributed"), str(_TORCH / "nn" / "parallel"))
_VIEWS_IN_A_ROW: Final = 16

_Kind = Literal["person", "torch", "ranks"]


class NameTable:
    """Names numbered in the order of first appearance."""

    def __init__(self, *first: str) -> None:
        self._numbers: dict[str, int] = {}
        for name in first:
            self.number(name)

    def number(self, name: str) -> int:
        """Return the number of `name`."""
        return self._numbers.setdefault(name, len(self._numbers))

    def all(self) -> tuple[str, ...]:
        """Return the names in order of their numbers."""
        return tuple(self._numbers)


class CallSites:
    """Tracks the running module and the current line of the user's code.

    In the backward pass no Python code runs: the call site is then that of the forward operator whose derivative is
    computed, found by autograd's sequence number.
    """

    def __init__(self) -> None:
        self.modules = NameTable("")
        self.lines = NameTable("")
        self._paths: dict[int, int] = {}
        self._owners: dict[int, int] = {}
        self._running: list[int] = []
        self._forward: dict[int, tuple[int, int]] = {}
        self._kinds: dict[CodeType, _Kind] = {}
        self.spreads = False
        """Whether what was last asked for a place is part of working on several ranks."""
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

    def know(self, modules: Mapping[str, nn.Module]) -> None:
        """Register the paths of `modules`, their submodules, and their parameters."""
        for name, root in modules.items():
            for path, module in root.named_modules(prefix=name):
                number = self._paths.setdefault(id(module), self.modules.number(path))
                for parameter in module.parameters(recurse=False):
                    self._owners.setdefault(id(parameter), number)

    def owner(self, parameter: torch.Tensor | None) -> int | None:
        """Return the number of the module that owns `parameter`, if known."""
        return None if parameter is None else self._owners.get(id(parameter))

    @property
    def in_module(self) -> bool:
        """Return whether a module's forward pass runs, even as recomputation in the backward pass."""
        return bool(self._running)

    def here(self) -> tuple[int, int]:
        """Return the numbers of the current module and line."""
        module = self._running[-1] if self._running else 0
        line = self._line()
        node = torch._C._current_autograd_node()
        if node is None or self._running:
            if torch.is_grad_enabled():
                # The operator's own node was numbered just before its kernel; what follows under the same number is
                # not differentiable.
                self._forward.setdefault(torch._C._autograd._get_sequence_nr() - 1, (module, line))
            return module, line
        return self._forward_place(node._sequence_nr()) or (0, line)

    def with_current_line(self, text: str) -> str:
        """Return `text` with the current line, unless that is PyTorch's own."""
        line = self.lines.all()[self._line()]
        return f"{text} ({line})" if line else text

    def _forward_place(self, number: int) -> tuple[int, int] | None:
        # Views allocate nothing, so they are not noted; their derivatives take the place of what came before them.
        return next((place for back in range(_VIEWS_IN_A_ROW) if (place := self._forward.get(number - back))), None)

    def _line(self) -> int:
        frame: FrameType | None = sys._getframe(2)
        self.spreads = False
        while frame is not None:
            code = frame.f_code
            kind = self._kinds.get(code)
            if kind is None:
                kind = self._kinds[code] = _kind(code.co_filename)
            if kind == "person":
                return self.lines.number(f"{code.co_filename}:{frame.f_lineno}")
            self.spreads |= kind == "ranks"
            frame = frame.f_back
        return 0

    def _enter_module(self, module: nn.Module, _inputs: object) -> None:
        path = self._paths.get(id(module))
        self._running.append(self._running[-1] if path is None and self._running else path or 0)

    def _leave_module(self, _module: nn.Module, _inputs: object, _output: object) -> None:
        if self._running:
            self._running.pop()


def _kind(file: str) -> _Kind:
    if file.startswith(_SPREADS):
        return "ranks"
    return "torch" if file.startswith(_OURS) else "person"
