// A stand-in for the header metal_stdlib, as far as our kernels use it, so that they can be checked and run with no Mac:
//
//   clang -x clcpp -cl-std=CLC++2021 -target spir64 -fsyntax-only   sees mistakes of address spaces
//   clang++ or g++, -std=c++17 -fsigned-char                        makes them functions of the host
//
// On the host a line TG_ENTRY(kernel) after the kernels makes `extern "C" void kernel_entry(void **slots)`, which calls
// it with the i-th argument at slots[i]. A declaration of threadgroup memory has to be made static by whoever compiles.
// tg_barrier has to be set to a function that returns once all threads of the threadgroup have called it, and
// tg_exchange to one that returns once all 32 threads of a SIMD-group have, with what each of them gave, in order, and
// in `lane` the number of the one that calls.
#pragma once

#ifdef __OPENCL_CPP_VERSION__
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#define device __global
#define threadgroup __local
#define thread __private
#else
#define kernel static
#define device
#define constant const
#define threadgroup
#define thread
typedef _Float16 half;
#endif

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
#define NAN __builtin_nanf("")
#define INFINITY __builtin_inff()
static_assert(sizeof(long) == 8 && (char)-1 < 0, "MSL's long has 64 bits, and its char a sign");

namespace metal {

template <class To, class From> inline To as_type(From x) {
  static_assert(sizeof(To) == sizeof(From), "as_type keeps the size");
  return __builtin_bit_cast(To, x);
}

template <class T> struct is_whole { static constexpr bool value = T(1) / T(2) == T(0); };
template <> struct is_whole<bool> { static constexpr bool value = true; };

// bfloat16: rounded to nearest even by each operation.
struct bfloat {
  ushort bits;
  bfloat() = default;
  explicit bfloat(float x) : bits(rounded(x)) {}
  template <class T> explicit bfloat(T x) : bits(rounded(shortened(x))) {}
  operator float() const { return as_type<float>((uint)bits << 16); }

