"""The present plan beside another one."""
