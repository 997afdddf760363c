/* Block formats in integer arithmetic: the value of every code, packed blocks, decoding to FP32,
   and encoding where all scales are exponents and shifts; docs/formats.md has the definitions. */

#ifndef BLOCK_FORMATS_H
#define BLOCK_FORMATS_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ---- Numbers: magnitude * 2^exponent with a sign, NaN, or an infinity ---- */

typedef struct {
    enum { FINITE, INFINITE, NOT_A_NUMBER } kind;
    int negative, exponent;
    uint64_t magnitude;
} Number;

static const Number NAN_NUMBER = {NOT_A_NUMBER, 0, 0, 0};

static Number number(int negative, uint64_t magnitude, int exponent) {
    Number x = {FINITE, negative, exponent, magnitude};
    while (magnitude && !(x.magnitude & 1)) x.magnitude >>= 1, x.exponent++;
    return x;
}

/* Magnitudes stay below 2^64: those of lanes have at most 28 + 24 bits, outer scales of 1 have one. */
static Number product(Number x, Number y) {
    int negative = x.negative ^ y.negative, infinite = x.kind == INFINITE || y.kind == INFINITE;
    int zero = (x.kind == FINITE && !x.magnitude) || (y.kind == FINITE && !y.magnitude);
    if (x.kind == NOT_A_NUMBER || y.kind == NOT_A_NUMBER || (infinite && zero)) return NAN_NUMBER;
    if (infinite) return (Number){INFINITE, negative, 0, 0};
    return number(negative, x.magnitude * y.magnitude, x.exponent + y.exponent);
}

/* ---- Formats ---- */

/* Codes that are not numbers: none; NaN of all ones; those of IEEE 754; NaN in place of -0. */
enum special { NONE, ALL_ONES, IEEE, NO_MINUS_ZERO };
enum kind {
    SIGN_MAGNITUDE, TWOS_COMPLEMENT, UNSIGNED, FLOAT, UNSIGNED_FLOAT, NORMAL_FLOAT, TABLE, SELECTED,
    EXPONENT, SHIFT, INTEGER
};

/* A code of `bits` bits. Floats have a sign, but for unsigned ones, `exponent` bits of exponent and
   the rest of fraction; fixed-point codes count 2^exponent. Normal floats have no sign, a hidden one
   in every code, and the bias 48. For a table `exponent` is its number; where the sign bit of the
   finest scale selects one of two elements, it is that of the pair. */
typedef struct {
    enum kind kind;
    int bits, exponent;
    enum special special;
} Code;

/* The value of each code, in units of 2^exponent. */
typedef struct {
    int exponent;
    int32_t counts[16];
} Table;

enum { NF4, NF4_Q6, FIVE, MINUS_FIVE, SEVENTHS };

static const Table TABLES[] = {
    {-27, {-134217728, -93441416, -70474112, -53004928, -38177076, -24799870, -12220529, 0,
           10681087, 21599686, 33032634, 45354216, 59151072, 75513176, 97033624, 134217728}},
    {-6, {-64, -45, -34, -25, -18, -12, -6, 0, 5, 10, 16, 22, 28, 36, 46, 64}},
    {-1, {0, 1, 2, 3, 4, 6, 8, 12, 10, -1, -2, -3, -4, -6, -8, -12}},
    {-1, {0, 1, 2, 3, 4, 6, 8, 12, -10, -1, -2, -3, -4, -6, -8, -12}},
    {1, {0, 3, 6, 9, 12, 15, 18, 21, 0, -21, -18, -15, -12, -9, -6, -3}}, /* 7 times 6/7 each */
};

/* A scale of groups of `group` values; 0: it stands before the blocks, that of a channel, the tensor
   or a tile. */
typedef struct {
    Code code;
    int group;
} Level;

typedef struct {
    const char *name;
    Code element;
    int block, rows, levels; /* rows of a tile, 1 without tiles */
    Level level[3];          /* coarse to fine */
} Format;

