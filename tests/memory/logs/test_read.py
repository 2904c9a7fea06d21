"""Detection of a log's formats."""

import log_excerpts as logs
import pytest

from planner.errors import LogError
from planner.memory.logs.read import FORMATS, read_log


def test_a_text_may_hold_several_formats():
    reading = read_log(logs.SMI_PROCESSES + "\n" + logs.LLAMA_CPP_TWO_CARDS + "\n" + logs.OUT_OF_MEMORY)
    assert set(reading.formats) == {"nvidia-smi", "llama.cpp", "torch-out-of-memory"}
    assert reading.engine == "llama.cpp"


def test_what_is_not_recognised_names_the_formats():
    with pytest.raises(LogError) as error:
        read_log("Hello.")
    assert all(form.title in error.value.hint for form in FORMATS.values())
