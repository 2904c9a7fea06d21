"""What half-precision convolutions really hold on this CPU, against the formulas: the bounds that a trace states.

    python benchmarks/half_convolutions.py [--shapes 200] [--seed 0]

Runs random convolutions of sounds, images and volumes in bfloat16 on one thread, forward, and backward for the input's
and for the weight's gradient. Prints those that are off by more than 16 KiB, and the largest errors. From these come
the bounds in planner/trace/worker/cpu/operators.py; they differ between CPUs with and without matrix tiles.
"""

import argparse
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "trace"))

from held_bytes import held
from random_programs import one_thread

from planner.trace.worker.cpu.convolutions import vector_units
from planner.trace.worker.cpu.kernels import hidden_bytes

SHOWN_BYTES = 16 * 1024
EXACT_BYTES = 1024

_aten = torch.ops.aten


class Shape(NamedTuple):
    """Sizes of a convolution."""

    axes: int
    batch: int
    channels: tuple[int, int]
    size: int
    kernel: int
    stride: int
    padding: int
    groups: int
    transposed: bool


def random_shape(generator: random.Random) -> Shape:
    """Return sizes such as those of small networks; single channels are not filtered by single pixels."""
    axes = generator.choice((1, 2, 2, 3))
    kernel = generator.choice((1, 3, 5, 7) if axes < 3 else (1, 2, 3))
    transposed = generator.random() < 0.25
    channels = generator.choice((1, 3, 8, 16, 24, 32, 64)), generator.choice((1, 3, 8, 16, 24, 32, 64))
    groups = 1
    if axes < 3 and kernel > 1 and not transposed and generator.random() < 0.2:
        channels = (channels[0],) * 2
        groups = channels[0]
    size = generator.choice({1: (64, 256, 1000), 2: (12, 16, 30, 56), 3: (8, 12)}[axes])
    padding = generator.choice((0, kernel // 2))
    return Shape(
        axes,
        generator.choice((1, 2, 4)),
        channels,
        size,
        kernel,
        generator.choice((1, 1, 2)),
        padding,
        groups,
        transposed,
    )


def errors_bytes(shape: Shape) -> Iterator[tuple[str, int]]:
    """Yield each pass of a convolution with how many bytes more than the formula expects it really holds."""
    source, target = shape.channels
    weight_channels = (source, target) if shape.transposed else (target, source // shape.groups)
    tensor = torch.randn(shape.batch, source, *[shape.size] * shape.axes).bfloat16()
    weight = torch.randn(*weight_channels, *[shape.kernel] * shape.axes).bfloat16()
    stride, padding, zeros = [shape.stride] * shape.axes, [shape.padding] * shape.axes, [0] * shape.axes
    settings = (stride, padding, [1] * shape.axes, shape.transposed, zeros, shape.groups)

    def error(func: Any, *args: Any) -> tuple[int, Any]:
        real, result = held(func, *args)
        return real - hidden_bytes(func, args, {}, result), result

    found, output = error(_aten.convolution.default, tensor, weight, None, *settings)
    yield "forward", found
    args = (torch.randn_like(output), tensor, weight, [0], *settings)
    yield "gradient of the input", error(_aten.convolution_backward.default, *args, [True, False, False])[0]
    yield "gradient of the weight", error(_aten.convolution_backward.default, *args, [False, True, False])[0]


def main() -> None:
    """Print the convolutions that are off, and the largest errors."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", type=int, default=200, help="how many")
    parser.add_argument("--seed", type=int, default=0, help="another seed makes other shapes")
    arguments = parser.parse_args()
    generator = random.Random(arguments.seed)
    errors = list[int]()
    with one_thread():
        for _ in range(arguments.shapes):
            shape = random_shape(generator)
            for name, error in errors_bytes(shape):
                errors.append(error)
                if abs(error) > SHOWN_BYTES:
                    print(f"{error:+,} bytes, {name}: {shape}", flush=True)
        print(vector_units())
    exact = sum(abs(error) <= EXACT_BYTES for error in errors)
    print(f"{exact} of {len(errors)} within 1 KiB; at most {max(errors):,} bytes more, and {-min(errors):,} less")


if __name__ == "__main__":
    main()
