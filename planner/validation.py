"""Messages for pydantic's validation errors that require no knowledge of Python."""

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

UNKNOWN_FIELD: Final = "there is no such field"
_TASKS: Final = ("training", "inference")
_BOUNDS: Final = {
    "greater_than_equal": ("at least", "ge"),
    "greater_than": ("more than", "gt"),
    "less_than_equal": ("at most", "le"),
    "less_than": ("less than", "lt"),
}
"""Phrase for each kind of bound, by pydantic's error type, and the key of the limit in the error's context."""
_FOUR_BITS: Final = ("awq4-128", "gptq4-128", "nf4", "Q4_K_M")
_EIGHT_BITS: Final = ("int8", "fp8", "gptq8-128", "Q8_0")
_BITS: Final[dict[str, tuple[str, ...]]] = {
    **dict.fromkeys(("int4", "4bit", "q4", "bnb4bit"), _FOUR_BITS),
    **dict.fromkeys(("8bit", "q8", "bnb8bit"), _EIGHT_BITS),
    "awq": ("awq4-128", "awq4-64"),
    "gptq": ("gptq4-128", "gptq8-128"),
    **dict.fromkeys(("bnb", "bitsandbytes"), ("nf4", "int8")),
    "gguf": ("Q4_K_M", "Q8_0"),
}
"""Formats that are meant by a number of bits or the name of a method, of which there are several."""
_WHOLE: Final = "{} is not a whole number"
_FIELDS: Final = "{} is not an object of named fields"
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
"""Message for a value of a wrong type, by pydantic's error type."""


def field_path(problem: "ErrorDetails", prefix: str = "") -> str:
    """Return the dotted path of an invalid field, such as `parallel.zero`; `prefix` is the path of its object."""
    return ".".join(str(part) for part in (*((prefix,) if prefix else ()), *_field_names(problem["loc"])))


def reason_text(problem: "ErrorDetails") -> str:
    """Return why a field is invalid, to be printed after the field's name and a colon."""
    if problem["type"] == "extra_forbidden":
        return UNKNOWN_FIELD
    got, bounds = _shortened_text(problem.get("input")), problem.get("ctx", {})
    if problem["type"] == "union_tag_invalid":
        kind = bounds["discriminator"].strip("'")
        return f"there is no {kind} {bounds['tag']!r}; choose {_alternatives_text(_allowed_values(problem))}"
    if problem["type"] == "literal_error":
        names = _allowed_values(problem)
        return (
            f"there is no {got}; choose {_alternatives_text(names)}"
            if len(names) > 1
            else f"must be {names[0]}, not {got}"
        )
    if problem["type"] in _BOUNDS:
        words, bound = _BOUNDS[problem["type"]]
        return f"must be {words} {_bound_text(bounds[bound])}, not {got}"
    if problem["type"] in _KINDS:
        return _KINDS[problem["type"]].format(got)
    # Messages of our own validators keep their capitalization and often quote the value themselves.
    own_message = problem["type"] == "value_error"
    reason = problem["msg"].removeprefix("Value error, ") if own_message else _uncapitalized(problem["msg"])
    return reason if got in reason or not problem["loc"] else f"{reason}, got {got}"


class HintedError(ValueError):
    """A wrong value that a validator of pydantic found, with a hint that suggests a remedy."""

    def __init__(self, reason: str, hint: str) -> None:
        super().__init__(reason)
        self.hint = hint


def close_names(word: str, names: Iterable[str], most: int = 3, likeness: float = 0.6) -> list[str]:
    """Return up to `most` of `names` that are like `word` by at least `likeness` (0 to 1), the closest first."""
    from difflib import get_close_matches  # takes a millisecond to import, and only errors need it

    return get_close_matches(word, [*names], most, likeness)


def validation_hint(problem: "ErrorDetails", names: Iterable[str] = ()) -> str:
    """Return the validator's own hint, or one to check the spelling, with similar names if there are any, or "".

    `names` are the fields of the object, among which a close name of an unknown field is looked for.
    """
    error = problem.get("ctx", {}).get("error")
    if isinstance(error, HintedError):
        return error.hint
    if problem["type"] == "extra_forbidden":
        close = close_names(str(problem["loc"][-1]), names) if len(problem["loc"]) == 1 else ()
        return f"Close names: {', '.join(close)}." if close else "Check its spelling."
    if problem["type"] != "literal_error" or not isinstance(problem["input"], str):
        return ""
    allowed = _allowed_values(problem)
    meant = [name for name in _BITS.get(problem["input"].lower().replace("-", ""), ()) if name in allowed]
    if meant:
        return f"Close names: {', '.join(meant)}."
    spellings = {name.lower(): name for name in allowed}
    close = [spellings[name] for name in close_names(problem["input"].lower(), spellings)]
    return f"Close names: {', '.join(close)}." if close else ""


def _field_names(location: tuple[int | str, ...]) -> Iterator[int | str]:
    """Yield the field names in a location, without union members that pydantic adds, such as `tuple[str, ...]`.

    The task of a workload is such a member.
    """
    for before, part in zip((None, *location), location, strict=False):
        kind = isinstance(part, str) and ("[" in part or (before == "workload" and part in _TASKS))
        if not kind:
            yield part


def _allowed_values(problem: "ErrorDetails") -> list[str]:
    """Return the names that pydantic's error lists as allowed."""
    expected = problem["ctx"].get("expected") or problem["ctx"]["expected_tags"]
    return re.findall("'([^']*)'", expected) or [expected]


def _alternatives_text(names: list[str]) -> str:
    """Return names as an enumeration: `a, b or c`."""
    *others, last = names
    return f"{', '.join(others)} or {last}"


def _bound_text(bound: float) -> str:
    """Return a limit as text: `0`, `0.1`, `10,000,000`."""
    return f"{int(bound):,}" if bound == int(bound) else f"{bound:,}"


def _uncapitalized(text: str) -> str:
    """Return `text` with a lower-case first letter unless it starts with an acronym such as GGUF."""
    return text if text[:2].isupper() else f"{text[:1].lower()}{text[1:]}"


def _shortened_text(value: object, limit: int = 60) -> str:
    """Return the `repr` of a value, cut to `limit` characters."""
    text = repr(value)
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
