"""Parent's side of the trace worker: starting it, reading its messages, and explaining its exit."""
