"""What would help in each program that has ways of its own."""
