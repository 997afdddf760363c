// Block formats: what a description (data, as the catalog has it) means, and strings that say one.
"use strict";

// An element: its codes, and what `magnitudeCode` and `magnitudeOf` need.
function elementKind(description) {
  const kinds = { sign_magnitude: signMagnitude, twos_complement: twosComplement };
  const make = { ...kinds, unsigned, float: floatElement, table, selected }[description.kind];
  const usual = { infinity: null, nan: null, signed: true, complement: false, entries: null, zero: 0, parts: null };
  const kind = { ...usual, ...make(description) };
  kind.largest ??= magnitudeOf(kind.largestCode, kind);
  const top = floorLog2(kind.largest);
  kind.emax = below(power(top), kind.largest) ? top : top - 1;
  kind.unitExponent ??= kind.emin - kind.fractionBits;
  kind.precision = kind.fixed ? bitLength(BigInt(kind.largestCode ?? 0)) - 1 : kind.fractionBits;
  return kind;
}

function signMagnitude({ magnitude_bits, unit_exponent, full_scale, signed_zero, ties_away }) {
  const signBit = 2 ** magnitude_bits;
  const fractionBits = full_scale ? 0 : magnitude_bits - 1;
  return {
    width: magnitude_bits + 1,
    signBit,
    largestCode: signBit - 1,
    emin: unit_exponent + fractionBits,
    fractionBits,
    divisor: full_scale ? signBit - 1 : 1,
    fixed: true,
    tiesAway: ties_away,
    signedZero: signed_zero,
    fields: [["sign", 1], ["magnitude", magnitude_bits]],
  };
}

function twosComplement({ bits, unit_exponent, ties_away }) {
  return {
    width: bits,
    signBit: 2 ** (bits - 1),
    largestCode: 2 ** (bits - 1) - 1,
    emin: unit_exponent + bits - 2,
    fractionBits: bits - 2,
    divisor: 1,
    fixed: true,
    tiesAway: ties_away,
    complement: true,
    signedZero: false,
    fields: [["magnitude", bits]],
  };
}

function unsigned({ bits }) {
  return {
    width: bits,
    signBit: 0,
    largestCode: 2 ** bits - 1,
    emin: bits - 1,
    fractionBits: bits - 1,
    divisor: 1,
    fixed: true,
    signed: false,
    signedZero: false,
    fields: [["magnitude", bits]],
  };
}

// A value for each code; `sides` has the ones that are written, from 0 up and from 0 down.
function table({ counts, unit_exponent, over: divisor }) {
  const unit = over(power(unit_exponent), whole(divisor));
  const entries = counts.map((count, code) => ({
    code,
    written: count !== null,
    negative: count < 0,
    magnitude: times(whole(Math.abs(count ?? 0)), unit),
  }));
  const side = (sign) =>
    entries
      .filter(({ code, written }) => written && sign * counts[code] >= 0)
      .sort((x, y) => sign * (counts[x.code] - counts[y.code]));
  const sides = [side(1), side(-1)];
  const width = Math.log2(counts.length);
  return {
    width,
    divisor,
    unitExponent: unit_exponent,
    signBit: 0,
    entries,
    sides,
    largest: sides.map((each) => each[each.length - 1].magnitude).reduce(most),
    zero: counts.indexOf(0),
    fixed: true,
    signedZero: false,
    fields: [["magnitude", width]],
  };
}

// Two elements, of which a scale selects one; `unit` is that in which their errors are compared.
function selected({ parts }) {
  const kinds = parts.map(elementKind);
  const [first] = kinds;
  const divisor = Math.max(...kinds.map((kind) => kind.divisor));
  const unit = over(power(Math.min(...kinds.map((kind) => kind.unitExponent))), whole(divisor));
  const top = bitLength(over(first.largest, unit).n / over(first.largest, unit).d);
  const { width, zero, largest } = first;
  const fields = [["magnitude", width]];
  return { width, zero, largest, parts: kinds, unit, bound: power(top + 1), fixed: true, signBit: 0, signedZero: false, fields };
}