#define E8M0 {EXPONENT, 8, 0, ALL_ONES}
#define FP32 {FLOAT, 32, 8, IEEE}
#define E4M3 {FLOAT, 8, 4, ALL_ONES}
#define E6M2 {NORMAL_FLOAT, 8, 6, ALL_ONES}
#define UE5M3 {UNSIGNED_FLOAT, 8, 5, ALL_ONES}
#define E5M2 {FLOAT, 8, 5, IEEE}
#define E4M3FNUZ {FLOAT, 8, 4, NO_MINUS_ZERO}
#define E5M2FNUZ {FLOAT, 8, 5, NO_MINUS_ZERO}
#define E2M1 {FLOAT, 4, 2, NONE}
#define TABLE_OF(name) {TABLE, 4, name, NONE}
#define MICRO {{E8M0, 16}, {{SHIFT, 1, 0, NONE}, 2}}
#define VSQ {{FP32, 0}, {{INTEGER, 4, 0, NONE}, 16}}

/* Two elements, by what their values are multiplied, and by what they are then divided. */
typedef struct {
    Code element[2];
    unsigned times[2], divisor;
} Pair;

enum { IF4, RAZER };

static const Pair PAIRS[] = {
    {{E2M1, TABLE_OF(SEVENTHS)}, {7, 1}, 7},
    {{TABLE_OF(FIVE), TABLE_OF(MINUS_FIVE)}, {1, 1}, 1},
};

static const Format FORMATS[] = {
    {"mx9", {SIGN_MAGNITUDE, 8, -6, NONE}, 16, 1, 2, MICRO},
    {"mx6", {SIGN_MAGNITUDE, 5, -3, NONE}, 16, 1, 2, MICRO},
    {"mx4", {SIGN_MAGNITUDE, 3, -1, NONE}, 16, 1, 2, MICRO},
    {"mxfp8_e4m3", E4M3, 32, 1, 1, {{E8M0, 32}}},
    {"mxfp8_e5m2", E5M2, 32, 1, 1, {{E8M0, 32}}},
    {"mxfp6_e3m2", {FLOAT, 6, 3, NONE}, 32, 1, 1, {{E8M0, 32}}},
    {"mxfp6_e2m3", {FLOAT, 6, 2, NONE}, 32, 1, 1, {{E8M0, 32}}},
    {"mxfp4", E2M1, 32, 1, 1, {{E8M0, 32}}},
    {"mxfp4_16", E2M1, 16, 1, 1, {{E8M0, 16}}},
    {"mxint8", {TWOS_COMPLEMENT, 8, -6, NONE}, 32, 1, 1, {{E8M0, 32}}},
    {"nvfp4", E2M1, 16, 1, 2, {{FP32, 0}, {E4M3, 16}}},
    {"nvfp4_ue5m3", E2M1, 16, 1, 1, {{UE5M3, 16}}},
    {"hif4", {SIGN_MAGNITUDE, 4, 0, NONE}, 64, 1, 3,
     {{E6M2, 64}, {{SHIFT, 1, 0, NONE}, 8}, {{SHIFT, 1, 0, NONE}, 4}}},
    {"msfp16", {SIGN_MAGNITUDE, 8, -6, NONE}, 16, 1, 1, {{E8M0, 16}}},
    {"msfp12", {SIGN_MAGNITUDE, 4, -2, NONE}, 16, 1, 1, {{E8M0, 16}}},
    {"fp8_block", E4M3, 128, 128, 1, {{FP32, 0}}},
    {"mxfp8_32x32", E4M3, 32, 32, 1, {{E8M0, 0}}},
    {"fp8_e4m3", E4M3, 32, 1, 1, {{FP32, 0}}},
    {"fp8_e5m2", E5M2, 32, 1, 1, {{FP32, 0}}},
    {"fp8_e4m3fnuz", E4M3FNUZ, 32, 1, 1, {{FP32, 0}}},
    {"fp8_e5m2fnuz", E5M2FNUZ, 32, 1, 1, {{FP32, 0}}},
    {"int8", {TWOS_COMPLEMENT, 8, 0, NONE}, 32, 1, 1, {{FP32, 0}}},
    {"int6", {TWOS_COMPLEMENT, 6, 0, NONE}, 32, 1, 1, {{FP32, 0}}},
    {"int4", {TWOS_COMPLEMENT, 4, 0, NONE}, 32, 1, 1, {{FP32, 0}}},
    {"uint8", {UNSIGNED, 8, 0, NONE}, 32, 1, 1, {{FP32, 0}}},
    {"vsq4", {TWOS_COMPLEMENT, 4, 0, NONE}, 16, 1, 2, VSQ},
    {"vsq6", {TWOS_COMPLEMENT, 6, 0, NONE}, 16, 1, 2, VSQ},
    {"vsq8", {TWOS_COMPLEMENT, 8, 0, NONE}, 16, 1, 2, VSQ},
    {"nf4", {TABLE, 4, NF4, NONE}, 64, 1, 1, {{FP32, 64}}},
    {"nf4q6", {TABLE, 4, NF4_Q6, NONE}, 64, 1, 1, {{FP32, 64}}},
    {"if4", {SELECTED, 4, IF4, NONE}, 16, 1, 2, {{FP32, 0}, {E4M3, 16}}},
    {"razer", {SELECTED, 4, RAZER, NONE}, 16, 1, 2, {{FP32, 0}, {E4M3, 16}}},
};

