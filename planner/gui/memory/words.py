"""What the choices beside the workload are called."""

from typing import Final

Options = tuple[tuple[object, str], ...]

TASKS: Final[Options] = (("training", "Train"), ("inference", "Run"))


def words_of(options: Options, value: object) -> str:
    """Return what `value` is called among `options`."""
    return next(words for known, words in options if known == value)
