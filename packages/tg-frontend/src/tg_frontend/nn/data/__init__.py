"""Data sets, samplers and a loader, by PyTorch's names: ``torch.utils.data``."""

from .loading import DataLoader, default_collate
from .samplers import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from .sets import ArrayDataset, ConcatDataset, Dataset, IterableDataset, Subset, TensorDataset, random_split

__all__ = [
    "ArrayDataset", "BatchSampler", "ConcatDataset", "DataLoader", "Dataset", "IterableDataset", "RandomSampler",
    "Sampler", "SequentialSampler", "Subset", "SubsetRandomSampler", "TensorDataset", "WeightedRandomSampler",
    "default_collate", "random_split",
]  # fmt: skip
