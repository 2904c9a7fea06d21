"""Settings of diffusion pipelines: image sizes and formats of text encoders."""

import pytest
from small_models import bundled

from planner.errors import SpecError
from planner.workload.diffusion import Diffusion, reads_or_makes_images
from planner.workload.presentation import FieldContext
from planner.workload.workload import Inference


def test_image_sizes_are_written_as_text_number_or_list():
    assert Inference(image_size="1024x768").image_size == (1024, 768)
    assert Inference(image_size="512").image_size == (512, 512)
    assert Inference(image_size=[640, 480]).image_size == (640, 480)
    for wrong in ("wide", "1x2x3", 0, "12x"):
        with pytest.raises(SpecError, match="image_size"):
            Inference(image_size=wrong)
    with pytest.raises(SpecError, match="text_weights"):
        Diffusion(text_weights="q9")


def test_only_models_with_images_of_variable_size_show_an_image_size() -> None:
    models = bundled().models
    shown = {
        name: reads_or_makes_images(FieldContext(Inference(), models.model(name)))
        for name in ("black-forest-labs/FLUX.1-dev", "Qwen/Qwen2-VL-7B-Instruct", "meta-llama/Llama-3.1-8B")
    }
    assert list(shown.values()) == [True, True, False]
