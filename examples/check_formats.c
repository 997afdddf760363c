/* Elements, scales, encoded arrays and dot products of block formats in integer arithmetic, and a
   check of them against the files in vectors/formats/.

   cc -std=c99 -O2 examples/check_formats.c -o check_formats
   ./check_formats vectors/formats

   block_formats.h has the formats; here are exact dot products of packed blocks, and the check.
   docs/vectors.md says what is in the files. Exit status: 0 if all cases pass, 1 if one fails, 2
   if a file cannot be read. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "block_formats.h"

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

/* Adds x * y: of numbers in halves, whose products have at most 64 bits. */
static void add_product(Sum *sum, Number x, Number y) {
    if (x.kind != FINITE || y.kind != FINITE) {
        add(sum, product(x, y));
        return;
    }
    for (int i = 0; i < 64; i += 32)
        for (int j = 0; j < 64; j += 32) {
            uint64_t part = (x.magnitude >> i & 0xffffffff) * (y.magnitude >> j & 0xffffffff);
            add(sum, number(x.negative ^ y.negative, part, x.exponent + y.exponent + i + j));
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
static int has_value(Code code, uint32_t bits, const char *pattern) {
    Code fp32 = FP32;
    uint32_t expected = (uint32_t)strtoul(pattern, NULL, 16);
    Number wanted = float_value(fp32, expected);
    if (wanted.kind == NOT_A_NUMBER && expected != 0x7fc00000) return 0;
    return same(value_of(code, bits), wanted);
}

/* name code -> value, times the divisor */
static int check_element(const Format *format, char **f) {
    return has_value(format->element, (uint32_t)strtoul(f[1], NULL, 16), f[3]);
}

/* name level code -> value */
static int check_scale(const Format *format, char **f) {
    int level = atoi(f[1]);
    uint32_t selected, bits = (uint32_t)strtoul(f[2], NULL, 16);
    if (level >= format->levels) return 0;
    return has_value(format->level[level].code, number_of(format, level, bits, &selected), f[4]);
}

/* name a b -> sum exponent, times the square of the divisor */
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
    for (int i = 0; i < format->block; i++) add_product(&sum, values[0][i], values[1][i]);
    int exponent = write(&sum, text);
    return !strcmp(text, f[4]) && exponent == atoi(f[5]);
}

/* The bits of a block alone, and those of the scales and zero points before all blocks. */
static void sizes_of(const Format *format, int *block, int *outer) {
    *block = format->block * format->element.bits, *outer = 0;
    for (int k = 0; k < format->levels; k++) {
        Level level = format->level[k];
        if (level.group) *block += format->block / level.group * level.code.bits;
        else *outer += level.code.bits + (format->element.kind == UNSIGNED ? 8 : 0);
    }
}

/* name rounding nonfinite [rows] values -> packed fp32 */
static int check_encode(const Format *format, char **f) {
    static uint8_t packed[BYTES], block[BYTES], own[BYTES];
    Number x[LARGEST_BLOCK];
    Code fp32 = FP32;
    int tiles = format->rows > 1, rows = tiles ? atoi(f[3]) : 1;
    int bits, outer, size = parse_bytes(f[5 + tiles], packed), right = 1;
    int exact = format->level[0].code.kind == EXPONENT && !tiles; /* others are decoded alone */
    char *values = f[3 + tiles], *decoded = f[6 + tiles];
    int row_values = 1;
    for (char *c = values; *c; c++) row_values += *c == ',';
    row_values /= rows;
    sizes_of(format, &bits, &outer);
    int columns = (row_values + format->block - 1) / format->block, length = (bits + 7) / 8;
    int scales = tiles ? (rows + format->rows - 1) / format->rows * columns : 1;
    int at = (outer /= 8) * scales;
    for (int k = 0; k < rows * columns && right; k++, at += length) {
        int count = 0, left = row_values - k % columns * format->block;
        int scale = tiles ? k / columns / format->rows * columns + k % columns : 0;
        if (at + length > size) return 0;
        for (; count < format->block && count < left; count++, values += *values == ',')
            x[count] = float_value(fp32, (uint32_t)strtoul(values, &values, 16));
        for (int i = count; i < format->block; i++) x[i] = number(0, 0, 0);
        memset(own, 0, (size_t)length);
        if (exact) {
            encode_block(format, x, !strcmp(f[1], "nearest"), !strcmp(f[2], "propagate"), own);
            right = !memcmp(own, packed + at, (size_t)length);
        }
        memcpy(block, packed + scale * outer, (size_t)outer);
        memcpy(block + outer, packed + at, (size_t)length);
        values_of(format, block, x);
        for (int i = 0; i < count; i++, decoded += *decoded == ',')
            right &= fp32_of(over(x[i], divisor_of(format))) == strtoul(decoded, &decoded, 16);
    }
    return right && at == size && !*decoded;
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
        int cases[4], failed = 0;
        failed += check_file(arguments[1], format, "elements.txt", 4, check_element, &cases[0]);
        failed += check_file(arguments[1], format, "scales.txt", 5, check_scale, &cases[1]);
        int fields = 7 + (format->rows > 1);
        failed += check_file(arguments[1], format, "encode.txt", fields, check_encode, &cases[2]);
        failed += check_file(arguments[1], format, "dot.txt", 6, check_dot, &cases[3]);
        printf("%s: %d elements, %d scales, %d arrays, %d dot products, %d fail\n", format->name,
               cases[0], cases[1], cases[2], cases[3], failed);
        failures += failed;
    }
    return failures > 0;
}
