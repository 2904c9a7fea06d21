"""Comparison of renting and owning: cash flows, break-even, and uncertainty."""
