"""Operations on tensors, one subject a module."""
