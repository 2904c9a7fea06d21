"""Keys that several formats share."""

from training_files import workload_of


def test_no_clipping_by_a_norm_of_none():
    assert not workload_of({"base_model": "x", "max_grad_norm": 0}).gradient_clipping
    trl = {"use_peft": True, "load_in_8bit": False, "bf16": False, "fp16": True}
    assert workload_of(trl).compute == "amp-fp16"
    assert workload_of({"base_model": "x", "adapter": "lora"}).lora.rank == 8
    assert workload_of({"base_model": "x", "adapter": "qlora", "load_in_4bit": False}).method == "qlora"
