"""What of memory is counted by planners and by whoever emits or renders an access: both have to count alike."""

STRIDES = 4
"""Elements so far apart are read as the vectors in which they lie."""
CHANNELS = 4
"""Elements of a texel: an image is read and written so many at a time."""
