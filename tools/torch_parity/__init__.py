"""Operations beside PyTorch's."""
