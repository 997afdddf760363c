// Functions that Python calls, by ctypes. Arrays are contiguous.
#include "encode.hpp"
#include "product.hpp"

using namespace axs6;

namespace {

constexpr int64_t CHUNK_ROWS = 192;  // whose lanes stay within a core's cache
constexpr int64_t SHARE = 1 << 21;   // products of lanes for which a thread is worth its start

struct Shape {
    int64_t batches, rows, columns, blocks, block, threads;
};

// Rows and panels of every matrix, shared among threads: run(batch, row, rows, from, to).
template <class Run>
void tiles(const Shape& s, int64_t each, const Run& run) {
    const int64_t panels = groups(s.columns, PANEL);
    const int64_t work = s.batches * s.rows * s.columns * s.blocks * s.block;
    const int64_t threads = std::max<int64_t>(1, std::min(s.threads, work / SHARE));
    const int64_t least = s.batches < threads ? groups(threads, s.batches) : 1;
    int64_t chunks = std::max(groups(s.rows, CHUNK_ROWS), least);
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
void pack(const Lane* lanes, const double* factors, const Shape& s, Panels out) {
    const int64_t panels = groups(s.columns, PANEL);
    const int64_t words = s.block * sizeof(Lane) / 4;
    const int64_t batches = s.batches;
    share(batches * panels, std::min(s.threads, batches * panels * s.blocks >> 10),
          [&](int64_t first, int64_t last) {
              for (int64_t i = first; i < last; ++i) {
                  const int64_t g = i / panels, at = g * panels;
                  const Matrix<Lane> x{lanes + g * s.columns * s.blocks * s.block,
                                       factors + g * s.columns * s.blocks, s.columns, s.blocks,
                                       s.block};
                  pack_panel(x, i - at,
                             Panels{out.words + at * s.blocks * words * PANEL,
                                    out.scales + at * s.blocks * PANEL, out.limits + at});
              }
          });
}

struct Operands {
    const void *a, *b;
    const double *a_factors, *b_factors;
    const float *a_outer, *b_outer;  // (rows,) and (columns,) of every matrix, or nullptr
    int32_t *words;
    float* scales;
    Limits* limits;
};

template <class Lane>
void multiply(const Operands& o, const Shape& s, int bits, float divisor, float* y) {
    const int64_t panels = groups(s.columns, PANEL), length = s.blocks * s.block;
    const int64_t words = length * sizeof(Lane) / 4;
    tiles(s, ROWS, [&](int64_t g, int64_t row, int64_t rows, int64_t from, int64_t to) {
        const Product<Lane> product{
            {static_cast<const Lane*>(o.a) + g * s.rows * length,
             o.a_factors + g * s.rows * s.blocks, s.rows, s.blocks, s.block},
            {static_cast<const Lane*>(o.b) + g * s.columns * length,
             o.b_factors + g * s.columns * s.blocks, s.columns, s.blocks, s.block},
            {o.words + g * panels * words * PANEL, o.scales + g * panels * s.blocks * PANEL,
             o.limits + g * panels},
            {divisor, o.a_outer ? o.a_outer + g * s.rows : nullptr,
             o.b_outer ? o.b_outer + g * s.columns : nullptr},
            bits,
            y + g * s.rows * s.columns};
        product.run(row, rows, from, to);
    });
}

}  // namespace

extern "C" {

const char* axs6_form() { return FORM; }

int axs6_has_8_bit() { return HAS_8_BIT; }

int64_t axs6_fake_quantise(const Format* f, const float* x, int64_t rows, int64_t length,
                           int64_t threads, float* out) {
    return quantise(*f, x, rows, length, threads, Values{out});
}

int64_t axs6_encode(const Format* f, const float* x, int64_t rows, int64_t length, int64_t threads,
                    int lane_bytes, void* lanes, double* factors, uint8_t* codes) {
    if (lane_bytes == 1)
        return quantise(*f, x, rows, length, threads,
                        Lanes<int8_t>{static_cast<int8_t*>(lanes), factors, codes});
    if (lane_bytes == 2)
        return quantise(*f, x, rows, length, threads,
                        Lanes<int16_t>{static_cast<int16_t*>(lanes), factors, codes});
    return quantise(*f, x, rows, length, threads,
                    Lanes<float>{static_cast<float*>(lanes), factors, codes});
}

void axs6_pack(int lane_bytes, const void* lanes, const double* factors, const Shape* s,
               int32_t* words, float* scales, int32_t* limits) {
    const Panels out{words, scales, reinterpret_cast<Limits*>(limits)};
    if (lane_bytes == 1)
        pack(static_cast<const int8_t*>(lanes), factors, *s, out);
    else
        pack(static_cast<const int16_t*>(lanes), factors, *s, out);
}

void axs6_multiply(int lane_bytes, const Operands* o, const Shape* s, int bits, float divisor,
                   float* y) {
    if constexpr (HAS_8_BIT)
        if (lane_bytes == 1) return multiply<int8_t>(*o, *s, bits, divisor, y);
    multiply<int16_t>(*o, *s, bits, divisor, y);
}
}
