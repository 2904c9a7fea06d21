"""What the estimate says where another engine than Hugging Face transformers would run the model."""

import pytest
from pydantic import ValidationError

from planner.memory.estimate import estimate_memory
from planner.memory.inference import LLAMA_CPP_MARGIN
from planner.plan.catalog import Catalog
from planner.workload.workload import Inference, Training


def test_a_gguf_file_widens_the_range_by_the_margin_that_llama_cpp_keeps(catalog: Catalog):
    model = catalog.models.model("meta-llama/Llama-3.1-8B")
    plain, file = (estimate_memory(model, Inference(weights=name)) for name in ("bf16", "BF16"))
    widened = (file.high_bytes - file.total_bytes) - (plain.high_bytes - plain.total_bytes)
    assert widened == LLAMA_CPP_MARGIN
    assert any("llama.cpp" in note for note in file.notes)


@pytest.mark.parametrize("changes", [{"method": "lora"}, {"method": "qlora"}, {"weights": "nf4"}])
def test_what_is_not_estimated_yet_is_said_to_be_so(changes: dict[str, str]):
    with pytest.raises(ValidationError, match="estimated yet"):
        Training.model_validate(changes)
