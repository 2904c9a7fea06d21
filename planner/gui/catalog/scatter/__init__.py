"""The scatter plot of a catalog page."""
