"""Sums of truths and of small numbers along short rows, each compiled anew: LLVM may end the process that asks it."""

import os
import random
import subprocess
import sys

SUMS = """
import random
from tg_dtype import dtypes
from tg_frontend import Tensor
draw = random.Random({seed})
pairs = [(dtypes.bool, dtypes.int32), (dtypes.bool, dtypes.uint32), (dtypes.uint8, dtypes.int32)]
shapes = [(rows, columns) for rows in (5, 7) for columns in (17, 19, 21)]
shapes += [(draw.randint(1, 9), draw.randint(2, 70)) for _ in range(8)]
for number, (rows, columns) in enumerate(shapes):
    kind, wide = pairs[0] if number < 6 else draw.choice(pairs)
    truths = [[draw.randint(0, 1) for _ in range(columns)] for _ in range(rows)]
    found = Tensor(truths, dtype=kind).realize().sum(1, dtype=wide).tolist()
    assert found == [sum(row) for row in truths], (rows, columns, kind, wide)
"""


def test_every_sum_is_compiled_and_right() -> None:
    program = SUMS.format(seed=random.randrange(1000))
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=300,
        env={**os.environ, "CCACHE": "0", "DEV": "CPU"},
    )
    assert done.returncode == 0, f"{program}\n{done.stderr[-2000:]}"
