/* Elements, scales and dot products of block formats in integer arithmetic, and a check of them
   against the files in vectors/formats/.

   cc -std=c99 -O2 examples/check_formats.c -o check_formats
   ./check_formats vectors/formats

   Above "The check": formats as data, the value of every code, and the exact dot product of two
   packed blocks. docs/vectors.md says what is in the files. Exit status: 0 if all cases pass, 1 if
   one fails, 2 if a file cannot be read. */

#include <stdint.h>
#include <stdio.h>
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

/* Magnitudes stay below 2^64: those of lanes have at most 8 + 4 bits, outer scales of 1 have one. */
static Number product(Number x, Number y) {
    int negative = x.negative ^ y.negative, infinite = x.kind == INFINITE || y.kind == INFINITE;
    int zero = (x.kind == FINITE && !x.magnitude) || (y.kind == FINITE && !y.magnitude);
    if (x.kind == NOT_A_NUMBER || y.kind == NOT_A_NUMBER || (infinite && zero)) return NAN_NUMBER;
    if (infinite) return (Number){INFINITE, negative, 0, 0};
    return number(negative, x.magnitude * y.magnitude, x.exponent + y.exponent);
}

/* ---- Formats ---- */

enum special { NONE, ALL_ONES, IEEE };
enum kind { SIGN_MAGNITUDE, TWOS_COMPLEMENT, UNSIGNED, FLOAT, EXPONENT, SHIFT, INTEGER };

/* A code of `bits` bits. Floats have a sign, `exponent` bits of exponent and the rest of fraction;
   fixed-point codes count 2^exponent. */
typedef struct {
    enum kind kind;
    int bits, exponent;
    enum special special;
} Code;

/* A scale of groups of `group` values; 0: of a channel or the tensor. */
typedef struct {
    Code code;
    int group;
} Level;

typedef struct {
    const char *name;
    Code element;
    int block, levels;
    Level level[2]; /* coarse to fine */
} Format;

#define E8M0 {EXPONENT, 8, 0, ALL_ONES}
#define FP32 {FLOAT, 32, 8, IEEE}
#define E4M3 {FLOAT, 8, 4, ALL_ONES}
#define E5M2 {FLOAT, 8, 5, IEEE}
#define E2M1 {FLOAT, 4, 2, NONE}
#define MICRO {{E8M0, 16}, {{SHIFT, 1, 0, NONE}, 2}}
#define VSQ {{FP32, 0}, {{INTEGER, 4, 0, NONE}, 16}}

static const Format FORMATS[] = {
    {"mx9", {SIGN_MAGNITUDE, 8, -6, NONE}, 16, 2, MICRO},
    {"mx6", {SIGN_MAGNITUDE, 5, -3, NONE}, 16, 2, MICRO},
    {"mx4", {SIGN_MAGNITUDE, 3, -1, NONE}, 16, 2, MICRO},
    {"mxfp8_e4m3", E4M3, 32, 1, {{E8M0, 32}}},
    {"mxfp8_e5m2", E5M2, 32, 1, {{E8M0, 32}}},
    {"mxfp6_e3m2", {FLOAT, 6, 3, NONE}, 32, 1, {{E8M0, 32}}},
    {"mxfp6_e2m3", {FLOAT, 6, 2, NONE}, 32, 1, {{E8M0, 32}}},
    {"mxfp4", E2M1, 32, 1, {{E8M0, 32}}},
    {"mxint8", {TWOS_COMPLEMENT, 8, -6, NONE}, 32, 1, {{E8M0, 32}}},
    {"nvfp4", E2M1, 16, 2, {{FP32, 0}, {E4M3, 16}}},
    {"msfp16", {SIGN_MAGNITUDE, 8, -6, NONE}, 16, 1, {{E8M0, 16}}},
    {"msfp12", {SIGN_MAGNITUDE, 4, -2, NONE}, 16, 1, {{E8M0, 16}}},
    {"fp8_e4m3", E4M3, 32, 1, {{FP32, 0}}},
    {"fp8_e5m2", E5M2, 32, 1, {{FP32, 0}}},
    {"int8", {TWOS_COMPLEMENT, 8, 0, NONE}, 32, 1, {{FP32, 0}}},
    {"int6", {TWOS_COMPLEMENT, 6, 0, NONE}, 32, 1, {{FP32, 0}}},
    {"int4", {TWOS_COMPLEMENT, 4, 0, NONE}, 32, 1, {{FP32, 0}}},
    {"uint8", {UNSIGNED, 8, 0, NONE}, 32, 1, {{FP32, 0}}},
    {"vsq4", {TWOS_COMPLEMENT, 4, 0, NONE}, 16, 2, VSQ},
    {"vsq6", {TWOS_COMPLEMENT, 6, 0, NONE}, 16, 2, VSQ},
    {"vsq8", {TWOS_COMPLEMENT, 8, 0, NONE}, 16, 2, VSQ},
};

