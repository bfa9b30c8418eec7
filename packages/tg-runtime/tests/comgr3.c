/* COMGR with the interface of version 3.0, for tests: it takes the calls that compile HIP, and refuses all others.
 *
 * Numbers, kinds and what each call demands are of AMD's header amd_comgr.h, version 3.0 (ROCm/llvm-project,
 * amd/comgr/include/amd_comgr.h.in). It has no compiler: "bitcode" is the source with a mark in front of it, and the
 * object of a source is the file COMGR3_OBJECTS/HASH.o (HASH.unlinked.o without device libraries), whose name is the
 * FNV-1a hash of the source. A line "#error WORDS" of a source is rejected as a preprocessor does.
 * What is called is written to the file that COMGR3_TRACE names, and at the end how many objects are still held. */
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef MAJOR
#define MAJOR 3
#endif

typedef enum { SUCCESS = 0, ERROR = 1, INVALID_ARGUMENT = 2, OUT_OF_RESOURCES = 3 } status_t;
typedef enum { LANGUAGE_NONE = 0, LANGUAGE_HIP = 3, LANGUAGE_LAST = 4 } language_t;
typedef enum { UNDEF = 0, SOURCE = 1, LOG = 5, BC = 6, RELOCATABLE = 7, BYTES = 9, FATBIN = 0x10, KIND_LAST = 0x14 } kind_t;
typedef enum {
  COMPILE_SOURCE_TO_BC = 2,
  CODEGEN_BC_TO_RELOCATABLE = 4,
  DISASSEMBLE_RELOCATABLE_TO_SOURCE = 9, /* this and the two behind it are invalid */
  DISASSEMBLE_BYTES_TO_SOURCE = 11,
  COMPILE_SOURCE_WITH_DEVICE_LIBS_TO_BC = 12,
  COMPILE_SOURCE_TO_RELOCATABLE = 13,
  ACTION_LAST = 15
} action_t;
typedef struct { uint64_t handle; } data_t;
typedef struct { uint64_t handle; } data_set_t;
typedef struct { uint64_t handle; } action_info_t;

typedef enum { FREE, DATA, SET, INFO } what_t;
typedef struct {
  what_t what;
  int references;
  kind_t kind;
  char *bytes;
  size_t size;
  char name[64];
  int count, members[8];
  language_t language;
  const char *isa;
  bool logging;
} object_t;

enum { MOST = 64 };
static object_t objects[MOST];
static const char *const isas[] = {"amdgcn-amd-amdhsa--gfx1030", "amdgcn-amd-amdhsa--gfx1100"};
enum { ISAS = sizeof isas / sizeof *isas };

static void trace(const char *words, ...) {
  const char *path = getenv("COMGR3_TRACE");
  FILE *file = path ? fopen(path, "a") : NULL;
  if (!file) return;
  va_list arguments;
  va_start(arguments, words);
  vfprintf(file, words, arguments);
  va_end(arguments);
  fputc('\n', file);
  fclose(file);
}

__attribute__((destructor)) static void ended(void) {
  int held = 0;
  for (int i = 0; i < MOST; i++) held += objects[i].what != FREE;
  trace("held %d", held);
}

/* A handle has what it is of in its upper half, so that one of another kind is refused. */
static object_t *object(uint64_t handle, what_t what) {
  uint64_t index = handle & 0xFFFFFFFF;
  return handle >> 32 == (uint64_t)what && index < MOST && objects[index].what == what ? &objects[index] : NULL;
}

static uint64_t handle_of(const object_t *of) { return (uint64_t)of->what << 32 | (uint64_t)(of - objects); }

static object_t *made(what_t what) {
  for (int i = 0; i < MOST; i++)
    if (objects[i].what == FREE) {
      memset(&objects[i], 0, sizeof *objects);
      objects[i].what = what, objects[i].references = 1;
      return &objects[i];
    }
  return NULL;
}

static void released(object_t *of) {
  if (--of->references == 0) {
    free(of->bytes);
    of->what = FREE;
  }
}

static void emptied(object_t *set) {
  for (int i = 0; i < set->count; i++) released(&objects[set->members[i]]);
  set->count = 0;
}

static void produced(object_t *set, kind_t kind, char *bytes, size_t size) {
  object_t *data = made(DATA);
  if (!data || set->count == 8) abort();
  data->kind = kind, data->bytes = bytes, data->size = size;
  set->members[set->count++] = (int)(data - objects);
}

static bool is_kind(kind_t kind) { return kind > UNDEF && kind <= KIND_LAST && (kind <= BYTES || kind >= FATBIN); }

void amd_comgr_get_version(size_t *major, size_t *minor) { *major = MAJOR, *minor = 0; }

