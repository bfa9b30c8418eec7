// Queues, command buffers and encoders, and the execution of what they hold.
#define _GNU_SOURCE
#include "metal.h"

#include <time.h>

// Execution

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec + time.tv_nsec * 1e-9;
}

static const char *run_kernel(Pipeline *pipeline, Argument *arguments, Size groups, Size threads) {
  Kernel *kernel = pipeline->kernel;
  void *buffers[MOST_BUFFERS] = {0};
  for (int i = 0; i < kernel->count; i++) {
    int index = kernel->parameters[i];
    if (index < 0) continue;
    Argument *argument = &arguments[index];
    if (argument->bytes) buffers[index] = argument->bytes;
    else if (!argument->buffer) return violation("%s: no buffer at %d", kernel->name, index), NULL;
    else if (!alive(argument->buffer)) return violation("%s: a released buffer at %d", kernel->name, index), NULL;
    else buffers[index] = argument->buffer->bytes + argument->offset;
  }
  return launch(kernel, buffers, groups, threads);
}

// Commands up to a barrier are run backwards: they must not depend on each other.
static const char *run_indirect(Work *work) {
  Indirect *indirect = work->indirect;
  for (unsigned long first = work->first, end = work->first + work->count; first < end;) {
    unsigned long stop = first + 1;
    while (stop < end && !indirect->commands[stop].barrier) stop++;
    for (unsigned long i = stop; i-- > first;) {
      Encoded *command = &indirect->commands[i];
      if (!command->pipeline || !command->dispatched) return violation("command %lu is not encoded", i), NULL;
      if (!alive(command->pipeline)) return violation("command %lu has a released pipeline", i), NULL;
      const char *wrong = run_kernel(command->pipeline, command->arguments, command->groups, command->threads);
      if (wrong) return wrong;
    }
    first = stop;
  }
  return NULL;
}

static void drop(Work *work) {
  released(work->pipeline), released(work->indirect);
  for (int i = 0; i < MOST_BUFFERS; i++) released(work->arguments[i].buffer), free(work->arguments[i].bytes);
  for (int i = 0; i < work->uses; i++) released(work->used[i]);
  free(work);
}

static void execute(CommandBuffer *self) {
  self->start = now();
  const char *wrong = option("fail") ? "Caused GPU Timeout Error (00000002:kIOGPUCommandBufferCallbackErrorTimeout)" : 0;
  for (int i = 0; i < self->count; i++) {
    Work *work = self->work[i];
    if (!wrong && work->kind == DISPATCH)
      wrong = run_kernel(work->pipeline, work->arguments, work->groups, work->threads);
    if (!wrong && work->kind == INDIRECT) wrong = run_indirect(work);
    if (!wrong && work->kind == COPY)
      memmove(work->arguments[1].buffer->bytes + work->arguments[1].offset,
              work->arguments[0].buffer->bytes + work->arguments[0].offset, work->length);
    if (work->indirect) work->indirect->busy--;
    drop(work);
  }
  self->count = 0;
  self->end = now();
  self->status = wrong ? 5 : 4;
  if (wrong) self->error = failure(2, "%s", wrong);
}

// Executes the oldest command buffers of a queue, up to one of them.
static void execute_until(Queue *queue, CommandBuffer *last) {
  while (queue->first) {
    CommandBuffer *oldest = queue->first;
    queue->first = oldest->next;
    if (!queue->first) queue->last = NULL;
    queue->committed--;
    execute(oldest);
    bool found = oldest == last;
    released(oldest);
    if (found) return;
  }
}

// MTLCommandQueue, MTLCommandBuffer

