// Devices, memory, libraries and pipelines.
#define _GNU_SOURCE
#include "metal.h"

#include <sys/mman.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

// NSProcessInfo

typedef struct {
  long major, minor, patch;
} Version;
typedef Object Process;
static bool at_least(SELF(Process), Version version) {
  return (option("macOS") ? option("macOS") : 15) >= version.major;
}
static const Method process_methods[] = {{"isOperatingSystemAtLeastVersion:", "B@:{?=qqq}", at_least}, {0}};
static Object *process_info(Class *self, Selector selector);
static const Method process_makers[] = {{"processInfo", "@@:", process_info}, {0}};
static Class NSProcessInfoMeta = {0, "NSProcessInfo", process_makers, 0};
Class NSProcessInfo = {&NSProcessInfoMeta, "NSProcessInfo", process_methods, 0};
static Object *process_info(Class *self, Selector selector) {
  (void)self, (void)selector;
  static Object *only;
  return only = only ? only : make(&NSProcessInfo, sizeof(Process));
}

// MTLBuffer

static void *contents(SELF(Buffer)) { return self->bytes; }
static void free_buffer(Object *given) {
  Buffer *self = (Buffer *)given;
  if (!self->borrowed) munmap(self->bytes, self->length);
}
static const Method buffer_methods[] = {{"contents", "^v@:", contents}, {0}};
static Class MTLBufferMeta = {0, "MTLBuffer", none, 0};
Class MTLBuffer = {&MTLBufferMeta, "MTLBuffer", buffer_methods, free_buffer};

static Object *new_buffer(SELF(Device), unsigned long length, unsigned long options) {
  GUARDED;
  if (!length || length > LARGEST) return violation("newBufferWithLength: %lu", length), NULL;
  if (options) return violation("newBufferWithLength:options: %#lx, not shared storage", options), NULL;
  if (option("no memory")) return NULL;
  void *bytes = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (bytes == MAP_FAILED) return NULL;
  Buffer *buffer = make(&MTLBuffer, sizeof *buffer);
  buffer->device = self, buffer->bytes = bytes, buffer->length = length;
  return &buffer->head;
}
static Object *borrow(SELF(Device), void *bytes, unsigned long length, unsigned long options, void *deallocator) {
  GUARDED;
  unsigned long page = sysconf(_SC_PAGESIZE);
  if ((uintptr_t)bytes % page || length % page || !length || options || deallocator)
    return violation("newBufferWithBytesNoCopy: %lu bytes at %p, options %lu", length, bytes, options), NULL;
  if (option("no borrowing")) return NULL;
  Buffer *buffer = make(&MTLBuffer, sizeof *buffer);
  buffer->device = self, buffer->bytes = bytes, buffer->length = length, buffer->borrowed = true;
  return &buffer->head;
}

// MTLCompileOptions, MTLLibrary, MTLFunction, MTLComputePipelineState

static void math_mode(SELF(Options), long mode) { self->safe = mode == 0, self->decided = true; }
static void fast_math(SELF(Options), bool fast) { self->safe = !fast, self->decided = true; }
static const Method options_methods[] = {
    {"setMathMode:", "v@:q", math_mode}, {"setFastMathEnabled:", "v@:B", fast_math}, {0}};
NEW(MTLCompileOptions, Options);
Class MTLCompileOptions = {&MTLCompileOptionsMeta, "MTLCompileOptions", options_methods, 0};

static Object *new_library(SELF(Device), Object *source, Object *given, Object **error) {
  GUARDED;
  Options *options = expect(given, &MTLCompileOptions, "newLibraryWithSource:options:");
  if (!expect(source, &NSString, "newLibraryWithSource:") || !options) return NULL;
  if (!options->decided || !options->safe) violation("newLibraryWithSource: with fast math");
  char message[3000];
  Kernel *kernels = compile(characters(source), message, sizeof message);
  if (!kernels) {
    *error = autoreleased(failure(3, "%s", message[0] ? message : "program_source: no kernel"));
    return NULL;
  }
  Library *library = make(&MTLLibrary, sizeof *library);
  library->kernels = kernels;
  return &library->head;
}
static Object *new_function(SELF(Library), Object *name) {
  GUARDED;
  if (!expect(name, &NSString, "newFunctionWithName:")) return NULL;
  for (Kernel *kernel = self->kernels; kernel; kernel = kernel->next)
    if (!strcmp(kernel->name, characters(name))) {
      Function *function = make(&MTLFunction, sizeof *function);
      function->kernel = kernel;
      return &function->head;
    }
  return NULL;
}
static const Method library_methods[] = {{"newFunctionWithName:", "@@:@", new_function}, {0}};
static Class MTLLibraryMeta = {0, "MTLLibrary", none, 0};
Class MTLLibrary = {&MTLLibraryMeta, "MTLLibrary", library_methods, 0};
static Class MTLFunctionMeta = {0, "MTLFunction", none, 0};
Class MTLFunction = {&MTLFunctionMeta, "MTLFunction", none, 0};

