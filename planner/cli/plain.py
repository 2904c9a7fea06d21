"""Plain stand-ins for characters that a terminal's encoding lacks."""

import codecs
from typing import Final

_STAND_INS: Final = str.maketrans(
    {
        "\u2009": " ",
        "\u2013": "-",
        "\u2212": "-",
        "·": "*",
        "×": "x",
        "…": "~",
        "≥": ">=",
        "≤": "<=",
        "²": "^2",
        "³": "^3",
        "✓": "+",
        "✗": "-",
    }
)


def register() -> None:
    """Make the error handler `planner-plain` known."""
    codecs.register_error("planner-plain", _replace)


def _replace(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end].translate(_STAND_INS)
    return "".join(character if character.isascii() else "?" for character in text), error.end
