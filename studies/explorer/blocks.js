// Values to blocks of any format and back, one group at a time, as docs/formats.md defines it.
"use strict";

// Encodes doubles along one axis, padded with +0 to whole blocks; tiles have this row alone.
// `how` has rounding, nonfinite ("saturate" or "propagate"), and for stochastic rounding words, bits.
// Returns {format, length, scales: codes of each level, coarse to fine, codes, zeroPoints}.
function encode(values, format, how) {
  const size = format.block;
  const padded = [...values, ...Array(-values.length & (size - 1)).fill(0)];
  const lanes = padded.map((x, i) => {
    const value = valueOf(x);
    const saturated = value.kind === "infinity" && how.nonfinite === "saturate";
    const magnitude = saturated ? FP32_LARGEST : value.magnitude;
    return { ...value, magnitude, word: how.words?.[i] ?? 0 };
  });
  const sizes = format.levels.map((level) => (isBlocked(level) ? level.group : lanes.length));
  const found = { format, length: values.length, sizes, codes: [], zeroPoints: [], how };
  found.scales = sizes.map(() => []);
  encodeGroup(lanes, 0, { factors: [], reciprocal: ONE, exponent: 0, top: 0 }, found);
  return found;
}

function encodeGroup(lanes, depth, above, found) {
  const { format, scales, codes } = found;
  if (depth === format.levels.length) {
    const { parts } = format.element;
    found.selected = parts ? selectedPart(lanes, above, found) : 0;
    const element = parts ? parts[found.selected] : format.element;
    codes.push(...lanes.map((lane) => elementCode(lane, above, found, element)));
    return;
  }
  for (let start = 0; start < lanes.length; start += found.sizes[depth]) {
    const group = lanes.slice(start, start + found.sizes[depth]);
    const begun = codes.length;
    const code = format.zeroPoint
      ? encodeWithZeroPoint(group, found)
      : encodeUnderScale(group, depth, above, found);
    const nan = nanScale(group, depth, found);
    if (nan !== null) codes.fill(format.element.zero, begun);
    scales[depth].push(nan ?? code);
  }
}

function encodeUnderScale(group, depth, above, found) {
  const top = group.map((lane) => lane.magnitude).reduce(most);
  const [code, within] = scaleCode(top, depth, above, found.format);
  encodeGroup(group, depth + 1, within, found);
  const { selector, bits } = found.format.scales[depth];
  return selector ? code + found.selected * 2 ** (bits - 1) : code;
}

// Which of two elements has the larger merit for a group, the first if both are equal: see
// docs/formats.md, "Choice of the scale".
function selectedPart(lanes, above, found) {
  const { parts, unit, bound } = found.format.element;
  const nearest = { ...found, how: { ...found.how, rounding: "nearest" } };
  const merits = parts.map((part) =>
    lanes
      .map((lane) => {
        const number = { ...lane, kind: "number" };
        const code = elementCode(number, above, nearest, part);
        const q = over(elementValue(code, part, null).magnitude, unit);
        const fine = over(dividedValue(lane.magnitude, above), times(unit, power(-11)));
        const held = least(whole(fine.n / fine.d), minus(times(bound, power(11)), ONE));
        return times(q, minus(times(held, power(-10)), q));
      })
      .reduce(plus),
  );
  return Number(below(merits[0], merits[1]));
}

// The code of a group's scale, from its largest magnitude, and what all scales say within it.
function scaleCode(top, depth, above, format) {
  const level = format.levels[depth];
  const kind = format.scales[depth];
  if (level.kind === "real") {
    const code = realCode(top, depth, above, format);
    return [code, divided(above, magnitudeOf(code, kind.dtype), inBf16(level))];
  }
  if (level.kind === "integer") {
    const step = above.factors.reduce(times, format.element.largest);
    const quotient = over(top, step);
    const ceiling = Number((quotient.n + quotient.d - 1n) / quotient.d);
    const code = clamp(ceiling, 1, kind.largestCode);
    return [code, divided(above, whole(code))];
  }
  const held = dividedValue(top, above);
  if (level.kind === "exponent") {
    const code = exponentCode(held, level, kind, format.element);
    const binade = held.n ? floorLog2(held) : 0;
    return [code, { ...above, exponent: code - kind.bias, top: binade }];
  }
  const binade = held.n ? floorLog2(held) : above.top;
  const exponents = format.levels.some((each) => each.kind === "exponent");
  const reach = exponents ? above.top : format.element.emax + above.exponent;
  const code = held.n ? clamp(reach - binade, 0, kind.largestCode) : kind.largestCode;
  return [code, { ...above, exponent: above.exponent - code, top: binade }];
}

