"""Changes and ladders that are specific to one program."""
