"""From a kernel's AST to what runs it: generated or from the disk, searched, compiled, remembered."""
