"""Entry point of the bundle: the command `gpu-planner`, and the modules that it starts as processes of their own."""

import runpy
import sys

if __name__ == "__main__":
    words = [word for word in sys.argv[1:2] if word != "-P"] + sys.argv[2:]
    if words[:1] == ["-m"]:
        # Without Python, the bundle's own program stands in for `python -P -m MODULE`.
        sys.argv = words[1:]
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    else:
        from planner.__main__ import main

        sys.exit(main())