  static ushort rounded(float x) {
    uint raw = as_type<uint>(x);
    if ((raw & 0x7fffffffu) > 0x7f800000u) return 0x7fc0;
    return (ushort)((raw + 0x7fffu + ((raw >> 16) & 1u)) >> 16);
  }
  // A float that rounds to the same bfloat as the number: what fp32 does not hold is rounded to odd.
  template <class T> static float shortened(T x) {
    if constexpr (!is_whole<T>::value || sizeof(T) < 4) return (float)x;
    ulong size = x < T(0) ? 0ul - (ulong)x : (ulong)x;
    int drop = 0;
    while (size >> drop >= 1ul << 24) drop++;
    ulong kept = size >> drop | (ulong)((size & ((1ul << drop) - 1)) != 0);
    float found = (float)kept;
    for (; drop > 0; drop--) found *= 2.0f;
    return x < T(0) ? -found : found;
  }
};
#define TG_BFLOAT(op) inline bfloat operator op(bfloat a, bfloat b) { return bfloat((float)a op (float)b); }
TG_BFLOAT(+) TG_BFLOAT(-) TG_BFLOAT(*) TG_BFLOAT(/)
#define TG_BFLOAT_TEST(op) inline bool operator op(bfloat a, bfloat b) { return (float)a op (float)b; }
TG_BFLOAT_TEST(<) TG_BFLOAT_TEST(>) TG_BFLOAT_TEST(==) TG_BFLOAT_TEST(!=)
inline bfloat operator-(bfloat a) { return as_type<bfloat>((ushort)(a.bits ^ 0x8000)); }

template <class T, int N> struct vec;
template <class T, int N> struct packed_vec;

template <class T> struct alignas(2 * sizeof(T)) vec<T, 2> {
  T x, y;
  vec() = default;
  explicit vec(T s) : x(s), y(s) {}
  vec(T a, T b) : x(a), y(b) {}
  template <class U> explicit vec(vec<U, 2> o) : x((T)o.x), y((T)o.y) {}
};
template <class T> struct alignas(4 * sizeof(T)) vec<T, 3> {
  T x, y, z;
  vec() = default;
  explicit vec(T s) : x(s), y(s), z(s) {}
  vec(T a, T b, T c) : x(a), y(b), z(c) {}
  template <class U> explicit vec(vec<U, 3> o) : x((T)o.x), y((T)o.y), z((T)o.z) {}
};
template <class T> struct alignas(4 * sizeof(T)) vec<T, 4> {
  T x, y, z, w;
  vec() = default;
  explicit vec(T s) : x(s), y(s), z(s), w(s) {}
  vec(T a, T b, T c, T d) : x(a), y(b), z(c), w(d) {}
  template <class U> explicit vec(vec<U, 4> o) : x((T)o.x), y((T)o.y), z((T)o.z), w((T)o.w) {}
};
template <class T> struct packed_vec<T, 2> {
  T x, y;
  packed_vec() = default;
  packed_vec(vec<T, 2> o) : x(o.x), y(o.y) {}
  operator vec<T, 2>() const { return vec<T, 2>(x, y); }
};
template <class T> struct packed_vec<T, 3> {
  T x, y, z;
  packed_vec() = default;
  packed_vec(vec<T, 3> o) : x(o.x), y(o.y), z(o.z) {}
  operator vec<T, 3>() const { return vec<T, 3>(x, y, z); }
};
template <class T> struct packed_vec<T, 4> {
  T x, y, z, w;
  packed_vec() = default;
  packed_vec(vec<T, 4> o) : x(o.x), y(o.y), z(o.z), w(o.w) {}
  operator vec<T, 4>() const { return vec<T, 4>(x, y, z, w); }
};

#define TG_BINARY(op) \
  template <class T> inline vec<T, 2> operator op(vec<T, 2> a, vec<T, 2> b) { \
    return vec<T, 2>((T)(a.x op b.x), (T)(a.y op b.y)); } \
  template <class T> inline vec<T, 3> operator op(vec<T, 3> a, vec<T, 3> b) { \
    return vec<T, 3>((T)(a.x op b.x), (T)(a.y op b.y), (T)(a.z op b.z)); } \
  template <class T> inline vec<T, 4> operator op(vec<T, 4> a, vec<T, 4> b) { \
    return vec<T, 4>((T)(a.x op b.x), (T)(a.y op b.y), (T)(a.z op b.z), (T)(a.w op b.w)); }
TG_BINARY(+) TG_BINARY(-) TG_BINARY(*) TG_BINARY(/) TG_BINARY(%) TG_BINARY(&) TG_BINARY(|) TG_BINARY(^)
TG_BINARY(<<) TG_BINARY(>>)
#define TG_TEST(op) \
  template <class T> inline vec<bool, 2> operator op(vec<T, 2> a, vec<T, 2> b) { \
    return vec<bool, 2>(a.x op b.x, a.y op b.y); } \
  template <class T> inline vec<bool, 3> operator op(vec<T, 3> a, vec<T, 3> b) { \
    return vec<bool, 3>(a.x op b.x, a.y op b.y, a.z op b.z); } \
  template <class T> inline vec<bool, 4> operator op(vec<T, 4> a, vec<T, 4> b) { \
    return vec<bool, 4>(a.x op b.x, a.y op b.y, a.z op b.z, a.w op b.w); }
TG_TEST(<) TG_TEST(>) TG_TEST(==) TG_TEST(!=)
#define TG_UNARY(op, name) \
  template <class T> inline vec<T, 2> name(vec<T, 2> a) { return vec<T, 2>((T)(op(a.x)), (T)(op(a.y))); } \
  template <class T> inline vec<T, 3> name(vec<T, 3> a) { \
    return vec<T, 3>((T)(op(a.x)), (T)(op(a.y)), (T)(op(a.z))); } \
  template <class T> inline vec<T, 4> name(vec<T, 4> a) { \
    return vec<T, 4>((T)(op(a.x)), (T)(op(a.y)), (T)(op(a.z)), (T)(op(a.w))); }
TG_UNARY(-, operator-) TG_UNARY(~, operator~)

#define TG_VECTORS(T) \
  typedef vec<T, 2> T##2; typedef vec<T, 3> T##3; typedef vec<T, 4> T##4; \
  typedef packed_vec<T, 2> packed_##T##2; typedef packed_vec<T, 3> packed_##T##3; typedef packed_vec<T, 4> packed_##T##4;
TG_VECTORS(char) TG_VECTORS(uchar) TG_VECTORS(short) TG_VECTORS(ushort) TG_VECTORS(int) TG_VECTORS(uint)
TG_VECTORS(half) TG_VECTORS(bfloat) TG_VECTORS(float)
typedef vec<bool, 2> bool2; typedef vec<bool, 3> bool3; typedef vec<bool, 4> bool4;
typedef vec<long, 2> long2; typedef vec<long, 3> long3; typedef vec<long, 4> long4;
typedef vec<ulong, 2> ulong2; typedef vec<ulong, 3> ulong3; typedef vec<ulong, 4> ulong4;

// Complete before a kernel takes one.
static_assert(sizeof(uint3) == 16 && sizeof(packed_uint3) == 12, "only packed vectors are packed");

// functions

#ifdef __OPENCL_CPP_VERSION__
#define TG_MATH(name) float name(float x); half name(half x); TG_UNARY(name, name)
float fma(float a, float b, float c);
half fma(half a, half b, half c);
#else
#define TG_MATH(name) \
  inline float name(float x) { return __builtin_##name##f(x); } \
  inline half name(half x) { return (half)__builtin_##name##f((float)x); } \
  TG_UNARY(name, name)
inline float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline half fma(half a, half b, half c) { return (half)((double)a * (double)b + (double)c); }
#endif
TG_MATH(sqrt) TG_MATH(trunc) TG_MATH(exp2) TG_MATH(log2) TG_MATH(sin)

template <class T> inline vec<T, 2> fma(vec<T, 2> a, vec<T, 2> b, vec<T, 2> c) {
  return vec<T, 2>(fma(a.x, b.x, c.x), fma(a.y, b.y, c.y));
}
template <class T> inline vec<T, 3> fma(vec<T, 3> a, vec<T, 3> b, vec<T, 3> c) {
  return vec<T, 3>(fma(a.x, b.x, c.x), fma(a.y, b.y, c.y), fma(a.z, b.z, c.z));
}
template <class T> inline vec<T, 4> fma(vec<T, 4> a, vec<T, 4> b, vec<T, 4> c) {
  return vec<T, 4>(fma(a.x, b.x, c.x), fma(a.y, b.y, c.y), fma(a.z, b.z, c.z), fma(a.w, b.w, c.w));
}
template <class T> inline T max(T a, T b) { return a > b ? a : b; }
template <class T> inline vec<T, 2> max(vec<T, 2> a, vec<T, 2> b) { return vec<T, 2>(max(a.x, b.x), max(a.y, b.y)); }
template <class T> inline vec<T, 3> max(vec<T, 3> a, vec<T, 3> b) {
  return vec<T, 3>(max(a.x, b.x), max(a.y, b.y), max(a.z, b.z));
}
template <class T> inline vec<T, 4> max(vec<T, 4> a, vec<T, 4> b) {
  return vec<T, 4>(max(a.x, b.x), max(a.y, b.y), max(a.z, b.z), max(a.w, b.w));
}
template <class T> inline vec<T, 2> select(vec<T, 2> a, vec<T, 2> b, bool2 c) {
  return vec<T, 2>(c.x ? b.x : a.x, c.y ? b.y : a.y);
}
template <class T> inline vec<T, 3> select(vec<T, 3> a, vec<T, 3> b, bool3 c) {
  return vec<T, 3>(c.x ? b.x : a.x, c.y ? b.y : a.y, c.z ? b.z : a.z);
}
template <class T> inline vec<T, 4> select(vec<T, 4> a, vec<T, 4> b, bool4 c) {
  return vec<T, 4>(c.x ? b.x : a.x, c.y ? b.y : a.y, c.z ? b.z : a.z, c.w ? b.w : a.w);
}

enum class mem_flags { mem_none = 0, mem_device = 1, mem_threadgroup = 2 };
inline mem_flags operator|(mem_flags a, mem_flags b) { return (mem_flags)((int)a | (int)b); }

} // namespace metal

namespace metal {
template <class T> struct simdgroup_matrix {
  struct Elements {
    T a, b;
    T &operator[](int i) { return i ? b : a; }
  } held;
  Elements &thread_elements() { return held; }
};
typedef simdgroup_matrix<half> simdgroup_half8x8;
typedef simdgroup_matrix<bfloat> simdgroup_bfloat8x8;
typedef simdgroup_matrix<float> simdgroup_float8x8;
} // namespace metal

#ifdef __OPENCL_CPP_VERSION__
namespace metal {
void threadgroup_barrier(mem_flags flags);
template <class T, class A, class B, class C>
void simdgroup_multiply_accumulate(thread simdgroup_matrix<T> &d, thread simdgroup_matrix<A> &a,
                                   thread simdgroup_matrix<B> &b, thread simdgroup_matrix<C> &c);
} // namespace metal
#else
extern "C" __attribute__((visibility("default"))) void (*tg_barrier)(void);
extern "C" __attribute__((visibility("default"))) void **(*tg_exchange)(void *mine, int *lane);
void (*tg_barrier)(void) = nullptr;
void **(*tg_exchange)(void *mine, int *lane) = nullptr;

namespace metal {
inline void threadgroup_barrier(mem_flags) { tg_barrier(); }

// Thread t has the elements (row, column) and (row, column + 1).
inline int matrix_row(int t) { return (t / 4 & 4) + t / 2 % 4; }
inline int matrix_column(int t) { return (t / 4 & 2) * 2 + t % 2 * 2; }
template <class T, class A, class B, class C>
inline void simdgroup_multiply_accumulate(simdgroup_matrix<T> &d, simdgroup_matrix<A> &a, simdgroup_matrix<B> &b,
                                          simdgroup_matrix<C> &c) {
  struct Both {
    float a[2], b[2];
  } mine = {{(float)a.held.a, (float)a.held.b}, {(float)b.held.a, (float)b.held.b}};
  int lane;
  void **all = tg_exchange(&mine, &lane);
  float left[8][8], right[8][8];
  for (int t = 0; t < 32; t++)
    for (int i = 0; i < 2; i++) {
      left[matrix_row(t)][matrix_column(t) + i] = ((Both *)all[t])->a[i];
      right[matrix_row(t)][matrix_column(t) + i] = ((Both *)all[t])->b[i];
    }
  float sums[2] = {(float)c.held.a, (float)c.held.b};
  for (int i = 0; i < 2; i++)
    for (int k = 0; k < 8; k++) sums[i] += left[matrix_row(lane)][k] * right[k][matrix_column(lane) + i];
  tg_exchange(nullptr, &lane); // what the others read is theirs as long as this
  d.held.a = (T)sums[0], d.held.b = (T)sums[1];
}

template <int... I> struct places {};
template <int N, int... I> struct count_places : count_places<N - 1, N - 1, I...> {};
template <int... I> struct count_places<0, I...> { typedef places<I...> type; };
template <class T> struct argument { static T of(void *slot) { return *(T *)slot; } };
template <class T> struct argument<T *> { static T *of(void *slot) { return (T *)slot; } };
template <class T> struct argument<T &> { static T &of(void *slot) { return *(T *)slot; } };
template <class... A, int... I> inline void enter(void (*function)(A...), void **slots, places<I...>) {
  function(argument<A>::of(slots[I])...);
}
template <class... A> inline void enter(void (*function)(A...), void **slots) {
  enter(function, slots, typename count_places<(int)sizeof...(A)>::type());
}
} // namespace metal
#define TG_ENTRY(name) \
  extern "C" __attribute__((visibility("default"))) void name##_entry(void **slots) { metal::enter(name, slots); }
#endif
