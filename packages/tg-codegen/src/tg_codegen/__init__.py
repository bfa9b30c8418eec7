"""From a kernel AST to optimised, linear, rendered source: C, LLVM IR, OpenCL and a reference interpreter."""