function floatElement(description) {
  const { exponent_bits, fraction_bits } = description;
  const fields = [["sign", 1], ["exponent", exponent_bits], ["magnitude", fraction_bits]];
  const kind = floatKind(description);
  return { ...kind, signedZero: kind.nan !== kind.signBit, fields };
}

// A scale: the width of its codes, its factors, and its code for NaN, if it has one.
function scaleKind(level) {
  if (level.kind === "exponent") {
    const nan = level.nan ? 2 ** level.bits - 1 : null;
    const largestCode = 2 ** level.bits - (level.nan ? 2 : 1);
    return { bits: level.bits, bias: 2 ** (level.bits - 1) - 1, largestCode, nan };
  }
  if (level.kind === "real") {
    const dtype = floatKind(level.dtype);
    const { width: bits, nan } = dtype;
    return { bits, dtype, nan, largest: magnitudeOf(dtype.largestCode, dtype), selector: level.selector };
  }
  const largestCode = 2 ** level.bits - 1;
  return { bits: level.bits, largestCode, nan: null, largest: whole(largestCode) };
}

// The factor of a scale's code, null for NaN.
function factorOf(code, level, kind) {
  if (kind.selector) code %= 2 ** (kind.bits - 1);
  if (code === kind.nan) return null;
  if (level.kind === "exponent") return power(code - kind.bias);
  if (level.kind === "shift") return power(-code);
  return level.kind === "real" ? magnitudeOf(code, kind.dtype) : whole(code);
}

// Whether a real scale and its reciprocal are rounded to BF16.
const inBf16 = (level) => level.arithmetic.fraction_bits === BF16.fractionBits;

const isBlocked = (level) => typeof level.group === "number";

// What follows from a description {element, levels fine to coarse, modes}.
function formatOf(description) {
  check(description);
  const { element, levels, modes } = description;
  const coarse = [...levels].reverse();
  const blocked = levels.filter(isBlocked);
  const block = blocked.length ? blocked[blocked.length - 1].group : 32;
  const format = {
    description,
    element: elementKind(element),
    levels: coarse,
    scales: coarse.map(scaleKind),
    block,
    header: modes.length > 1,
    zeroPoint: levels.some((level) => level.zero_point),
  };
  format.hasNan = format.element.nan !== null || format.scales.some((scale) => scale.nan !== null);
  const width = format.element.width;
  const bits = coarse.map((level, i) =>
    isBlocked(level)
      ? (format.scales[i].bits + (level.zero_point ? width : 0)) / (level.group * level.rows)
      : 0,
  );
  // The mode of a block takes two bits of its header.
  format.bits = width + bits.reduce((x, y) => x + y, 0) + (format.header ? 2 / block : 0);
  return format;
}

const ORDER = ["shift", "exponent", "integer", "real"];

function needed(condition, message) {
  if (!condition) throw new Error(message);
}

function inRange(name, value, low, high) {
  needed(value >= low && value <= high, `${name} must be from ${low} to ${high}, not ${value}`);
}