function exponentCode(top, level, kind, element) {
  if (!top.n) return 0;
  let exponent = floorLog2(top) - element.emax;
  if (level.rule === "ceil") exponent = ceilLog2(top) - element.emax;
  if (level.rule === "even") {
    const step = power(floorLog2(top) - element.precision);
    const halves = over(times(top, whole(2)), step);
    const near = times(whole((halves.n / halves.d + 1n) / 2n), step);
    exponent = floorLog2(near) - element.emax;
  }
  if (level.rule === "rceil") {
    const quotient = fp32(over(top, element.largest));
    exponent = quotient.n ? ceilLog2(quotient) : -kind.bias;
  }
  return clamp(exponent + kind.bias, 0, kind.largestCode);
}

function realCode(top, depth, above, format) {
  const finer = format.levels[depth + 1];
  const shared = finer && ["real", "integer"].includes(finer.kind);
  const reach = shared ? format.scales[depth + 1].largest : ONE;
  let scale = fp32(over(top, times(format.element.largest, reach)));
  if (inBf16(format.levels[depth])) {
    scale = bf16(fp32(times(top, bf16(over(ONE, format.element.largest)))));
  }
  for (const factor of above.factors) scale = fp32(over(scale, factor));
  return heldScale(top.n ? scale : null, format.scales[depth].dtype, format.levels[depth].dtype);
}

// A real scale held to the normal numbers of its dtype; of zeros (null), 1 in FP32, else the least.
function heldScale(scale, dtype, description) {
  if (scale === null) {
    return isSingle(description) ? heldCode(ONE, dtype) : dtype.first * 2 ** dtype.fractionBits;
  }
  return heldCode(most(scale, power(dtype.emin)), dtype);
}

// Values are multiplied by the reciprocal of their real and integer scales, null where it is
// too large for FP32.
function divided(above, factor, rounds = false) {
  let reciprocal = above.reciprocal && over(above.reciprocal, factor);
  const code = reciprocal && magnitudeCode(reciprocal, FP32);
  reciprocal = code === null || code > FP32.largestCode ? null : magnitudeOf(code, FP32);
  if (rounds) reciprocal = bf16(reciprocal);
  return { ...above, factors: [...above.factors, factor], reciprocal };
}

function dividedValue(x, above) {
  if (!above.factors.length || !x.n) return x;
  return above.reciprocal ? fp32(times(x, above.reciprocal)) : FP32_LARGEST;
}

function elementCode(lane, above, found, element) {
  const { scales } = found.format;
  const { rounding, bits, nonfinite } = found.how;
  const propagate = nonfinite === "propagate";
  const negative = lane.negative ? element.signBit : 0;
  if (lane.kind === "nan") return propagate ? (element.nan ?? element.zero) : element.zero;
  if (lane.kind === "infinity" && propagate) {
    if (element.infinity !== null) return element.infinity + negative;
    return scales.every((scale) => scale.nan === null) ? (element.nan ?? element.zero) : element.zero;
  }
  let magnitude = element.largestCode;
  const number = lane.kind === "number";
  const x = number && over(dividedValue(lane.magnitude, above), power(above.exponent));
  if (element.entries) return entryCode(x || element.largest, lane, element, rounding, bits);
  if (number) magnitude = heldCode(x, element, rounding, lane.word, bits);
  if (element.complement) return lane.negative && magnitude ? 2 * element.signBit - magnitude : magnitude;
  if (negative + magnitude === element.nan) return magnitude;
  return lane.magnitude.n || element.signedZero ? negative + magnitude : magnitude;
}

// The code of the entry of a table that a magnitude is rounded to: a tie to the even code, or if
// neither or both are even to the smaller magnitude.
function entryCode(x, { negative, word }, element, rounding, bits) {
  const side = element.sides[Number(negative)];
  const low = side.findLastIndex(({ magnitude }) => !below(x, magnitude));
  if (low === side.length - 1 || rounding === "toward_zero") return side[low].code;
  const [lower, upper] = side.slice(low, low + 2);
  const [down, up] = [minus(x, lower.magnitude), minus(upper.magnitude, x)];
  if (rounding === "nearest") {
    const tie = !below(up, down) && !below(down, up);
    const even = lower.code % 2 === 1 && upper.code % 2 === 0;
    return below(up, down) || (tie && even) ? upper.code : lower.code;
  }
  const part = over(down, minus(upper.magnitude, lower.magnitude));
  return rounded(part, rounding, word, bits) > 0n ? upper.code : lower.code;
}

function encodeWithZeroPoint(group, found) {
  const { element, levels, scales } = found.format;
  const last = element.largestCode;
  const ends = [true, false].map((sign) =>
    group.map((lane) => (lane.negative === sign ? lane.magnitude : ZERO)).reduce(most),
  );
  const reach = plus(...ends);
  const scale = reach.n ? fp32(over(fp32(reach), whole(last))) : null;
  const code = heldScale(scale, scales[0].dtype, levels[0].dtype);
  const reciprocal = fp32(over(ONE, magnitudeOf(code, scales[0].dtype)));
  const place = (x) => fp32(times(x, reciprocal));
  const zeroPoint = Math.min(Number(rounded(place(ends[0]), "nearest")), last);
  found.zeroPoints.push(zeroPoint);
  for (const lane of group) {
    const steps = Number(rounded(place(lane.magnitude), found.how.rounding, lane.word, found.how.bits));
    found.codes.push(clamp(zeroPoint + (lane.negative ? -steps : steps), 0, last));
  }
  return code;
}

