"""Asks one card, learns what it does not support, and tells apart a missing answer, a lost card and a dead session."""

from typing import Any, Final

from planner.monitor.nvml import (
    ARGUMENT_VERSION_MISMATCH,
    DEPRECATED,
    FUNCTION_NOT_FOUND,
    GONE,
    INVALID_ARGUMENT,
    NOT_SUPPORTED,
    RESET_REQUIRED,
    SESSION_OVER,
    Handle,
    Nvml,
    NvmlFailure,
    cause_of,
)
from planner.monitor.readings.metrics import BY_NAME, Metric, judged
from planner.monitor.readings.reading import Cause, Reading, missing
from planner.monitor.sampler.questions import HELD_BACK_BY_MIG, Question

# NVML_VALUE_NOT_AVAILABLE, as an unsigned int.
_NOT_AVAILABLE: Final = 0xFFFFFFFF
_TRY_ANOTHER: Final = frozenset({FUNCTION_NOT_FOUND, ARGUMENT_VERSION_MISMATCH, DEPRECATED})
_FOR_GOOD: Final = frozenset({Cause.NOT_SUPPORTED, Cause.MISSING_SYMBOL, Cause.NO_PERMISSION, Cause.MIG})


class CardLostError(Exception):
    """The card does not answer any more, or asks for a reset; it must not be asked again."""

    def __init__(self, uuid: str, failure: NvmlFailure) -> None:
        super().__init__(str(failure))
        self.uuid, self.failure = uuid, failure
        self.wants_reset = failure.code == RESET_REQUIRED


class SessionOverError(Exception):
    """The library must be opened anew: the driver was unloaded, reset or replaced, or handles are stale."""


class Answers:
    """One card's answers; what it does not support is not asked again."""

    def __init__(self, nvml: Nvml, uuid: str, handle: Handle, *, in_mig_mode: bool = False) -> None:
        self.nvml, self.uuid, self.handle = nvml, uuid, handle
        self._in_mig_mode = in_mig_mode
        self._never: dict[str, Reading] = {}
        self._chosen: dict[str, int] = {}
        self._has_answered: set[str] = set()

    def ask(self, question: Question) -> Reading:
        """Return the answer to one question, or why there is none.

        Raises:
            CardLostError: If the card is gone.
            SessionOverError: If the whole session is over.
        """
        last = NvmlFailure("no call", NOT_SUPPORTED)
        for at in range(self._chosen.get(question.name, 0), len(question.calls)):
            name, *numbers = question.calls[at]
            try:
                value = self.nvml.call(name, self.uuid, self.handle, *numbers)
            except NvmlFailure as failure:
                last = failure
                if failure.code not in _TRY_ANOTHER:
                    break
            else:
                self._chosen[question.name] = at
                self._has_answered.add(question.name)
                return _scaled(BY_NAME[question.name], value, question)
        return self.failed(question.name, last)

    def failed(self, name: str, failure: NvmlFailure) -> Reading:
        """Return why a quantity is missing after a call failed.

        Raises:
            CardLostError: If the card is gone.
            SessionOverError: If the whole session is over.
        """
        if failure.code in GONE or failure.code == RESET_REQUIRED:
            raise CardLostError(self.uuid, failure)
        if failure.code in SESSION_OVER:
            raise SessionOverError(str(failure))
        if failure.code == INVALID_ARGUMENT and name in self._has_answered:
            self._check_handle()
        return self.lacking(name, cause_of(failure.code))

    def lacking(self, name: str, cause: Cause) -> Reading:
        """Return that a quantity is missing, and remember what will stay so."""
        if cause is Cause.NOT_SUPPORTED and self._in_mig_mode and name in HELD_BACK_BY_MIG:
            cause = Cause.MIG
        reading = missing(cause)
        if cause in _FOR_GOOD:
            self._never[name] = reading
        return reading

    def never(self, name: str) -> Reading | None:
        """Return why a quantity is never there, none where it may be."""
        return self._never.get(name)

    @property
    def nevers(self) -> dict[str, Reading]:
        """Return all that is never there, and why."""
        return dict(self._never)

    def note_answer(self, name: str) -> None:
        """Take down that a quantity was answered by a call of several."""
        self._has_answered.add(name)

    def _check_handle(self) -> None:
        """Tell a card that dislikes one question from a handle that is stale.

        Raises:
            SessionOverError: If the handle does not lead to this card any more.
        """
        try:
            uuid = self.nvml.text("nvmlDeviceGetUUID", self.uuid, self.handle)
        except NvmlFailure as failure:
            raise SessionOverError(f"the handle of {self.uuid} is stale: {failure}") from failure
        if uuid != self.uuid:
            raise SessionOverError(f"the handle of {self.uuid} leads to {uuid}")


def _scaled(metric: Metric, value: Any, question: Question) -> Reading:
    number = value if question.place is None else value[question.place]
    if number == _NOT_AVAILABLE and metric.unit != "bits":
        return missing(Cause.HIDDEN)
    return judged(metric, number if question.per == 1 else number / question.per)
