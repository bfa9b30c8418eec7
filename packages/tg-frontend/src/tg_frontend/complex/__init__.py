"""Complex numbers: what methods of tensors do with two tensors of floats, a real and an imaginary part."""