// Throws an Error that says why unless a description is one of a format.
function check({ element, levels, modes }) {
  checkElement(element);
  needed(levels.length, "a block format needs at least one level of scales");
  levels.forEach(checkLevel);
  const size = (level) => ({ channel: 2 ** 60, tensor: 2 ** 61 })[level.group] ?? level.group;
  const kinds = levels.map((level) => level.kind);
  levels.slice(1).forEach((level, i) => {
    const grows = size(level) > size(levels[i]);
    needed(grows, `groups must grow from level to level: ${level.group} after ${levels[i].group}`);
    const ordered = ORDER.indexOf(level.kind) >= ORDER.indexOf(kinds[i]);
    needed(ordered, `scales must come in the order ${ORDER.join(", ")}`);
  });
  const count = (kind) => kinds.filter((each) => each === kind).length;
  const exponent = levels.find((level) => level.kind === "exponent");
  needed(count("exponent") < 2, "a block format has at most one exponent scale");
  const above = levels[count("shift")];
  const shifted = above && ["exponent", "real"].includes(above.kind) && isBlocked(above);
  needed(!count("shift") || shifted, "a shift needs an exponent or a real scale of blocks");
  const inBf16s = levels.filter((level) => level.kind === "real" && inBf16(level)).length;
  needed(!inBf16s || count("real") === 1, "a real scale in bf16 must be the only one");
  const even = element.kind === "table" && exponent?.rule === "even";
  needed(!even, "rule even needs elements of one precision, which tables have not");
  const [finest, ...others] = levels;
  const selects = element.kind === "selected";
  const spare = Boolean(finest.selector) === selects && !others.some((level) => level.selector);
  needed(spare && (!selects || isBlocked(finest)), "elements that are selected need a finest scale of blocks that is a real number with a sign bit to spare");
  const plain = count("integer") === 1 && count("real") === 1;
  needed(!count("integer") || plain, "an integer scale needs one real scale above it, and no other");
  const last = levels[levels.length - 1];
  const single = last.kind !== "real" || isSingle(last.dtype);
  needed(!count("integer") || single, "the real scale above an integer scale must be float32");
  const narrow = levels.slice(0, -1).every((x) => x.kind !== "real" || scaleKind(x).bits <= 16);
  needed(narrow, "a real scale under another must have at most 16 bits");
  const points = levels.filter((level) => level.zero_point).length;
  const wanted = element.kind === "unsigned";
  needed(points > 0 === wanted, "unsigned elements, and they alone, need a scale with a zero point");
  needed(!points || levels.length === 1, "a scale with a zero point must be the only one");
  checkTiles(levels);
  const alone = levels.length === 1 && exponent && isBlocked(exponent) && exponent.rows === 1;
  if (modes.length < 2) return;
  needed(alone, "modes need one exponent scale of blocks alone");
  needed([8, 16, 32].includes(last.group), `block must be one of 8, 16, 32, not ${last.group}`);
  const own = Object.entries(MODES_ELEMENT).every(([name, value]) => element[name] === value);
  needed(own, "modes need elements sm6dz");
}

function checkTiles(levels) {
  const tiles = levels.filter((level) => level.rows > 1);
  if (!tiles.length) return;
  const largest = levels.filter(isBlocked).pop();
  needed(
    tiles.length === 1 && tiles[0] === largest,
    "a group of several rows must be the largest one of a fixed size",
  );
  const channel = levels.some((level) => level.group === "channel");
  needed(!channel, "a group of several rows must not lie under a scale of one channel");
  needed(!tiles[0].zero_point, "a scale with a zero point must be of one row");
}

function isSingle(dtype) {
  return Object.entries({ ...SINGLE }).every(([name, value]) => dtype[name] === value);
}

function checkElement(element) {
  if (element.kind === "float") {
    checkFloat(element);
    needed(element.signed, "an element must have a sign; a scale need not");
    const { width, emin, fractionBits, emax } = elementKind(element);
    needed(width <= 8, `an element must have at most 8 bits, not ${width}`);
    const near = emin - fractionBits >= -64 && emax <= 64;
    needed(near, "exponents of an element must be from -64 to 64");
    return;
  }
  if (element.kind === "table") {
    checkTable(element);
    return;
  }
  if (element.kind === "selected") {
    element.parts.forEach(checkElement);
    const [a, b] = element.parts.map(elementKind);
    const alike = a.width === b.width && a.zero === b.zero && !below(a.largest, b.largest) && !below(b.largest, a.largest);
    needed(alike && a.nan === null && b.nan === null, "two elements of a selection must have the same width, largest magnitude and code of 0");
    return;
  }
  const [name, low, high] = {
    sign_magnitude: ["magnitude_bits", 1, 7],
    twos_complement: ["bits", 2, 8],
    unsigned: ["bits", 1, 8],
  }[element.kind];
  inRange(name, element[name], low, high);
  if ("unit_exponent" in element) inRange("unit_exponent", element.unit_exponent, -64, 64);
}

function checkTable({ counts, unit_exponent, over }) {
  const found = counts.filter((count) => count !== null);
  needed([4, 8, 16].includes(counts.length), `a table must have 4, 8, 16 values, not ${counts.length}`);
  needed(new Set(found).size === found.length, "values of a table must differ");
  needed(found.includes(0), "a table must have the value 0");
  const largest = Math.max(...found.map(Math.abs));
  needed(Math.max(...found) > 0 && largest < 2 ** 31, "a table must have a value above 0, and none of 2^31");
  inRange("unit_exponent", unit_exponent, -64, 64);
  const odd = Number.isInteger(Math.log2(over + 1)) && over < 128;
  needed(odd, `the divisor of a table must be 2^n - 1, not ${over}`);
  needed(largest % over === 0, `the largest magnitude of a table must be a multiple of ${over}`);
}