status_t amd_comgr_get_isa_count(size_t *count) {
  if (!count) return INVALID_ARGUMENT;
  *count = ISAS;
  return SUCCESS;
}

status_t amd_comgr_get_isa_name(size_t index, const char **name) {
  if (index >= ISAS || !name) return INVALID_ARGUMENT;
  *name = isas[index];
  return SUCCESS;
}

status_t amd_comgr_create_data(kind_t kind, data_t *data) {
  trace("create_data %d", kind);
  if (!is_kind(kind) || !data) return INVALID_ARGUMENT;
  object_t *new = made(DATA);
  if (!new) return OUT_OF_RESOURCES;
  new->kind = kind;
  data->handle = handle_of(new);
  return SUCCESS;
}

status_t amd_comgr_release_data(data_t data) {
  object_t *of = object(data.handle, DATA);
  if (!of) return INVALID_ARGUMENT;
  released(of);
  return SUCCESS;
}

status_t amd_comgr_set_data(data_t data, size_t size, const char *bytes) {
  object_t *of = object(data.handle, DATA);
  if (!of) return INVALID_ARGUMENT;
  of->bytes = memcpy(malloc(size + 1), bytes, size);
  of->size = size;
  return SUCCESS;
}

status_t amd_comgr_set_data_name(data_t data, const char *name) {
  object_t *of = object(data.handle, DATA);
  if (!of) return INVALID_ARGUMENT;
  snprintf(of->name, sizeof of->name, "%s", name ? name : "");
  return SUCCESS;
}

status_t amd_comgr_get_data(data_t data, size_t *size, char *bytes) {
  object_t *of = object(data.handle, DATA);
  if (!of || !size) return INVALID_ARGUMENT;
  if (bytes)
    memcpy(bytes, of->bytes, *size < of->size ? *size : of->size);
  else
    *size = of->size;
  return SUCCESS;
}

status_t amd_comgr_create_data_set(data_set_t *set) {
  object_t *new = set ? made(SET) : NULL;
  if (!new) return set ? OUT_OF_RESOURCES : INVALID_ARGUMENT;
  set->handle = handle_of(new);
  return SUCCESS;
}

status_t amd_comgr_destroy_data_set(data_set_t set) {
  object_t *of = object(set.handle, SET);
  if (!of) return INVALID_ARGUMENT;
  emptied(of);
  released(of);
  return SUCCESS;
}

status_t amd_comgr_data_set_add(data_set_t set, data_t data) {
  object_t *of = object(set.handle, SET), *added = object(data.handle, DATA);
  if (!of || !added) return INVALID_ARGUMENT;
  if (of->count == 8) return OUT_OF_RESOURCES;
  added->references++;
  of->members[of->count++] = (int)(added - objects);
  return SUCCESS;
}

status_t amd_comgr_create_action_info(action_info_t *info) {
  object_t *new = info ? made(INFO) : NULL;
  if (!new) return info ? OUT_OF_RESOURCES : INVALID_ARGUMENT;
  info->handle = handle_of(new);
  return SUCCESS;
}

status_t amd_comgr_destroy_action_info(action_info_t info) {
  object_t *of = object(info.handle, INFO);
  if (!of) return INVALID_ARGUMENT;
  released(of);
  return SUCCESS;
}

status_t amd_comgr_action_info_set_language(action_info_t info, language_t language) {
  object_t *of = object(info.handle, INFO);
  trace("set_language %d", language);
  if (!of || language > LANGUAGE_LAST) return INVALID_ARGUMENT;
  of->language = language;
  return SUCCESS;
}

status_t amd_comgr_action_info_set_isa_name(action_info_t info, const char *name) {
  object_t *of = object(info.handle, INFO);
  trace("set_isa_name %s", name);
  if (!of) return INVALID_ARGUMENT;
  for (int i = 0; i < ISAS; i++)
    if (!strcmp(isas[i], name)) {
      of->isa = isas[i];
      return SUCCESS;
    }
  return INVALID_ARGUMENT;
}

status_t amd_comgr_action_info_set_option_list(action_info_t info, const char *options[], size_t count) {
  object_t *of = object(info.handle, INFO);
  if (!of || (!options && count)) return INVALID_ARGUMENT;
  for (size_t i = 0; i < count; i++) trace("option %s", options[i]);
  return SUCCESS;
}

#ifndef WITHOUT_LOGGING
status_t amd_comgr_action_info_set_logging(action_info_t info, bool logging) {
  object_t *of = object(info.handle, INFO);
  if (!of) return INVALID_ARGUMENT;
  of->logging = logging;
  return SUCCESS;
}
#endif

