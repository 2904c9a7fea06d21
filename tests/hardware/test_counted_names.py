"""How people write several of one thing."""

import pytest

from planner.hardware.names import counted


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2 x RTX 3090", (2, "RTX 3090")),
        (" 2×DGX H100 ", (2, "DGX H100")),
        ("2xrtx-3090", (2, "rtx-3090")),
        ("0 x l4", (0, "l4")),
        ("RTX 3090", (None, "RTX 3090")),
        ("7900XTX", (None, "7900XTX")),
        ("", (None, "")),
    ],
)
def test_a_number_stands_before_the_name(text: str, expected: tuple[int | None, str]) -> None:
    assert counted(text) == expected
