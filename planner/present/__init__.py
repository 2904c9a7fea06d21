"""Results formatted as text, rows and series for both the command line and the window. No Qt."""
