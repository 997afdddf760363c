// Fields of many items, moved between arrays and signals: element l of a signal is row l's.
#pragma once
#include "masks.hpp"

// Transposes squares of N elements, CHUNKS of them side by side in N vectors, in log2(N) rounds of
// interleaving the two halves of the vectors.
template <int N, class Vector, int... I> INLINE Vector low_halves(Vector x, Vector y, std::integer_sequence<int, I...>) {
  constexpr int COUNT = sizeof...(I);
  return __builtin_shufflevector(x, y, (I % 2 * COUNT + I / N * N + I % N / 2)...);
}
template <int N, class Vector, int... I> INLINE Vector high_halves(Vector x, Vector y, std::integer_sequence<int, I...>) {
  constexpr int COUNT = sizeof...(I);
  return __builtin_shufflevector(x, y, (I % 2 * COUNT + I / N * N + N / 2 + I % N / 2)...);
}
template <int N, int CHUNKS, class Vector> INLINE void transpose(Vector* x) {
  constexpr auto all = std::make_integer_sequence<int, N * CHUNKS>{};
  for (int round = 1; round < N; round *= 2) {
    Vector y[N];
    for (int i = 0; i < N / 2; i++) {
      y[2 * i] = low_halves<N>(x[i], x[i + N / 2], all);
      y[2 * i + 1] = high_halves<N>(x[i], x[i + N / 2], all);
    }
    memcpy(x, y, sizeof y);
  }
}

// Rows and elements that are transposed together: a power of two that divides COUNT. Where they fill
// 128 bits, all squares of a register are transposed at once.
template <int BITS, int COUNT> constexpr int TILE = 128 / BITS < (COUNT & -COUNT) ? 128 / BITS : COUNT & -COUNT;
template <int BITS, int COUNT> constexpr int SQUARES = TILE<BITS, COUNT> == 128 / BITS ? LANES / 16 : 1;

// The COUNT elements of a register from FIRST on, and two halves as one register.
template <int FIRST, class Vector, int... I>
INLINE auto slice(Vector x, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(x, x, (FIRST + I)...);
}
template <class Vector, int... I>
INLINE auto join(Vector x, Vector y, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(x, y, I...);
}

// N elements from each of CHUNKS rows, N rows apart, in one register; and back.
template <int BITS, int N, int CHUNKS>
INLINE auto collect(const U<BITS>* base, const int64_t* row, int64_t width) {
  if constexpr (CHUNKS == 1) {
    typename Pack<U<BITS>, N>::type x;
    memcpy(&x, base + row[0] * width, sizeof x);
    return x;
  } else {
    auto low = collect<BITS, N, CHUNKS / 2>(base, row, width);
    auto high = collect<BITS, N, CHUNKS / 2>(base, row + N * CHUNKS / 2, width);
    return join(low, high, std::make_integer_sequence<int, N * CHUNKS>{});
  }
}
template <int BITS, int N, int CHUNKS, class Vector>
INLINE void spread(Vector x, U<BITS>* base, const int64_t* row, int64_t width) {
  if constexpr (CHUNKS == 1) {
    memcpy(base + row[0] * width, &x, sizeof x);
  } else {
    constexpr int HALF = N * CHUNKS / 2;
    constexpr auto few = std::make_integer_sequence<int, HALF>{};
    spread<BITS, N, CHUNKS / 2>(slice<0>(x, few), base, row, width);
    spread<BITS, N, CHUNKS / 2>(slice<HALF>(x, few), base, row + HALF, width);
  }
}

// A row of an array for each copy.
struct Rows {
  const int64_t* row;
  bool consecutive;  // row[l] is row[0] + l
};

// Rows for the items of all copies: the items' own numbers, or what an index gives.
struct Chosen {
  int64_t buffer[LANES];
  Rows rows;
  Chosen(const int32_t* index, const Rows& items) : rows(items) {
    if (!index) return;
    for (int l = 0; l < LANES; l++) buffer[l] = index[items.row[l]];
    rows = {buffer, false};
  }
};

// Rows for the copies in the order in which their elements lie in a V<BITS>.
template <int BITS> struct Ordered {
  int64_t row[LANES];
  Ordered(const int64_t* rows) {
    for (int q = 0; q < LANES; q++) row[q] = rows[lane(BITS, q)];
  }
};
template <> struct Ordered<8> {
  const int64_t* row;
  Ordered(const int64_t* rows) : row(rows) {}
};

