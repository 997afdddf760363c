// What plots are made of, and those of the errors of values and of accumulators.
"use strict";

const narrow = () => window.matchMedia("(max-width: 40rem)").matches;

function svg(name, attributes = {}, content = []) {
  const found = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) found.setAttribute(key, value);
  found.append(...[content].flat());
  return found;
}

// A frame with axes: {root, x, y} of which x and y place numbers.
function frame(label, horizontal, vertical) {
  const [width, height, left, low] = narrow() ? [640, 560, 74, 64] : [1000, 420, 62, 46];
  const right = width - (narrow() ? 24 : 130);
  const place = ({ from, to, log }, start, end) => {
    const of = (x) => (log ? Math.log(x) : x);
    return (x) => start + ((of(x) - of(from)) / (of(to) - of(from))) * (end - start);
  };
  const x = place(horizontal, left, right);
  const y = place(vertical, height - low, 16);
  const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": label });
  for (const tick of horizontal.ticks) {
    root.append(svg("line", { class: "grid", x1: x(tick), x2: x(tick), y1: 16, y2: height - low }));
    root.append(svg("text", { class: "soft", x: x(tick), y: height - low + 20, "text-anchor": "middle" }, amount(tick)));
  }
  for (const tick of vertical.ticks) {
    root.append(svg("line", { class: "grid", x1: left, x2: right, y1: y(tick), y2: y(tick) }));
    root.append(svg("text", { class: "soft", x: left - 8, y: y(tick) + 4, "text-anchor": "end" }, amount(tick)));
  }
  const middle = { x: (left + right) / 2, y: height - 6, "text-anchor": "middle" };
  root.append(svg("text", middle, horizontal.name));
  const turned = { transform: `translate(16 ${(height - low) / 2}) rotate(-90)`, "text-anchor": "middle" };
  root.append(svg("text", turned, vertical.name));
  return { root, x, y, width, left, right, top: 16, bottom: height - low };
}

const amount = (x) => x.toLocaleString("en", { maximumSignificantDigits: 5 });

// An axis around numbers, with ticks at 1, 2 and 5 times powers of ten, or at equal distances.
function axisOf(name, numbers, log = false) {
  const [low, high] = [Math.min(...numbers), Math.max(...numbers)];
  if (log) {
    const [from, to] = [low / 1.3, high * 1.3];
    const decades = Array.from({ length: 40 }, (_, i) => i - 10);
    const all = decades.flatMap((k) => [1, 2, 5].map((m) => m * 10 ** k));
    return { name, log, from, to, ticks: all.filter((x) => x >= from && x <= to) };
  }
  const rough = (high - low || 1) / 6;
  const unit = 10 ** Math.floor(Math.log10(rough));
  const step = unit * ([1, 2, 5].find((m) => m * unit >= rough) ?? 10);
  const [from, to] = [Math.floor(low / step) * step, Math.ceil(high / step) * step];
  const count = Math.round((to - from) / step) || 1;
  return { name, from, to: from + count * step, ticks: Array.from({ length: count + 1 }, (_, i) => from + i * step) };
}

function showErrors(values, a, b) {
  const finite = (x) => (Number.isFinite(x) ? x : 0);
  const all = [...a.errors, ...b.errors].map(finite);
  const most = Math.max(...all.map(Math.abs)) || 1;
  const [width, height] = [1000, narrow() ? 320 : 150];
  const step = width / values.length;
  const label = `Errors of ${values.length} values, at most ${shown(most)}`;
  const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
  root.append(svg("line", { class: "grid", x1: 0, x2: width, y1: height / 2, y2: height / 2 }));
  values.forEach((value, i) => {
    for (const [side, { errors }] of [["a", a], ["b", b]]) {
      const size = (finite(errors[i]) / most) * (height / 2 - 4);
      const bar = { x: step * (i + (side === "a" ? 0.12 : 0.5)), width: step * 0.38, height: Math.abs(size) };
      const at = { ...bar, y: height / 2 - Math.max(size, 0), class: `bar-${side}` };
      root.append(svg("rect", at, svg("title", {}, `${i}: ${shown(value)}, error ${shown(errors[i])}`)));
    }
  });
  root.append(svg("text", { class: "soft", x: 2, y: narrow() ? 20 : 13 }, shown(most)));
  byId("errors").replaceChildren(root);
}

