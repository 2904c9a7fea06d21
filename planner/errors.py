"""The errors that people see as they are; anything else is a bug.

```
PlannerError(message, hint)
 ├ SpecError(field, reason)            a value that is not allowed, field by field
 │  └ AmbiguousNameError(candidates)   a name that matches several records
 ├ CatalogError(path, record, field)   bundled or own data that does not validate
 ├ ModelFileError(path, reason)        unreadable, truncated, hostile or unsupported model files
 ├ NetworkError                        what was asked for lies elsewhere, and cannot be reached
 ├ PlanFileError(path, reason)         a plan that cannot be read or written
 ├ RecipeError(path, reason)           another program's training file that cannot be read
 ├ LogError(reason)                    a text of a run that cannot be read
 ├ TraceError(stage, reason)           a module that could not be traced, with the user's own traceback
 ├ PriceError(provider, reason)        prices that cannot be fetched, read or believed
 ├ RecordingError(path, reason)        a recording of the monitor that cannot be read or written
 └ MonitorUnavailableError(reason)     no card can be read, with the named state that explains it
```
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pydantic import ValidationError

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

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
    "finish": "at the end",
    "cancelled": "",
}
"""How far a trace can come, with the words for it."""
NO_SUCH_FIELD: Final = "there is no such field"
_PRINTED_CHARACTERS: Final = 2_000
_TASKS: Final = ("training", "inference")
_BOUNDS: Final = {
    "greater_than_equal": ("at least", "ge"),
    "greater_than": ("more than", "gt"),
    "less_than_equal": ("at most", "le"),
    "less_than": ("less than", "lt"),
}
"""The words for pydantic's limits, with its name of the number."""
_WHOLE: Final = "{} is not a whole number"
_FIELDS: Final = "{} is no object of named fields"
_KINDS: Final = {
    "int_parsing": _WHOLE,
    "int_type": _WHOLE,
    "int_from_float": _WHOLE,
    "int_parsing_size": "{} is too large",
    "float_parsing": "{} is not a number",
    "float_type": "{} is not a number",
    "finite_number": "{} is not a finite number",
    "bool_parsing": "{} is neither true nor false",
    "bool_type": "{} is neither true nor false",
    "string_type": "{} is not a text",
    "tuple_type": "{} is not a list",
    "list_type": "{} is not a list",
    "model_type": _FIELDS,
    "model_attributes_type": _FIELDS,
    "dict_type": _FIELDS,
    "missing": "is missing",
    "too_long": "{} holds too many values",
    "too_short": "{} holds too few values",
}
"""What pydantic finds of another kind than was expected, in words."""


class PlannerError(Exception):
    """An error with a message that says what happened and a hint that says what to do."""

    environment = False
    """Whether the reason is something that the machine lacks, rather than what was asked."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class SpecError(PlannerError):
    """A value that is not allowed, with the field that holds it; empty where several do not go together."""

    def __init__(self, field: str, reason: str, hint: str = "") -> None:
        super().__init__(f"{field}: {reason}" if field else reason, hint)
        self.field = field
        self.reason = reason

    @property
    def explained(self) -> str:
        """Return the reason and the hint as sentences, to be shown beside the field itself."""
        sentence = f"{self.reason[:1].upper()}{self.reason[1:]}{'' if self.reason.endswith('.') else '.'}"
        return f"{sentence} {self.hint}".strip()

    @classmethod
    def from_validation(cls, error: ValidationError, prefix: str = "") -> "SpecError":
        """Translate the first problem that pydantic found; `prefix` names the place, such as `workload`."""
        problem = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in (*((prefix,) if prefix else ()), *_named(problem["loc"])))
        if problem["type"] == "extra_forbidden":
            return cls(where, NO_SUCH_FIELD, hint="Check its spelling.")
        return cls(where, _reason(problem), _close_names(problem))


class AmbiguousNameError(SpecError):
    """A name that matches several records; `candidates` are their ids."""

    def __init__(self, field: str, name: str, candidates: tuple[str, ...]) -> None:
        super().__init__(
            field,
            f"{name!r} matches {len(candidates)} records: {', '.join(candidates)}",
            hint=f"Write one of them, such as {candidates[0]!r}.",
        )
        self.candidates = candidates


class CatalogError(PlannerError):
    """Catalog data that does not validate, with its file, record and field."""

    def __init__(self, path: Path, record: str, field: str, reason: str, hint: str = "") -> None:
        where = " · ".join(part for part in (str(path), record, field) if part)
        super().__init__(f"{where}: {reason}", hint)
        self.path, self.record, self.field = path, record, field


class ModelFileError(PlannerError):
    """A model file that cannot be read as what it claims to be."""

    def __init__(self, path: Path | str, reason: str, hint: str = "") -> None:
        super().__init__(f"{path}: {reason}", hint)
        self.path, self.reason = path, reason


class NoFormulaError(ModelFileError):
    """A network that no formula is known for: `traceable` is what to trace instead, as `gpu-planner trace` takes it."""

    def __init__(self, path: Path | str, reason: str, traceable: str, hint: str = "") -> None:
        target = f'"{traceable}"' if " " in traceable else traceable
        super().__init__(
            path, reason, f"The trace measures it all the same: `gpu-planner trace {target}`. {hint}".strip()
        )
        self.traceable = traceable


class NetworkError(PlannerError):
    """What was asked for lies on another machine that cannot be reached, or does not answer in time."""

    environment = True


class PlanFileError(PlannerError):
    """A plan file that cannot be read or written; `version` is its schema version where that is the reason."""

    def __init__(self, path: Path, reason: str, hint: str = "", version: int | None = None) -> None:
        super().__init__(f"{path}: {reason}", hint)
        self.path, self.reason, self.version = path, reason, version


class RecipeError(PlannerError):
    """A training file of another program that cannot be read, with its name and the key."""

    def __init__(self, path: Path | str, reason: str, hint: str = "") -> None:
        super().__init__(f"{path}: {reason}", hint)
        self.path, self.reason = path, reason


class LogError(PlannerError):
    """What a run printed, or a file of it, that cannot be read."""


class TraceError(PlannerError):
    """A module that could not be traced.

    `stage` is one of `TRACE_STAGES`; `traceback` is the user's own, from their file on, and `printed` the end of what
    their code printed; both are empty where there is none.
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
        """Return the traceback and the last of what was printed, as one text."""
        printed = f"the module printed:\n{self.printed[-_PRINTED_CHARACTERS:]}" if self.printed else ""
        return "\n\n".join(part.rstrip() for part in (self.traceback, printed) if part)


