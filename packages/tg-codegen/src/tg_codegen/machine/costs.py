"""What instructions cost on most machines of a kind: plans and linear kernels are counted with the same numbers."""

UNITS = 2  # instructions of a kind at once
LATENCY = 4  # cycles from one addition to the next that needs it
