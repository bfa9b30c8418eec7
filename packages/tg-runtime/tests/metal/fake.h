// A stand-in for the Objective-C runtime and for Metal, which checks every message and runs kernels on the host.
//
// Objects are counted; what is sent to a released one, released too often, or autoreleased with no pool around is a
// violation, and so is whatever Metal's validation would stop a program for. Violations are kept as text for the test.
// Command buffers are executed as late as they may be: when somebody waits for them or for a later one, or when the
// queue has 64 of them. Whoever does not wait sees old data.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Object Object;
typedef struct Class Class;
typedef const char *Selector;

typedef struct {
  const char *selector, *types;
  void *function;
} Method;

struct Class {
  Class *isa; // of a class: its metaclass
  const char *name;
  const Method *methods;
  void (*dealloc)(Object *);
};

struct Object {
  Class *isa;
  Object *next; // in the table of objects
  long references;
};

void violation(const char *format, ...) __attribute__((format(printf, 1, 2)));
void *make(Class *cls, size_t size);         // a new object with one reference
Object *autoreleased(void *object);
void *retained(void *object);
void released(void *object);
bool alive(void *object);
void *expect(void *object, Class *cls, const char *what); // the object if it lives and is of that class, else NULL
Object *string(const char *text);
Object *failure(long code, const char *format, ...) __attribute__((format(printf, 2, 3)));
const char *characters(Object *text);
long option(const char *name); // what the test has set

extern Class NSArray, NSString, NSError;
Object *array(Object **items, unsigned long count);

// Every method holds one lock.
void enter(void);
void leave(int *unused);
#define GUARDED                                                                                                        \
  enter();                                                                                                             \
  int guard __attribute__((cleanup(leave), unused)) = 0

// kernels

enum { MOST_BUFFERS = 31, GROUP = -1, ITEM = -2 };

typedef struct Kernel {
  struct Kernel *next;
  char name[128];
  void (*entry)(void **slots);
  void (**barrier)(void);
  void **(**exchange)(void *mine, int *lane);
  int parameters[MOST_BUFFERS + 2]; // index of a buffer, GROUP or ITEM
  int count;
  bool together; // its threads wait for each other
  unsigned long most_threads, shared_bytes;
} Kernel;

typedef struct {
  unsigned long x, y, z;
} Size;

Kernel *compile(const char *source, char *message, size_t room);                       // all kernels of a source
const char *launch(Kernel *kernel, void **buffers, Size groups, Size threads);         // what is wrong, or NULL
