"""Mutants of Python sources that no test can tell from the source, with the reasons."""

from collections.abc import Mapping

_PATH = "the other way gives the same and takes longer"
_MODEL = "return {0, *(each - 1 for each in solver.get_model() if each > 0)} if found else set()"
_PIECES = "work is cut into other pieces, which give the same"
_LARGEST = "so large a value has the largest magnitude in both elements"
_NO_GAIN = "a gain of 1 makes the size count nothing"
_ONE = "there is one entry, the first and the last"
_ZERO_FIRST = "a sum of 0 is asked before"
_ANY_SIZE = "NumPy takes any negative size for the one that follows"

EQUAL: Mapping[str, Mapping[tuple[str, str], str]] = {
    "golden/bits.py": {
        ("pack_codes: 8 becomes 9 (1)", "if even == odd == 8:"): _PATH,
        ("unpack_codes: 8 becomes 9 (1)", "if even == odd == 8:"): _PATH,
        (
            "_steps: 64 becomes 63 (2)",
            "lanes = sum(1 << lane for lane in range(0, 64, 2 * half))",
        ): "the last lane begins further below",
    },
    "golden/choice.py": {
        (
            "choose: 1 becomes 0 (1)",
            "for codes in candidates[1:]:",
        ): "the first candidate is not better than itself",
        (
            "_in_units: 63 becomes 64 (1)",
            "kept = product >> np.clip(right, 0, 63).astype(np.uint64)",
        ): "so small a value has the code of 0, by which it is multiplied",
    },
    "golden/check/comparison.py": {
        (
            "as_exact: 1 becomes 2 (1)",
            "codes = blocks.codes.reshape(-1, blocks.block).tolist()",
        ): _ANY_SIZE,
    },
    "golden/check/dot.py": {
        (
            "32 becomes 31 (3)",
            "reduction=32, fraction=47, joined=16, wide=True",
        ): "a wide sum is exact, so that steps do not matter",
    },
    "golden/check/decode.py": {
        (
            "decode_all: 64 becomes 65 (2)",
            "exponents = np.repeat(np.arange(256, dtype=np.uint8), 64 // size)",
        ): "65 values make as many blocks",
    },
    "golden/decode.py": {
        (
            "_Rows._add: 1 becomes 2 (1)",
            "scale, groups = level.scale, max(1, codes.shape[1])",
        ): "scales of one group are not spread, and shifts have more",
        (
            "_Rows._exact_in_fp32: condition negated (2)",
            "elif isinstance(scale, Integer):",
        ): "the FP32 scale above an integer one has too many bits alone; with more, " + _PATH,
        (
            "_divided: 0 becomes 1 (1)",
            "unsure |= (np.abs(quotients) < SMALLEST_NORMAL) & (quotients != 0)",
        ): _PATH,
        (
            "_divided: << becomes >> (3)",
            "if divisor < 1 << FRACTION_BELOW:  # of a quotient of 25 bits, the product is exact",
        ): _PATH,
        (
            "_rounded: 0 becomes 1 (1)",
            "mantissa, exponent = np.frexp(np.where(np.isfinite(values), values, 0))",
        ): "what becomes of infinities and NaN is replaced",
        ("rounded: 1 becomes 2 (1)", "if divisor == 1 and dtype in (FP32, FP64):"): _PATH,
    },
    "golden/dot.py": {
        ("_tiles: 1 becomes 2 (2)", "columns = max(1, values // rows)"): _PIECES,
        ("15 becomes 16 (1)", "TILE_TERMS: Final = 1 << 15"): _PIECES,
    },
    "golden/finite.py": {
        (
            "Largest.ratio: << becomes >> (1)",
            "if self.bits is None or top.numerator >= 1 << 7:",
        ): _PATH,
    },
    "golden/floats.py": {
        (
            "_from_float64: 1 becomes 2 (4)",
            "exponent = np.maximum(field, 1) - FP64.bias - FP64.fraction_bits - TOP",
        ): "numbers below 2^-1021 are far below the smallest scale, whatever they are",
    },
    "golden/formats/checks.py": {
        (
            "_check_groups.size: 60 becomes 59 (1)",
            "return {CHANNEL: 2.0**60, TENSOR: 2.0**61}.get(str(level.group))"
            " or float(level.group)",
        ): "only the order of groups counts",
    },
    "golden/formats/selected.py": {
        (
            "0 becomes -1 (2)",
            "IF4: Final = Selected(E2M1, ValueTable((*range(0, 22, 3), None, *range(-21, 0, 3)),"
            " 1, 7))",
        ): "the last value is -3 in both",
    },
    "golden/fp32.py": {
        ("- becomes + (2)", "LOWEST = 1 - FP32.bias - FP32.fraction_bits"): (
            "sums that are shifted by the exponent of a 0 are below 2^-250 and are rounded to 0"
        ),
        (
            "multiply_add: < becomes <= (1)",
            "negative = np.where(total == 0, minus & c_negative, total < 0)",
        ): _ZERO_FIRST,
        (
            "multiply_add: 0 becomes 1 (2)",
            "negative = np.where(total == 0, minus & c_negative, total < 0)",
        ): _ZERO_FIRST,
        (
            "_over: 63 becomes 62 (1)",
            "shift = np.minimum(distance, 63).view(np.uint64)",
        ): "addends have 60 bits",
        (
            "add: 0 becomes -1 (2)",
            "negative = np.where(total == 0, a_negative & b_negative, total < 0)",
        ): "a sum that cancels has lost no bits, and is no -1 in units so far below",
        (
            "divide_by_scale: != becomes == (1)",
            "result = round_to_fp32(negative, quotient, exponent, remainder != 0)",
        ): "exact quotients are FP32 numbers, and others are further than 2^-36 from a tie",
    },
    "golden/hadamard.py": {
        (
            "hadamard_bits: 63 becomes 62 (1)",
            "distance = np.minimum(top - exponent, 63).astype(np.uint64)",
        ): "numbers have 32 bits",
    },
    "golden/kulisch.py": {
        ("31 becomes 32 (1)", "PART_BITS = 31"): _PIECES,
        (
            "KulischAccumulator.quotient: 0 becomes 1 (4)",
            "sign = np.where(negative, np.uint32(FP32.sign_bit), np.uint32(0))",
        ): "an infinity or NaN times any number of this sign is the same",
    },
    "golden/lfsr.py": {
        (
            "_step: 1 becomes 2 (3)",
            "columns = np.uint32(1) << np.arange(1, LFSR_BITS + 1, dtype=np.uint64)"
            " & np.uint64(PERIOD)",
        ): "one column more is 0",
        ("lane_seeds: 0 becomes -1 (1)", "states[lane] = state[0]"): _ONE,
    },
    "golden/metrics.py": {
        (
            "qsnr_bound: 1 becomes 0 (3)",
            "gain, size = (4 ** shifts[0].scale.largest_code, int(shifts[0].group))"
            " if shifts else (1, 1)",
        ): _NO_GAIN,
        (
            "qsnr_bound: 1 becomes 2 (3)",
            "gain, size = (4 ** shifts[0].scale.largest_code, int(shifts[0].group))"
            " if shifts else (1, 1)",
        ): _NO_GAIN,
        (
            "qsnr_bound: 0 becomes -1 (2)",
            "gain, size = (4 ** shifts[0].scale.largest_code, int(shifts[0].group))"
            " if shifts else (1, 1)",
        ): _ONE,
    },
    "golden/profile.py": {
        (
            "_transformer_engine: 1 becomes 2 (1)",
            "power = PowerScale(rule=Rule.RCEIL, reciprocal=True, lowest=Fraction(1))",
        ): "under so small a scale all codes are those of 0, whatever divides",
    },
    "golden/levels.py": {
        (
            "RowEncoder._exponents: > becomes >= (1)",
            "if x.bits is None or len(levels) > 2:",
        ): _PATH,
    },
    "golden/modes.py": {
        ("check_modes: and becomes or (2)", "if top > int(most.min()) and here.any():"): _PATH,
        (
            "check_modes: 0 becomes 1 (2)",
            "top = int(codes.max(initial=0))",
        ): "1 is a code of every mode",
    },
    "golden/operands.py": {
        ("62 becomes 61 (1)", "INTEGER_BITS = 62"): _PATH,
    },
    "golden/pack.py": {
        ("pack: 0 becomes -1 (1)", "return parts[0][1].tobytes()"): _ONE,
    },
    "golden/quantise.py": {
        ("Quantiser.magnitudes: 1 becomes 0 (4)", "if element.divisor > 1:"): _PATH,
        (
            "255 becomes 256 (1)",
            "FULL_FIELD = 255",
        ): "zeros are shifted by more than all of their bits either way",
        (
            "Quantiser.wide_magnitudes: 20 becomes 21 (1)",
            "below = base[:, None] - np.where(x.significand != 0, x.exponent + 63, -(1 << 20))",
        ): "zeros are as far below every scale either way",
    },
    "golden/rows.py": {
        (
            "_unreadable: 0 becomes -1 (2)",
            "mode, header = rows[:, 0] & MODE_MASK,"
            ' rows[:, :HEADER_BYTES].copy().view("<u2")[:, 0]',
        ): _ONE,
    },
    "golden/scale_factor.py": {
        (
            "+ becomes - (1)",
            "SIGNIFICAND_BITS = 2 * (FP32.fraction_bits + 1)",
        ): "44 bits have as many parts of 20 as 48",
        (
            "ScaleFactor.one: 0 becomes -1 (2)",
            "return cls(ones, ones * 0, ones == 0)",
        ): "1 is neither",
    },
    "golden/scaling.py": {
        (
            "wide_max: 0 becomes -1 (3)",
            "return magnitudes(largest, np.where(largest != 0, top, 0))",
        ): "the exponent of 0 counts nowhere",
        (
            "rounded_sum: 0 becomes -1 (2)",
            "distance = np.where(small != 0, exponent - other, 0).astype(np.uint64)",
        ): "0 is shifted, and stays 0",
        (
            "integer_scales: 63 becomes 62 (1)",
            "first = np.clip(below - room, 0, 63).astype(np.uint64)",
        ): "the numerator is below the denominator either way",
    },
    "golden/selection.py": {
        (
            "_pairs: 1 becomes 2 (1)",
            "some = Finite(x.bits.reshape(-1, 1)[unsure], None)",
        ): _ANY_SIZE,
        (
            "_merits: 1 becomes 2 (1)",
            "first, second = np.abs(element.integers).reshape(2, -1)",
        ): _ANY_SIZE,
        (
            "selects: 1 becomes 2 (2)",
            "most = float((1 << element.integer_bits + 1 + MERIT_FRACTION) - 1)",
        ): _LARGEST,
        (
            "selects: 1 becomes 2 (3)",
            "most = float((1 << element.integer_bits + 1 + MERIT_FRACTION) - 1)",
        ): _LARGEST,
        (
            "selects: - left out (1)",
            "exact = selection_bits(element, wide.shape[-1]) <= FLOAT64_BITS",
        ): "there are two axes",
        (
            "selects: condition negated (2)",
            'better = np.einsum("ij,ij->i", counts, distance) if exact else'
            " (counts * distance).sum(1)",
        ): _PATH,
    },
    "golden/sums.py": {
        (
            "_own_term: 0 becomes 1 (2)",
            "more = max(accumulator.fraction - FP32.fraction_bits, 0)",
        ): "one bit more of 0 is dropped again",
        (
            "with_infinities: <= becomes < (1)",
            "if highest <= FP32.bias + 1:",
        ): _PATH,
    },
    "golden/tables.py": {
        (
            "63 becomes 64 (1)",
            "LARGE = np.uint64((1 << 63) - 1)",
        ): "so large a count is beyond every entry either way",
        (
            "ladder: > becomes >= (1)",
            "up = below or (same and beyond == (sign > 0))",
        ): "a sign is 1 or -1",
    },
    "golden/terms.py": {
        (
            "OperandTerms.__init__: == becomes != (1)",
            "self.parts = [x if self._lanes == 1 else x.astype(np.float64) for x in parts]",
        ): _PATH,
        (
            "OperandTerms.__init__: 1 becomes 0 (4)",
            "self.parts = [x if self._lanes == 1 else x.astype(np.float64) for x in parts]",
        ): _PATH,
        (
            "products_of_digits: 0 becomes -1 (2)",
            "digits[i + j] = product if i == 0 or j == len(right) - 1 else digits[i + j] + product",
        ): "digits begin as 0, to which a product may be added",
    },
    "golden/vectors/decoding.py": {
        (
            "decode_by_golden: 0 becomes -1 (2)",
            "head = int(found.exponents[0]), int(found.modes[0]), found.codes[0].tolist()",
        ): _ONE,
    },
    "golden/vectors/encoding.py": {
        (
            "_mode_cases: 32 becomes 33 (1)",
            "for values in directed.precise_thresholds(KINDS[form], 32, 127):",
        ): "values come in pairs",
    },
    "proof/aig.py": {
        ("Graph.both: > becomes >= (1)", "if a > b:"): "equal literals are exchanged",
        ("Graph.supports: 0 becomes -1 (1)", "found = [0] * len(self)"): "each is replaced",
        (
            "Graph.cuts: & becomes | (2)",
            "if supports[node] & others and supports[node] & ~others:",
        ): "nodes that depend on those kinds alone have no nodes in their cut",
        ("_number: 127 becomes 126 (1)", "while value > 0x7F:"): "127 may have two bytes",
    },
    "proof/solver.py": {
        (f"answer: {change} (1)" if ">" in change else f"answer: {change} (2)", _MODEL): reason
        for change, reason in (
            ("> becomes >=", "a model has no variable 0"),
            ("0 becomes -1", "a model has no variable 0"),
            ("0 becomes 1", "variable 1 is that of node 0, which is there anyway"),
        )
    },
}
"""For each source: why the mutant with a key, in a line, is equal."""