function checkFloat({ exponent_bits, fraction_bits, specials, signed }) {
  needed(signed || specials !== "fnuz", "specials of an unsigned number must be nan, none or inuz");
  inRange("exponent_bits", exponent_bits, 1, 11);
  inRange("fraction_bits", fraction_bits, 1, 52);
}

function checkReal(dtype) {
  checkFloat(dtype);
  const { width, emin, fractionBits, largestCode } = floatKind(dtype);
  const largest = floorLog2(magnitudeOf(largestCode, floatKind(dtype)));
  const within = width <= 16 && emin >= -126 && largest < 128 && largestCode >= 2 ** fractionBits;
  const message = "a real scale must be float32, or have at most 16 bits and its normal numbers";
  needed(isSingle(dtype) || within, message);
}

function checkLevel(level) {
  if (level.kind === "real") {
    checkReal(level.dtype);
    const plain = !inBf16(level) || !(level.zero_point || isSingle(level.dtype));
    needed(plain, "arithmetic of a float32 scale, or one with a zero point, must be fp32");
  }
  const bits = { shift: [1, 4], exponent: [4, 8], integer: [1, 16] }[level.kind];
  if (bits) inRange("bits of a scale", level.bits, ...bits);
  if (!isBlocked(level)) {
    needed(level.rows === 1, `rows are for groups of a fixed size, not for a ${level.group}`);
    const known = ["exponent", "real"].includes(level.kind);
    needed(known, `a shift or integer scale needs blocks, not a ${level.group}`);
    return;
  }
  for (const [name, size] of [["a group", level.group], ["the rows of a tile", level.rows]]) {
    inRange(name, size, 1, 1024);
    needed(Number.isInteger(Math.log2(size)), `${name} must be a power of two, not ${size}`);
  }
}

// Strings: `readFormat` gives the description of a name of the catalog, perhaps with -RULE and _tN,
// or of a string in the grammar of docs/formats.md.
const RULES = ["floor", "ceil", "even", "rceil"];
const SINGLE = { exponent_bits: 8, fraction_bits: 23, ...IEEE };
const DTYPES = {
  float32: SINGLE,
  bfloat16: { ...SINGLE, fraction_bits: 7 },
  float16: { ...SINGLE, exponent_bits: 5, fraction_bits: 10 },
};
const RULE = RULES.join("|");
const N = "(?:0|[1-9][0-9]{0,3})";
const COUNT = "(?:-?(?:0|[1-9][0-9]{0,9}))?";
const PARTS = {
  unsigned: new RegExp(`^uint(${N})$`),
  integer: new RegExp(`^(int|sm|tc)(${N})(d)?(?:q(-?${N}))?(z)?(a)?$`),
  float: new RegExp(`^(u?)e(${N})m([1-9][0-9]?)(?:b(-?${N}))?(fnuz|inuz|fn|f|n)?(?:b(-?${N}))?(h)?$`),
  p3109: new RegExp(`^binary(${N})p(${N})([su])([ef])$`),
  table: new RegExp(`^table(${COUNT}(?::${COUNT})+)(?:d(${N}))?(?:q(-?${N}))?$`),
  exponent: new RegExp(`^e(${N})m0(f|n)?(?:-(${RULE}))?$`),
  factor: new RegExp(`^u(${N})$`),
  tile: new RegExp(`^t(?:(${N})x)?(${N})((?:s${N}o${N})*)$`),
  named: new RegExp(`^([a-z0-9_]+?)(?:-(${RULE}))?(?:_t(?:(${N})x)?(${N}))?$`),
};

