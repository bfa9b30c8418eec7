// Objects, classes, messages, pools, strings.
#include "fake.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
enum { BUCKETS = 4096, GRAVES = 64, OPTIONS = 16 };

static Object *table[BUCKETS];
static Object *graves[GRAVES]; // dead objects, so that what comes to them is seen
static unsigned buried;
static long living;
static char violations[16384];
static pthread_mutex_t lock;

__attribute__((constructor)) static void start(void) {
  pthread_mutexattr_t kind;
  pthread_mutexattr_init(&kind);
  pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_RECURSIVE);
  pthread_mutex_init(&lock, &kind);
}

void enter(void) { pthread_mutex_lock(&lock); }
void leave(int *unused) { (void)unused, pthread_mutex_unlock(&lock); }

void violation(const char *format, ...) {
  GUARDED;
  size_t used = strlen(violations);
  va_list arguments;
  va_start(arguments, format);
  used += vsnprintf(violations + used, sizeof violations - used, format, arguments);
  va_end(arguments);
  if (used + 2 < sizeof violations) strcpy(violations + used, "\n");
}

EXPORT const char *fake_violations(void) { return violations; }
EXPORT void fake_forgive(void) { violations[0] = 0; }
EXPORT long fake_living(void) { return living; }

static struct {
  char name[32];
  long value;
} options[OPTIONS];

long option(const char *name) {
  for (int i = 0; i < OPTIONS; i++)
    if (!strcmp(options[i].name, name)) return options[i].value;
  return 0;
}

EXPORT void fake_set(const char *name, long value) {
  for (int i = 0; i < OPTIONS; i++)
    if (!options[i].name[0] || !strcmp(options[i].name, name)) {
      snprintf(options[i].name, sizeof options[i].name, "%s", name);
      options[i].value = value;
      return;
    }
  violation("too many options");
}

// objects

static Object **bucket(void *object) { return &table[((uintptr_t)object >> 4) % BUCKETS]; }

static bool known(void *object) {
  for (Object *at = *bucket(object); at; at = at->next)
    if (at == object) return true;
  return false;
}

bool alive(void *object) { return known(object) && ((Object *)object)->references > 0; }

void *make(Class *cls, size_t size) {
  Object *object = calloc(1, size);
  object->isa = cls, object->references = 1;
  object->next = *bucket(object), *bucket(object) = object;
  living++;
  return object;
}

void *retained(void *object) {
  if (object) ((Object *)object)->references++;
  return object;
}

static void erase(Object *object) {
  Object **at = bucket(object);
  while (*at != object) at = &(*at)->next;
  *at = object->next;
  free(object);
}

void released(void *given) {
  Object *object = given;
  if (!object) return;
  if (--object->references > 0) return;
  living--;
  if (object->isa->dealloc) object->isa->dealloc(object);
  Object **grave = &graves[buried++ % GRAVES];
  if (*grave) erase(*grave);
  *grave = object;
}

void *expect(void *object, Class *cls, const char *what) {
  if (!known(object)) violation("%s: %p is no object", what, object);
  else if (!alive(object)) violation("%s: a released %s", what, ((Object *)object)->isa->name);
  else if (((Object *)object)->isa != cls) violation("%s: a %s, not a %s", what, ((Object *)object)->isa->name, cls->name);
  else return object;
  return NULL;
}

static Object *retain(Object *self, Selector selector) {
  (void)selector;
  GUARDED;
  return retained(self);
}
static void release(Object *self, Selector selector) {
  (void)selector;
  GUARDED;
  released(self);
}
static bool responds(Object *self, Selector selector, Selector asked);
static const Method every[] = {
    {"retain", "@@:", retain}, {"release", "v@:", release}, {"respondsToSelector:", "c@::", responds}, {0}};

// pools

typedef struct Pool {
  struct Pool *outer;
  Object **objects;
  size_t count, room;
} Pool;
static __thread Pool *innermost;

EXPORT void *objc_autoreleasePoolPush(void) {
  Pool *pool = calloc(1, sizeof *pool);
  pool->outer = innermost;
  return innermost = pool;
}

