"""Plots of the window: charts with axes, hover read-out, legend, table and export."""