enum { LARGEST_BLOCK = 32 };

static Number float_value(Code code, uint32_t bits) {
    int fraction_bits = code.bits - 1 - code.exponent, negative = (int)(bits >> (code.bits - 1) & 1);
    uint32_t magnitude = bits & ~((uint32_t)1 << (code.bits - 1));
    uint32_t fraction = magnitude & (((uint32_t)1 << fraction_bits) - 1);
    int field = (int)(magnitude >> fraction_bits), largest = (1 << code.exponent) - 1;
    int bias = largest >> 1, ones = field == largest;
    if (code.special == IEEE && ones)
        return fraction ? NAN_NUMBER : (Number){INFINITE, negative, 0, 0};
    if (code.special == ALL_ONES && ones && fraction == ((uint32_t)1 << fraction_bits) - 1)
        return NAN_NUMBER;
    if (field) fraction |= (uint32_t)1 << fraction_bits;
    return number(negative, fraction, (field ? field : 1) - bias - fraction_bits);
}

static Number value_of(Code code, uint32_t bits) {
    uint32_t top = (uint32_t)1 << (code.bits - 1);
    switch (code.kind) {
    case FLOAT: return float_value(code, bits);
    case EXPONENT:
        return bits == 2 * top - 1 ? NAN_NUMBER : number(0, 1, (int)bits - (int)(top - 1));
    case SHIFT: return number(0, 1, -(int)bits);
    case SIGN_MAGNITUDE: return number((bits & top) != 0, bits & (top - 1), code.exponent);
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

/* The values of one block, scales of channels and the tensor before it. */
static void values_of(const Format *format, const uint8_t *bytes, Number *values) {
    int position = 0, has_zero = format->element.kind == UNSIGNED;
    uint32_t zero = 0;
    for (int i = 0; i < format->block; i++) values[i] = number(0, 1, 0);
    for (int outer = 1; outer >= 0; outer--) {
        for (int k = 0; k < format->levels; k++) {
            Level level = format->level[k];
            if (outer != !level.group) continue;
            int size = level.group ? level.group : format->block;
            for (int i = 0; i < format->block; i += size) {
                Number scale = value_of(level.code, bits_at(bytes, &position, level.code.bits));
                for (int j = i; j < i + size; j++) values[j] = product(values[j], scale);
            }
            if (outer && has_zero) zero = bits_at(bytes, &position, format->element.bits);
        }
    }
    for (int i = 0; i < format->block; i++) {
        uint32_t code = bits_at(bytes, &position, format->element.bits);
        Number element = value_of(format->element, code);
        if (has_zero) element = number(code < zero, code < zero ? zero - code : code - zero, 0);
        values[i] = product(values[i], element);
    }
}

/* ---- Sums: two's complement with its lowest bit at 2^LOWEST ---- */

enum { LIMBS = 128, LOWEST = -2048 };

typedef struct {
    int nan, infinities[2];
    uint32_t limbs[LIMBS];
} Sum;

static void add(Sum *sum, Number x) {
    if (x.kind == NOT_A_NUMBER) sum->nan = 1;
    if (x.kind == INFINITE) sum->infinities[x.negative] = 1;
    if (x.kind != FINITE) return;
    int shift = (x.exponent - LOWEST) % 32, first = (x.exponent - LOWEST) / 32;
    uint64_t carry = (uint64_t)x.negative;
    for (int i = 0; i < LIMBS; i++) {
        int from = 32 * (i - first) - shift; /* the bit of the magnitude that is this limb's lowest */
        uint32_t part = 0;
        if (from > -32 && from < 64)
            part = (uint32_t)(from < 0 ? x.magnitude << -from : x.magnitude >> from);
        carry += (uint64_t)sum->limbs[i] + (x.negative ? ~part : part);
        sum->limbs[i] = (uint32_t)carry;
        carry >>= 32;
    }
}

static int bit(const Sum *sum, int i) { return (int)(sum->limbs[i / 32] >> i % 32 & 1); }

/* Writes the sum as an odd integer in hexadecimal and returns the exponent. */
static int write(Sum *sum, char *text) {
    if (sum->nan || (sum->infinities[0] && sum->infinities[1])) return strcpy(text, "nan"), 0;
    if (sum->infinities[0]) return strcpy(text, "inf"), 0;
    if (sum->infinities[1]) return strcpy(text, "-inf"), 0;
    int last = 32 * LIMBS - 1, low = 0;
    if (bit(sum, last)) {
        *text++ = '-';
        uint64_t carry = 1;
        for (int i = 0; i < LIMBS; i++) {
            carry += (uint64_t)(uint32_t)~sum->limbs[i];
            sum->limbs[i] = (uint32_t)carry;
            carry >>= 32;
        }
    }
    while (last && !bit(sum, last)) last--;
    while (low < last && !bit(sum, low)) low++;
    if (!bit(sum, low)) return strcpy(text, "0"), 0;
    for (int digit = (last - low) / 4; digit >= 0; digit--) {
        int value = 0;
        for (int i = 3; i >= 0; i--) {
            int place = low + 4 * digit + i;
            value = 2 * value + (place <= last && bit(sum, place));
        }
        *text++ = "0123456789abcdef"[value];
    }
    *text = 0;
    return low + LOWEST;
}

/* ---- The check ---- */

enum { LINE = 8192, FIELDS = 8, BYTES = LINE / 2 };

static int parse_bytes(const char *word, uint8_t *bytes) {
    int length = (int)strlen(word) / 2;
    for (int i = 0; i < length; i++) {
        char digits[3] = {word[2 * i], word[2 * i + 1], 0};
        bytes[i] = (uint8_t)strtoul(digits, NULL, 16);
    }
    return length;
}

static int same(Number x, Number y) {
    return x.kind == y.kind && x.negative == y.negative && x.magnitude == y.magnitude &&
           (!x.magnitude || x.exponent == y.exponent);
}

/* Whether a code has the value of an FP32 pattern. */
static int has_value(Code code, const char *bits, const char *pattern) {
    Code fp32 = FP32;
    uint32_t expected = (uint32_t)strtoul(pattern, NULL, 16);
    Number wanted = float_value(fp32, expected);
    if (wanted.kind == NOT_A_NUMBER && expected != 0x7fc00000) return 0;
    return same(value_of(code, (uint32_t)strtoul(bits, NULL, 16)), wanted);
}

/* name code -> value */
static int check_element(const Format *format, char **f) {
    return has_value(format->element, f[1], f[3]);
}

/* name level code -> value */
static int check_scale(const Format *format, char **f) {
    int level = atoi(f[1]);
    return level < format->levels && has_value(format->level[level].code, f[2], f[4]);
}

/* name a b -> sum exponent */
static int check_dot(const Format *format, char **f) {
    static uint8_t bytes[BYTES];
    Number values[2][LARGEST_BLOCK];
    Sum sum = {0, {0, 0}, {0}};
    char text[32 * LIMBS / 4 + 2];
    for (int i = 0; i < 2; i++) {
        memset(bytes, 0, sizeof bytes);
        parse_bytes(f[1 + i], bytes);
        values_of(format, bytes, values[i]);
    }
    for (int i = 0; i < format->block; i++) add(&sum, product(values[0][i], values[1][i]));
    int exponent = write(&sum, text);
    return !strcmp(text, f[4]) && exponent == atoi(f[5]);
}

static int split(char *line, char **fields) {
    int count = 0;
    for (char *word = strtok(line, " \n"); word && count < FIELDS; word = strtok(NULL, " \n"))
        fields[count++] = word;
    return count;
}

/* Returns the number of cases that fail; ends the program if the file is not as expected. */
static int check_file(const char *folder, const Format *format, const char *name, int fields,
                      int (*check)(const Format *, char **), int *cases) {
    static char line[LINE];
    char path[LINE], *found[FIELDS];
    int failures = 0, number = 0;
    snprintf(path, sizeof path, "%s/%s/%s", folder, format->name, name);
    FILE *file = fopen(path, "r");
    if (!file) {
        fprintf(stderr, "check_formats: cannot read %s\n", path);
        exit(2);
    }
    for (*cases = 0; fgets(line, sizeof line, file);) {
        number++;
        if (line[0] == '#') continue;
        if (!strchr(line, '\n') || split(line, found) != fields) {
            fprintf(stderr, "check_formats: %s:%d does not have %d fields\n", path, number, fields);
            exit(2);
        }
        ++*cases;
        if (check(format, found)) continue;
        failures++;
        printf("%s/%s:%d: %s fails\n", format->name, name, number, found[0]);
    }
    fclose(file);
    if (!*cases) {
        fprintf(stderr, "check_formats: %s has no cases\n", path);
        exit(2);
    }
    return failures;
}

int main(int count, char **arguments) {
    if (count != 2) {
        fprintf(stderr, "check_formats: needed: check_formats FOLDER\n");
        return 2;
    }
    int failures = 0;
    for (size_t i = 0; i < sizeof FORMATS / sizeof *FORMATS; i++) {
        const Format *format = &FORMATS[i];
        int cases[3], failed = 0;
        failed += check_file(arguments[1], format, "elements.txt", 4, check_element, &cases[0]);
        failed += check_file(arguments[1], format, "scales.txt", 5, check_scale, &cases[1]);
        failed += check_file(arguments[1], format, "dot.txt", 6, check_dot, &cases[2]);
        printf("%s: %d elements, %d scales, %d dot products, %d fail\n", format->name, cases[0],
               cases[1], cases[2], failed);
        failures += failed;
    }
    return failures > 0;
}