// Registers whose elements are in the order of the copies, from and to the order of a V<BITS>.
template <int BITS, int PARTS, int... I>
INLINE void separate(const Register<BITS>* natural, Register<BITS>* part, std::integer_sequence<int, I...> all) {
  if constexpr (PARTS == 1) {
    part[0] = natural[0];
  } else {
    Register<BITS> even[PARTS / 2], odd[PARTS / 2];
    for (int p = 0; p < PARTS / 2; p++) {
      even[p] = __builtin_shufflevector(natural[2 * p], natural[2 * p + 1], (2 * I)...);
      odd[p] = __builtin_shufflevector(natural[2 * p], natural[2 * p + 1], (2 * I + 1)...);
    }
    separate<BITS, PARTS / 2>(even, part, all);
    separate<BITS, PARTS / 2>(odd, part + PARTS / 2, all);
  }
}
template <int BITS, int PARTS, int... I>
INLINE void interleave(const Register<BITS>* part, Register<BITS>* natural, std::integer_sequence<int, I...> all) {
  constexpr int COUNT = sizeof...(I);
  if constexpr (PARTS == 1) {
    natural[0] = part[0];
  } else {
    Register<BITS> even[PARTS / 2], odd[PARTS / 2];
    interleave<BITS, PARTS / 2>(part, even, all);
    interleave<BITS, PARTS / 2>(part + PARTS / 2, odd, all);
    for (int p = 0; p < PARTS / 2; p++) {
      natural[2 * p] = __builtin_shufflevector(even[p], odd[p], (I / 2 + I % 2 * COUNT)...);
      natural[2 * p + 1] = __builtin_shufflevector(even[p], odd[p], (COUNT / 2 + I / 2 + I % 2 * COUNT)...);
    }
  }
}

// Copy l's element of signal[j] is element j of row l of an array with COUNT elements a row.
template <int BITS, int COUNT>
INLINE void load_field(V<BITS>* signal, const void* array, const Rows& rows) {
  auto base = (const U<BITS>*)array;
  if (COUNT == 1 && rows.consecutive) {
    V<BITS> natural;
    memcpy(&natural, base + rows.row[0], sizeof natural);
    separate<BITS, V<BITS>::PARTS>(natural.part, signal->part, std::make_integer_sequence<int, WIDE<BITS>>{});
    return;
  }
  Ordered<BITS> ordered(rows.row);
  auto row = ordered.row;
  if constexpr (TILE<BITS, COUNT> == 1) {
    for (int j = 0; j < COUNT; j++) {
      U<BITS> gathered[LANES];
      for (int l = 0; l < LANES; l++) gathered[l] = base[row[l] * COUNT + j];
      memcpy(&signal[j], gathered, sizeof gathered);
    }
  } else {
    constexpr int N = TILE<BITS, COUNT>, CHUNKS = SQUARES<BITS, COUNT>;
    using Vector = typename Pack<U<BITS>, N * CHUNKS>::type;
    for (int l = 0; l < LANES; l += N * CHUNKS)
      for (int j = 0; j < COUNT; j += N) {
        Vector x[N];
        for (int i = 0; i < N; i++) x[i] = collect<BITS, N, CHUNKS>(base + j, row + l + i, COUNT);
        transpose<N, CHUNKS>(x);
        for (int i = 0; i < N; i++) memcpy((U<BITS>*)&signal[j + i] + l, &x[i], sizeof(Vector));
      }
  }
}

// Whether an element has more than WIDTH bits.
template <int BITS, int COUNT, int WIDTH> INLINE bool beyond(const V<BITS>* signal) {
  V<BITS> all = signal[0];
  for (int j = 1; j < COUNT; j++) all = either(all, signal[j]);
  return any_true(test(all, splat<BITS>((U<BITS>)-1 << WIDTH)));
}

template <int BITS, int COUNT>
INLINE void store_field(const V<BITS>* signal, void* array, const Rows& rows) {
  auto base = (U<BITS>*)array;
  if (COUNT == 1 && rows.consecutive) {
    V<BITS> natural;
    interleave<BITS, V<BITS>::PARTS>(signal->part, natural.part, std::make_integer_sequence<int, WIDE<BITS>>{});
    memcpy(base + rows.row[0], &natural, sizeof natural);
    return;
  }
  Ordered<BITS> ordered(rows.row);
  auto row = ordered.row;
  if constexpr (TILE<BITS, COUNT> == 1) {
    for (int j = 0; j < COUNT; j++) {
      U<BITS> scattered[LANES];
      memcpy(scattered, &signal[j], sizeof scattered);
      for (int l = 0; l < LANES; l++) base[row[l] * COUNT + j] = scattered[l];
    }
  } else {
    constexpr int N = TILE<BITS, COUNT>, CHUNKS = SQUARES<BITS, COUNT>;
    using Vector = typename Pack<U<BITS>, N * CHUNKS>::type;
    for (int l = 0; l < LANES; l += N * CHUNKS)
      for (int j = 0; j < COUNT; j += N) {
        Vector x[N];
        for (int i = 0; i < N; i++) memcpy(&x[i], (const U<BITS>*)&signal[j + i] + l, sizeof(Vector));
        transpose<N, CHUNKS>(x);
        for (int i = 0; i < N; i++) spread<BITS, N, CHUNKS>(x[i], base + j, row + l + i, COUNT);
      }
  }
}
