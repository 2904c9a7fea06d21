"""Base class of the settings of inference programs."""

from planner.base import Spec


class EngineSettings(Spec):
    """Settings of an inference program, by the program's own names; this base class has none.

    An unset field has the program's default.
    """

    def explicit_names(self) -> tuple[str, ...]:
        """Return the names of the settings that are explicitly set."""
        return tuple(name for name in type(self).model_fields if getattr(self, name) is not None)