enum { LARGEST_BLOCK = 128 };

/* By what the numbers that stand for values here are divided. */
static unsigned divisor_of(const Format *format) {
    return format->element.kind == SELECTED ? PAIRS[format->element.exponent].divisor : 1;
}

static int bias_of(Code code) {
    if (code.kind == NORMAL_FLOAT) return 48;
    return (1 << (code.exponent - 1)) - (code.special != NO_MINUS_ZERO);
}

static Number float_value(Code code, uint32_t bits) {
    int magnitude_bits = code.bits - (code.kind == FLOAT);
    int fraction_bits = magnitude_bits - code.exponent, negative = (int)(bits >> magnitude_bits & 1);
    uint32_t magnitude = bits & (((uint32_t)1 << magnitude_bits) - 1);
    uint32_t fraction = magnitude & (((uint32_t)1 << fraction_bits) - 1);
    int field = (int)(magnitude >> fraction_bits), largest = (1 << code.exponent) - 1;
    int normal = field || code.kind == NORMAL_FLOAT, ones = field == largest;
    if (code.special == IEEE && ones)
        return fraction ? NAN_NUMBER : (Number){INFINITE, negative, 0, 0};
    if (code.special == ALL_ONES && ones && fraction == ((uint32_t)1 << fraction_bits) - 1)
        return NAN_NUMBER;
    if (code.special == NO_MINUS_ZERO && negative && !magnitude) return NAN_NUMBER;
    if (normal) fraction |= (uint32_t)1 << fraction_bits;
    return number(negative, fraction, (normal ? field : 1) - bias_of(code) - fraction_bits);
}

static Number value_of(Code code, uint32_t bits) {
    uint32_t top = (uint32_t)1 << (code.bits - 1);
    switch (code.kind) {
    case FLOAT:
    case UNSIGNED_FLOAT:
    case NORMAL_FLOAT: return float_value(code, bits);
    case EXPONENT:
        return bits == 2 * top - 1 ? NAN_NUMBER : number(0, 1, (int)bits - (int)(top - 1));
    case SHIFT: return number(0, 1, -(int)bits);
    case SIGN_MAGNITUDE: return number((bits & top) != 0, bits & (top - 1), code.exponent);
    case TABLE: {
        const Table *table = &TABLES[code.exponent];
        int32_t count = table->counts[bits];
        return number(count < 0, (uint64_t)labs(count), table->exponent);
    }
    case SELECTED: {
        const Pair *pair = &PAIRS[code.exponent];
        int second = (int)(bits >> code.bits & 1);
        Number times = number(0, pair->times[second], 0);
        return product(times, value_of(pair->element[second], bits & (2 * top - 1)));
    }
    case TWOS_COMPLEMENT:
        return number((bits & top) != 0, bits & top ? 2 * top - bits : bits, code.exponent);
    default: return number(0, bits, code.exponent);
    }
}

/* ---- Packed blocks ---- */