EXPORT void objc_autoreleasePoolPop(void *given) {
  GUARDED;
  Pool *pool = given;
  if (pool != innermost) return violation("a pool is popped that is not the innermost");
  for (size_t i = 0; i < pool->count; i++) released(pool->objects[i]);
  innermost = pool->outer;
  free(pool->objects), free(pool);
}

Object *autoreleased(void *object) {
  if (!innermost) {
    violation("a %s is autoreleased with no pool around, and leaks", ((Object *)object)->isa->name);
    return object;
  }
  if (innermost->count == innermost->room) {
    innermost->room = innermost->room ? 2 * innermost->room : 16;
    innermost->objects = realloc(innermost->objects, innermost->room * sizeof *innermost->objects);
  }
  return innermost->objects[innermost->count++] = object;
}

// classes and messages

extern Class *classes[];
static Selector selectors[512];

EXPORT Selector sel_registerName(const char *name) {
  GUARDED;
  for (int i = 0; i < 512; i++) {
    if (!selectors[i]) return selectors[i] = strdup(name);
    if (!strcmp(selectors[i], name)) return selectors[i];
  }
  abort();
}

EXPORT Class *objc_getClass(const char *name) {
  for (Class **at = classes; *at; at++)
    if (!strcmp((*at)->name, name)) return *at;
  return NULL;
}

static bool is_class(void *object) {
  for (Class **at = classes; *at; at++)
    if (*at == object) return true;
  return false;
}

EXPORT Class *object_getClass(Object *object) { return object->isa; }
EXPORT const char *class_getName(Class *cls) { return cls->name; }
EXPORT const char *method_getTypeEncoding(const Method *method) { return method->types; }

EXPORT const Method *class_getInstanceMethod(Class *cls, Selector selector) {
  if (!strcmp(selector, "setMathMode:") && option("old system")) return NULL;
  for (const Method *at = cls->methods; at->selector; at++)
    if (!strcmp(at->selector, selector)) return at;
  for (const Method *at = every; at->selector; at++)
    if (!strcmp(at->selector, selector)) return at;
  return NULL;
}

static bool responds(Object *self, Selector selector, Selector asked) {
  (void)selector;
  return class_getInstanceMethod(self->isa, asked) != NULL;
}

static void *nothing(void) { return NULL; }

// The function of a message.
__attribute__((used)) void *fake_lookup(Object *self, Selector selector) {
  GUARDED;
  if (!is_class(self)) {
    if (!known(self)) return violation("%s is sent to %p, which is no object", selector, (void *)self), nothing;
    if (!alive(self)) return violation("%s is sent to a released %s", selector, self->isa->name), nothing;
  }
  const Method *method = class_getInstanceMethod(self->isa, selector);
  if (!method) return violation("%s is sent to a %s, which has no such method", selector, self->isa->name), nothing;
  return method->function;
}

#if defined __x86_64__
__asm__(".text\n.globl objc_msgSend\n.type objc_msgSend, @function\nobjc_msgSend:\n"
        "  test %rdi, %rdi\n  jz 1f\n"
        "  push %rbp\n  mov %rsp, %rbp\n  sub $192, %rsp\n"
        "  mov %rdi, 0(%rsp)\n  mov %rsi, 8(%rsp)\n  mov %rdx, 16(%rsp)\n  mov %rcx, 24(%rsp)\n"
        "  mov %r8, 32(%rsp)\n  mov %r9, 40(%rsp)\n  mov %rax, 48(%rsp)\n"
        "  movups %xmm0, 64(%rsp)\n  movups %xmm1, 80(%rsp)\n  movups %xmm2, 96(%rsp)\n  movups %xmm3, 112(%rsp)\n"
        "  call fake_lookup\n  mov %rax, %r11\n"
        "  mov 0(%rsp), %rdi\n  mov 8(%rsp), %rsi\n  mov 16(%rsp), %rdx\n  mov 24(%rsp), %rcx\n"
        "  mov 32(%rsp), %r8\n  mov 40(%rsp), %r9\n  mov 48(%rsp), %rax\n"
        "  movups 64(%rsp), %xmm0\n  movups 80(%rsp), %xmm1\n  movups 96(%rsp), %xmm2\n  movups 112(%rsp), %xmm3\n"
        "  leave\n  jmp *%r11\n"
        "1: xor %eax, %eax\n  pxor %xmm0, %xmm0\n  ret\n.size objc_msgSend, . - objc_msgSend\n");
