/* AXS-6 blocks in integer arithmetic, and a check of them against the files in vectors/.

   cc -std=c99 -O2 examples/check_vectors.c -o check_vectors
   ./check_vectors vectors

   Above "The check": reading packed blocks of every mode, decoding them to FP32 and BF16, and
   encoding FP32, BF16 and FP16 to dense blocks, rounded to nearest. docs/format.md says what is
   computed, docs/vectors.md what is in the files. Exit status: 0 if all cases pass, 1 if one
   fails, 2 if a file cannot be read. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DENSE, SPARSE, HIGH_PRECISION, RESERVED };
enum { LARGEST_BLOCK = 32, HEADER_BITS = 16, CODE_BITS = 6 };

typedef struct {
    int exponent, config;
    int codes[LARGEST_BLOCK];
} Block;

typedef struct {
    int fraction_bits, width;
} Format;

static const Format FP32 = {23, 32}, BF16 = {7, 16};

static int bit_length(uint32_t x) {
    int length = 0;
    for (; x; x >>= 1) length++;
    return length;
}

static int magnitude_bits(int config, int index) {
    return config != HIGH_PRECISION ? 5 : index % 2 ? 4 : 6;
}

/* ---- Packed blocks ---- */

static unsigned bits_at(const uint8_t *bytes, int position, int width) {
    unsigned value = 0;
    for (int i = 0; i < width; i++, position++)
        value |= (unsigned)(bytes[position / 8] >> position % 8 & 1) << i;
    return value;
}

/* Reads one block. Returns NULL and the block's length in bytes, or the name of what is wrong. */
static const char *unpack(const uint8_t *bytes, int available, int size, int align, Block *block,
                          int *length) {
    if (available == 0) return "truncated";
    block->config = (int)bits_at(bytes, 0, 2);
    if (block->config == RESERVED) return "reserved";
    int sparse = block->config == SPARSE, stored = sparse ? size * 3 / 4 : size;
    int position = HEADER_BITS + (sparse ? size : 0), end = position + stored * CODE_BITS;
    *length = (end + 8 * align - 1) / (8 * align) * align;
    if (available < *length) return "truncated";
    if (bits_at(bytes, 10, 6)) return "header";
    block->exponent = (int)bits_at(bytes, 2, 8);
    int kept = 0;
    for (int i = 0; i < size; i++) {
        int width = magnitude_bits(block->config, i) + 1;
        if (sparse && !bits_at(bytes, HEADER_BITS + i, 1)) width = 0;
        if (width && ++kept > stored) return "mask";
        block->codes[i] = (int)bits_at(bytes, position, width);
        position += width;
    }
    if (kept != stored) return "mask";
    for (int i = 0, left_out = 0; sparse && left_out < size / 4; i++) {
        if (!bits_at(bytes, HEADER_BITS + i, 1)) left_out++;
        else if (block->codes[i] % 32 == 0) return "mask";
    }
    for (; position < *length * 8; position++)
        if (bits_at(bytes, position, 1)) return "padding";
    return NULL;
}

/* Writes a dense block; returns its length. */
static int pack_dense(const Block *block, int size, uint8_t *bytes) {
    int length = (HEADER_BITS + size * CODE_BITS) / 8, position = HEADER_BITS;
    memset(bytes, 0, (size_t)length);
    bytes[0] = (uint8_t)(block->exponent << 2);
    bytes[1] = (uint8_t)(block->exponent >> 6);
    for (int i = 0; i < size; i++)
        for (int k = 0; k < CODE_BITS; k++, position++)
            bytes[position / 8] |= (uint8_t)((block->codes[i] >> k & 1) << position % 8);
    return length;
}

/* ---- Decoding: m / (2^n - 1) * 2^(exponent - 127), rounded once ---- */

static uint32_t decode(int exponent, int code, int n, Format format) {
    int largest = (1 << n) - 1, magnitude = code & largest;
    uint32_t sign = (uint32_t)(code >> n) << (format.width - 1);
    if (magnitude == 0) return sign;
    /* The exponent of the quotient's leading bit, and the exponent field of the result. */
    int leading = magnitude == largest ? 0 : bit_length((uint32_t)magnitude) - n - 1;
    int field = exponent + leading;
    int shift = field >= 1 ? format.fraction_bits - leading : exponent + format.fraction_bits - 1;
    /* There is never a tie, so half up is nearest. */
    uint64_t doubled = ((uint64_t)magnitude << (shift + 1)) / (uint64_t)largest;
    uint32_t pattern = (uint32_t)((doubled + 1) / 2);
    if (field >= 1) pattern += (uint32_t)(field - 1) << format.fraction_bits;
    uint32_t limit = ((uint32_t)255 << format.fraction_bits) - 1;
    return sign | (pattern < limit ? pattern : limit);
}