static uint32_t bits_at(const uint8_t *bytes, int *position, int width) {
    uint32_t value = 0;
    for (int i = 0; i < width; i++, ++*position)
        value |= (uint32_t)(bytes[*position / 8] >> *position % 8 & 1) << i;
    return value;
}

/* The code of a scale without a bit that selects an element, which goes to *selected. */
static uint32_t number_of(const Format *format, int level, uint32_t bits, uint32_t *selected) {
    *selected = 0;
    if (format->element.kind != SELECTED || level != format->levels - 1) return bits;
    *selected = bits >> (format->level[level].code.bits - 1);
    return bits ^ *selected << (format->level[level].code.bits - 1);
}

/* The values of one block times its divisor, scales of channels and the tensor before it. */
static void values_of(const Format *format, const uint8_t *bytes, Number *values) {
    int position = 0, has_zero = format->element.kind == UNSIGNED;
    uint32_t zero = 0, selected[LARGEST_BLOCK];
    for (int i = 0; i < format->block; i++) values[i] = number(0, 1, 0), selected[i] = 0;
    for (int outer = 1; outer >= 0; outer--) {
        for (int k = 0; k < format->levels; k++) {
            Level level = format->level[k];
            if (outer != !level.group) continue;
            int size = level.group ? level.group : format->block;
            for (int i = 0; i < format->block; i += size) {
                uint32_t own, bits = bits_at(bytes, &position, level.code.bits);
                Number scale = value_of(level.code, number_of(format, k, bits, &own));
                for (int j = i; j < i + size; j++) {
                    values[j] = product(values[j], scale);
                    selected[j] |= own;
                }
            }
            if (outer && has_zero) zero = bits_at(bytes, &position, format->element.bits);
        }
    }
    for (int i = 0; i < format->block; i++) {
        uint32_t code = bits_at(bytes, &position, format->element.bits);
        Number element = value_of(format->element, code | selected[i] << format->element.bits);
        if (has_zero) element = number(code < zero, code < zero ? zero - code : code - zero, 0);
        values[i] = product(values[i], element);
    }
}

/* ---- Decoding: one rounding to FP32, to nearest even, held to the largest finite number ---- */

static int length_of(uint64_t magnitude) {
    int length = 0;
    while (magnitude >> length && ++length < 64) continue;
    return length;
}

/* magnitude * 2^shift as an integer below 2^63, to nearest even or toward zero. */
static uint64_t rounded(uint64_t magnitude, int shift, int nearest) {
    if (!magnitude || shift < -63) return 0;
    if (shift >= 0) return magnitude << shift;
    uint64_t result = magnitude >> -shift, rest = magnitude & (((uint64_t)1 << -shift) - 1);
    uint64_t half = (uint64_t)1 << (-shift - 1);
    return result + (nearest && (rest > half || (rest == half && (result & 1))));
}

/* A number over a divisor in 60 bits or more, of which the lowest says whether others follow. */
static Number over(Number x, unsigned divisor) {
    if (divisor < 2 || x.kind != FINITE || !x.magnitude) return x;
    int left = 63 - length_of(x.magnitude);
    uint64_t quotient = (x.magnitude << left) / divisor, rest = (x.magnitude << left) % divisor;
    return number(x.negative, quotient << 1 | !!rest, x.exponent - left - 1);
}

static uint32_t fp32_of(Number x) {
    uint32_t sign = (uint32_t)x.negative << 31, most = 0x7f7fffff;
    if (x.kind == NOT_A_NUMBER) return 0x7fc00000;
    if (x.kind == INFINITE) return sign | 0x7f800000;
    if (!x.magnitude) return sign;
    int top = x.exponent + length_of(x.magnitude) - 1;
    if (top > 127) return sign | most;
    int lowest = top < -126 ? -149 : top - 23;
    uint64_t count = rounded(x.magnitude, x.exponent - lowest, 1);
    uint64_t bits = ((uint64_t)(lowest + 149) << 23) + count;
    return sign | (bits > most ? most : (uint32_t)bits);
}

/* ---- Encoding under exponents and shifts, by the rule "floor" ---- */

enum { NO_TOP = -1000 };

