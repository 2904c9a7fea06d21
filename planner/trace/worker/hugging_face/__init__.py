"""Networks of Hugging Face transformers: built from configurations, given inputs, and run for generation."""
