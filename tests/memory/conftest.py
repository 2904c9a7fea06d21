"""Fixtures of the tests of memory."""

import pytest
from made_files import write_gguf

from planner.models.readers.model_file import read_model_file


@pytest.fixture
def gguf(tmp_path):
    return read_model_file(write_gguf(tmp_path / "tiny.gguf"))


@pytest.fixture
def unnamed(gguf):
    """A GGUF file whose mixture has no name here."""
    return gguf.evolve(quantization=None)
