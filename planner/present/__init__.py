"""Results as text, rows and series, for the command line and the window alike. No Qt."""
