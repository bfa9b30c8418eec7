// Kernels as somebody else would write them, for clang alone: no header, no library. What they should store, numpy says
// in test_amd_strangers.py. Four work-groups have 64 items each; ID is an item's number among all of them.

#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
#pragma OPENCL EXTENSION cl_khr_int64_extended_atomics : enable
#pragma OPENCL EXTENSION __cl_clang_function_pointers : enable
#pragma OPENCL EXTENSION __cl_clang_non_portable_kernel_param_types : enable

#define LANE __builtin_amdgcn_workitem_id_x()
#define GROUP __builtin_amdgcn_workgroup_id_x()
#define ID (GROUP * 64 + LANE)
#define GROUPED __OPENCL_MEMORY_SCOPE_WORK_GROUP
#define DEVICE __OPENCL_MEMORY_SCOPE_DEVICE
#define ATOMIC(op, space, type, p, x, scope) \
  __opencl_atomic_fetch_##op((volatile space atomic_##type *)(p), x, __ATOMIC_RELAXED, scope)
#define FENCE(how) __builtin_amdgcn_fence(how, "workgroup")
#define BARRIER() do { FENCE(__ATOMIC_RELEASE); __builtin_amdgcn_s_barrier(); FENCE(__ATOMIC_ACQUIRE); } while (0)

kernel void saxpy(global float *out, global const float *in, uint n) { if (ID < n) out[ID] = 2.5f * in[ID] + 1; }

kernel void reduction(global float *out, global const float *in, uint n) {
  local float part[64];
  part[LANE] = in[ID];
  for (uint s = 32; s; s >>= 1) { BARRIER(); if (LANE < s) part[LANE] += part[LANE + s]; }
  BARRIER();
  out[ID] = part[0];
}

kernel void tiles(global float *out, global const float *in, uint n) {
  local float a[8][8], b[8][9];
  uint r = LANE >> 3, c = LANE & 7;
  float sum = 0;
  for (uint t = 0; t < 4; t++) {
    a[r][c] = in[t * 64 + LANE];
    b[c][r] = in[(3 - t) * 64 + LANE];
    BARRIER();
    for (uint i = 0; i < 8; i++) sum += a[r][i] * b[i][c];
    BARRIER();
  }
  out[ID] = sum;
}

kernel void shuffles(global int *out, global const int *in, uint n) {
  int x = in[ID];
  for (int d = 1; d < 32; d *= 2) x += __builtin_amdgcn_ds_bpermute(4 * (LANE ^ d), x);
  x ^= __builtin_amdgcn_mov_dpp(in[ID], 0x1b, 0xf, 0xf, 1);            // of four, the other way round
  x ^= __builtin_amdgcn_ds_swizzle(in[ID], 0x041f);                    // of two, the other one
  x ^= __builtin_amdgcn_ds_permute(4 * (LANE ^ 5), in[ID]);
  out[ID] = x ^ __builtin_amdgcn_readlane(in[ID], 3) ^ __builtin_amdgcn_readfirstlane(in[ID]);
}

kernel void scan(global int *out, global const int *in, uint n) {      // of sixteen
  int x = in[ID];
  x += __builtin_amdgcn_update_dpp(0, x, 0x111, 0xf, 0xf, 0);
  x += __builtin_amdgcn_update_dpp(0, x, 0x112, 0xf, 0xf, 0);
  x += __builtin_amdgcn_update_dpp(0, x, 0x114, 0xf, 0xf, 0);
  x += __builtin_amdgcn_update_dpp(0, x, 0x118, 0xf, 0xf, 0);
  out[ID] = x;
}

kernel void votes(global int *out, global const int *in, uint n) {
  uint below = __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0));
  ulong set = __builtin_amdgcn_uicmp(in[ID], 1u << 31, 36);            // below, unsigned
  out[ID] = 32 * __builtin_popcountl(set & ((1ul << below) - 1)) + (below & 31);
}

kernel void histogram(global uint *out, global const uint *in, uint n) {
  local uint bins[16];
  if (LANE < 16) bins[LANE] = 0;
  BARRIER();
  ATOMIC(add, local, uint, &bins[in[ID] & 15], 1, GROUPED);
  BARRIER();
  if (LANE < 16) ATOMIC(add, global, uint, &out[LANE], bins[LANE], DEVICE);
}