/* ---- Encoding FP32 patterns to a dense block, rounded to nearest ---- */

static int is_special(uint32_t bits) { return (bits >> 23 & 255) == 255; }
static int is_infinite(uint32_t bits) { return (bits & 0x7fffffff) == 0x7f800000; }

/* A finite value that is not 0 as significand * 2^(field - 150), its 24 bits beginning with a 1. */
static uint32_t significand(uint32_t bits, int *field) {
    uint32_t fraction = bits & 0x7fffff;
    *field = (int)(bits >> 23 & 255);
    if (*field) return fraction | 0x800000;
    *field = 1 - (24 - bit_length(fraction));
    return fraction << (1 - *field);
}

/* Returns whether a value was NaN or infinite. */
static int encode(const uint32_t *values, int size, Block *block) {
    int invalid = 0, field;
    block->config = DENSE;
    block->exponent = 0;
    for (int i = 0; i < size; i++) {
        invalid |= is_special(values[i]);
        if (is_special(values[i]) || !(values[i] & 0x7fffffff)) continue;
        significand(values[i], &field);
        if (field + 1 > block->exponent) block->exponent = field + 1;
    }
    for (int i = 0; i < size; i++)
        if (is_infinite(values[i])) block->exponent = 255;
    for (int i = 0; i < size; i++) {
        int sign = (int)(values[i] >> 31) << 5;
        block->codes[i] = is_infinite(values[i]) ? sign | 31 : 0;
        if (is_special(values[i]) || !(values[i] & 0x7fffffff)) continue;
        uint32_t product = 31 * significand(values[i], &field);
        int shift = block->exponent - field + 23;
        uint32_t magnitude = shift > 30 ? 0 : (product + (1u << (shift - 1))) >> shift;
        block->codes[i] = sign | (int)magnitude;
    }
    return invalid;
}

static uint32_t fp16_to_fp32(uint32_t bits) {
    uint32_t sign = (bits & 0x8000) << 16, field = bits >> 10 & 31, fraction = bits & 0x3ff;
    if (field == 31) return sign | 0x7f800000 | fraction << 13;
    if (field) return sign | (field + 112) << 23 | fraction << 13;
    if (!fraction) return sign;
    int shift = 11 - bit_length(fraction);
    return sign | (uint32_t)(113 - shift) << 23 | (fraction << shift & 0x3ff) << 13;
}

/* ---- The check ---- */

enum { LINE = 8192, FIELDS = 16, BYTES = LINE / 2 };
enum outcome { PASS, FAIL, SKIP };

static int parse_patterns(const char *word, uint32_t *values) {
    int count = 0;
    for (char *end; count < LARGEST_BLOCK; word = end + 1) {
        values[count++] = (uint32_t)strtoul(word, &end, 16);
        if (*end != ',') break;
    }
    return count;
}

static int parse_bytes(const char *word, uint8_t *bytes) {
    int length = (int)strlen(word) / 2;
    for (int i = 0; i < length; i++) {
        char digits[3] = {word[2 * i], word[2 * i + 1], 0};
        bytes[i] = (uint8_t)strtoul(digits, NULL, 16);
    }
    return length;
}

static int same_codes(const Block *block, const char *word, int size) {
    uint32_t codes[LARGEST_BLOCK];
    if (parse_patterns(word, codes) != size) return 0;
    for (int i = 0; i < size; i++)
        if ((uint32_t)block->codes[i] != codes[i]) return 0;
    return 1;
}

