"""Trace worker, which runs in a child process: the only code that imports torch. Nothing else imports it."""
