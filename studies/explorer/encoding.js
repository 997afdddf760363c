// The part of the page that encodes values in two formats, side by side.
"use strict";

const CATALOG = JSON.parse(document.getElementById("formats").textContent);
const MEASURED = JSON.parse(document.getElementById("measured").textContent);
const COMPOSED = "a string"; // in the list of formats: the one that is typed
const VALUES_MOST = 256;
const RANDOM_BITS = 16;
const SIDES = ["a", "b"];
const byId = (id) => document.getElementById(id);

// An element of the page; `content` is text, elements, or a list of them.
function make(name, attributes = {}, content = []) {
  const found = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) found.setAttribute(key, value);
  found.append(...[content].flat());
  return found;
}

const options = (names) => names.map((name) => make("option", { value: name }, name));

function shown(x) {
  if (!Number.isFinite(x)) return Number.isNaN(x) ? "NaN" : x < 0 ? "-Inf" : "Inf";
  return Object.is(x, -0) ? "-0" : String(Number(x.toPrecision(6)));
}

// Normally distributed numbers, by Box and Muller.
function normal() {
  return Math.sqrt(-2 * Math.log(1 - Math.random())) * Math.cos(2 * Math.PI * Math.random());
}

const repeated = (make) => Array.from({ length: 32 }, (_, i) => make(i));
const EXAMPLES = {
  "normal values": () => repeated(normal),
  "an outlier": () => repeated((i) => (i === 9 ? 40 : normal())),
  "a ramp": () => repeated((i) => (i - 16) / 16),
  "powers of two": () => repeated((i) => (i % 2 ? -1 : 1) * 2 ** -i),
  "gradients": () => repeated(() => normal() * 2 ** (-20 + 3 * normal())),
  "zeros and special values": () => [0, -0, NaN, Infinity, -Infinity, 1e-45, -3, 0.1],
};

// The doubles that a text says, each held by FP32. Throws an Error that names the first wrong word.
function readValues(text) {
  const words = text.split(/[\s,;]+/).filter(Boolean);
  needed(words.length, "a value is needed");
  needed(words.length <= VALUES_MOST, `at most ${VALUES_MOST} values, not ${words.length}`);
  return words.map((word, i) => {
    if (/^0x[0-9a-f]{8}$/i.test(word)) return doubleOf(Number(word));
    if (/^0x[0-9a-f]{4}$/i.test(word)) return doubleOf(Number(word) * 65536);
    const special = /^([+-]?)(nan|inf|infinity)$/i.exec(word);
    if (special) return special[2].toLowerCase() === "nan" ? NaN : special[1] === "-" ? -Infinity : Infinity;
    const decimal = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(word);
    needed(decimal, `value ${i + 1} must be a number, nan, inf, or bits such as 0x3f800000, not ${word}`);
    return Math.fround(Number(word));
  });
}

// Controls of the format of one side.
function makeChoice(side, name) {
  const label = (text, content) => make("label", {}, [text, content]);
  const names = [...Object.keys(CATALOG), COMPOSED];
  const format = make("select", { id: `format-${side}` }, options(names));
  const string = make("input", { type: "text", id: `string-${side}`, spellcheck: "false", autocapitalize: "off" });
  const rule = make("select", { id: `rule-${side}` }, options(RULES));
  format.value = name;
  string.value = "e2m1fn_e8m0_t16";
  const title = side === "a" ? "Left format" : "Right format";
  byId(`choice-${side}`).append(
    make("h3", { class: side }, title),
    label("Format", format),
    label("String, such as e4m3fn_e8m0_t32", string),
    label("Rule of the exponent", rule),
  );
}

// The format that one side has, with its rule.
function chosenFormat(side) {
  const name = byId(`format-${side}`).value;
  const string = byId(`string-${side}`);
  const composed = name === COMPOSED;
  string.parentElement.hidden = !composed;
  const description = composed ? readFormat(string.value.trim(), CATALOG) : CATALOG[name];
  const rule = byId(`rule-${side}`);
  const has = description.levels.some((level) => level.kind === "exponent");
  rule.disabled = !has;
  const changed = has ? withRule(description, rule.value) : description;
  return { name: composed ? string.value.trim() : name, ...formatOf(changed) };
}

