"""Every engine of which speeds are known, by name; some cannot be chosen for a plan."""

from planner.performance.software import litgpt, llama_cpp, tensorrt_llm, transformers, vllm

ENGINES = {
    engine.name: engine
    for engine in (
        llama_cpp.ENGINE,
        vllm.ENGINE,
        transformers.ENGINE,
        tensorrt_llm.ENGINE,
        transformers.COMPILED,
        litgpt.ENGINE,
        vllm.VERSION_0,
    )
}
