"""llama_cpp."""
