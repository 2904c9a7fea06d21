"""What engines other than Hugging Face transformers hold: vLLM and llama.cpp."""