// A label beside a point, where it covers no earlier one and stays within the plot.
function label(text, x, y, placed, limit) {
  const size = narrow() ? 20 : 13;
  const width = text.length * size * 0.56;
  const left = -10 - width;
  const middle = -width / 2;
  const places = [[10, 4], [left, 4], [middle, -12], [middle, 22], [10, -10], [10, 20], [left, -10], [left, 20]];
  const free = ([dx, dy]) =>
    x + dx + width < limit &&
    placed.every((p) => Math.abs(p.y - y - dy) > size || p.x > x + dx + width || p.x + p.width < x + dx);
  const [dx, dy] = places.find(free) ?? places[1];
  placed.push({ x: x + dx, y: y + dy, width });
  return svg("text", { x: x + dx, y: y + dy, "aria-hidden": "true" }, text);
}

function tableParts(columns, rows) {
  const head = make("tr", {}, columns.map((name) => make("th", { scope: "col" }, name)));
  const body = rows.map(([first, ...cells]) =>
    make("tr", {}, [make("th", { scope: "row" }, first), ...cells.map((cell) => make("td", {}, cell))]),
  );
  return [make("thead", {}, head), make("tbody", {}, body)];
}

function showLines() {
  const study = MEASURED.accumulators;
  const series = study.series.filter((each) => each.accumulator === byId("accumulator").value);
  const known = series.flatMap((each) => [...each.error_db, each.format_db]).filter((x) => x !== null);
  const chosen = Number(byId("fraction").value);
  byId("fraction-value").textContent = chosen;
  const horizontal = axisOf("bits f kept of an aligned term", study.fractions);
  const at = frame("Error of dot products against f", horizontal, axisOf("error, dB", known));
  at.root.append(svg("line", { class: "cursor", x1: at.x(chosen), x2: at.x(chosen), y1: at.top, y2: at.bottom }));
  const placed = [];
  series.forEach((each, i) => {
    const points = study.fractions.map((f, k) => [f, each.error_db[k]]).filter(([, x]) => x !== null);
    const line = points.map(([f, x]) => `${at.x(f)},${at.y(x)}`).join(" ");
    const floor = { x1: at.left, x2: at.right, y1: at.y(each.format_db), y2: at.y(each.format_db) };
    at.root.append(svg("line", { class: `floor c${i % 5}`, ...floor }));
    at.root.append(svg("polyline", { class: `series c${i % 5}`, points: line }));
    if (!points.length) return;
    const [f, x] = points[points.length - 1];
    const text = label(each.format, at.x(f), at.y(x), placed, at.width);
    text.setAttribute("class", `c${i % 5}`);
    at.root.append(text);
  });
  at.root.addEventListener("click", (event) => {
    const box = at.root.getBoundingClientRect();
    const across = ((event.clientX - box.left) / box.width) * at.root.viewBox.baseVal.width;
    const share = (across - at.left) / (at.right - at.left);
    byId("fraction").value = Math.round(horizontal.from + share * (horizontal.to - horizontal.from));
    showLines();
  });
  byId("lines").replaceChildren(at.root);
  showLineTable(series, study.fractions.indexOf(chosen), chosen);
}

function showLineTable(series, at, chosen) {
  const db = (x) => (x === null ? "exact" : `${x.toFixed(1)} dB`);
  const rows = series.map((each) => {
    const enough = each.error_db.findIndex((x) => x === null || x <= each.format_db - 10);
    const least = enough < 0 ? "-" : String(MEASURED.accumulators.fractions[enough]);
    return [each.format, db(each.error_db[at]), db(each.format_db), least];
  });
  const columns = ["format", `error at f = ${chosen}`, "error of the format", "f from which it is 10 dB below"];
  byId("line-table").replaceChildren(...tableParts(columns, rows));
}

function startAccumulators() {
  const { accumulators } = MEASURED;
  byId("accumulator").append(...options([...new Set(accumulators.series.map((each) => each.accumulator))]));
  byId("accumulator").addEventListener("change", showLines);
  const { fractions } = accumulators;
  const range = byId("fraction");
  [range.min, range.max, range.value] = [fractions[0], fractions[fractions.length - 1], 14];
  range.addEventListener("input", showLines);
  byId("accumulator-text").textContent =
    `${accumulators.products} dot products of ${accumulators.length.toLocaleString("en")} normally distributed ` +
    "values. Before terms are added, each is shifted to the largest exponent and keeps f bits. Lines show the " +
    "error that this adds to exact accumulation, up to where results are exact; dotted lines, that of the format.";
  showLines();
}