/* name block dtype rounding mode values -> exponent config codes packed invalid */
static enum outcome check_encode(char **f) {
    if (strcmp(f[3], "nearest") || strcmp(f[4], "dense")) return SKIP;
    int size = atoi(f[1]);
    uint32_t values[LARGEST_BLOCK];
    uint8_t packed[BYTES], expected[BYTES];
    if (parse_patterns(f[5], values) != size) return FAIL;
    for (int i = 0; i < size; i++) {
        if (!strcmp(f[2], "bf16")) values[i] <<= 16;
        if (!strcmp(f[2], "fp16")) values[i] = fp16_to_fp32(values[i]);
    }
    Block block;
    int invalid = encode(values, size, &block), length = pack_dense(&block, size, packed);
    int same = block.exponent == atoi(f[7]) && block.config == atoi(f[8]) &&
               same_codes(&block, f[9], size) && parse_bytes(f[10], expected) == length &&
               !memcmp(packed, expected, (size_t)length) && invalid == atoi(f[11]);
    return same ? PASS : FAIL;
}

/* name block align packed -> exponent config codes fp32 bf16 fp64 */
static enum outcome check_decode(char **f) {
    int size = atoi(f[1]), align = atoi(f[2]), length;
    uint8_t packed[BYTES];
    uint32_t fp32[LARGEST_BLOCK], bf16[LARGEST_BLOCK];
    Block block;
    int available = parse_bytes(f[3], packed);
    if (unpack(packed, available, size, align, &block, &length) || length != available) return FAIL;
    if (block.exponent != atoi(f[5]) || block.config != atoi(f[6])) return FAIL;
    if (!same_codes(&block, f[7], size)) return FAIL;
    if (parse_patterns(f[8], fp32) != size || parse_patterns(f[9], bf16) != size) return FAIL;
    for (int i = 0; i < size; i++) {
        int n = magnitude_bits(block.config, i);
        if (decode(block.exponent, block.codes[i], n, FP32) != fp32[i]) return FAIL;
        if (decode(block.exponent, block.codes[i], n, BF16) != bf16[i]) return FAIL;
    }
    return PASS;
}

/* name block align count packed -> fault number */
static enum outcome check_unpack(char **f) {
    int size = atoi(f[1]), align = atoi(f[2]), count = atoi(f[3]), start = 0, length, number;
    uint8_t packed[BYTES];
    const char *fault = NULL;
    Block block;
    int available = parse_bytes(f[4], packed);
    for (number = 0; number < count; number++, start += length) {
        fault = unpack(packed + start, available - start, size, align, &block, &length);
        if (fault) break;
    }
    if (!fault) fault = start < available ? "trailing" : "none";
    return !strcmp(fault, f[6]) && number == atoi(f[7]) ? PASS : FAIL;
}

static int split(char *line, char **fields) {
    int count = 0;
    for (char *word = strtok(line, " \n"); word && count < FIELDS; word = strtok(NULL, " \n"))
        fields[count++] = word;
    return count;
}

/* Returns the number of cases that fail; ends the program if the file is not as expected. */
static int check_file(const char *folder, const char *name, int fields,
                      enum outcome (*check)(char **)) {
    static char line[LINE];
    char path[LINE], *found[FIELDS];
    int counts[] = {0, 0, 0}, number = 0;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "r");
    if (!file) {
        fprintf(stderr, "check_vectors: cannot read %s\n", path);
        exit(2);
    }
    while (fgets(line, sizeof line, file)) {
        number++;
        if (line[0] == '#') continue;
        if (!strchr(line, '\n') || split(line, found) != fields) {
            fprintf(stderr, "check_vectors: %s:%d does not have %d fields\n", path, number, fields);
            exit(2);
        }
        enum outcome outcome = check(found);
        counts[outcome]++;
        if (outcome == FAIL) printf("%s:%d: %s fails\n", name, number, found[0]);
    }
    fclose(file);
    printf("%s: %d pass, %d fail, %d skipped\n", name, counts[PASS], counts[FAIL], counts[SKIP]);
    if (counts[PASS] + counts[FAIL] == 0) {
        fprintf(stderr, "check_vectors: %s has no cases\n", path);
        exit(2);
    }
    return counts[FAIL];
}

int main(int count, char **arguments) {
    if (count != 2) {
        fprintf(stderr, "check_vectors: needed: check_vectors FOLDER\n");
        return 2;
    }
    int failures = check_file(arguments[1], "encode.txt", 12, check_encode);
    failures += check_file(arguments[1], "decode.txt", 11, check_decode);
    failures += check_file(arguments[1], "unpack.txt", 8, check_unpack);
    return failures > 0;
}
