"""What runs in the child process: the only code here that imports torch. Nothing outside this folder imports it."""
