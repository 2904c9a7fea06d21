"""Image pipelines are run by diffusers."""

from small_models import bundled, llama

from planner.memory.software import serving_memory


def test_a_pipeline_of_images_is_run_by_diffusers():
    network = bundled().models.model("stabilityai/stable-diffusion-xl-base-1.0")
    assert type(serving_memory("hf", network)).__name__ == "Diffusers"
    assert type(serving_memory(None, llama())).__name__ == "Transformers"
