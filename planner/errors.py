"""Errors that are shown to the user as they are; any other exception is a bug.

```
PlannerError(message, hint)
 ├ SpecError(field, reason)            a value that is not allowed, field by field
 │  └ AmbiguousNameError(candidates)   a name that can mean several
 ├ CatalogError(path, record, field)   bundled or own data that does not validate
 ├ FileError(path, reason)             a file that cannot be read or written
 │  ├ ModelFileError                    unreadable, truncated, hostile or unsupported model files
 │  ├ PlanFileError                     a plan that cannot be read or written
 │  ├ RecipeError                       another program's training file that cannot be read
 │  ├ TrafficFileError                  recorded requests of a service that cannot be read
 │  └ RecordingError                    a recording of the monitor that cannot be read or written
 ├ NetworkError                        a remote machine that cannot be reached
 ├ MissingPackageError                 an optional package that the request needs and that is not installed
 ├ LogError(reason)                    output of a run that cannot be read
 ├ TraceError(stage, reason)           a module that could not be traced, with the user's own traceback
 ├ PriceError(provider, reason)        prices that cannot be fetched or read, or are implausible
 └ MonitorUnavailableError(reason)     no GPU can be monitored, with a named state that explains why
```
"""

import copyreg
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from planner.validation import field_path, reason_text, validation_hint

TRACE_STAGES: Final = {
    "start": "",
    "load": "",
    "import": "while importing",
    "build": "while building the module",
    "forward": "in the forward pass",
    "loss": "in the loss",
    "backward": "in the backward pass",
    "step": "in the optimizer step",
    "prefill": "while reading the prompt",
    "decode": "while answering",
    "finish": "at the end of the trace",
    "cancelled": "",
}
"""Phrase for each stage of a trace in error messages."""
_PRINTED_CHARACTERS: Final = 2_000
TRACE_INSTRUCTIONS: Final = (
    "“Trace a module…” in the window's Plan menu, or `gpu-planner trace my_net.py:NAME` in a shell"
)
"""How to start a trace, for hints in the window and in the command line."""


class PlannerError(Exception):
    """An error with a message that describes the problem and a hint that suggests a remedy."""

    environment = False
    """True if this machine lacks something that the request needs, such as a package; False if the request is wrong."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __reduce__(self) -> tuple[object, ...]:
        # By default a copy would be made by its class of the message alone, which is not what most classes take.
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]


class SpecError(PlannerError):
    """An invalid value, with its field; the field is empty if several values conflict."""

    def __init__(self, field: str, reason: str, hint: str = "") -> None:
        super().__init__(f"{field}: {reason}" if field else reason, hint)
        self.field = field
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.message.removesuffix('.')}. {self.hint}" if self.hint else self.message

    @property
    def explanation(self) -> str:
        """Return the error's reason and hint as sentences, for display next to the field."""
        sentence = f"{self.reason[:1].upper()}{self.reason[1:]}{'' if self.reason.endswith('.') else '.'}"
        return f"{sentence} {self.hint}".strip()

    @classmethod
    def from_validation(cls, error: ValidationError, prefix: str = "", names: Iterable[str] = ()) -> "SpecError":
        """Return pydantic's first error as a `SpecError`.

        Args:
            error: Pydantic's error.
            prefix: Path of the object, such as `workload`.
            names: Fields of the object, if a close one shall be named instead of an unknown one.
        """
        problem = error.errors(include_url=False)[0]
        return cls(field_path(problem, prefix), reason_text(problem), validation_hint(problem, names))


class AmbiguousNameError(SpecError):
    """A name that can mean several GPUs, systems or models; `candidates` are their ids."""

    def __init__(self, field: str, name: str, candidates: tuple[str, ...]) -> None:
        super().__init__(
            field,
            f"{name!r} can mean {len(candidates)}: {', '.join(candidates)}",
            hint=f"Write one of these ids, such as {candidates[0]!r}.",
        )
        self.candidates = candidates


class CatalogError(PlannerError):
    """Catalog data that does not validate, with its file, record and field."""

    def __init__(self, path: Path, record: str, field: str, reason: str, hint: str = "") -> None:
        where = " · ".join(part for part in (str(path), record, field) if part)
        super().__init__(f"{where}: {reason}", hint)
        self.path, self.record, self.field = path, record, field


class FileError(PlannerError):
    """A file that cannot be read or written; `path` is the file, or the name of what stands for it."""

    def __init__(self, path: Path | str, reason: str, hint: str = "") -> None:
        super().__init__(f"{path}: {reason}", hint)
        self.path, self.reason = path, reason


class ModelFileError(FileError):
    """A model file that is unreadable, truncated, invalid or of an unsupported kind."""


class NoFormulaError(ModelFileError):
    """A network that has no memory formula.

    `traceable` is the argument for `gpu-planner trace`, which measures it, and `advice` what else may help.
    """

    def __init__(self, path: Path | str, reason: str, traceable: str, hint: str = "") -> None:
        target = f'"{traceable}"' if " " in traceable else traceable
        super().__init__(
            path,
            reason,
            "A trace measures its memory without a formula: “Trace it…” in the window, "
            f"`gpu-planner trace {target}` in a shell. {hint}".strip(),
        )
        self.traceable, self.advice = traceable, hint


class NetworkError(PlannerError):
    """A remote machine that cannot be reached or does not answer in time."""

    environment = True


class MissingPackageError(PlannerError):
    """An optional package that the request needs and that is not installed; the hint says how to install it."""

    environment = True


class PlanFileError(FileError):
    """A plan file that cannot be read or written; `version` is its schema version where that is the reason."""

    def __init__(self, path: Path, reason: str, hint: str = "", version: int | None = None) -> None:
        super().__init__(path, reason, hint)
        self.version = version


class RecipeError(FileError):
    """A training configuration of another program that cannot be read."""


class TrafficFileError(FileError):
    """A file with recorded requests of a service that cannot be read."""


class LogError(PlannerError):
    """A run's output or log file that cannot be read."""


class TraceError(PlannerError):
    """A user's module that could not be traced, with the stage at which it failed.

    `stage` is one of `TRACE_STAGES`. `traceback` starts at the user's file, and `printed` is the last output of the
    user's code; both may be empty.
    """

    def __init__(
        self,
        stage: str,
        reason: str,
        hint: str = "",
        *,
        traceback: str = "",
        printed: str = "",
        environment: bool = False,
    ) -> None:
        where = TRACE_STAGES.get(stage, stage)
        super().__init__(f"{where}: {reason}" if where else reason, hint)
        self.stage, self.reason = stage, reason
        self.traceback, self.printed = traceback, printed
        self.environment = environment

    @property
    def details(self) -> str:
        """Return the traceback and the last printed output as one text."""
        printed = f"it printed:\n{self.printed[-_PRINTED_CHARACTERS:]}" if self.printed else ""
        return "\n\n".join(part.rstrip() for part in (self.traceback, printed) if part)


class RecordingError(FileError):
    """A recording of the monitor, or another program's log, that cannot be read or written."""


class PriceError(PlannerError):
    """Prices that cannot be fetched or read, or are implausible; `provider` is the provider, a host or a file."""

    def __init__(self, provider: str, reason: str, hint: str = "", *, environment: bool = False) -> None:
        super().__init__(f"{provider}: {reason}", hint)
        self.provider, self.reason = provider, reason
        self.environment = environment


class MonitorUnavailableError(PlannerError):
    """No GPU can be monitored on this machine; `kind` says why."""

    environment = True

    def __init__(self, reason: str, hint: str, kind: str) -> None:
        super().__init__(reason, hint)
        self.reason, self.kind = reason, kind