function readFormat(text, catalog) {
  const match = PARTS.named.exec(text);
  if (match && Object.hasOwn(catalog, match[1])) return namedFormat(text, match, catalog);
  const parts = text.split("_");
  const modes = parts[parts.length - 1] === "modes" && Boolean(parts.pop());
  const take = (name) => {
    const found = parts.length ? PARTS[name].exec(parts[0]) : null;
    if (found) parts.shift();
    return found;
  };
  const own = Object.hasOwn(catalog, parts[0]) ? catalog[parts[0]].element : null;
  const named = ["table", "selected"].includes(own?.kind) && parts.shift() ? own : null; // an element that has a name
  const pair = /^[^+]+\+[^+]+$/.test(parts[0]) ? parts.shift().split("+") : null;
  const kind = elementName(parts[0]);
  needed(named || pair || kind, `${text}: a name, or an element such as e4m3fn or int8, is needed`);
  const element = named || pair ? null : [kind, take(kind)];
  const levels = [];
  while (parts.length) levels.push(...readLevels(take, parts, text));
  needed(levels.length, `${text}: a scale such as e8m0 or float32 is needed at its end`);
  const either = pair && { kind: "selected", parts: pair.map((part) => readPart(part, levels, catalog)) };
  const made = named ?? either ?? readElement(element, levels);
  const chosen = made.kind === "selected" ? selecting(levels) : levels;
  const found = { element: made, levels: chosen, modes: modes ? MODES : ["dense"] };
  check(found);
  return found;
}

const MODES = ["dense", "sparse", "high_precision"];
const MODES_ELEMENT = {
  kind: "sign_magnitude",
  magnitude_bits: 5,
  unit_exponent: 0,
  full_scale: true,
  signed_zero: false,
};

const elementName = (text) => ["unsigned", "integer", "float", "p3109", "table"].find((each) => PARTS[each].test(text));

// One of the elements of a selection.
function readPart(text, levels, catalog) {
  const own = Object.hasOwn(catalog, text) ? catalog[text].element : null;
  if (own?.kind === "table") return own;
  const kind = elementName(text);
  needed(kind, `an element such as e2m1fn or nf4 is needed on both sides of +, not ${text}`);
  return readElement([kind, PARTS[kind].exec(text)], levels);
}

// The levels with a selector in the finest one, where it can have one.
function selecting([finest, ...others]) {
  const { signed, specials } = finest.dtype ?? {};
  const spare = finest.kind === "real" && signed && !["fnuz", "inuz"].includes(specials);
  return [spare ? { ...finest, selector: true } : finest, ...others];
}

function namedFormat(text, [, name, rule, rows, group], catalog) {
  let found = catalog[name];
  if (rule) found = withRule(found, rule);
  if (!group) return found;
  const at = found.levels.findLastIndex(isBlocked);
  needed(at >= 0, `${text}: ${name} has no blocks`);
  const block = Number(group);
  const allowed = found.modes.length === 1 || [8, 16, 32].includes(block);
  needed(allowed, `block must be one of 8, 16, 32, not ${block}`);
  const sized = { group: block, rows: Number(rows ?? 1) };
  const levels = found.levels.map((level, i) => (i === at ? { ...level, ...sized } : level));
  check({ ...found, levels });
  return { ...found, levels };
}

// The description with another rule of its exponent scale.
function withRule(description, rule) {
  const has = description.levels.some((level) => level.kind === "exponent");
  needed(has, `a format without an exponent scale has no rule ${rule}`);
  const levels = description.levels.map((x) => (x.kind === "exponent" ? { ...x, rule } : x));
  return { ...description, levels };
}

function readLevels(take, parts, text) {
  const scale = readScale(take, parts, text);
  const tile = take("tile");
  if (!tile) return [{ ...scale, group: "tensor", rows: 1 }];
  const shifts = [...tile[3].matchAll(/s(\d+)o(\d+)/g)].map(([, group, bits]) => ({
    kind: "shift",
    bits: Number(bits),
    group: Number(group),
    rows: 1,
  }));
  const rows = Number(tile[1] ?? 1);
  return [...shifts.reverse(), { ...scale, group: Number(tile[2]) || "channel", rows }];
}