Object *new_queue(SELF(Device)) {
  GUARDED;
  Queue *queue = make(&MTLCommandQueue, sizeof *queue);
  queue->device = self;
  return &queue->head;
}
static Object *command_buffer(SELF(Queue)) {
  GUARDED;
  if (self->committed == MOST_COMMITTED) execute_until(self, self->first);
  CommandBuffer *buffer = make(&MTLCommandBuffer, sizeof *buffer);
  buffer->queue = retained(self);
  return autoreleased(buffer);
}
static const Method queue_methods[] = {{"commandBuffer", "@@:", command_buffer}, {0}};
static Class MTLCommandQueueMeta = {0, "MTLCommandQueue", none, 0};
Class MTLCommandQueue = {&MTLCommandQueueMeta, "MTLCommandQueue", queue_methods, 0};

static Object *new_encoder(CommandBuffer *self, Class *cls) {
  if (self->status) return violation("an encoder of a command buffer that is committed"), NULL;
  if (self->encoding) return violation("an encoder while another is open"), NULL;
  Encoder *encoder = make(cls, sizeof *encoder);
  encoder->owner = retained(self);
  self->encoding = true;
  return autoreleased(encoder);
}
static Object *compute_encoder(SELF(CommandBuffer)) {
  GUARDED;
  return new_encoder(self, &MTLComputeCommandEncoder);
}
static Object *blit_encoder(SELF(CommandBuffer)) {
  GUARDED;
  return new_encoder(self, &MTLBlitCommandEncoder);
}
static void commit(SELF(CommandBuffer)) {
  GUARDED;
  if (self->encoding) return violation("commit with an open encoder");
  if (self->status) return violation("commit of a command buffer that is committed");
  self->status = 2;
  Queue *queue = self->queue;
  if (queue->last) queue->last->next = self;
  else queue->first = self;
  queue->last = retained(self), queue->committed++;
}
static void wait_completed(SELF(CommandBuffer)) {
  GUARDED;
  if (!self->status) return violation("waitUntilCompleted of a command buffer that is not committed, for ever");
  if (self->status < 4) execute_until(self->queue, self);
}
static unsigned long status(SELF(CommandBuffer)) { return self->status; }
static Object *command_error(SELF(CommandBuffer)) { return self->error; }
static double finished(CommandBuffer *self, double time) {
  if (self->status < 4) violation("the time of a command buffer that is not done");
  return time;
}
static double gpu_start(SELF(CommandBuffer)) { return finished(self, self->start); }
static double gpu_end(SELF(CommandBuffer)) { return finished(self, self->end); }
static void free_command_buffer(Object *given) {
  CommandBuffer *self = (CommandBuffer *)given;
  if (self->encoding) violation("a command buffer is released with an open encoder");
  for (int i = 0; i < self->count; i++) {
    if (self->work[i]->indirect) self->work[i]->indirect->busy--;
    drop(self->work[i]);
  }
  free(self->work);
  released(self->error), released(self->queue);
}
static const Method command_buffer_methods[] = {
    {"computeCommandEncoder", "@@:", compute_encoder},
    {"blitCommandEncoder", "@@:", blit_encoder},
    {"commit", "v@:", commit},
    {"waitUntilCompleted", "v@:", wait_completed},
    {"status", "Q@:", status},
    {"error", "@@:", command_error},
    {"GPUStartTime", "d@:", gpu_start},
    {"GPUEndTime", "d@:", gpu_end},
    {0}};
static Class MTLCommandBufferMeta = {0, "MTLCommandBuffer", none, 0};
Class MTLCommandBuffer = {&MTLCommandBufferMeta, "MTLCommandBuffer", command_buffer_methods, free_command_buffer};

static Work *add(Encoder *self, int kind) {
  CommandBuffer *owner = self->owner;
  if (owner->count == owner->room) {
    owner->room = owner->room ? 2 * owner->room : 8;
    owner->work = realloc(owner->work, owner->room * sizeof *owner->work);
  }
  Work *work = owner->work[owner->count++] = calloc(1, sizeof *work);
  work->kind = kind;
  return work;
}

// MTLCommandEncoder

