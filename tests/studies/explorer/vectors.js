// Compares the page's arithmetic with conformance vectors; each function returns the wrong cases.
const hexadecimal = (list) => list.split(",").map((word) => parseInt(word, 16));
const patternsOf = (values) => values.map((value) => fp32Pattern(value).toString(16)).join(",");

// Of formats with tiles, the arrays of one row: the page has no others.
function wrongArrays(text, description) {
  const format = formatOf(description);
  const tiled = description.levels.some((level) => level.rows > 1);
  const lines = text.split("\n").filter((line) => !tiled || line.split(" ")[3] === "1");
  return wrongLines(lines.join("\n"), ([rounding, nonfinite, ...rest]) => {
    const values = rest[rest.length - 1];
    const encoded = encode(hexadecimal(values).map(doubleOf), format, { rounding, nonfinite });
    return [packed(fieldsOf(encoded)).join(""), patternsOf(decode(encoded))];
  });
}

function wrongElements(text, description, divisor) {
  const { element } = formatOf(description);
  return wrongLines(text, ([word]) => {
    const code = parseInt(word, 16);
    const [own, selected] = [code % 2 ** element.width, code >> element.width];
    const chosen = element.parts?.[selected] ?? element;
    const value = elementValue(own, chosen, null);
    const { kind, magnitude } = value;
    return patternsOf([kind === "number" ? { ...value, magnitude: times(magnitude, whole(divisor)) } : value]);
  });
}

function wrongScales(text, description) {
  const format = formatOf(description);
  return wrongLines(text, ([level, word]) => {
    const depth = Number(level);
    const factor = factorOf(parseInt(word, 16), format.levels[depth], format.scales[depth]);
    if (factor === null) return FP32.nan.toString(16);
    return patternsOf([{ negative: false, kind: "number", magnitude: factor }]);
  });
}

// Cases whose words after the arrow differ from what `compute` makes of those before it.
function wrongLines(text, compute) {
  const cases = text.split("\n").filter((line) => line && !line.startsWith("#"));
  if (!cases.length) throw new Error("no case");
  return cases.filter((line) => {
    const [inputs, outputs] = line.split(" -> ");
    return [compute(inputs.split(" ").slice(1))].flat().join(" ") !== outputs;
  });
}

// Blocks of doubles as the golden model returns them.
function blocksOf(values, description, how) {
  const encoded = encode(values, formatOf(description), how);
  const { scales, codes, zeroPoints } = encoded;
  return { scales, codes, zeroPoints, decoded: decode(encoded).map(fp32Pattern) };
}