/* The object of a source, from its file. */
static status_t object_of(object_t *result, const char *source, size_t size, bool linked) {
  uint64_t hash = 0xCBF29CE484222325;
  for (size_t i = 0; i < size; i++) hash = (hash ^ (uint8_t)source[i]) * 0x100000001B3;
  char path[512];
  snprintf(path, sizeof path, "%s/%016llx%s.o", getenv("COMGR3_OBJECTS"), (unsigned long long)hash,
           linked ? "" : ".unlinked");
  FILE *file = fopen(path, "rb");
  if (!file) return ERROR;
  char *bytes = malloc(1 << 20);
  produced(result, RELOCATABLE, bytes, fread(bytes, 1, 1 << 20, file));
  fclose(file);
  return SUCCESS;
}

static status_t compiled(action_t action, const object_t *info, const object_t *data, object_t *result, char *log) {
  if (!info->isa || info->language == LANGUAGE_NONE) return INVALID_ARGUMENT;
  if (info->language != LANGUAGE_HIP) {
    sprintf(log, "language %d is not HIP\n", info->language);
    return ERROR;
  }
  size_t size = data->size;
  char *text = memcpy(calloc(1, size + 1), data->bytes, size), *wrong = strstr(text, "#error ");
  if (wrong) {
    int line = 1;
    for (char *at = text; at < wrong; at++) line += *at == '\n';
    sprintf(log, "%s:%d:2: error: %.*s\n", data->name, line, (int)strcspn(wrong + 7, "\n"), wrong + 7);
    free(text);
    return ERROR;
  }
  bool linked = action != COMPILE_SOURCE_TO_BC;
  if (action == COMPILE_SOURCE_TO_RELOCATABLE) {
    status_t status = object_of(result, text, size, linked);
    free(text);
    return status;
  }
  char *bitcode = malloc(size + 5);
  memcpy(bitcode, "BC\xC0\xDE", 4);
  bitcode[4] = linked ? 'D' : '-';
  memcpy(bitcode + 5, text, size);
  free(text);
  produced(result, BC, bitcode, size + 5);
  return SUCCESS;
}

status_t amd_comgr_do_action(action_t action, action_info_t info, data_set_t input, data_set_t output) {
  object_t *how = object(info.handle, INFO), *given = object(input.handle, SET), *result = object(output.handle, SET);
  char log[256] = "";
  status_t status = SUCCESS;
  bool valid = action <= ACTION_LAST
      && (action < DISASSEMBLE_RELOCATABLE_TO_SOURCE || action > DISASSEMBLE_BYTES_TO_SOURCE);
  if (!how || !given || !result || !valid) {
    trace("do_action %d: status %d", action, INVALID_ARGUMENT);
    return INVALID_ARGUMENT;
  }
  emptied(result);
  for (int i = 0; i < given->count && status == SUCCESS; i++) {
    const object_t *data = &objects[given->members[i]];
    switch (action) {
      case COMPILE_SOURCE_TO_BC:
      case COMPILE_SOURCE_WITH_DEVICE_LIBS_TO_BC:
      case COMPILE_SOURCE_TO_RELOCATABLE:
        if (data->kind == SOURCE) status = compiled(action, how, data, result, log);
        break;
      case CODEGEN_BC_TO_RELOCATABLE:
        if (data->kind != BC) break;
        status = how->isa ? object_of(result, data->bytes + 5, data->size - 5, data->bytes[4] == 'D') : INVALID_ARGUMENT;
        break;
      default:
        sprintf(log, "action %d has no compiler here\n", action);
        status = ERROR;
    }
  }
  if (how->logging) produced(result, LOG, strdup(log), strlen(log));
  trace("do_action %d: status %d", action, status);
  return status;
}

status_t amd_comgr_action_data_count(data_set_t set, kind_t kind, size_t *count) {
  object_t *of = object(set.handle, SET);
  if (!of || !is_kind(kind) || !count) return INVALID_ARGUMENT;
  *count = 0;
  for (int i = 0; i < of->count; i++) *count += objects[of->members[i]].kind == kind;
  return SUCCESS;
}

status_t amd_comgr_action_data_get_data(data_set_t set, kind_t kind, size_t index, data_t *data) {
  object_t *of = object(set.handle, SET);
  if (!of || !is_kind(kind) || !data) return INVALID_ARGUMENT;
  for (int i = 0; i < of->count; i++) {
    object_t *member = &objects[of->members[i]];
    if (member->kind == kind && index-- == 0) {
      member->references++;
      data->handle = handle_of(member);
      return SUCCESS;
    }
  }
  return INVALID_ARGUMENT;
}
