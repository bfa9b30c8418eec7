// MSL to libraries of the host, by a C++ compiler and a stand-in for metal_stdlib; threadgroups as coroutines.
#define _GNU_SOURCE
#undef _FORTIFY_SOURCE // it takes a jump to another stack for a mistake
#include "fake.h"

#include <ctype.h>
#include <dlfcn.h>
#include <setjmp.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

extern char **environ;
enum { STACK = 128 << 10, MOST_THREADS = 1024, SIMD = 32 };

static struct Source {
  struct Source *next;
  Kernel *kernels;
  char text[];
} *sources;
static int numbered;

// Copies the lines, declarations of threadgroup memory made static; counts its bytes.
static unsigned long copy_lines(FILE *out, const char *source) {
  unsigned long bytes = 0;
  while (*source) {
    size_t length = strcspn(source, "\n");
    const char *at = source + strspn(source, " ");
    char type[32], name[64];
    unsigned long elements;
    int used = 0;
    if (sscanf(at, "threadgroup %31[a-z] %63[A-Za-z0-9_][%lu];%n", type, name, &elements, &used) == 3 && used > 0 &&
        at + used == source + length) {
      fputs("static ", out);
      bool word = !strcmp(type, "int") || !strcmp(type, "uint") || !strcmp(type, "float");
      bool half = !strcmp(type, "short") || !strcmp(type, "ushort") || !strcmp(type, "half") || !strcmp(type, "bfloat");
      bytes += elements * (word ? 4 : half ? 2 : strstr(type, "long") ? 8 : 1);
    }
    fprintf(out, "%.*s\n", (int)length, source);
    source += length + (source[length] == '\n');
  }
  return bytes;
}

// Reads the parameters of a kernel; returns what is wrong.
static const char *read_parameters(Kernel *kernel, const char *at) {
  bool seen[MOST_BUFFERS] = {0};
  while (*at && *at != ')') {
    const char *attribute = strstr(at, "[[");
    if (!attribute || kernel->count == MOST_BUFFERS + 2) return "a parameter has no attribute";
    int index;
    if (sscanf(attribute, "[[buffer(%d)]]", &index) == 1) {
      if (index < 0 || index >= MOST_BUFFERS || seen[index]) return "'buffer' attribute parameter is out of bounds";
      const char *space = at + strspn(at, " ");
      if (strncmp(space, "device ", 7) && strncmp(space, "constant ", 9)) return "a buffer has no address space";
      seen[index] = true;
      kernel->parameters[kernel->count++] = index;
    } else if (!strncmp(attribute, "[[threadgroup_position_in_grid]]", 32))
      kernel->parameters[kernel->count++] = GROUP;
    else if (!strncmp(attribute, "[[thread_position_in_threadgroup]]", 34))
      kernel->parameters[kernel->count++] = ITEM;
    else return "a parameter has an attribute that is not known";
    at = strstr(attribute, "]]") + 2;
    at += *at == ',';
  }
  return NULL;
}

static int run_compiler(const char *source, const char *library, char *message, size_t room) {
  char include[512], log[600];
  snprintf(include, sizeof include, "-I%s", getenv("FAKE_METAL_FOLDER"));
  snprintf(log, sizeof log, "%s.log", library);
  char *command[] = {getenv("FAKE_METAL_CXX"), "-x", "c++", "-std=c++17", "-fsigned-char", "-fvisibility=hidden",
                     "-fno-strict-aliasing", "-shared", "-fPIC", "-w", "-O1", "-fno-diagnostics-show-caret", include,
                     "-o", (char *)library, (char *)source, "-lm", NULL};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 2, log, 01101, 0600); // write, create, truncate
  pid_t child;
  int status = -1;
  if (!posix_spawnp(&child, command[0], &actions, NULL, command, environ)) waitpid(child, &status, 0);
  posix_spawn_file_actions_destroy(&actions);
  FILE *said = fopen(log, "r");
  size_t read = said ? fread(message, 1, room - 1, said) : 0;
  message[read] = 0;
  if (said) fclose(said);
  return status;
}

Kernel *compile(const char *source, char *message, size_t room) {
  message[0] = 0;
  for (struct Source *at = sources; at; at = at->next)
    if (!strcmp(at->text, source)) return at->kernels;
  char path[512], library[512];
  snprintf(path, sizeof path, "%s/%d.cpp", getenv("FAKE_METAL_FOLDER"), numbered);
  snprintf(library, sizeof library, "%s/%d.so", getenv("FAKE_METAL_FOLDER"), numbered++);
  FILE *out = fopen(path, "w");
  if (!out) return snprintf(message, room, "%s cannot be written", path), NULL;
  fputs("#line 1 \"program_source\"\n", out);
  unsigned long shared = copy_lines(out, source);
  Kernel *kernels = NULL;
  for (const char *at = source; (at = strstr(at, "kernel void ")); at++) {
    Kernel *kernel = calloc(1, sizeof *kernel);
    kernel->next = kernels, kernels = kernel;
    kernel->together = strstr(source, "threadgroup_barrier(") || strstr(source, "simdgroup_multiply_accumulate(");
    kernel->shared_bytes = shared;
    kernel->most_threads = MOST_THREADS;
    const char *line = at;
    while (line > source && line[-1] != '\n') line--;
    sscanf(line, "[[max_total_threads_per_threadgroup(%lu)]]", &kernel->most_threads);
    int length = 0;
    sscanf(at, "kernel void %127[A-Za-z0-9_](%n", kernel->name, &length);
    const char *wrong = length ? read_parameters(kernel, at + length) : "a kernel has no parameters";
    if (wrong) return fclose(out), snprintf(message, room, "program_source:1:1: error: %s", wrong), NULL;
    fprintf(out, "TG_ENTRY(%s)\n", kernel->name);
  }
  fclose(out);
  if (run_compiler(path, library, message, room)) return NULL;
  void *loaded = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  unlink(library);
  if (!loaded) return snprintf(message, room, "%s", dlerror()), NULL;
  for (Kernel *kernel = kernels; kernel; kernel = kernel->next) {
    char entry[160];
    snprintf(entry, sizeof entry, "%s_entry", kernel->name);
    kernel->entry = (void (*)(void **))dlsym(loaded, entry);
    kernel->barrier = dlsym(loaded, "tg_barrier");
    kernel->exchange = dlsym(loaded, "tg_exchange");
  }
  struct Source *kept = malloc(sizeof *kept + strlen(source) + 1);
  strcpy(kept->text, source);
  kept->kernels = kernels, kept->next = sources, sources = kept;
  return kernels;
}

