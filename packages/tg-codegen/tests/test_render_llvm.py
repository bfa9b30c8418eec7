"""LLVM IR, compiled and run in this process."""

from tg_codegen.render_llvm import LLVMRenderer
from tg_dtype import dtypes
from tg_lazy import Ops


def test_add(linear, llvm, pack, unpack):
    k = linear()
    out, a = k.param(0, dtypes.float32), k.param(1, dtypes.float32)
    i = k.range(8)
    k.store(out, i, k.alu(Ops.ADD, k.load(a, i), k.const(1.5, dtypes.float32)))
    k.end(i)
    text = LLVMRenderer().render("add", k.uops)
    print(text)
    o, x = bytearray(32), pack([1, 2, 3, 4, 5, 6, 7, 8], dtypes.float32)
    llvm(text, "add")(o, x)
    assert unpack(o, dtypes.float32) == [2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5, 9.5]
