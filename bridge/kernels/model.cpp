// Functions that Python calls, by ctypes. Arrays are contiguous.
#include "digest.hpp"
#include "doubles.hpp"
#include "encode.hpp"
#include "real.hpp"
#include "tiles.hpp"
#include "truncated.hpp"
#include "unaligned.hpp"

#include <type_traits>

using namespace axs6;

namespace {

enum LaneKind : int32_t { INT8, INT16, BF16, FLOAT32 };

// Sums of steps: aligned ones by the type of their terms, and others. Then those whose products of
// lanes may have more bits than float64.
enum SumKind : int32_t { FLOATS, WIDE, EXACT, PAIRS, LONGER_ALIGNED, LONGER_EXACT, LONGER_PAIRS };

// run(a lane of the kind).
template <class Run>
auto by_kind(int kind, const Run& run) {
    switch (kind) {
        case INT8: return run(int8_t{});
        case INT16: return run(int16_t{});
        case BF16: return run(Bf16{});
        default: return run(float{});
    }
}

inline int64_t lane_bytes(int kind) {
    return by_kind(kind, [](auto lane) { return static_cast<int64_t>(sizeof lane); });
}

constexpr int64_t CHUNK_LANES = 192 * 1024;  // bytes that stay within a core's cache

// Products of lanes for which a thread is worth its start: some tenths of a millisecond of them.
constexpr int64_t INTEGERS = 1 << 24, DOUBLES = 1 << 22, STEPPED = 1 << 20;

struct Shape {
    int64_t batches, rows, columns, blocks, block, threads;
};

// Rows and panels of every matrix, shared among threads: run(batch, row, rows, from, to). A part
// has a multiple of `each` rows, about as many as `bytes` for a lane fill the cache with. A thread
// has at least `products` of lanes.
template <class Run>
void tiles(const Shape& s, int64_t each, int64_t bytes, int64_t products, const Run& run) {
    const int64_t panels = groups(s.columns, PANEL);
    const int64_t work = s.batches * s.rows * s.columns * s.blocks * s.block;
    const int64_t threads = std::max<int64_t>(1, std::min(s.threads, work / products));
    const int64_t least = s.batches < threads ? groups(threads, s.batches) : 1;
    const int64_t length = std::max<int64_t>(1, s.blocks * s.block * bytes);
    const int64_t most = std::max(4 * each, CHUNK_LANES / length);
    int64_t chunks = std::max(groups(s.rows, most), least);
    const int64_t rows = groups(groups(s.rows, chunks), each) * each;
    chunks = groups(s.rows, rows);
    // Few rows: threads share the columns too.
    const int64_t sides = std::min(groups(panels, 2), groups(least, chunks));
    const int64_t width = groups(groups(panels, sides), 2) * 2;
    share(s.batches * chunks * sides, threads, [&](int64_t first, int64_t last) {
        for (int64_t i = first; i < last; ++i) {
            const int64_t row = i / sides % chunks * rows, from = i % sides * width;
            run(i / sides / chunks, row, std::min(rows, s.rows - row), std::min(from, panels),
                std::min(from + width, panels));
        }
    });
}

template <class Lane>
Matrix<Lane> matrix(const void* lanes, const double* factors, const Shape& s, int64_t rows,
                    int64_t g) {
    const int64_t length = s.blocks * s.block;
    return {static_cast<const Lane*>(lanes) + g * rows * length, factors + g * rows * s.blocks,
            rows, s.blocks, s.block};
}

// put(batch, panel of it) for all panels of a right operand.
template <class Put>
void pack(const Shape& s, const Put& put) {
    const int64_t panels = groups(s.columns, PANEL), count = s.batches * panels;
    share(count, std::min(s.threads, count * s.blocks >> 10), [&](int64_t first, int64_t last) {
        for (int64_t i = first; i < last; ++i) put(i / panels, i % panels);
    });
}

struct Operands {
    int32_t* words;  // of the right one, as `Panels` has them for all matrices of a batch
    float* scales;
    int32_t* limits;
    const double* b_factors;
    const void* a;
    const double* a_factors;
    const float *a_outer, *b_outer;  // (rows,) and (columns,) of every matrix, or nullptr
    const float* bias;               // (columns,) of every matrix, or nullptr
};

template <class Lane>
Panels<Lane> panels(const Operands& o, const Shape& s, int64_t g) {
    const Panels<Lane> all{o.words, o.scales, o.limits, o.b_factors, s.columns, s.blocks, s.block};
    return all.of(g);
}

Finish finish(const Operands& o, const Shape& s, float divisor, int64_t g) {
    return {divisor, o.a_outer ? o.a_outer + g * s.rows : nullptr,
            o.b_outer ? o.b_outer + g * s.columns : nullptr,
            o.bias ? o.bias + g * s.columns : nullptr, s.columns};
}

template <class Lane>
void multiply(const Operands& o, const Shape& s, int bits, Factors factors, float divisor, float* y) {
    tiles(s, ROWS, sizeof(Lane), INTEGERS,
          [&](int64_t g, int64_t row, int64_t rows, int64_t from, int64_t to) {
              const Product<Lane> product{matrix<Lane>(o.a, o.a_factors, s, s.rows, g),
                                          panels<Lane>(o, s, g),
                                          finish(o, s, divisor, g),
                                          bits,
                                          factors,
                                          y + g * s.rows * s.columns};
              product.run(row, rows, from, to);
          });
}

void multiply_doubles(const Operands& o, const Shape& s, int bits, float divisor, float* y) {
    tiles(s, DOUBLE_ROWS, sizeof(double), DOUBLES,
          [&](int64_t g, int64_t row, int64_t rows, int64_t from, int64_t to) {
              const DoubleProduct product{matrix<float>(o.a, o.a_factors, s, s.rows, g),
                                          panels<float>(o, s, g),
                                          finish(o, s, divisor, g), bits <= DOUBLE_BITS,
                                          y + g * s.rows * s.columns};
              product.run(row, rows, from, to);
          });
}

#if defined(AXS6_TILES)

template <int PLANES>
void multiply_tiles(const Operands& o, const Shape& s, int bits, bool powers, float divisor,
                    float* y) {
    tiles(s, TILE, 1, INTEGERS,
          [&](int64_t g, int64_t row, int64_t rows, int64_t from, int64_t to) {
              const TileProduct<PLANES> product{matrix<Bf16>(o.a, o.a_factors, s, s.rows, g),
                                                panels<Bf16>(o, s, g),
                                                finish(o, s, divisor, g),
                                                bits,
                                                powers,
                                                y + g * s.rows * s.columns};
              product.run(row, rows, from, to);
          });
}

#endif

// What the products by steps read of two operands, of the matrices of a batch.
struct SteppedOperands {
    Side a, b;
    const float *a_outer, *b_outer;
    Panelled right;
};

Side matrix(const Side& x, int64_t rows, int64_t g) {
    const int64_t blocks = g * rows * x.blocks;
    const double* scales = x.scales ? x.scales + blocks : nullptr;
    return {x.lanes + blocks * x.block, x.exponents + blocks, x.significands + blocks, scales, rows,
            x.blocks, x.block, x.fraction};
}

template <class Sum>
void multiply_stepped(const SteppedOperands& o, const Accumulator& how, const Shape& s, float divisor,
                      float* y) {
    const int64_t panels = groups(s.columns, PANEL), length = s.blocks * s.block;
    tiles(s, TILE_ROWS, sizeof(typename Sum::Real), STEPPED,
          [&](int64_t g, int64_t row, int64_t rows, int64_t from, int64_t to) {
              const SteppedProduct<Sum> product{
                  matrix(o.a, s.rows, g),
                  matrix(o.b, s.columns, g),
                  Group<typename Sum::Column, PANEL>::of(o.right).at(g * panels, length, s.blocks),
                  how,
                  {divisor, o.a_outer ? o.a_outer + g * s.rows : nullptr,
                   o.b_outer ? o.b_outer + g * s.columns : nullptr, nullptr, s.columns},
                  y + g * s.rows * s.columns};
              if constexpr (HAS_TRUNCATED && std::is_same_v<Sum, AlignedSum<float, false>>)
                  if (how.narrow) return TruncatedProduct{product}.run(row, rows, from, to);
              product.run(row, rows, from, to);
          });
}

template <class Real, bool LONGER = false>
void multiply_aligned(const SteppedOperands& o, const Accumulator& how, const Shape& s, float divisor,
                      float* y) {
    if (how.floor) return multiply_stepped<AlignedSum<Real, true, LONGER>>(o, how, s, divisor, y);
    multiply_stepped<AlignedSum<Real, false, LONGER>>(o, how, s, divisor, y);
}

template <class Column>
void pack_stepped_panels(const Side& x, const Panelled& out, const Accumulator& how, const Shape& s) {
    const int64_t panels = groups(s.columns, PANEL), length = s.blocks * s.block;
    const auto all = Group<Column, PANEL>::of(out);
    pack(s, [&](int64_t g, int64_t panel) {
        pack_stepped(matrix(x, s.columns, g), all.at(g * panels, length, s.blocks), how, panel);
    });
}

}  // namespace

