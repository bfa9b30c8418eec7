"""Names at the top of PyTorch and numpy that are not there: what is used here instead."""

from __future__ import annotations

_SPARSE = "only gradients of tables are sparse, by whole rows (embedding(sparse=True)); other tensors are dense"
_QUANTISED = "tensors hold no scales: keep integers beside a scale, (x / scale).round().clamp(-128, 127).cast('int8')"
_SCRIPT = "a part of PyTorch's own compilers; TinyJit records a function with its kernels, and replays them"
_SYMBOLS = "Variable is a size that is known when a function runs"
_BACKEND = "a step of one of PyTorch's libraries, called under another name there; kernels are compiled here"
_SETTING = "there is no such switch; what can be set is in Settings, and Context sets it"
_THREADS = "CPU_COUNT in the environment, or Context, says how many threads compute"
_KIND = "tensors have one class, and a dtype: Tensor(data, dtype='float32')"
_STORAGE = "a tensor has no storage of its own class: memory is shared through DLPack, bytes are Tensor.data()"
_LAYOUT = "there is one layout, row-major where nothing else is asked for"
_AUTOCAST = "autocast(dtype=..., enabled=...) says it for a block"
_CELLS = "layers of tinytg.nn hold the weights: nn.RNN, nn.LSTM, nn.GRU and their cells"
_IN_FUNCTIONAL = "tinytg.nn.functional has it, with that one's order of arguments"
_PRINTED = "str(x) and repr(x); set_printoptions() says how many digits"
_OF_NUMPY = "numpy does it on x.numpy()"
_IN_PLACE = "x[mask] = values writes to chosen elements, x[:] = values to all"
_DATES = "there are numbers alone: dates are kept in int64"
_FILES = "nn.state.safe_save and safe_load keep tensors in files, x.numpy() goes to numpy's"
_FLOATS = "floats raise no flags: detect_anomaly() finds what makes a NaN"
_ITERATION = "a tensor is iterated along its first axis; single elements are tolist()"
_POLYNOMIALS = "polynomials are rows of coefficients: polyval(), polymul(), polyfit(), ...; quotients are numpy's"
_MATRICES = "a tensor of two axes is a matrix; @ multiplies them"
_TYPES = "dtypes are objects of one class: x.dtype.kind tells which kind one is"
_TEXT = "there are numbers alone"
_CLASSES = "numbers of Python stand for single elements; dtypes are not called"
_GROUPS = {
    _SPARSE: (
        "dsmm hsmm hspmm saddmm spmm sparse_bsc sparse_bsc_tensor sparse_bsr sparse_bsr_tensor "
        "sparse_compressed_tensor sparse_coo sparse_coo_tensor sparse_csc sparse_csc_tensor sparse_csr "
        "sparse_csr_tensor jagged strided ccol_indices_copy col_indices_copy crow_indices_copy row_indices_copy "
        "indices_copy values_copy sparse nested"
    ),
    _QUANTISED: (
        "choose_qparams_optimized empty_quantized fake_quantize_per_channel_affine fake_quantize_per_tensor_affine "
        "fbgemm_linear_fp16_weight fbgemm_linear_fp16_weight_fp32_activation fbgemm_linear_int8_weight "
        "fbgemm_linear_int8_weight_fp32_activation fbgemm_linear_quantize_weight fbgemm_pack_gemm_matrix_fp16 "
        "fbgemm_pack_quantized_matrix fused_moving_avg_obs_fake_quant per_channel_affine "
        "per_channel_affine_float_qparams per_channel_symmetric per_tensor_affine per_tensor_symmetric qint32 qint8 "
        "quantize_per_channel quantize_per_tensor quantize_per_tensor_dynamic quantized_batch_norm quantized_gru "
        "quantized_gru_cell quantized_lstm quantized_lstm_cell quantized_max_pool1d quantized_max_pool2d "
        "quantized_max_pool3d quantized_rnn_relu_cell quantized_rnn_tanh_cell quint2x4 quint4x2 quint8 quantization "
        "ao"
    ),
    "dtypes hold whole bytes, and floats of 8 bits are fp8e4m3 and fp8e5m2 with their fnuz forms": (
        "bit bits16 bits1x8 bits2x4 bits4x2 bits8 float4_e2m1fn_x2 float8_e8m0fnu int1 int2 int3 int4 int5 int6 int7 "
        "uint1 uint2 uint3 uint4 uint5 uint6 uint7"
    ),
    "complex numbers have parts of float32 or float64: complex64, complex128": "complex32 clongdouble complex256",
    "the widest floats are of 64 bits": "longdouble float128",
    _SCRIPT: (
        "AggregationType AVG SUM AliasDb AnyType Argument ArgumentSpec AwaitType BenchmarkConfig "
        "BenchmarkExecutionStats Block BoolType BufferDict CallStack Capsule ClassType Code CompilationUnit "
        "CompleteArgumentSpec ComplexType ConcreteModuleType ConcreteModuleTypeBuilder DeepCopyMemoTable "
        "DeserializationStorageContext DeviceObjType DictType DisableTorchFunction DisableTorchFunctionSubclass "
        "DispatchKey DispatchKeySet EnumType ErrorReport Event ExcludeDispatchKeyGuard ExecutionPlan FatalError "
        "FileCheck FloatType FunctionSchema Future FutureType Gradient Graph GraphExecutorState IODescriptor "
        "InferredType IntType InterfaceType JITException ListType LiteScriptModule LockingLogger LoggerBase "
        "ModuleDict Node NoneType NoopLogger NumberType OperatorInfo OptionalType PRIVATE_OPS ParameterDict "
        "PyObjectType PyTorchFileReader PyTorchFileWriter RRefType ScriptClass ScriptClassFunction ScriptDict "
        "ScriptDictIterator ScriptDictKeyIterator ScriptFunction ScriptList ScriptListIterator ScriptMethod "
        "ScriptModule ScriptModuleSerializer ScriptObject ScriptObjectProperty SerializationStorageContext "
        "StaticModule StringType Tag TensorType ThroughputBenchmark TracingState TupleType Type USE_GLOBAL_DEPS "
        "USE_RTLD_GLOBAL_WITH_LIBTORCH UnionType Use Value classes classproperty cpp compile compiler export fork "
        "functional futures fx get_device_module get_file_path hub import_ir_module import_ir_module_from_buffer jit "
        "library merge_type_from_type_comment monitor ops overrides package parse_ir parse_schema parse_type_comment "
        "prepare_multiprocessing_environment return_types thread_safe_generator torch_version "
        "profiler_allow_cudagraph_cupti_lazy_reinit_cuda12 unify_type_list wait"
    ),
    _SYMBOLS: (
        "SymBool SymBoolType SymFloat SymInt SymIntType sym_constrain_range sym_constrain_range_for_size sym_float "
        "sym_fresh_size sym_int sym_ite sym_max sym_min sym_not sym_sqrt sym_sum"
    ),
    _BACKEND: (
        "batch_norm_backward_elemt batch_norm_backward_reduce batch_norm_elemt batch_norm_gather_stats "
        "batch_norm_gather_stats_with_counts batch_norm_stats batch_norm_update_stats convolution "
        "cudnn_affine_grid_generator cudnn_batch_norm cudnn_convolution cudnn_convolution_add_relu "
        "cudnn_convolution_relu cudnn_convolution_transpose cudnn_grid_sampler cudnn_is_acceptable embedding_renorm_ "
        "miopen_batch_norm miopen_convolution miopen_convolution_add_relu miopen_convolution_relu "
        "miopen_convolution_transpose miopen_ctc_loss miopen_depthwise_convolution miopen_rnn "
        "mkldnn_adaptive_avg_pool2d mkldnn_convolution mkldnn_linear_backward_weights mkldnn_max_pool2d "
        "mkldnn_max_pool3d mkldnn_rnn_layer native_batch_norm native_channel_shuffle native_dropout native_group_norm "
        "native_layer_norm native_norm norm_except_dim slice_inverse compiled_with_cxx11_abi is_vulkan_available "
        "has_lapack has_mkl has_openmp has_spectral show_config show_runtime get_include backends"
    ),
    _CELLS: "gru gru_cell lstm lstm_cell rnn_relu rnn_relu_cell rnn_tanh rnn_tanh_cell",
    _IN_FUNCTIONAL: (
        "adaptive_max_pool1d batch_norm instance_norm embedding_bag feature_dropout feature_dropout_ "
        "affine_grid_generator grid_sampler grid_sampler_2d grid_sampler_3d max_pool1d_with_indices pad"
    ),
    _KIND: (
        "BFloat16Tensor BoolTensor ByteTensor CharTensor DoubleTensor FloatTensor HalfTensor IntTensor LongTensor "
        "ShortTensor set_default_tensor_type"
    ),
    _STORAGE: (
        "BFloat16Storage BoolStorage ByteStorage CharStorage ComplexDoubleStorage ComplexFloatStorage DoubleStorage "
        "FloatStorage HalfStorage IntStorage LongStorage QInt32Storage QInt8Storage QUInt2x4Storage QUInt4x2Storage "
        "QUInt8Storage ShortStorage Storage StorageBase TypedStorage UntypedStorage is_storage storage shares_memory "
        "may_share_memory"
    ),
    _LAYOUT: (
        "channels_last channels_last_3d contiguous_format legacy_contiguous_format preserve_format memory_format "
        "empty_permuted empty_strided asfortranarray ascontiguousarray isfortran require layout"
    ),
    _AUTOCAST: (
        "autocast_decrement_nesting autocast_increment_nesting clear_autocast_cache get_autocast_cpu_dtype "
        "get_autocast_dtype get_autocast_gpu_dtype get_autocast_ipu_dtype get_autocast_xla_dtype "
        "is_autocast_cache_enabled is_autocast_cpu_enabled is_autocast_enabled is_autocast_ipu_enabled "
        "is_autocast_xla_enabled set_autocast_cache_enabled set_autocast_cpu_dtype set_autocast_cpu_enabled "
        "set_autocast_dtype set_autocast_enabled set_autocast_gpu_dtype set_autocast_ipu_dtype "
        "set_autocast_ipu_enabled set_autocast_xla_dtype set_autocast_xla_enabled"
    ),
    _SETTING: (
        "are_deterministic_algorithms_enabled get_deterministic_debug_mode get_float32_matmul_precision "
        "is_deterministic_algorithms_warn_only_enabled is_warn_always_enabled set_deterministic_debug_mode "
        "set_float32_matmul_precision set_flush_denormal set_warn_always use_deterministic_algorithms getbufsize "
        "setbufsize"
    ),
    _THREADS: "get_num_interop_threads get_num_threads init_num_threads set_num_interop_threads set_num_threads",
    "detect_anomaly() and set_detect_anomaly() look for what makes a NaN": (
        "set_anomaly_enabled is_anomaly_check_nan_enabled"
    ),
    "it is the method of that name without _copy, and clone()": (
        "as_strided_copy detach_copy select_copy slice_copy split_copy view_as_complex_copy view_as_real_copy"
    ),
    "one stream of random numbers serves a program: manual_seed(), get_rng_state(), set_rng_state()": (
        "Generator default_generator random"
    ),
    "shapes are tuples": "Size",
    "Device and the tools of tinytg name devices and wait for them": (
        "accelerator cuda mps mtia xpu Stream StreamObjType"
    ),
    "a device that is out of memory raises MemoryError": "OutOfMemoryError AcceleratorError",
    "what it gives is to be taken: tensors are not changed by it": "alpha_dropout_ feature_alpha_dropout_",
    "dtypes are names in tinytg.dtypes": "types",
    "Context(DEV='CUDA') says it for a block, DEV in the environment for a program": "set_default_device",
    "it is arange(), whose end is left out": "range",
    "it is linalg.matrix_norm(x, 'fro')": "frobenius_norm",
    "it is linalg.matrix_norm(x, 'nuc')": "nuclear_norm",
    "from_dlpack() of the other library takes the tensor itself": "to_dlpack",
    "Tensor(pathlib.Path(...), dtype=...) reads a file": "from_file fromfile memmap",
    "it is nn.amp.GradScaler": "GradScaler",
    "nn.state.torch_save and nn.state.safe_save keep tensors in files": "save savez savez_compressed savetxt",
    "nn.state.safe_load, or nn.state.torch_load for PyTorch's files": "load serialization",
    "tensors are on one device of one process": "distributed is_distributed multiprocessing",
    "grad, jvp, vmap, ... are here at the top": "func",
    "optimisers are in tinytg.nn.optim": "optim",
    "autocast and GradScaler are in tinytg.nn.amp": "amp",
    "nn.data loads data, nn.checkpoint computes again what is not kept": "utils",
    "PROFILE=1 in the environment, or Context(PROFILE=1), times kernels": "profiler",
    "random draws are methods: normal_(), exponential(), poisson(), ...": "distributions quasirandom",
    "a mask chooses by where() and masked_fill()": "masked ma",
    "version() of importlib.metadata tells it": "version",
    "allclose() compares": "testing test",
    "windows are in tinytg.signal.windows, kaiser(M, beta=...) among them": "windows kaiser",
    "repeat_interleave() repeats elements, tile() the whole": "repeat",
    "uint8 and int8 say whether there is a sign": "byte char",
    "it is nan_to_num() of floats, or x.isnan()": "isnat",
    "it is sort(), of which the values come first": "sort_complex",
    "vmap() runs a function for each part along an axis": "vectorize frompyfunc",
    "it is fill_diagonal_()": "fill_diagonal",
    _IN_PLACE: "copyto place putmask",
    "it is scatter(), which gives another tensor": "put_along_axis",
    "it is broadcast_tensors()": "broadcast",
    "einsum() contracts in one kernel where it can": "einsum_path",
    "it is x.real where x.imag is 0": "real_if_close",
    _PRINTED: (
        "array2string array_repr array_str format_float_positional format_float_scientific get_printoptions "
        "printoptions base_repr binary_repr"
    ),
    _OF_NUMPY: (
        "asarray_chkfinite datetime_as_string fromregex genfromtxt loadtxt fromstring fromiter memmap recarray record "
        "rec ctypeslib core lib emath exceptions f2py dtypes polynomial strings typing nditer nested_iters "
        "random_integers"
    ),
    _DATES: "busday_count busday_offset busdaycalendar datetime64 datetime_data is_busday timedelta64",
    _FLOATS: "errstate geterr geterrcall seterr seterrcall",
    _ITERATION: "flatiter ndenumerate ndindex iterable",
    _POLYNOMIALS: "poly1d polydiv",
    _MATRICES: "asmatrix matrix bmat",
    _TYPES: "ScalarType issubdtype mintypecode min_scalar_type common_type sctypeDict typecodes isscalar",
    _TEXT: "bytes_ character str_ object_ void flexible",
    _CLASSES: "complexfloating floating generic inexact integer number signedinteger unsignedinteger",
    "it is Tensor": "ndarray ufunc",
    "help(x) tells it": "info",
}
INSTEAD = {name: said for said, names in _GROUPS.items() for name in names.split()}
"""What is used instead, by the name that is not there."""
