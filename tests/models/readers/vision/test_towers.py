"""Vision towers of multimodal models: windows, patches and refused configurations."""

from reader_cases import CLIP

from planner.models.architecture import Attention
from planner.models.readers.config_json import read_config


def test_qwen2_5_has_windows_in_28_of_32_layers() -> None:
    found = read_config({"model_type": "qwen2_5_vl"}, "test")
    mixers = [(group.layer.mixer, group.count) for group in found.stacks[0].groups]
    assert {mixer.window: count for mixer, count in mixers if isinstance(mixer, Attention)} == {64: 28, None: 4}


def test_clip_adds_positions_instead_of_turning_queries() -> None:
    found = read_config(dict(CLIP), "test").main.groups[0].layer.mixer
    assert isinstance(found, Attention)
    assert not found.rotary