static uint32_t largest_code(Code code) {
    uint32_t all = ((uint32_t)1 << (code.bits - 1)) - 1;
    if (code.kind != FLOAT || code.special == NONE) return all;
    if (code.special == ALL_ONES) return all - 1;
    return all - ((uint32_t)1 << (code.bits - 1 - code.exponent));
}

/* floor(log2) of the largest magnitude; that of infinities is 127, or none if they propagate. */
static int top_of(const Number *x, int count, int propagate) {
    int top = NO_TOP;
    for (int i = 0; i < count; i++) {
        int own = NO_TOP;
        if (x[i].kind == INFINITE && !propagate) own = 127;
        if (x[i].kind == FINITE && x[i].magnitude)
            own = x[i].exponent + length_of(x[i].magnitude) - 1;
        if (own > top) top = own;
    }
    return top;
}

/* The code of a value under the scale 2^scale, and in *lost whether only a scale can be its NaN. */
static uint32_t encoded(Code code, Number x, int scale, int nearest, int propagate, int *lost) {
    uint32_t sign = (uint32_t)1 << (code.bits - 1), largest = largest_code(code), result;
    int fraction_bits = code.bits - 1 - code.exponent;
    int lowest = code.kind == FLOAT ? 1 - bias_of(code) : 0;
    int has_nan = code.kind == FLOAT && code.special != NONE;
    if (x.kind == NOT_A_NUMBER) {
        *lost |= propagate && !has_nan;
        if (!propagate || !has_nan) return 0;
        return code.special == IEEE ? largest + 1 + ((uint32_t)1 << (fraction_bits - 1)) : sign - 1;
    }
    if (x.kind == INFINITE) {
        *lost |= propagate && !(has_nan && code.special == IEEE);
        result = propagate ? largest + 1 : largest;
    } else if (code.kind == FLOAT) {
        int top = x.exponent - scale + length_of(x.magnitude) - 1;
        if (!x.magnitude || top < lowest) top = lowest;
        int quantum = top - fraction_bits;
        result = (uint32_t)rounded(x.magnitude, x.exponent - scale - quantum, nearest);
        result += (uint32_t)(top - lowest) << fraction_bits;
    } else {
        result = (uint32_t)rounded(x.magnitude, x.exponent - scale - code.exponent, nearest);
    }
    if (x.kind == FINITE && result > largest) result = largest;
    if (code.kind == TWOS_COMPLEMENT) return (x.negative ? 0 - result : result) & (2 * sign - 1);
    return x.negative ? result | sign : result;
}

static void put_bits(uint8_t *bytes, int *position, int width, uint32_t value) {
    for (int i = 0; i < width; i++, ++*position)
        bytes[*position / 8] |= (uint8_t)((value >> i & 1) << *position % 8);
}

/* The bytes, zero before, of one block of values. */
static void encode_block(const Format *format, const Number *x, int nearest, int propagate,
                         uint8_t *bytes) {
    Number most = value_of(format->element, largest_code(format->element));
    int position = 0, emax = most.exponent + length_of(most.magnitude) - 1, lost = 0;
    int top = top_of(x, format->block, propagate), group = format->level[format->levels - 1].group;
    int exponent = top == NO_TOP || top - emax < -127 ? 0 : top - emax + 127;
    uint32_t codes[LARGEST_BLOCK], shifts[LARGEST_BLOCK];
    if (exponent > 254) exponent = 254;
    for (int i = 0; i < format->block; i++) {
        int own = top_of(x + i / group * group, group, propagate), below = top - own;
        int shift = format->levels > 1 ? (own == NO_TOP || below > 1 ? 1 : below) : 0;
        shifts[i] = (uint32_t)shift;
        int scale = exponent - 127 - shift;
        codes[i] = encoded(format->element, x[i], scale, nearest, propagate, &lost);
    }
    put_bits(bytes, &position, 8, lost ? 255 : (uint32_t)exponent);
    for (int i = 0; format->levels > 1 && i < format->block; i += group)
        put_bits(bytes, &position, 1, shifts[i]);
    for (int i = 0; i < format->block; i++)
        put_bits(bytes, &position, format->element.bits, lost ? 0 : codes[i]);
}

#endif