let words = [];

function drawWords() {
  words = Array.from({ length: VALUES_MOST }, () => Math.floor(Math.random() * 2 ** RANDOM_BITS));
}

// One side's format, blocks, decoded doubles and errors.
function encodedSide(values, side) {
  const format = chosenFormat(side);
  const rounding = document.querySelector("input[name=rounding]:checked").value;
  const nonfinite = format.hasNan ? "propagate" : "saturate";
  const encoded = encode(values, format, { rounding, nonfinite, words, bits: RANDOM_BITS });
  const patterns = decode(encoded).map(fp32Pattern);
  const decoded = patterns.map(doubleOf);
  const errors = decoded.map((x, i) => (Object.is(x, values[i]) ? 0 : x - values[i]));
  const finite = values.map((x, i) => [x, errors[i]]).filter(([x]) => Number.isFinite(x));
  const power = (at) => finite.reduce((sum, pair) => sum + pair[at] ** 2, 0);
  const worst = Math.max(0, ...finite.map(([, error]) => Math.abs(error)));
  return { format, encoded, decoded, errors, worst, qsnr: 10 * Math.log10(power(0) / power(1)) };
}

function update() {
  const message = byId("message");
  message.textContent = "";
  try {
    const values = readValues(byId("values").value);
    const [a, b] = SIDES.map((side) => encodedSide(values, side));
    showPanel("a", a);
    showPanel("b", b);
    showVerdict(a, b);
    showErrors(values, a, b);
    showTable(values, a, b);
  } catch (error) {
    message.textContent = error.message;
  }
  byId("values").setAttribute("aria-invalid", String(message.textContent !== ""));
}

const decibels = (x) => (Number.isFinite(x) ? `${x.toFixed(1)} dB` : Number.isNaN(x) ? "-" : "exact");

function showVerdict(a, b) {
  const gap = a.qsnr - b.qsnr;
  const verdict = byId("verdict");
  if (!Number.isFinite(gap)) {
    verdict.textContent = "";
    return;
  }
  const bits = a.format.bits - b.format.bits;
  const size = bits ? `${shown(Math.abs(bits))} ${bits > 0 ? "more" : "fewer"} bits a value` : "the same bits a value";
  const name = make("b", { class: "a" }, a.format.name);
  const other = make("b", { class: "b" }, b.format.name);
  const better = `${Math.abs(gap).toFixed(1)} dB ${gap >= 0 ? "better" : "worse"}`;
  verdict.replaceChildren(name, ` is ${better} than `, other, ` on these values, with ${size}.`);
}

function showPanel(side, { format, encoded, worst, qsnr }) {
  const fields = fieldsOf(encoded);
  const facts = [
    ["bits a value", shown(format.bits)],
    ["packed", `${packed(fields).length} bytes for ${encoded.length} values`],
    ["QSNR", decibels(qsnr)],
    ["largest error", shown(worst)],
  ];
  const list = facts.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]);
  byId(`panel-${side}`).replaceChildren(
    make("h3", { class: side }, format.name),
    make("dl", {}, list),
    ...format.levels.flatMap((level, depth) => scaleChips(encoded, level, depth)),
    make("h3", {}, "Bits, in the order of memory"),
    make("p", { class: "bits" }, fields.flatMap((field) => bitSpans(field, format))),
    legend(format),
  );
}

const groupName = ({ group, rows }) =>
  isNaN(group) ? `the ${group}` : (rows > 1 ? `${rows} rows of ` : "") + `${group} values`;

function scaleChips(encoded, level, depth) {
  const kind = encoded.format.scales[depth];
  const codes = encoded.scales[depth];
  const titles = { exponent: "Exponent", shift: "Shift", integer: "Integer scale", real: "Real scale" };
  const chips = codes.map((code) => make("li", { class: "chip" }, scaleText(code, level, kind)));
  const count = codes.length > 1 ? `${codes.length} scales` : "one scale";
  const title = `${titles[level.kind]} of ${groupName(level)}: ${kind.bits} bit${kind.bits > 1 ? "s" : ""}, ${count}`;
  const parts = [make("h3", {}, title), make("ul", { class: "chips" }, chips)];
  if (!encoded.format.zeroPoint) return parts;
  return [...parts, make("p", {}, `Zero point ${encoded.zeroPoints.join(", ")}`)];
}

