"""Settings of a program by its own names."""

from planner.base import Spec


class EngineSettings(Spec):
    """Settings that a serving program has of its own; this base is of programs that have none.

    What is left open has the program's default.
    """

    def given(self) -> tuple[str, ...]:
        """Return the names of the settings that are not left open."""
        return tuple(name for name in type(self).model_fields if getattr(self, name) is not None)
