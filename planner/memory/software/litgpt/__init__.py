"""LitGPT's own modules, as versions 0.3 to 0.4 (April to September 2024) run them with bitsandbytes 0.42."""
