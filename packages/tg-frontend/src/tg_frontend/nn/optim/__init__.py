"""Optimisers by PyTorch's and tinygrad's names, and Lion."""

from ..absent import refusing
from . import lr_scheduler, swa_utils
from .adafactor import Adafactor
from .adam import Adam, AdamW
from .adaptive import Adadelta, Adagrad, Adamax, Lion, NAdam, RAdam, RMSprop
from .layerwise import LAMB, LARS
from .lbfgs import LBFGS
from .muon import Muon
from .optimizer import Optimizer
from .robust import ASGD, Rprop
from .several import OptimizerGroup
from .sgd import SGD
from .sparse_adam import SparseAdam

__all__ = [
    "ASGD", "LAMB", "LARS", "LBFGS", "SGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "Lion",
    "Muon", "NAdam", "Optimizer", "OptimizerGroup", "RAdam", "RMSprop", "Rprop", "SparseAdam",
    "lr_scheduler", "swa_utils",
]  # fmt: skip

TYPE_CHECKING = False
if not TYPE_CHECKING:  # who checks types is to see that a name is not there
    __getattr__ = refusing("nn.optim")