function readScale(take, parts, text) {
  let match = take("exponent");
  if (match) {
    const bits = Number(match[1]);
    const nan = match[2] ? match[2] === "n" : bits === 8;
    return { kind: "exponent", bits, rule: match[3] ?? "floor", nan };
  }
  match = take("factor");
  if (match) return { kind: "integer", bits: Number(match[1]) };
  const name = (parts[0] ?? "").replace(/-bf16$/, "");
  const arithmetic = name === parts[0] ? SINGLE : DTYPES.bfloat16;
  let dtype = Object.hasOwn(DTYPES, name) ? DTYPES[name] : null;
  if (!dtype && (match = PARTS.float.exec(name))) dtype = readFloat(match);
  if (!dtype && (match = PARTS.p3109.exec(name))) dtype = readP3109(match);
  needed(dtype, `${text}: a scale such as e8m0 or float32 is needed at ${parts[0]}`);
  parts.shift();
  const zero = take("unsigned");
  const fits = !zero || text.startsWith(`${zero[0]}_`);
  needed(fits, `${text}: a zero point needs elements of its width, ${zero?.[0]}`);
  return { kind: "real", dtype, zero_point: zero !== null, arithmetic, selector: false };
}

function readFloat([text, unsigned, exponent, fraction, before, suffix, after, hidden]) {
  needed(before === undefined || after === undefined, `${text}: one bias alone is possible, not 2`);
  const [exponent_bits, fraction_bits] = [Number(exponent), Number(fraction)];
  const signed = !unsigned;
  const fn = !signed || signed + exponent_bits + fraction_bits >= 8 ? "nan" : "none";
  const oneZero = { fnuz: "fnuz", inuz: "inuz" }[suffix];
  const specials = oneZero ?? { n: "nan", f: "none", fn }[suffix] ?? (signed ? "ieee" : "nan");
  const usual = 2 ** (exponent_bits - 1) - (oneZero ? 0 : 1);
  const bias = before ?? after;
  const exponent_bias = bias === undefined || Number(bias) === usual ? null : Number(bias);
  needed(!signed || !hidden, "a number with a sign must have subnormal values");
  return { exponent_bits, fraction_bits, specials, exponent_bias, signed, subnormals: !hidden };
}

// A number of IEEE P3109: width, precision, s or u for its sign, e or f for its infinities.
function readP3109([, width, precision, sign, infinities]) {
  const [signed, fraction_bits] = [sign === "s", Number(precision) - 1];
  inRange("width", Number(width), 3, 16);
  inRange("precision", Number(precision), 2, Number(width) - signed);
  const exponent_bits = Number(width) - signed - fraction_bits;
  const finite = signed ? "fnuz" : "nan";
  const specials = infinities === "e" ? "inuz" : finite;
  const exponent_bias = specials === "nan" ? 2 ** (exponent_bits - 1) : null;
  return { exponent_bits, fraction_bits, specials, exponent_bias, signed, subnormals: true };
}

function readElement([kind, match], levels) {
  if (kind === "unsigned") return { kind, bits: Number(match[1]) };
  if (kind === "float") return { kind, ...readFloat(match) };
  if (kind === "p3109") return { kind: "float", ...readP3109(match) };
  if (kind === "table") {
    const counts = match[1].split(":").map((count) => (count ? Number(count) : null));
    return { kind, counts, unit_exponent: 0 - Number(match[3] ?? 0), over: Number(match[2] ?? 1) };
  }
  const [text, name, width, full, fraction, oneZero, away] = match;
  const magnitude_bits = Number(width) - 1;
  const ties_away = Boolean(away);
  const has = (scale) => levels.some((level) => level.kind === scale);
  const given = fraction === undefined ? null : 0 - Number(fraction);
  const unit_exponent = given ?? (has("exponent") && !full ? 1 - magnitude_bits : 0);
  if (name !== "sm" && (name === "int") !== has("shift")) {
    needed(!full && !oneZero, `d and z are for sign and magnitude, which ${text} is not`);
    return { kind: "twos_complement", bits: Number(width), unit_exponent, ties_away };
  }
  const [full_scale, signed_zero] = [Boolean(full), !oneZero];
  return { kind: "sign_magnitude", magnitude_bits, unit_exponent, full_scale, signed_zero, ties_away };
}
