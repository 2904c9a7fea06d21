import pytest
from launched import PLANS, serving

import planner
from planner.errors import SpecError
from planner.launch.launch import launch_settings

CATALOG = planner.load_catalog()


def test_what_is_of_the_server_stands_in_its_environment():
    settings = launch_settings(PLANS["gguf"], CATALOG, "ollama")
    script, modelfile = (file.text for file in settings.files)
    assert "export OLLAMA_NUM_PARALLEL=3" in script
    assert "FROM ./Llama-3.1-8B-Q4_K_M.gguf" in modelfile
    assert "PARAMETER num_ctx 8192" in modelfile


def test_a_cache_that_ollama_does_not_have_is_refused():
    with pytest.raises(SpecError, match="no cache in q5_1"):
        launch_settings(serving("llama.cpp", weights="Q4_K_M", kv_cache="q5_1"), CATALOG, "ollama")


def test_several_gpus_and_a_shared_cache_are_named():
    settings = launch_settings(PLANS["gguf on 2"], CATALOG, "ollama")
    assert {"parallel.pipeline", "count"} <= {row.field for row in settings.not_expressed}
    assert "OLLAMA_SCHED_SPREAD" in {row.key for row in settings.settings}
