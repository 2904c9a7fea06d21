"""Base class of program-specific settings."""

from planner.base import Spec


class EngineSettings(Spec):
    """Settings of an inference program by its own names; this base is for programs without any.

    An open setting has the program's default.
    """

    def given(self) -> tuple[str, ...]:
        """Return the names of the settings that have a value."""
        return tuple(name for name in type(self).model_fields if getattr(self, name) is not None)