#elif defined __aarch64__
__asm__(".text\n.globl objc_msgSend\n.type objc_msgSend, %function\nobjc_msgSend:\n"
        "  cbz x0, 1f\n"
        "  stp x29, x30, [sp, #-160]!\n  mov x29, sp\n"
        "  stp x0, x1, [sp, #16]\n  stp x2, x3, [sp, #32]\n  stp x4, x5, [sp, #48]\n  stp x6, x7, [sp, #64]\n"
        "  str x8, [sp, #80]\n  stp q0, q1, [sp, #96]\n  stp d2, d3, [sp, #128]\n"
        "  bl fake_lookup\n  mov x16, x0\n"
        "  ldp x0, x1, [sp, #16]\n  ldp x2, x3, [sp, #32]\n  ldp x4, x5, [sp, #48]\n  ldp x6, x7, [sp, #64]\n"
        "  ldr x8, [sp, #80]\n  ldp q0, q1, [sp, #96]\n  ldp d2, d3, [sp, #128]\n"
        "  ldp x29, x30, [sp], #160\n  br x16\n"
        "1: fmov d0, xzr\n  ret\n.size objc_msgSend, . - objc_msgSend\n");
#else
#error "objc_msgSend is written for x86-64 and AArch64"
#endif

// strings, errors, arrays

typedef struct {
  Object head;
  char *text;
} String;
typedef struct {
  Object head;
  long code;
  char text[4096];
} Error;
typedef struct {
  Object head;
  unsigned long count;
  Object *items[4];
} Array;

static void free_string(Object *self) { free(((String *)self)->text); }

static const char *utf8(String *self, Selector selector) {
  (void)selector;
  return self->text;
}
static Object *with_utf8(Class *self, Selector selector, const char *text) {
  (void)self, (void)selector;
  GUARDED;
  if (!text) return violation("stringWithUTF8String: of nothing"), NULL;
  return autoreleased(string(text));
}
static const Method string_methods[] = {{"UTF8String", "r*@:", utf8}, {0}};
static const Method string_makers[] = {{"stringWithUTF8String:", "@@:r*", with_utf8}, {0}};
static Class NSStringMeta = {0, "NSString", string_makers, 0};
Class NSString = {&NSStringMeta, "NSString", string_methods, free_string};

Object *string(const char *text) {
  String *self = make(&NSString, sizeof *self);
  self->text = strdup(text);
  return &self->head;
}
const char *characters(Object *text) { return ((String *)text)->text; }

static Object *description(Error *self, Selector selector) {
  (void)selector;
  GUARDED;
  return autoreleased(string(self->text));
}
static long code(Error *self, Selector selector) {
  (void)selector;
  return self->code;
}
static const Method error_methods[] = {
    {"localizedDescription", "@@:", description}, {"code", "q@:", code}, {0}};
static const Method no_methods[] = {{0}};
static Class NSErrorMeta = {0, "NSError", no_methods, 0};
Class NSError = {&NSErrorMeta, "NSError", error_methods, 0};

Object *failure(long code, const char *format, ...) {
  Error *self = make(&NSError, sizeof *self);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(self->text, sizeof self->text, format, arguments);
  va_end(arguments);
  self->code = code;
  return &self->head;
}

static unsigned long count(Array *self, Selector selector) {
  (void)selector;
  return self->count;
}
static Object *at_index(Array *self, Selector selector, unsigned long index) {
  (void)selector;
  GUARDED;
  if (index >= self->count) return violation("objectAtIndex: %lu of %lu", index, self->count), NULL;
  return self->items[index];
}
static void free_array(Object *self) {
  for (unsigned long i = 0; i < ((Array *)self)->count; i++) released(((Array *)self)->items[i]);
}
static const Method array_methods[] = {{"count", "Q@:", count}, {"objectAtIndex:", "@@:Q", at_index}, {0}};
static Class NSArrayMeta = {0, "NSArray", no_methods, 0};
Class NSArray = {&NSArrayMeta, "NSArray", array_methods, free_array};

Object *array(Object **items, unsigned long count) {
  Array *self = make(&NSArray, sizeof *self);
  for (self->count = 0; self->count < count; self->count++) self->items[self->count] = retained(items[self->count]);
  return &self->head;
}