kernel void atomics(global int *out, global const int *in, uint n) {
  int x = in[ID], old = 0;
  ATOMIC(min, global, int, out, x, DEVICE);
  ATOMIC(max, global, int, out + 1, x, DEVICE);
  ATOMIC(add, global, int, out + 2, x, DEVICE);
  ATOMIC(xor, global, int, out + 3, x, DEVICE);
  ATOMIC(or, global, int, out + 4, x, DEVICE);
  ATOMIC(max, global, uint, out + 5, (uint)x, DEVICE);
  while (!__opencl_atomic_compare_exchange_strong((volatile global atomic_int *)(out + 6), &old, old + 1,
                                                  __ATOMIC_ACQ_REL, __ATOMIC_RELAXED, DEVICE));
  ATOMIC(add, global, long, out + 8, (long)x, DEVICE);
  ATOMIC(add, global, float, out + 10, (float)(x & 7), DEVICE);
  ATOMIC(add, global, double, out + 12, (double)(x & 7), DEVICE);
  ATOMIC(max, global, float, out + 14, (float)(x & 7), DEVICE);
}

kernel void local_atomics(global int *out, global const int *in, uint n) {
  local int a[6];
  local long b[2];
  local float f[2];
  local double d[1];
  if (LANE < 6) a[LANE] = 0;
  if (LANE < 2) { b[LANE] = 0; f[LANE] = 0; }
  if (LANE < 1) d[LANE] = 0;
  BARRIER();
  int x = in[ID], old = 0;
  ATOMIC(add, local, int, a, x, GROUPED);
  ATOMIC(min, local, int, a + 1, x, GROUPED);
  ATOMIC(max, local, uint, a + 2, (uint)x, GROUPED);
  ATOMIC(xor, local, int, a + 3, x, GROUPED);
  while (!__opencl_atomic_compare_exchange_strong((volatile local atomic_int *)(a + 4), &old, old + 3,
                                                  __ATOMIC_ACQ_REL, __ATOMIC_RELAXED, GROUPED));
  ATOMIC(add, local, long, b, (long)x, GROUPED);
  ATOMIC(max, local, ulong, b + 1, (ulong)(uint)x, GROUPED);
  ATOMIC(add, local, float, f, (float)(x & 7), GROUPED);
  ATOMIC(max, local, float, f + 1, (float)(x & 7), GROUPED);
  ATOMIC(add, local, double, d, (double)(x & 7), GROUPED);
  BARRIER();
  int found[8] = {a[0], a[1], a[2], a[3], a[4], (int)(b[0] >> 32) ^ (int)b[0], (int)b[1], (int)(f[0] + f[1] + d[0])};
  out[ID] = found[LANE & 7];
}

kernel void anywhere(global int *out, global int *in, uint n) {        // pointers that may lead to any memory
  local int a[64];
  a[LANE] = in[ID];
  BARRIER();
  generic int *p = LANE & 1 ? (generic int *)&a[LANE ^ 2] : (generic int *)&in[ID];
  int x = *p;
  ATOMIC(add, generic, int, p, 7, DEVICE);
  BARRIER();
  out[ID] = x + 3 * (LANE & 1 ? a[LANE] : in[ID]);
}

kernel void halves(global half4 *out, global const half4 *in, uint n) {
  half4 x = in[ID], y = in[ID ^ 1];
  half4 s = __builtin_elementwise_max(x, y) * x - y;
  s.x = (half)(int)(x.x * (half)4) + __builtin_elementwise_floor(y.x);
  s.y = (half)(float)((float)x.y * (float)y.y);
  s.w = x.w > y.w ? s.w : -x.w;
  out[ID] = s + __builtin_elementwise_abs(y);
}

kernel void shorts(global short4 *out, global const short4 *in, uint n) {
  short4 x = in[ID], y = in[ID ^ 1];
  short4 s = x * y + (x >> (short)3) - (y << (y & (short)7));
  s = __builtin_elementwise_max(s, x) + __builtin_elementwise_add_sat(x, y) - __builtin_elementwise_sub_sat(x, s);
  out[ID] = s ^ (x < y);
}

kernel void chars(global char4 *out, global const char4 *in, uint n) {
  char4 x = in[ID], y = in[ID ^ 1];
  out[ID] = __builtin_elementwise_add_sat(x * y + (x >> (char)1), y) ^ __builtin_elementwise_max(x, y);
}

