"""Measured runs of inference servers: what their metrics and the results of load generators say, as one record."""
