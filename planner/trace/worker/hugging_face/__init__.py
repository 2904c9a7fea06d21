"""Networks of Hugging Face's transformers: made from configurations, given inputs, and run token by token."""
