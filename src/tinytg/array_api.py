"""The array API standard: ``tinytg.array_api``, the same module that ``tg_frontend.array_api`` is."""

import sys

from tg_frontend import array_api

sys.modules[__name__] = array_api
