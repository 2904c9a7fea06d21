"""The plots of the window: charts with their axes, pointer, legend, table and export, which each tab fills."""