static void set_function(SELF(PipelineDescriptor), Object *function) {
  GUARDED;
  if (expect(function, &MTLFunction, "setComputeFunction:")) self->function = retained(function);
}
static void set_indirect(SELF(PipelineDescriptor), bool indirect) { self->indirect = indirect; }
static void free_descriptor(Object *self) { released(((PipelineDescriptor *)self)->function); }
static const Method descriptor_methods[] = {
    {"setComputeFunction:", "v@:@", set_function}, {"setSupportIndirectCommandBuffers:", "v@:B", set_indirect}, {0}};
NEW(MTLComputePipelineDescriptor, PipelineDescriptor);
Class MTLComputePipelineDescriptor = {&MTLComputePipelineDescriptorMeta, "MTLComputePipelineDescriptor",
                                      descriptor_methods, free_descriptor};

unsigned long most_threads(SELF(Pipeline)) {
  long limit = option("threads");
  return limit && (unsigned long)limit < self->kernel->most_threads ? (unsigned long)limit : self->kernel->most_threads;
}
static const Method pipeline_methods[] = {{"maxTotalThreadsPerThreadgroup", "Q@:", most_threads}, {0}};
static Class MTLComputePipelineStateMeta = {0, "MTLComputePipelineState", none, 0};
Class MTLComputePipelineState = {&MTLComputePipelineStateMeta, "MTLComputePipelineState", pipeline_methods, 0};

static Object *new_pipeline(SELF(Device), Object *given, unsigned long options, Object **reflection, Object **error) {
  GUARDED;
  PipelineDescriptor *descriptor = expect(given, &MTLComputePipelineDescriptor, "newComputePipelineState");
  if (!descriptor) return NULL;
  if (!descriptor->function || options || reflection) return violation("newComputePipelineState: arguments"), NULL;
  Kernel *kernel = descriptor->function->kernel;
  if (kernel->shared_bytes > SHARED_BYTES || kernel->most_threads > 1024) {
    *error = autoreleased(failure(3, "%s: %lu bytes of threadgroup memory, %lu threads", kernel->name,
                                  kernel->shared_bytes, kernel->most_threads));
    return NULL;
  }
  Pipeline *pipeline = make(&MTLComputePipelineState, sizeof *pipeline);
  pipeline->device = self, pipeline->kernel = kernel, pipeline->indirect = descriptor->indirect;
  return &pipeline->head;
}

// MTLDevice

static Object *device_name(SELF(Device)) {
  GUARDED;
  return autoreleased(string(self->name));
}
static bool supports_family(SELF(Device), long family) {
  long newest = family < 2000 ? self->families[3] : 5001;
  return family <= newest && (family < 2000 || family > 5000);
}
static bool unified(SELF(Device)) { return self != NULL; }
static unsigned long largest(SELF(Device)) { return self ? LARGEST : 0; }
static unsigned long shared_bytes(SELF(Device)) { return self ? SHARED_BYTES : 0; }
static unsigned long working_set(SELF(Device)) { return self ? 4ul << 30 : 0; }
static const Method device_methods[] = {
    {"name", "@16@0:8", device_name},
    {"supportsFamily:", "B24@0:8q16", supports_family},
    {"hasUnifiedMemory", "B16@0:8", unified},
    {"maxBufferLength", "Q16@0:8", largest},
    {"maxThreadgroupMemoryLength", "Q16@0:8", shared_bytes},
    {"recommendedMaxWorkingSetSize", "Q16@0:8", working_set},
    {"newCommandQueue", "@16@0:8", new_queue},
    {"newBufferWithLength:options:", "@32@0:8Q16Q24", new_buffer},
    {"newBufferWithBytesNoCopy:length:options:deallocator:", "@48@0:8^v16Q24Q32@?40", borrow},
    {"newLibraryWithSource:options:error:", "@40@0:8@16@24^@32", new_library},
    {"newComputePipelineStateWithDescriptor:options:reflection:error:", "@48@0:8@16Q24^@32^@40", new_pipeline},
    {"newIndirectCommandBufferWithDescriptor:maxCommandCount:options:", "@40@0:8@16Q24Q32", new_indirect},
    {0}};
static Class MTLDeviceMeta = {0, "MTLDevice", none, 0};
Class MTLDevice = {&MTLDeviceMeta, "MTLDevice", device_methods, 0};

static Object *device(int number) {
  static Device *devices[2];
  static const char *const names[2] = {"Fake M1", "Fake M3"};
  if (!devices[number]) {
    devices[number] = make(&MTLDevice, sizeof(Device));
    devices[number]->name = names[number];
    devices[number]->families[3] = number ? 1009 : 1007;
  }
  return &devices[number]->head;
}
EXPORT Object *MTLCreateSystemDefaultDevice(void) {
  GUARDED;
  return option("no device") ? NULL : retained(device(0));
}
EXPORT Object *MTLCopyAllDevices(void) {
  GUARDED;
  Object *both[] = {device(1), device(0)};
  return array(both, 2);
}

Class *classes[] = {&NSArray, &NSString, &NSError, &NSProcessInfo, &MTLDevice, &MTLBuffer, &MTLCompileOptions,
                    &MTLLibrary, &MTLFunction, &MTLComputePipelineDescriptor, &MTLComputePipelineState,
                    &MTLIndirectCommandBufferDescriptor, &MTLIndirectCommandBuffer, &MTLIndirectComputeCommand,
                    &MTLCommandQueue, &MTLCommandBuffer, &MTLComputeCommandEncoder, &MTLBlitCommandEncoder, NULL};