function scaleText(code, level, kind) {
  const factor = factorOf(code, level, kind);
  if (factor === null) return `${code}: NaN`;
  if (level.kind === "exponent") return `${code}: 2^${code - kind.bias}`;
  if (level.kind === "shift") return `${code}`;
  if (level.kind === "integer") return `× ${code}`;
  const value = doubleOf(fp32Pattern({ negative: false, kind: "number", magnitude: factor }));
  return `0x${code.toString(16)}: ${shown(value)}`;
}

// A field's bits, most significant first; those of a code in the colours of its parts.
function bitSpans({ what, code, bits }, { element }) {
  const text = binary(code, bits);
  if (what !== "code") return make("span", { class: what === "padding" ? "p" : "k" }, text);
  let at = 0;
  const parts = element.fields.map(([name, width]) => {
    at += width;
    return make("i", { class: name[0], style: "font-style: normal" }, text.slice(at - width, at));
  });
  return make("span", {}, parts);
}

function legend({ element }) {
  const names = { sign: "sign", exponent: "exponent", magnitude: element.fixed ? "magnitude" : "fraction" };
  const parts = element.fields.map(([name]) => make("span", { class: name[0] }, names[name]));
  const spaced = parts.flatMap((part) => [part, " · "]);
  const rest = [make("span", { class: "k" }, "scales"), " · ", make("span", { class: "p" }, "padding")];
  return make("p", { class: "legend" }, [...spaced, ...rest]);
}

function showTable(values, a, b) {
  const head = make("tr", {}, ["", "value"].map((name) => make("th", { scope: "col" }, name)));
  for (const [side, { format }] of [["a", a], ["b", b]]) {
    for (const name of [`${format.name} code`, "decoded", "error"]) {
      head.append(make("th", { scope: "col", class: side }, name));
    }
  }
  const rows = values.map((x, i) => {
    const begins = i && [a, b].some(({ encoded }) => encoded.sizes.some((size) => size > 2 && i % size === 0));
    const cells = [a, b].flatMap((side) => [
      binary(side.encoded.codes[i], side.format.element.width),
      shown(side.decoded[i]),
      shown(side.errors[i]),
    ]);
    const row = [make("th", { scope: "row" }, String(i)), ...[shown(x), ...cells].map((cell) => make("td", {}, cell))];
    return make("tr", begins ? { class: "block" } : {}, row);
  });
  const caption = make("caption", {}, "Lines mark where a group of more than two values begins.");
  byId("table").replaceChildren(caption, make("thead", {}, head), make("tbody", {}, rows));
}

function readFile(file) {
  file.text().then((text) => {
    byId("values").value = text.trim();
    update();
  });
}

function startEncoding() {
  makeChoice("a", "mx6");
  makeChoice("b", "axs6");
  drawWords();
  const values = byId("values");
  const example = byId("example");
  const draw = () => {
    values.value = EXAMPLES[example.value]().map((x) => shown(x)).join(", ");
    drawWords();
    update();
  };
  example.append(...options(Object.keys(EXAMPLES)));
  example.addEventListener("change", draw);
  byId("again").addEventListener("click", draw);
  byId("encode").addEventListener("input", (event) => {
    if (event.target !== example && event.target.type !== "file") update();
  });
  byId("file").addEventListener("change", ({ target }) => target.files.length && readFile(target.files[0]));
  values.addEventListener("dragover", (event) => {
    event.preventDefault();
    values.classList.add("dropping");
  });
  values.addEventListener("dragleave", () => values.classList.remove("dropping"));
  values.addEventListener("drop", (event) => {
    event.preventDefault();
    values.classList.remove("dropping");
    const [file] = event.dataTransfer.files;
    if (file) return readFile(file);
    values.value = event.dataTransfer.getData("text");
    update();
  });
  draw();
}
