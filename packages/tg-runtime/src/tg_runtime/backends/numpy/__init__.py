"""NUMPY: kernel ASTs executed op by op with numpy."""
