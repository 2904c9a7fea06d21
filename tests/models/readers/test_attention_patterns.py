"""Window and rotary embedding of each layer, by family and configuration."""

import pytest
from decoder_cases import EXPERTS, attentions, tiny, windows

from planner.errors import ModelFileError


@pytest.mark.parametrize(
    ("model_type", "changes", "expected"),
    [
        ("llama", {"sliding_window": 7}, [None] * 8),
        ("mistral", {}, [4096] * 8),
        ("mistral", {"sliding_window": None}, [None] * 8),
        ("mistral", {"sliding_window": 0}, [None] * 8),
        ("ministral3", {}, [None] * 8),
        ("qwen2", {"sliding_window": 9}, [None] * 8),
        (
            "qwen2",
            {"sliding_window": 9, "use_sliding_window": True, "max_window_layers": 6},
            [None] * 6 + [9] * 2,
        ),
        ("qwen3", {"use_sliding_window": True, "sliding_window": 9, "max_window_layers": 0}, [9] * 8),
        ("gemma2", {"sliding_window": 9}, [9, None] * 4),
        ("gemma3_text", {"sliding_window": 9}, [9] * 5 + [None, 9, 9]),
        ("gemma3_text", {"sliding_window": 9, "sliding_window_pattern": 2}, [9, None] * 4),
        ("cwm", {"sliding_window": 9}, [None, 9, 9, 9] * 2),
        ("olmo3", {}, [4096, 4096, 4096, None] * 2),
        ("olmo3", {"layer_types": ["full_attention"] * 7 + ["sliding_attention"]}, [None] * 7 + [4096]),
        ("qwen2", {"use_sliding_window": True, "layer_types": ["sliding_attention"] * 8}, [4096] * 8),
    ],
)
def test_windows_follow_the_family_and_the_configuration(
    model_type: str, changes: dict[str, object], expected: list[int | None]
) -> None:
    assert windows(tiny(model_type, **changes)) == expected


def test_qwen2_moe_gives_every_other_lower_layer_a_window() -> None:
    switched = {"use_sliding_window": True, "sliding_window": 9, "max_window_layers": 4}
    assert windows(tiny("qwen2_moe", **EXPERTS, **switched)) == [9, None, 9] + [None] * 5
    typed = {"use_sliding_window": True, "layer_types": ["sliding_attention"] + ["full_attention"] * 7}
    assert windows(tiny("qwen2_moe", **EXPERTS, **typed)) == [4096] + [None] * 7
    assert windows(tiny("qwen3_moe", **EXPERTS, **switched)) == [9] * 8


def test_some_layers_have_no_rotary_embedding() -> None:
    assert [mixer.rotary for mixer in attentions(tiny("cohere2"))] == [True, True, True, False] * 2
    assert [mixer.rotary for mixer in attentions(tiny("exaone4", sliding_window=None))] == [True] * 8
    assert [mixer.rotary for mixer in attentions(tiny("smollm3"))] == [True, True, True, False] * 2
    flags = {"no_rope_layers": [0] + [1] * 7, "use_sliding_window": True, "sliding_window": 9}
    assert windows(tiny("smollm3", **flags)) == [9] + [None] * 7
    scout = attentions(tiny("llama4_text", **EXPERTS, intermediate_size_mlp=96))
    assert [(mixer.rotary, mixer.window, mixer.qk_norm) for mixer in scout[2:4]] == [
        (True, 8192, "bare"),
        (False, None, "none"),
    ]
    typed = tiny("llama4_text", **EXPERTS, layer_types=["chunked_attention"] * 8, use_qk_norm=False)
    assert windows(typed) == [8192] * 8


@pytest.mark.parametrize(
    ("model_type", "changes"),
    [
        ("olmo3", {"layer_types": ["full_attention"]}),
        ("olmo3", {"layer_types": ["quantum_attention"] * 8}),
        ("smollm3", {"no_rope_layers": [1, 0]}),
    ],
    ids=str,
)
def test_lists_of_another_length_or_unknown_kinds_are_refused(model_type: str, changes: dict[str, object]) -> None:
    with pytest.raises(ModelFileError):
        tiny(model_type, **changes)
