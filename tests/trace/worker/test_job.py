"""What a whole trace says of itself: what may differ in a real run, always with bounds that are apart."""

import pytest
from scripted import script, traced

HEAD = """
import torch
from torch import nn
from torch.nn import functional as F
"""
DIFFERENT = {
    "convolutions": ("cuda", "y = nn.Conv2d(3, 8, 3)(torch.ones(2, 3, 16, 16))"),
    "flash attention": (
        "cuda",
        "q = torch.ones(1, 2, 64, 64).half()\nk = q.repeat(1, 1, 64, 1)\ny = F.scaled_dot_product_attention(q, k, k)",
    ),
    "norm": ("cuda", "n = nn.LayerNorm(2)\nn(torch.ones(1 << 17, 2)).sum().backward()"),
    "workspace for recurrent": ("cuda", "y = nn.GRU(8, 8)(torch.ones(2, 2, 8))"),
    "reserve of recurrent": ("cuda", "y = nn.GRU(8, 8)(torch.ones(2, 2, 8))"),
    "graphs": (
        "cuda",
        "g = torch.cuda.CUDAGraph()\nwith torch.cuda.graph(g):\n    y = torch.ones(8, device='cuda') * 2 * 2",
    ),
    "compiled": (
        "cpu",
        "x = torch.ones(64, requires_grad=True)\ntorch.compile(lambda x: (x * 2).relu())(x).sum().backward()",
    ),
    "depend on the data": ("cpu", "x = torch.randn(64, 8)\ny = x[x.sum(1) > 0] * 2"),
    "scratch memory for convolutions": (
        "cpu",
        "y = nn.Conv2d(3, 8, 3).bfloat16()(torch.ones(2, 3, 16, 16).bfloat16())",
    ),
    "blocks of matrices": ("cpu", "y = nn.Linear(8, 8).bfloat16()(torch.ones(8, 8).bfloat16())"),
}
"""Programs of which something may differ in a real run, with the words that name it, and the device."""
NOT_DIFFERENT = {
    "a compiled function that keeps nothing": ("cpu", "y = torch.compile(lambda x: x)(torch.ones(2))"),
    "a graph of nothing": (
        "cuda",
        "with torch.cuda.graph(torch.cuda.CUDAGraph()):\n    pass\ny = torch.ones(2).cuda()",
    ),
    "convolved images of nothing": ("cuda", "y = nn.Conv2d(3, 8, 3)(torch.ones(0, 3, 16, 16))"),
    "a known choice of attention": (
        "cuda",
        "q = torch.ones(64, 8, 64, 64).half()\ny = F.scaled_dot_product_attention(q, q, q)",
    ),
}


def differences(folder, device: str, program: str):
    source = f"{HEAD}torch.set_default_device({device!r})\n{program}"
    return traced(script(folder, source, device=device, task="inference")).differences


@pytest.mark.usefixtures("traces_in_this_process")
@pytest.mark.parametrize("words", DIFFERENT)
def test_each_difference_has_bounds_with_a_width(tmp_path, words):
    found = differences(tmp_path, *DIFFERENT[words])
    assert any(words in difference.name for difference in found)
    for difference in found:
        assert difference.low_bytes <= difference.bytes <= difference.high_bytes
        assert difference.low_bytes < difference.high_bytes


@pytest.mark.parametrize("name", NOT_DIFFERENT)
def test_what_cannot_differ_is_no_difference(tmp_path, name):
    assert all(one.low_bytes < one.high_bytes for one in differences(tmp_path, *NOT_DIFFERENT[name]))