kernel void ints(global int *out, global const int *in, uint n) {
  int x = in[ID], y = (in[ID ^ 1] >> 10) | 1;
  uint u = x, v = y;
  int z = x / y ^ x % y ^ (int)(u / (v | 3)) ^ (int)(((long)x * y) >> 32) ^ (int)(((ulong)u * v) >> 32);
  z ^= __builtin_popcount(u) ^ __builtin_clz(u | 1) ^ __builtin_ctz(u | 1u << 31) ^ __builtin_bitreverse32(u);
  z ^= __builtin_bswap32(v) ^ __builtin_elementwise_add_sat(x, y) ^ __builtin_elementwise_sub_sat(u, v);
  switch (u & 15) {
    case 0: z += 5; break;
    case 1: z ^= y; break;
    case 2: z -= x; break;
    case 3: z *= 3; break;
    case 5: z = ~z; break;
    case 7: z <<= 1; break;
    case 11: z = y; break;
    default: z = -z;
  }
  out[ID] = z;
}

kernel void longs(global long *out, global const long *in, uint n) {
  long x = in[ID], y = (in[ID ^ 1] >> 20) | 1;
  ulong u = x, v = y;
  out[ID] = x / y ^ x % y ^ (long)(u / (v | 3)) ^ (x * y) ^ (x << (y & 63)) ^ (x >> (y & 31)) ^ (long)(u >> (v & 7)) ^
            (x < y ? x : y);
}

kernel void floats(global float *out, global const float *in, uint n) {
  float x = in[ID], y = in[ID ^ 1];
  float z = x / y + __builtin_sqrtf(__builtin_fabsf(x)) + __builtin_floorf(y) + __builtin_rintf(x * 3);
  z += __builtin_fminf(x, y) + (float)(int)(x * 10) + (float)(long)(y * 1e10f) + (float)(ulong)__builtin_fabsf(y);
  out[ID] = x < y ? __builtin_ldexpf(z, 3) : -__builtin_copysignf(z, y);
}

kernel void doubles(global double *out, global const double *in, uint n) {
  double x = in[ID], y = in[ID ^ 1];
  double z = x / y + __builtin_sqrt(__builtin_fabs(x)) + __builtin_floor(y) + __builtin_rint(x * 3);
  z += __builtin_fmin(x, y) + (double)(int)(x * 10) + (double)(long)(y * 1e10) + (double)(uint)__builtin_fabs(y);
  out[ID] = x < y ? __builtin_ldexp(z, 3) : -__builtin_copysign(z, y);
}

