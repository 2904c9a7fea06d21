"""Number formats and quantisation schemes."""

SCHEMES: dict[str, object] = {}
KV_FORMATS: dict[str, object] = {}
