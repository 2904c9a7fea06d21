"""What was spent by when, rented and owned."""