// NaN as a group's scale, if a value needs it and no finer scale has it, else null.
function nanScale(lanes, depth, found) {
  const { element, scales } = found.format;
  if (found.how.nonfinite !== "propagate") return null;
  if (scales.slice(depth + 1).some((scale) => scale.nan !== null)) return null;
  const own = { number: 0, nan: element.nan, infinity: element.infinity };
  return lanes.some((lane) => own[lane.kind] === null) ? scales[depth].nan : null;
}

// The exact values of all codes.
function decode(encoded) {
  const { format, codes, zeroPoints, scales, sizes } = encoded;
  return codes.slice(0, encoded.length).map((code, i) => {
    const zeroPoint = zeroPoints.length ? zeroPoints[Math.floor(i / sizes[0])] : null;
    const finest = scales.length - 1;
    const { selector, bits } = format.scales[finest];
    const own = scales[finest][Math.floor(i / sizes[finest])];
    const element = selector ? format.element.parts[Math.floor(own / 2 ** (bits - 1))] : format.element;
    return scales.reduce((value, level, depth) => {
      const of = level[Math.floor(i / sizes[depth])];
      const factor = factorOf(of, format.levels[depth], format.scales[depth]);
      if (factor === null) return { negative: false, kind: "nan", magnitude: ZERO };
      return { ...value, magnitude: times(value.magnitude, factor) };
    }, elementValue(code, element, zeroPoint));
  });
}

function elementValue(code, element, zeroPoint) {
  if (zeroPoint !== null) {
    const steps = code - zeroPoint;
    return { negative: steps < 0, kind: "number", magnitude: whole(Math.abs(steps)) };
  }
  if (code === element.nan) return { negative: false, kind: "nan", magnitude: ZERO };
  if (element.entries) return { kind: "number", ...element.entries[code] };
  const negative = element.signed && code >= element.signBit;
  let magnitude = negative ? code - element.signBit : code;
  if (element.complement && negative) magnitude = 2 * element.signBit - code;
  if (element.complement || magnitude <= element.largestCode) {
    return { negative, kind: "number", magnitude: magnitudeOf(magnitude, element) };
  }
  const kind = magnitude === element.infinity ? "infinity" : "nan";
  return { negative: negative && kind === "infinity", kind, magnitude: ZERO };
}

// The bits in memory as fields {what, depth, index, code, bits}, least significant bit first.
function fieldsOf(encoded) {
  const { format, scales, sizes, zeroPoints, codes } = encoded;
  const fields = [];
  const scale = (depth, index) => {
    const bits = format.scales[depth].bits;
    fields.push({ what: "scale", depth, index, code: scales[depth][index], bits });
  };
  const point = (index) => {
    const bits = format.element.width;
    fields.push({ what: "zero point", index, code: zeroPoints[index], bits });
  };
  const pad = () => {
    const bits = -fields.reduce((sum, field) => sum + field.bits, 0) & 7;
    if (bits) fields.push({ what: "padding", code: 0, bits });
  };
  const depths = format.levels.map((_, depth) => depth);
  const inBlocks = (depth) => isBlocked(format.levels[depth]) && format.levels[depth].rows === 1;
  for (const depth of depths.filter((depth) => !inBlocks(depth))) {
    for (let index = 0; index < codes.length / sizes[depth]; index++) {
      scale(depth, index);
      pad();
    }
    if (format.zeroPoint) {
      point(0);
      pad();
    }
  }
  for (let start = 0; start < codes.length; start += format.block) {
    for (const depth of depths.filter(inBlocks)) {
      const end = (start + format.block) / sizes[depth];
      if (format.header) fields.push({ what: "mode", code: 0, bits: 2 });
      for (let index = start / sizes[depth]; index < end; index++) {
        scale(depth, index);
        if (format.zeroPoint) point(index);
      }
      if (format.header) pad();
    }
    for (let index = start; index < start + format.block; index++) {
      fields.push({ what: "code", index, code: codes[index], bits: format.element.width });
    }
    pad();
  }
  return fields;
}

// Bits of a code, most significant first.
const binary = (code, bits) => code.toString(2).padStart(bits, "0");

// Fields as bytes in hexadecimal, byte 0 first.
function packed(fields) {
  const bits = fields.map(({ code, bits }) => [...binary(code, bits)].reverse().join("")).join("");
  const bytes = bits.match(/.{8}/g).map((byte) => parseInt([...byte].reverse().join(""), 2));
  return bytes.map((byte) => byte.toString(16).padStart(2, "0"));
}