kernel void brains(global ushort *out, global const ushort *in, uint n) {
  float x = __builtin_astype((uint)in[ID] << 16, float), y = __builtin_astype((uint)in[ID ^ 1] << 16, float);
  uint bits = __builtin_astype(x * y + x, uint);
  out[ID] = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

kernel void dots(global int *out, global const int *in, uint n) {
  int a = in[ID], b = in[ID ^ 1], c = in[ID ^ 2];
#if defined(__gfx1100__) || defined(__gfx1201__)
  c = __builtin_amdgcn_sudot4(1, a, 1, b, c, 0) ^ __builtin_amdgcn_sudot8(1, a, 1, b, c, 0);
#else
  c = __builtin_amdgcn_sdot4(a, b, c, 0) ^ __builtin_amdgcn_sdot8(a, b, c, 0);
#endif
  out[ID] = c ^ __builtin_amdgcn_udot4(a, b, c, 0) ^ __builtin_amdgcn_udot8(a, b, c, 0);
}

#if defined(__gfx1100__) || defined(__gfx1201__) || defined(AS_GFX950)
typedef __bf16 bf2 __attribute__((ext_vector_type(2)));
float dot2(bf2, bf2, float, bool) __asm("llvm.amdgcn.fdot2.f32.bf16");
kernel void brain_dots(global float *out, global const uint *in, uint n) {
  out[ID] = dot2(__builtin_astype(in[ID], bf2), __builtin_astype(in[ID ^ 1], bf2), 1.5f, 0);
}
#endif

kernel void arrays(global int *out, global const int *in, uint n) {
  int a[16];
  for (int i = 0; i < 16; i++) a[i] = in[(ID + i) % n];
  for (int i = 0; i < 16; i++) a[a[i] & 15] ^= a[i] + i;
  int s = 0;
  for (int i = 0; i < 16; i++) s = s * 3 + a[i];
  out[ID] = s;
}

kernel void vectors(global float *out, global const float *in, uint n) {  // indices that are the same in a work-group
  float8 a = ((global const float8 *)in)[ID & 31];
  uint at = (uint)in[GROUP] & 7, other = (uint)in[GROUP + 9] & 7;
  a[at] = a[other] + 1;
  out[ID] = a[at ^ 1] + 2 * a[at] + 4 * a[0];
}

__attribute__((noinline)) int f(int x, int y) {
  int a[8];
  for (int i = 0; i < 8; i++) a[i] = x * i;
  return a[y & 7] + y;
}
__attribute__((noinline)) int g(int x, int y) { return x > 3 ? f(x, y) - f(y, x) : x ^ y; }
kernel void calls(global int *out, global const int *in, uint n) {
  int (*h)(int, int) = in[ID] & 1 ? f : g;
  out[ID] = g(in[ID], in[ID ^ 1]) + h(in[ID], 3);
}

typedef struct __attribute__((packed)) { char a; int b; short c; double d; } packed_t;
kernel void structs(global double *out, global const packed_t *in, uint n) {
  packed_t s = in[ID];
  out[ID] = s.a + s.b + s.c + s.d;
}

kernel void passing(global int *out, global int *in, uint n) {         // by stores that other work-groups see
  volatile global atomic_int *flag = (volatile global atomic_int *)out;
  __builtin_nontemporal_store(in[ID] + 1, out + 256 + ID);
  __opencl_atomic_store(flag + ID, in[ID], __ATOMIC_RELEASE, __OPENCL_MEMORY_SCOPE_ALL_SVM_DEVICES);
  __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent");
  __builtin_amdgcn_s_sleep(1);
  if (in[ID] == 0x7fffffff) __builtin_trap();
  __opencl_atomic_exchange(flag + ID, __opencl_atomic_load(flag + ID, __ATOMIC_SEQ_CST, DEVICE) +
                           __builtin_nontemporal_load(out + 256 + ID), __ATOMIC_SEQ_CST, DEVICE);
}

kernel void sizes(global uint *out, global const uint *in, uint n) {   // what the dispatch packet says, and the queue
  local int a[1];
  constant ushort *packet = __builtin_amdgcn_dispatch_ptr();
  constant uint *words = (constant uint *)packet;
  *(volatile local int *)a = 1;
  uint wrong = ((constant ulong *)packet)[5] != (ulong)__builtin_amdgcn_kernarg_segment_ptr();
  wrong |= (packet[3] != 1) << 1 | (words[4] != 1) << 2 | (words[7] != 4) << 3;
#ifdef VERSION_4  // later code objects have no such registers
  constant uint *queue = __builtin_amdgcn_queue_ptr();
  wrong |= (queue[16] != (uint)((ulong)(generic int *)a >> 32)) << 4;
#endif
  out[ID] = in[ID] * packet[2] + words[3] + wrong;
}

#ifndef AS_GFX950  // LLVM 22 has another intrinsic
kernel void buffers(global uint *out, global uint *in, uint n) {       // of n words, and lanes outside
#if defined(__gfx942__)
  __amdgpu_buffer_rsrc_t from = __builtin_amdgcn_make_buffer_rsrc(in, 0, 4 * n, 0x00027000);
  __amdgpu_buffer_rsrc_t to = __builtin_amdgcn_make_buffer_rsrc(out, 0, 4 * n, 0x00027000);
#else
  __amdgpu_buffer_rsrc_t from = __builtin_amdgcn_make_buffer_rsrc(in, 0, 4 * n, 0x31027000);
  __amdgpu_buffer_rsrc_t to = __builtin_amdgcn_make_buffer_rsrc(out, 0, 4 * n, 0x31027000);
#endif
  uint x = __builtin_amdgcn_raw_buffer_load_b32(from, 4 * ID + 256, 0, 0);
  uint2 x2 = __builtin_amdgcn_raw_buffer_load_b64(from, 8 * ID, 16, 0);
  uint4 x4 = __builtin_amdgcn_raw_buffer_load_b128(from, 16 * LANE, 4 * 64, 0);
  uchar b = __builtin_amdgcn_raw_buffer_load_b8(from, 5 * ID, 0, 0);
  ushort s = __builtin_amdgcn_raw_buffer_load_b16(from, LANE & 1 ? 0xfffffffe : 6 * LANE, 0, 0);
  x ^= x2.x ^ x2.y ^ x4.x ^ x4.w ^ b ^ s;
  __builtin_amdgcn_raw_buffer_store_b32(x, to, 4 * (ID ^ 1) + (ID & 128), 0, 0);
}
#endif
