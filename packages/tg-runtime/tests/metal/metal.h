// The objects of Metal, for the files that share them.
#pragma once

#include "fake.h"

#include <stdlib.h>
#include <string.h>

#define NEW(name, type)                                                                                                \
  static Object *new_##type(Class *self, Selector selector) {                                                         \
    (void)self, (void)selector;                                                                                        \
    GUARDED;                                                                                                           \
    return make(&name, sizeof(type));                                                                                  \
  }                                                                                                                    \
  static const Method type##_makers[] = {{"new", "@@:", new_##type}, {0}};                                            \
  static Class name##Meta = {0, #name, type##_makers, 0}
#define SELF(type) type *self __attribute__((unused)), Selector selector __attribute__((unused))

enum { MOST_COMMITTED = 64, MOST_USED = 512, LARGEST = 1 << 30, SHARED_BYTES = 32768 };

static const Method none[] __attribute__((unused)) = {{0}};

typedef struct {
  Object head;
  const char *name;
  long families[4];
} Device;
typedef struct {
  Object head;
  Device *device;
  char *bytes;
  unsigned long length;
  bool borrowed;
} Buffer;
typedef struct {
  Object head;
  bool safe, decided;
} Options;
typedef struct {
  Object head;
  Kernel *kernels;
} Library;
typedef struct {
  Object head;
  Kernel *kernel;
} Function;
typedef struct {
  Object head;
  Function *function;
  bool indirect;
} PipelineDescriptor;
typedef struct {
  Object head;
  Device *device;
  Kernel *kernel;
  bool indirect;
} Pipeline;

typedef struct {
  Buffer *buffer;
  unsigned long offset;
  char *bytes; // of setBytes
  unsigned long length;
} Argument;

static inline Argument duplicate(Argument argument) {
  retained(argument.buffer);
  if (argument.bytes) argument.bytes = memcpy(malloc(argument.length), argument.bytes, argument.length);
  return argument;
}
typedef struct Work {
  enum { DISPATCH, COPY, INDIRECT } kind;
  Pipeline *pipeline;
  Argument arguments[MOST_BUFFERS];
  Size groups, threads;
  unsigned long length; // of a copy
  struct Indirect *indirect;
  unsigned long first, count;
  Buffer *used[MOST_USED];
  int uses;
} Work;

typedef struct Queue Queue;
typedef struct CommandBuffer {
  Object head;
  Queue *queue;
  long status;
  bool encoding;
  Work **work;
  int count, room;
  Object *error;
  double start, end;
  struct CommandBuffer *next;
} CommandBuffer;
struct Queue {
  Object head;
  Device *device;
  CommandBuffer *first, *last; // committed, not executed
  int committed;
};
typedef struct {
  Object head;
  CommandBuffer *owner;
  bool ended;
  Pipeline *pipeline;
  Argument arguments[MOST_BUFFERS];
  Buffer *used[MOST_USED];
  int uses;
  Pipeline *seen[MOST_USED];
  int pipelines;
  bool dispatched, executed; // itself, and an indirect command buffer
} Encoder;

typedef struct {
  Object head;
  unsigned long types, bindings;
  bool inherits_buffers, inherits_pipeline;
} IndirectDescriptor;
typedef struct {
  Pipeline *pipeline;
  Argument arguments[MOST_BUFFERS];
  Size groups, threads;
  bool barrier, dispatched;
} Encoded;
typedef struct Indirect {
  Object head;
  unsigned long count, bindings;
  int busy; // command buffers that use it and are not done
  Encoded *commands;
} Indirect;
typedef struct {
  Object head;
  Indirect *owner;
  unsigned long index;
} IndirectCommand;

extern Class MTLDevice, MTLBuffer, MTLLibrary, MTLFunction, MTLComputePipelineState, MTLCommandQueue, MTLCommandBuffer,
    MTLComputeCommandEncoder, MTLBlitCommandEncoder, MTLIndirectCommandBuffer, MTLIndirectComputeCommand,
    MTLCompileOptions, MTLComputePipelineDescriptor, MTLIndirectCommandBufferDescriptor;

unsigned long most_threads(Pipeline *self, Selector selector);
Object *new_queue(Device *self, Selector selector);
Object *new_indirect(Device *self, Selector selector, Object *descriptor, unsigned long count, unsigned long options);