static bool open(Encoder *self, const char *what) {
  if (self->ended) violation("%s after endEncoding", what);
  return !self->ended;
}
static void end_encoding(SELF(Encoder)) {
  GUARDED;
  if (!open(self, "endEncoding")) return;
  self->ended = true, self->owner->encoding = false;
}
static void set_pipeline(SELF(Encoder), Object *given) {
  GUARDED;
  Pipeline *pipeline = expect(given, &MTLComputePipelineState, "setComputePipelineState:");
  if (!open(self, "setComputePipelineState:") || !pipeline) return;
  self->pipeline = pipeline;
  if (self->pipelines < MOST_USED) self->seen[self->pipelines++] = pipeline;
}
static void bind(Encoder *self, unsigned long index, Argument argument) {
  argument = duplicate(argument);
  released(self->arguments[index].buffer), free(self->arguments[index].bytes);
  self->arguments[index] = argument;
}
static void set_buffer(SELF(Encoder), Object *given, unsigned long offset, unsigned long index) {
  GUARDED;
  Buffer *buffer = expect(given, &MTLBuffer, "setBuffer:");
  if (!open(self, "setBuffer:") || !buffer) return;
  if (index >= MOST_BUFFERS) return violation("setBuffer: at %lu", index);
  if (offset >= buffer->length) return violation("setBuffer: byte %lu of %lu", offset, buffer->length);
  if (buffer->device != self->owner->queue->device) return violation("setBuffer: of another device");
  bind(self, index, (Argument){buffer, offset, NULL, 0});
}
static void set_bytes(SELF(Encoder), const void *bytes, unsigned long length, unsigned long index) {
  GUARDED;
  if (!open(self, "setBytes:")) return;
  if (index >= MOST_BUFFERS || !length || length > 4096) return violation("setBytes: %lu at %lu", length, index);
  bind(self, index, (Argument){NULL, 0, (char *)bytes, length});
}
static void dispatch(SELF(Encoder), Size groups, Size threads) {
  GUARDED;
  if (!open(self, "dispatchThreadgroups:")) return;
  if (!self->pipeline) return violation("dispatchThreadgroups: with no pipeline");
  if (!groups.x && !groups.y && !groups.z) return; // what makes a pipeline resident, and does nothing
  unsigned long count = threads.x * threads.y * threads.z;
  if (!groups.x || !groups.y || !groups.z || !count || count > most_threads(self->pipeline, NULL))
    return violation("dispatchThreadgroups: %lu x %lu x %lu of %lu threads", groups.x, groups.y, groups.z, count);
  if (self->executed) violation("%s: after an indirect command buffer that it may overtake", self->pipeline->kernel->name);
  self->dispatched = true;
  Work *work = add(self, DISPATCH);
  work->pipeline = retained(self->pipeline), work->groups = groups, work->threads = threads;
  for (int i = 0; i < self->pipeline->kernel->count; i++) {
    int index = self->pipeline->kernel->parameters[i];
    if (index < 0) continue;
    Argument *argument = &self->arguments[index];
    if (!argument->buffer && !argument->bytes)
      violation("%s: no buffer at %d", self->pipeline->kernel->name, index);
    work->arguments[index] = duplicate(*argument);
  }
}
static void use(SELF(Encoder), Object **resources, unsigned long count, unsigned long usage) {
  GUARDED;
  if (!open(self, "useResources:")) return;
  if (usage != 3 || self->uses + count > MOST_USED) return violation("useResources: %lu, usage %lu", count, usage);
  for (unsigned long i = 0; i < count; i++)
    if (expect(resources[i], &MTLBuffer, "useResources:")) self->used[self->uses++] = retained(resources[i]);
}
typedef struct {
  unsigned long location, length;
} Range;
static void execute_indirect(SELF(Encoder), Object *given, Range range) {
  GUARDED;
  Indirect *indirect = expect(given, &MTLIndirectCommandBuffer, "executeCommandsInBuffer:");
  if (!open(self, "executeCommandsInBuffer:") || !indirect) return;
  if (range.location + range.length > indirect->count) return violation("executeCommandsInBuffer: beyond its end");
  bool resident = self->owner->queue->device->families[3] >= 1009;
  for (unsigned long i = range.location; i < range.location + range.length; i++) {
    Encoded *command = &indirect->commands[i];
    bool seen = resident;
    for (int p = 0; p < self->pipelines; p++) seen |= self->seen[p] == command->pipeline;
    if (!seen) violation("command %lu: its pipeline is not resident", i);
    unsigned long count = command->threads.x * command->threads.y * command->threads.z;
    if (command->pipeline && (!count || count > most_threads(command->pipeline, NULL)))
      violation("command %lu: %lu threads", i, count);
    for (int a = 0; a < MOST_BUFFERS; a++) {
      if (!command->arguments[a].buffer) continue;
      bool used = false;
      for (int u = 0; u < self->uses; u++) used |= self->used[u] == command->arguments[a].buffer;
      if (!used) violation("command %lu: its buffer %d is not used by the encoder", i, a);
    }
  }
  if (self->dispatched || self->executed)
    violation("executeCommandsInBuffer: after what it may overtake, in the same encoder");
  self->executed = true;
  Work *work = add(self, INDIRECT);
  work->indirect = retained(indirect), work->first = range.location, work->count = range.length;
  for (work->uses = 0; work->uses < self->uses; work->uses++) work->used[work->uses] = retained(self->used[work->uses]);
  indirect->busy++;
}
static void copy(SELF(Encoder), Object *from, unsigned long from_at, Object *to, unsigned long to_at,
                 unsigned long length) {
  GUARDED;
  Buffer *source = expect(from, &MTLBuffer, "copyFromBuffer:"), *target = expect(to, &MTLBuffer, "copyFromBuffer:");
  if (!open(self, "copyFromBuffer:") || !source || !target) return;
  if (!length || from_at + length > source->length || to_at + length > target->length)
    return violation("copyFromBuffer: %lu bytes", length);
  Work *work = add(self, COPY);
  work->arguments[0] = (Argument){retained(source), from_at, NULL, 0};
  work->arguments[1] = (Argument){retained(target), to_at, NULL, 0};
  work->length = length;
}
static void free_encoder(Object *given) {
  Encoder *self = (Encoder *)given;
  if (!self->ended) violation("an encoder is released before endEncoding");
  for (int i = 0; i < MOST_BUFFERS; i++) released(self->arguments[i].buffer), free(self->arguments[i].bytes);
  for (int i = 0; i < self->uses; i++) released(self->used[i]);
  released(self->owner);
}
static const Method compute_methods[] = {
    {"endEncoding", "v@:", end_encoding},
    {"setComputePipelineState:", "v@:@", set_pipeline},
    {"setBuffer:offset:atIndex:", "v@:@QQ", set_buffer},
    {"setBytes:length:atIndex:", "v@:r^vQQ", set_bytes},
    {"dispatchThreadgroups:threadsPerThreadgroup:", "v@:{?=QQQ}{?=QQQ}", dispatch},
    {"useResources:count:usage:", "v@:r^@QQ", use},
    {"executeCommandsInBuffer:withRange:", "v@:@{_NSRange=QQ}", execute_indirect},
    {0}};
static const Method blit_methods[] = {
    {"endEncoding", "v@:", end_encoding},
    {"copyFromBuffer:sourceOffset:toBuffer:destinationOffset:size:", "v@:@Q@QQ", copy},
    {0}};
static Class MTLComputeCommandEncoderMeta = {0, "MTLComputeCommandEncoder", none, 0};
Class MTLComputeCommandEncoder = {&MTLComputeCommandEncoderMeta, "MTLComputeCommandEncoder", compute_methods,
                                  free_encoder};
static Class MTLBlitCommandEncoderMeta = {0, "MTLBlitCommandEncoder", none, 0};
Class MTLBlitCommandEncoder = {&MTLBlitCommandEncoderMeta, "MTLBlitCommandEncoder", blit_methods, free_encoder};
