"""Queries to one card, which distinguish an unsupported quantity from a lost card and an invalid session."""

from typing import Any, Final

from planner.monitor.nvml import (
    ARGUMENT_VERSION_MISMATCH,
    CARD_GONE_CODES,
    DEPRECATED,
    FUNCTION_NOT_FOUND,
    INVALID_ARGUMENT,
    NOT_SUPPORTED,
    RESET_REQUIRED,
    SESSION_OVER_CODES,
    Handle,
    Nvml,
    NvmlFailure,
    missing_reading_cause,
)
from planner.monitor.readings.metrics import BY_NAME, Metric, checked_reading
from planner.monitor.readings.reading import Cause, Reading, missing
from planner.monitor.sampler.nvml_queries import HIDDEN_BY_MIG, NvmlQuery

# NVML_VALUE_NOT_AVAILABLE, as an unsigned int.
_NOT_AVAILABLE: Final = 0xFFFFFFFF
_CODES_FOR_OLDER_CALL: Final = frozenset({FUNCTION_NOT_FOUND, ARGUMENT_VERSION_MISMATCH, DEPRECATED})
_PERMANENT_CAUSES: Final = frozenset({Cause.NOT_SUPPORTED, Cause.MISSING_SYMBOL, Cause.NO_PERMISSION, Cause.MIG})


class CardLostError(Exception):
    """The card no longer responds, or requires a reset, and must not be queried again."""

    def __init__(self, uuid: str, failure: NvmlFailure) -> None:
        super().__init__(str(failure))
        self.uuid, self.failure = uuid, failure
        self.requires_reset = failure.code == RESET_REQUIRED


class SessionOverError(Exception):
    """NVML must be initialized again: the driver was unloaded, reset or replaced, or handles are stale."""


class CardQueries:
    """Queries to one card; unsupported quantities are not queried again."""

    def __init__(self, nvml: Nvml, uuid: str, handle: Handle, *, in_mig_mode: bool = False) -> None:
        self.nvml, self.uuid, self.handle = nvml, uuid, handle
        self._in_mig_mode = in_mig_mode
        self._unsupported: dict[str, Reading] = {}
        self._working_calls: dict[str, int] = {}
        self._has_answered: set[str] = set()

    def read(self, query: NvmlQuery) -> Reading:
        """Return the reading of one quantity, or the cause of its absence.

        Raises:
            CardLostError: If the card is lost.
            SessionOverError: If the session is invalid.
        """
        last_failure: NvmlFailure | None = None
        for index in range(self._working_calls.get(query.name, 0), len(query.calls)):
            name, *numbers = query.calls[index]
            try:
                value = self.nvml.call(name, self.uuid, self.handle, *numbers)
            except NvmlFailure as failure:
                last_failure = failure
                if failure.code not in _CODES_FOR_OLDER_CALL:
                    break
            else:
                self._working_calls[query.name] = index
                self._has_answered.add(query.name)
                return _scaled_reading(BY_NAME[query.name], value, query)
        return self.reading_after_failure(query.name, last_failure or NvmlFailure("no call", NOT_SUPPORTED))

    def reading_after_failure(self, name: str, failure: NvmlFailure) -> Reading:
        """Return a reading without a value after a failed call, with the cause of the failure.

        Raises:
            CardLostError: If the card is lost.
            SessionOverError: If the session is invalid.
        """
        if failure.code in CARD_GONE_CODES or failure.code == RESET_REQUIRED:
            raise CardLostError(self.uuid, failure)
        if failure.code in SESSION_OVER_CODES:
            raise SessionOverError(str(failure))
        if failure.code == INVALID_ARGUMENT and name in self._has_answered:
            self._raise_if_handle_is_stale()
        return self.missing_reading(name, missing_reading_cause(failure.code))

    def missing_reading(self, name: str, cause: Cause) -> Reading:
        """Return a reading without a value; a quantity with a permanent cause is not queried again."""
        if cause is Cause.NOT_SUPPORTED and self._in_mig_mode and name in HIDDEN_BY_MIG:
            cause = Cause.MIG
        reading = missing(cause)
        if cause in _PERMANENT_CAUSES:
            self._unsupported[name] = reading
        return reading

    def unsupported_reading(self, name: str) -> Reading | None:
        """Return the reading of a permanently missing quantity, None if the quantity may be supported."""
        return self._unsupported.get(name)

    @property
    def unsupported_readings(self) -> dict[str, Reading]:
        """Return the readings of all permanently missing quantities."""
        return dict(self._unsupported)

    def note_answer(self, name: str) -> None:
        """Record that a quantity was read by a call that returns several quantities."""
        self._has_answered.add(name)

    def _raise_if_handle_is_stale(self) -> None:
        """Check that the handle still refers to this card, after the card rejected a query.

        Raises:
            SessionOverError: If the handle no longer refers to this card.
        """
        try:
            uuid = self.nvml.call_for_text("nvmlDeviceGetUUID", self.uuid, self.handle)
        except NvmlFailure as failure:
            raise SessionOverError(f"the handle of {self.uuid} is stale: {failure}") from failure
        if uuid != self.uuid:
            raise SessionOverError(f"the handle of {self.uuid} leads to {uuid}")


def _scaled_reading(metric: Metric, value: Any, query: NvmlQuery) -> Reading:
    place = query.place
    number = value if place is None else getattr(value, place) if isinstance(place, str) else value[place]
    if number == _NOT_AVAILABLE and metric.unit != "bits":
        return missing(Cause.HIDDEN)
    return checked_reading(metric, number if query.per == 1 else number / query.per)
