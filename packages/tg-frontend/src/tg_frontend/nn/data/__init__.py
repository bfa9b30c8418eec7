"""Data sets, samplers and a loader, by PyTorch's names: ``torch.utils.data``."""

from ..absent import refusing
from .loading import DataLoader, default_collate, default_convert, get_worker_info
from .samplers import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from .sets import (
    ArrayDataset,
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)

__all__ = [
    "ArrayDataset", "BatchSampler", "ChainDataset", "ConcatDataset", "DataLoader", "Dataset", "IterableDataset",
    "RandomSampler", "Sampler", "SequentialSampler", "StackDataset", "Subset", "SubsetRandomSampler", "TensorDataset",
    "WeightedRandomSampler", "default_collate", "default_convert", "get_worker_info", "random_split",
]  # fmt: skip

TYPE_CHECKING = False
if not TYPE_CHECKING:  # who checks types is to see that a name is not there
    __getattr__ = refusing("nn.data")