extern "C" {

int axs6_has_8_bit() { return HAS_8_BIT; }

int axs6_has_tiles() {
#if defined(AXS6_TILES)
    return has_tiles();
#else
    return 0;
#endif
}

const char* axs6_form() { return axs6_has_tiles() ? "amx" : FORM; }

// DIGEST_WORDS for each part of the bytes.
void axs6_digest(const char* from, int64_t bytes, int64_t threads, uint64_t* out) {
    const int64_t parts = groups(bytes, DIGEST_PART);
    share(parts, std::min(threads, parts / DIGEST_PARTS), [&](int64_t first, int64_t last) {
        for (int64_t i = first; i < last; ++i) {
            const int64_t at = i * DIGEST_PART;
            Digest(from + at, std::min(DIGEST_PART, bytes - at)).store(out + i * DIGEST_WORDS);
        }
    });
}

int64_t axs6_fake_quantise(const Format* f, const uint32_t* x, int64_t rows, int64_t length,
                           int64_t threads, float* out) {
    return quantise(*f, x, rows, length, threads, Values{out});
}

int64_t axs6_encode(const Format* f, const uint32_t* x, int64_t rows, int64_t length, int64_t threads,
                    int kind, void* lanes, double* factors, uint8_t* codes) {
    return by_kind(kind, [&](auto lane) {
        const Lanes<decltype(lane)> to{static_cast<decltype(lane)*>(lanes), factors, codes};
        return quantise(*f, x, rows, length, threads, to);
    });
}

void axs6_largest(const uint32_t* x, int64_t rows, int64_t length, int64_t threads, uint32_t* out) {
    largest_of_rows(x, rows, length, threads, out);
}

void axs6_fake_quantise_real(const Format* f, const Scale* s, const RowScales* scales, const float* x,
                             int64_t rows, int64_t length, int64_t threads, float* out) {
    quantise_real(*f, *s, *scales, x, rows, length, threads, RealValues{out});
}

void axs6_encode_real(const Format* f, const Scale* s, const RowScales* scales, const float* x,
                      int64_t rows, int64_t length, int64_t threads, int kind, void* lanes,
                      double* factors) {
    by_kind(kind, [&](auto lane) {
        const RealLanes<decltype(lane)> to{static_cast<decltype(lane)*>(lanes), factors};
        quantise_real(*f, *s, *scales, x, rows, length, threads, to);
    });
}

void axs6_pack(int kind, const void* lanes, const double* factors, const Shape* s,
               const Operands* out) {
    const auto each = [&](const auto& put, auto lane) {
        using Lane = decltype(lane);
        pack(*s, [&](int64_t g, int64_t panel) {
            put(matrix<Lane>(lanes, factors, *s, s->columns, g), panel, panels<Lane>(*out, *s, g));
        });
    };
    if (kind == FLOAT32) return each(pack_doubles, float{});
    if (kind == BF16) return each(pack_limited<Bf16>, Bf16{});
    if (kind == INT16) return each(pack_limited<int16_t>, int16_t{});
    each(pack_limited<int8_t>, int8_t{});
}

void axs6_multiply(int kind, const Operands* o, const Shape* s, int bits, Factors factors,
                   float divisor, float* y) {
    if (kind == FLOAT32) return multiply_doubles(*o, *s, bits, divisor, y);
#if defined(AXS6_TILES)
    if (kind == BF16)
        return bits > FLOAT_BITS ? multiply_tiles<2>(*o, *s, bits, factors == POWERS, divisor, y)
                                 : multiply_tiles<1>(*o, *s, bits, factors == POWERS, divisor, y);
#endif
    if constexpr (HAS_8_BIT)
        if (kind == INT8) return multiply<int8_t>(*o, *s, bits, factors, divisor, y);
    multiply<int16_t>(*o, *s, bits, factors, divisor, y);
}

// Encode the left operand and multiply it: how many of its blocks are not finite. Where there are
// some and `strict`, nothing is multiplied.
int64_t axs6_encode_multiply(const Format* f, const uint32_t* x, int64_t length, int strict,
                             int kind, const Operands* right, const Shape* s, int bits,
                             Factors factors, float divisor, float* y) {
    const int64_t rows = s->batches * s->rows, blocks = rows * s->blocks;
    const std::unique_ptr<char[]> lanes(new char[blocks * s->block * lane_bytes(kind)]);
    const std::unique_ptr<double[]> own_factors(new double[blocks]);
    const std::unique_ptr<uint8_t[]> codes(new uint8_t[blocks]);
    const int64_t bad = axs6_encode(f, x, rows, length, s->threads, kind, lanes.get(),
                                    own_factors.get(), codes.get());
    if (bad && strict) return bad;
    Operands both = *right;
    both.a = lanes.get(), both.a_factors = own_factors.get();
    axs6_multiply(kind, &both, s, bits, factors, divisor, y);
    return bad;
}

void axs6_pack_stepped(const Side* x, const Panelled* out, const Accumulator* how, const Shape* s) {
    if (how->longer) return pack_stepped_panels<double>(*x, *out, *how, *s);
    pack_stepped_panels<float>(*x, *out, *how, *s);
}

void axs6_multiply_stepped(const SteppedOperands* o, const Accumulator* how, const Shape* s,
                           SumKind kind, float divisor, float* y) {
    switch (kind) {
        case FLOATS: return multiply_aligned<float>(*o, *how, *s, divisor, y);
        case WIDE: return multiply_aligned<double>(*o, *how, *s, divisor, y);
        case EXACT: return multiply_stepped<ExactSum<false>>(*o, *how, *s, divisor, y);
        case PAIRS: return multiply_stepped<PairwiseSum<false>>(*o, *how, *s, divisor, y);
        case LONGER_ALIGNED: return multiply_aligned<double, true>(*o, *how, *s, divisor, y);
        case LONGER_EXACT: return multiply_stepped<ExactSum<true>>(*o, *how, *s, divisor, y);
        case LONGER_PAIRS: return multiply_stepped<PairwiseSum<true>>(*o, *how, *s, divisor, y);
    }
}
}
