// Exact arithmetic. A fraction {n, d} has BigInts, d > 0; a value adds a sign, infinities and NaN.
"use strict";

const ZERO = { n: 0n, d: 1n };
const ONE = { n: 1n, d: 1n };

function power(exponent) {
  const size = 1n << BigInt(Math.abs(exponent));
  return exponent < 0 ? { n: 1n, d: size } : { n: size, d: 1n };
}

const whole = (count) => ({ n: BigInt(count), d: 1n });
const times = (x, y) => ({ n: x.n * y.n, d: x.d * y.d });
const over = (x, y) => ({ n: x.n * y.d, d: x.d * y.n });
const plus = (x, y) => ({ n: x.n * y.d + y.n * x.d, d: x.d * y.d });
const minus = (x, y) => ({ n: x.n * y.d - y.n * x.d, d: x.d * y.d });
const below = (x, y) => x.n * y.d < y.n * x.d;
const least = (x, y) => (below(x, y) ? x : y);
const most = (x, y) => (below(x, y) ? y : x);
const clamp = (x, low, high) => Math.min(Math.max(x, low), high);

function bitLength(n) {
  const digits = n.toString(16);
  return 4 * digits.length - Math.clz32(parseInt(digits[0], 16)) + 28;
}

// floor(log2 x) and ceil(log2 x) of x > 0.
function floorLog2(x) {
  const guess = bitLength(x.n) - bitLength(x.d);
  return below(x, power(guess)) ? guess - 1 : guess;
}

const ceilLog2 = (x) => -floorLog2({ n: x.d, d: x.n });

// The whole number that x >= 0 is rounded to: "away" is to the nearest, halves up; `word` is the
// random integer of `bits` bits.
function rounded(x, rounding, word = 0, bits = 0) {
  const floor = x.n / x.d;
  if (rounding === "toward_zero") return floor;
  if (rounding === "stochastic") {
    return ((x.n << BigInt(bits)) / x.d + BigInt(word)) >> BigInt(bits);
  }
  const beyond = 2n * (x.n - floor * x.d) - x.d;
  const up = rounding === "away" || floor % 2n === 1n;
  return floor + (beyond > 0n || (beyond === 0n && up) ? 1n : 0n);
}

// Codes of magnitudes: floating-point numbers and elements have `emin`, `fractionBits` and
// `divisor`. From 2^emin on, the step between codes grows with the binade. The exponent field there
// is `first`: 0 without subnormal numbers, and so without a zero.
function magnitudeCode(x, kind, how = "nearest", word = 0, bits = 0) {
  const rounding = how === "nearest" && kind.tiesAway ? "away" : how;
  if (x.n === 0n) return Number(rounded(x, rounding, word, bits));
  const binade = Math.max(floorLog2(x), kind.emin);
  const step = over(power(binade - kind.fractionBits), whole(kind.divisor));
  const count = rounded(over(x, step), rounding, word, bits);
  const field = BigInt(binade - kind.emin - (kind.first === 0 ? 1 : 0));
  const code = (field << BigInt(kind.fractionBits)) + count;
  return code > BigInt(kind.largestCode) ? kind.largestCode + 1 : Number(code);
}

const heldCode = (x, kind, ...how) => Math.min(magnitudeCode(x, kind, ...how), kind.largestCode);

// The magnitude of a code up to the largest one.
function magnitudeOf(code, kind) {
  const first = kind.fixed ? 1 : kind.first;
  const field = kind.fixed ? 1 : Math.max(Math.floor(code / 2 ** kind.fractionBits), first);
  const significand = BigInt(code - (field - 1) * 2 ** kind.fractionBits);
  const step = over(power(kind.emin - kind.fractionBits + field - first), whole(kind.divisor));
  return times({ n: significand, d: 1n }, step);
}

// A floating-point format from its description, as elements have them too.
function floatKind(description) {
  const { exponent_bits, fraction_bits, specials, exponent_bias, signed, subnormals } = description;
  const oneZero = ["fnuz", "inuz"].includes(specials);
  const bias = exponent_bias ?? 2 ** (exponent_bits - 1) - (oneZero ? 0 : 1);
  const signBit = 2 ** (exponent_bits + fraction_bits);
  const top = (2 ** exponent_bits - 1) * 2 ** fraction_bits;
  const [last, one] = [signBit - 1, oneZero && signed ? signBit : signBit - 1];
  const infinity = { ieee: top, inuz: signed ? last : last - 1 }[specials] ?? null;
  const nan = { ieee: top + 2 ** (fraction_bits - 1), nan: last, fnuz: one, inuz: one }[specials] ?? null;
  return {
    width: signed + exponent_bits + fraction_bits,
    signBit,
    first: subnormals ? 1 : 0,
    emin: (subnormals ? 1 : 0) - bias,
    fractionBits: fraction_bits,
    divisor: 1,
    fixed: false,
    largestCode: infinity !== null ? infinity - 1 : nan === last ? last - 1 : last,
    infinity,
    nan,
  };
}

const IEEE = { specials: "ieee", exponent_bias: null, signed: true, subnormals: true };
const FP32 = floatKind({ ...IEEE, exponent_bits: 8, fraction_bits: 23 });
const BF16 = floatKind({ ...IEEE, exponent_bits: 8, fraction_bits: 7 });
const FP64 = floatKind({ ...IEEE, exponent_bits: 11, fraction_bits: 52 });
const FP32_LARGEST = magnitudeOf(FP32.largestCode, FP32);

// fp32(x) of a magnitude, at most the largest finite value.
const fp32 = (x) => magnitudeOf(heldCode(x, FP32), FP32);
const bf16 = (x) => magnitudeOf(heldCode(x, BF16), BF16);

// The value of a double: {negative, kind: "number", magnitude}, or kind "infinity" or "nan".
function valueOf(double) {
  const negative = double < 0 || Object.is(double, -0);
  if (Number.isNaN(double)) return { negative: false, kind: "nan", magnitude: ZERO };
  if (Math.abs(double) >= 2 ** 128) return { negative, kind: "infinity", magnitude: ZERO };
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, Math.abs(double));
  const pattern = view.getBigUint64(0);
  const field = Number(pattern >> 52n);
  const fraction = pattern & ((1n << 52n) - 1n);
  const significand = field ? fraction + (1n << 52n) : fraction;
  const magnitude = times({ n: significand, d: 1n }, power(Math.max(field, 1) - 1075));
  return { negative, kind: "number", magnitude };
}

// Pattern of a value in FP32: rounded once to nearest even, at most the largest finite value.
function fp32Pattern({ negative, kind, magnitude }) {
  if (kind === "nan") return FP32.nan;
  const code = kind === "infinity" ? FP32.infinity : heldCode(magnitude, FP32);
  return negative ? FP32.signBit + code : code;
}

function doubleOf(pattern) {
  const view = new DataView(new ArrayBuffer(4));
  view.setUint32(0, pattern);
  return view.getFloat32(0);
}
