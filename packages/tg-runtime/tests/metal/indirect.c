// Indirect command buffers.
#include "metal.h"

// MTLIndirectCommandBuffer

static void set_types(SELF(IndirectDescriptor), unsigned long types) { self->types = types; }
static void set_inherit_buffers(SELF(IndirectDescriptor), bool inherit) { self->inherits_buffers = inherit; }
static void set_inherit_pipeline(SELF(IndirectDescriptor), bool inherit) { self->inherits_pipeline = inherit; }
static void set_bindings(SELF(IndirectDescriptor), unsigned long count) { self->bindings = count; }
static const Method indirect_descriptor_methods[] = {
    {"setCommandTypes:", "v@:Q", set_types},
    {"setInheritBuffers:", "v@:B", set_inherit_buffers},
    {"setInheritPipelineState:", "v@:B", set_inherit_pipeline},
    {"setMaxKernelBufferBindCount:", "v@:Q", set_bindings},
    {0}};
NEW(MTLIndirectCommandBufferDescriptor, IndirectDescriptor);
Class MTLIndirectCommandBufferDescriptor = {&MTLIndirectCommandBufferDescriptorMeta,
                                            "MTLIndirectCommandBufferDescriptor", indirect_descriptor_methods, 0};

Object *new_indirect(SELF(Device), Object *given, unsigned long count, unsigned long options) {
  GUARDED;
  IndirectDescriptor *descriptor = expect(given, &MTLIndirectCommandBufferDescriptor, "newIndirectCommandBuffer");
  if (!descriptor) return NULL;
  if (descriptor->types != 1 << 5 || descriptor->inherits_buffers || descriptor->inherits_pipeline || options)
    violation("newIndirectCommandBuffer: types %#lx, options %#lx", descriptor->types, options);
  if (!descriptor->bindings || descriptor->bindings > MOST_BUFFERS || !count || count > 16384)
    return violation("newIndirectCommandBuffer: %lu bindings, %lu commands", descriptor->bindings, count), NULL;
  if (option("no indirect")) return NULL;
  Indirect *indirect = make(&MTLIndirectCommandBuffer, sizeof *indirect);
  indirect->count = count, indirect->bindings = descriptor->bindings;
  indirect->commands = calloc(count, sizeof *indirect->commands);
  return &indirect->head;
}
static void free_indirect(Object *given) {
  Indirect *self = (Indirect *)given;
  if (self->busy) violation("an indirect command buffer is released while it is used");
  free(self->commands);
}
static Object *command_at(SELF(Indirect), unsigned long index) {
  GUARDED;
  if (index >= self->count) return violation("indirectComputeCommandAtIndex: %lu of %lu", index, self->count), NULL;
  IndirectCommand *command = make(&MTLIndirectComputeCommand, sizeof *command);
  command->owner = retained(self), command->index = index;
  return autoreleased(command);
}
static const Method indirect_methods[] = {{"indirectComputeCommandAtIndex:", "@@:Q", command_at}, {0}};
static Class MTLIndirectCommandBufferMeta = {0, "MTLIndirectCommandBuffer", none, 0};
Class MTLIndirectCommandBuffer = {&MTLIndirectCommandBufferMeta, "MTLIndirectCommandBuffer", indirect_methods,
                                  free_indirect};

static Encoded *editable(IndirectCommand *command, const char *what) {
  if (command->owner->busy) violation("%s of a command that is being executed", what);
  return &command->owner->commands[command->index];
}
static void command_pipeline(SELF(IndirectCommand), Object *given) {
  GUARDED;
  Pipeline *pipeline = expect(given, &MTLComputePipelineState, "setComputePipelineState:");
  if (pipeline && !pipeline->indirect) violation("a pipeline is not for indirect command buffers");
  editable(self, "setComputePipelineState:")->pipeline = pipeline;
}
static void command_buffer_at(SELF(IndirectCommand), Object *given, unsigned long offset, unsigned long index) {
  GUARDED;
  Buffer *buffer = expect(given, &MTLBuffer, "setKernelBuffer:");
  if (!buffer) return;
  if (index >= self->owner->bindings) return violation("setKernelBuffer: at %lu", index);
  if (offset >= buffer->length) violation("setKernelBuffer: byte %lu of %lu", offset, buffer->length);
  editable(self, "setKernelBuffer:")->arguments[index] = (Argument){buffer, offset, NULL, 0};
}
static void command_dispatch(SELF(IndirectCommand), Size groups, Size threads) {
  GUARDED;
  Encoded *encoded = editable(self, "concurrentDispatchThreadgroups:");
  encoded->groups = groups, encoded->threads = threads, encoded->dispatched = true;
}
static void command_barrier(SELF(IndirectCommand)) {
  GUARDED;
  editable(self, "setBarrier")->barrier = true;
}
static void free_command(Object *self) { released(((IndirectCommand *)self)->owner); }
static const Method indirect_command_methods[] = {
    {"setComputePipelineState:", "v@:@", command_pipeline},
    {"setKernelBuffer:offset:atIndex:", "v@:@QQ", command_buffer_at},
    {"concurrentDispatchThreadgroups:threadsPerThreadgroup:", "v@:{?=QQQ}{?=QQQ}", command_dispatch},
    {"setBarrier", "v@:", command_barrier},
    {0}};
static Class MTLIndirectComputeCommandMeta = {0, "MTLIndirectComputeCommand", none, 0};
Class MTLIndirectComputeCommand = {&MTLIndirectComputeCommandMeta, "MTLIndirectComputeCommand",
                                   indirect_command_methods, free_command};
