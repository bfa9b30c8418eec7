"""Files of tensors in the GGUF format."""
