"""U-Nets and autoencoders of diffusion pipelines: modules, level lists and embeddings."""

from made_pipelines import PIPELINE

from planner.models.diffusion import UNet, find_networks
from planner.models.readers.config_json import read_config

READ = read_config(PIPELINE, "test")


def changed(component, **fields):
    """Return the small pipeline with some fields of a component changed."""
    components = {**PIPELINE["components"], component: {**PIPELINE["components"][component], **fields}}
    return {**PIPELINE, "components": components}


def test_the_up_path_concatenates_the_outputs_of_the_down_path():
    unet = find_networks(READ.components)[0]
    assert isinstance(unet, UNet)
    steps = list(unet.steps())
    assert [step.kind for step in steps][:4] == ["resnet", "transformer", "down", "resnet"]
    assert [(step.into, step.skip) for step in steps if step.skip] == [(128, 64), (96, 32), (96, 32), (64, 32)]
    assert steps[-1].kind == "transformer"


def test_a_list_with_one_value_per_level_reads_like_one_number():
    same = read_config(changed("unet", layers_per_block=[1, 1], transformer_layers_per_block=[1, 1]), "test")
    assert same.parameters == READ.parameters
    linear = read_config(changed("unet", use_linear_projection=True), "test")
    assert linear.parameters == READ.parameters
    plain = read_config(changed("vae", mid_block_add_attention=False, use_quant_conv=False), "test")
    assert plain.parameters < READ.parameters


def test_sdxl_embeds_pooled_text_and_image_size():
    told = changed("unet", addition_embed_type="text_time", projection_class_embeddings_input_dim=48)
    assert read_config(told, "test").parameters - READ.parameters == (48 * 128 + 128) + (128 * 128 + 128)
