/* Runs kernels of one machine for a process on another one, under an emulator.
 *
 * Arguments: the number of an open file, and its size: memory that both processes map. Requests come on the standard
 * input and answers go to the standard output, as 64-bit words of the machine's order, which is little-endian.
 *
 *   FIND n, n bytes of a name           -> its address, 0 if it is unknown
 *   RESERVE bytes                       -> address of fresh memory, 0 if there is none
 *   LOAD address bytes code, the bytes  -> 1 once the first `code` bytes can be executed, else 0
 *   RELEASE address bytes               -> 1
 *   CALL function threads n, n words    -> nanoseconds; called once for each thread, whose number comes last if there
 *                                          are several
 */
#define _GNU_SOURCE
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { FIND = 1, RESERVE, LOAD, RELEASE, CALL, WORDS = 256 };
typedef uint64_t word;

#define NAMED(name) {#name, (void *)name}

#if defined(__riscv)
/* Halves in single registers: the lower 16 bits, the others set. libgcc 12 has no such functions here. */
static word bits_of(double x) { word r; memcpy(&r, &x, 8); return r; }
static float single(uint32_t bits) { float r; memcpy(&r, &bits, 4); return r; }
static uint32_t bits32(float x) { uint32_t r; memcpy(&r, &x, 4); return r; }

float extend_half(float half) {
  uint32_t h = bits32(half) & 0xffff, sign = (h & 0x8000) << 16, exponent = h >> 10 & 31, fraction = h & 0x3ff;
  if (exponent == 31) return single(sign | 0x7f800000 | fraction << 13);
  float size = exponent ? single((exponent + 112) << 23 | fraction << 13) : (float)fraction * 0x1p-24f;
  return single(bits32(size) | sign);
}

double extend_half_double(float half) { return extend_half(half); }

float truncate_half_double(double x) {
  word bits = bits_of(x);
  uint32_t sign = bits >> 48 & 0x8000, h;
  double size = fabs(x);
  if (x != x) h = 0x7e00;
  else if (size >= 65520.0) h = 0x7c00;
  else if (size < 0x1p-14) h = (uint32_t)rint(size * 0x1p24);
  else {
    /* rounding by the addition of half a place, ties to even */
    word rounded = (bits & ~(1ull << 63)) + 0x1ffffffffffull + (bits >> 42 & 1);
    h = (uint32_t)(rounded >> 42) - (1008u << 10);
  }
  return single(0xffff0000u | sign | h);
}

float truncate_half(float x) { return truncate_half_double(x); }
#define HALVES {"__extendhfsf2", extend_half}, {"__extendhfdf2", extend_half_double}, \
  {"__truncsfhf2", truncate_half}, {"__truncdfhf2", truncate_half_double},
#elif defined(__x86_64__)
extern char __extendhfsf2[], __truncsfhf2[], __truncdfhf2[];
#define HALVES NAMED(__extendhfsf2), NAMED(__truncsfhf2), NAMED(__truncdfhf2),
#else
#define HALVES
#endif

static const struct { const char *name; void *address; } functions[] = {
  HALVES
  NAMED(memcpy), NAMED(memmove), NAMED(memset), NAMED(memcmp), NAMED(fma), NAMED(fmaf), NAMED(fmod), NAMED(fmodf),
  NAMED(sqrt), NAMED(sqrtf), NAMED(trunc), NAMED(truncf), NAMED(floor), NAMED(floorf), NAMED(ceil), NAMED(ceilf),
  NAMED(rint), NAMED(rintf), NAMED(round), NAMED(roundf), NAMED(fabs), NAMED(fabsf), NAMED(fmax), NAMED(fmaxf),
  NAMED(fmin), NAMED(fminf), NAMED(exp), NAMED(expf), NAMED(exp2), NAMED(exp2f), NAMED(log), NAMED(logf),
  NAMED(log2), NAMED(log2f), NAMED(pow), NAMED(powf), NAMED(sin), NAMED(sinf), NAMED(cos), NAMED(cosf),
  NAMED(tan), NAMED(tanf), NAMED(tanh), NAMED(tanhf),
};

static int take(void *into, word bytes) {
  for (char *at = into; bytes; ) {
    ssize_t got = read(0, at, bytes);
    if (got <= 0) return 0;
    at += got;
    bytes -= got;
  }
  return 1;
}

static void answer(word value) {
  if (write(1, &value, sizeof value) != sizeof value) exit(1);
}

#define W4(a, n) a[n], a[n + 1], a[n + 2], a[n + 3]
#define W16(a, n) W4(a, n), W4(a, n + 4), W4(a, n + 8), W4(a, n + 12)
#define W64(a, n) W16(a, n), W16(a, n + 16), W16(a, n + 32), W16(a, n + 48)

/* More words than a function takes do no harm: the caller clears them away. */
static void call(word function, word count, const word *a) {
  void (*f)() = (void (*)())function;
  if (count <= 8) f(W4(a, 0), W4(a, 4));
  else if (count <= 64) f(W64(a, 0));
  else f(W64(a, 0), W64(a, 64), W64(a, 128), W64(a, 192));
}

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  void *shared = mmap(0, strtoull(argv[2], 0, 10), PROT_READ | PROT_WRITE, MAP_SHARED, atoi(argv[1]), 0);
  if (shared == MAP_FAILED) return 3;
  answer((word)shared);
  word request, a[4], words[WORDS];
  while (take(&request, sizeof request)) {
    if (request == FIND) {
      char name[256] = {0};
      word found = 0;
      if (!take(a, 8) || a[0] >= sizeof name || !take(name, a[0])) return 4;
      for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (!strcmp(functions[i].name, name)) found = (word)functions[i].address;
      answer(found);
    } else if (request == RESERVE) {
      if (!take(a, 8)) return 4;
      void *block = mmap(0, a[0], PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      answer(block == MAP_FAILED ? 0 : (word)block);
    } else if (request == LOAD) {
      if (!take(a, 24) || !take((void *)a[0], a[1])) return 4;
      int good = !a[2] || !mprotect((void *)a[0], a[2], PROT_READ | PROT_EXEC);
      __builtin___clear_cache((char *)a[0], (char *)a[0] + a[2]);
      answer(good);
    } else if (request == RELEASE) {
      if (!take(a, 16)) return 4;
      munmap((void *)a[0], a[1]);
      answer(1);
    } else if (request == CALL) {
      struct timespec begin, end;
      if (!take(a, 24) || a[2] >= WORDS || !take(words, 8 * a[2])) return 4;
      clock_gettime(CLOCK_MONOTONIC, &begin);
      for (word thread = 0; thread < a[1]; thread++) {
        words[a[2]] = thread;
        call(a[0], a[2] + (a[1] > 1), words);
      }
      clock_gettime(CLOCK_MONOTONIC, &end);
      answer((end.tv_sec - begin.tv_sec) * 1000000000ull + end.tv_nsec - begin.tv_nsec);
    } else return 5;
  }
  return 0;
}