// launches

typedef struct {
  uint32_t x, y, z, w;
} Place;

enum State { READY, AT_BARRIER, AT_EXCHANGE, ENDED };
// Threads are made once and run a kernel after another; jumps between them cost no system call.
static struct {
  jmp_buf scheduler, threads[MOST_THREADS];
  bool begun[MOST_THREADS];
  void **slots[MOST_THREADS];
  void *given[MOST_THREADS];
  enum State state[MOST_THREADS];
  char *stacks;
  int current;
  Kernel *kernel;
} team;

static void wait_at(enum State state) {
  team.state[team.current] = state;
  if (!_setjmp(team.threads[team.current])) _longjmp(team.scheduler, 1);
}

static void barrier(void) { wait_at(AT_BARRIER); }

static void **exchange(void *mine, int *lane) {
  int first = team.current / SIMD * SIMD;
  *lane = team.current - first;
  if (mine) team.given[team.current] = mine; // what the others read stays while they may
  wait_at(AT_EXCHANGE);
  return &team.given[first];
}

static void live(void) {
  for (;;) {
    team.kernel->entry(team.slots[team.current]);
    wait_at(ENDED);
  }
}

static void go_on(int thread) {
  team.current = thread;
  if (_setjmp(team.scheduler)) return;
  if (team.begun[thread]) _longjmp(team.threads[thread], 1);
  team.begun[thread] = true;
  ucontext_t context;
  getcontext(&context);
  context.uc_stack.ss_sp = team.stacks + (size_t)thread * STACK, context.uc_stack.ss_size = STACK;
  context.uc_link = NULL;
  makecontext(&context, live, 0);
  setcontext(&context);
}

// Lets threads go on that all wait at the same place; whether there are any.
static bool release_threads(int first, int end, enum State place) {
  for (int i = first; i < end; i++)
    if (team.state[i] != place) return false;
  for (int i = first; i < end; i++) team.state[i] = READY;
  return true;
}

static const char *run_together(Kernel *kernel, int count, void *slots[][MOST_BUFFERS + 2]) {
  if (!team.stacks) {
    size_t bytes = (size_t)MOST_THREADS * STACK;
    team.stacks = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  }
  team.kernel = kernel;
  *kernel->barrier = barrier, *kernel->exchange = exchange;
  for (int i = 0; i < count; i++) team.slots[i] = slots[i], team.state[i] = READY;
  static bool backwards;
  for (bool going = true; going;) {
    // Backwards every other time: an order on which nothing may depend.
    backwards = !backwards;
    for (int i = 0; i < count; i++) {
      int thread = backwards ? count - 1 - i : i;
      if (team.state[thread] == READY) go_on(thread);
    }
    going = release_threads(0, count, AT_BARRIER);
    for (int first = 0; first + SIMD <= count; first += SIMD) going |= release_threads(first, first + SIMD, AT_EXCHANGE);
  }
  const char *wrong = NULL;
  for (int i = 0; i < count; i++) {
    if (team.state[i] == ENDED) continue;
    team.begun[i] = false; // it never comes back from where it waits
    if (!wrong) wrong = team.state[i] == AT_BARRIER ? "a barrier was not reached by all threads of a threadgroup"
                                                    : "a matrix was not reached by all threads of a SIMD-group";
  }
  return wrong;
}

const char *launch(Kernel *kernel, void **buffers, Size groups, Size threads) {
  static Place items[MOST_THREADS];
  static void *slots[MOST_THREADS][MOST_BUFFERS + 2];
  Place group = {0};
  int count = 0;
  for (uint32_t z = 0; z < threads.z; z++)
    for (uint32_t y = 0; y < threads.y; y++)
      for (uint32_t x = 0; x < threads.x; x++) items[count++] = (Place){x, y, z, 0};
  for (int i = 0; i < count; i++)
    for (int p = 0; p < kernel->count; p++) {
      int index = kernel->parameters[p];
      slots[i][p] = index == GROUP ? (void *)&group : index == ITEM ? (void *)&items[i] : buffers[index];
    }
  for (group.z = 0; group.z < groups.z; group.z++)
    for (group.y = 0; group.y < groups.y; group.y++)
      for (group.x = 0; group.x < groups.x; group.x++) {
        if (kernel->together) {
          const char *wrong = run_together(kernel, count, slots);
          if (wrong) return wrong;
          continue;
        }
        for (int i = 0; i < count; i++) kernel->entry(slots[i]);
      }
  return NULL;
}