class RecordingError(PlannerError):
    """A recording of the monitor, or another program's log, that cannot be read or written."""

    def __init__(self, path: Path | str, reason: str, hint: str = "") -> None:
        super().__init__(f"{path}: {reason}", hint)
        self.path, self.reason = path, reason


class PriceError(PlannerError):
    """Prices that cannot be fetched, read or believed; `provider` is whose, or which host or file they come from."""

    def __init__(self, provider: str, reason: str, hint: str = "", *, environment: bool = False) -> None:
        super().__init__(f"{provider}: {reason}", hint)
        self.provider, self.reason = provider, reason
        self.environment = environment


class MonitorUnavailableError(PlannerError):
    """No card can be read here; `kind` names the state."""

    environment = True

    def __init__(self, reason: str, hint: str, kind: str) -> None:
        super().__init__(reason, hint)
        self.reason, self.kind = reason, kind


def _named(place: tuple[int | str, ...]) -> Iterator[int | str]:
    """Yield the fields of `place` without what pydantic adds: which kind of a union it tried, as in `tuple[str, ...]`.

    A workload's task is such a kind.
    """
    for before, part in zip((None, *place), place, strict=False):
        kind = isinstance(part, str) and ("[" in part or (before == "workload" and part in _TASKS))
        if not kind:
            yield part


def _reason(problem: "ErrorDetails") -> str:
    """Return what is wrong in words that do not need Python."""
    got, bounds = _shorten(problem.get("input")), problem.get("ctx", {})
    if problem["type"] == "union_tag_invalid":
        kind = bounds["discriminator"].strip("'")
        return f"there is no {kind} {bounds['tag']!r}; choose {_one_of(_choices(problem))}"
    if problem["type"] == "literal_error":
        names = _choices(problem)
        return f"there is no {got}; choose {_one_of(names)}" if len(names) > 1 else f"must be {names[0]}, not {got}"
    if problem["type"] in _BOUNDS:
        words, bound = _BOUNDS[problem["type"]]
        return f"must be {words} {_plain(bounds[bound])}, not {got}"
    if problem["type"] in _KINDS:
        return _KINDS[problem["type"]].format(got)
    # Written here, not by pydantic: such a sentence begins as it should, and often says itself what was given.
    own = problem["type"] == "value_error"
    reason = problem["msg"].removeprefix("Value error, ") if own else _uncapitalised(problem["msg"])
    return reason if got in reason or not problem["loc"] else f"{reason}, got {got}"


def _choices(problem: "ErrorDetails") -> list[str]:
    expected = problem["ctx"].get("expected") or problem["ctx"]["expected_tags"]
    return re.findall("'([^']*)'", expected) or [expected]


def _one_of(names: list[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} or {last}"


def _close_names(problem: "ErrorDetails") -> str:
    """Return a hint with the names that may have been meant, empty where none is like it."""
    if problem["type"] != "literal_error" or not isinstance(problem["input"], str):
        return ""
    from difflib import get_close_matches  # takes a while to load, and is seldom needed

    spellings = {name.lower(): name for name in _choices(problem)}
    close = [spellings[name] for name in get_close_matches(problem["input"].lower(), spellings)]
    return f"Close names: {', '.join(close)}." if close else ""


def _plain(bound: float) -> str:
    """Return a limit as people write it: `0`, `0.1`, `10,000,000`."""
    return f"{int(bound):,}" if bound == int(bound) else f"{bound:,}"


def _uncapitalised(text: str) -> str:
    """Return `text` with a small first letter, unless that belongs to a name such as vLLM or GGUF."""
    return text if text[:2].isupper() else f"{text[:1].lower()}{text[1:]}"


def _shorten(value: object, limit: int = 60) -> str:
    text = repr(value)
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
