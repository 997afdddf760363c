// Formats as points, QSNR against what they cost: dot products of one block, and the Pareto study.
"use strict";

const BLOCK_COSTS = {
  "area a lane, µm²": (p) => p.mac_area,
  "area a lane × bits a value in memory": (p) => p.mac_area * p.memory_bits,
  "bits a value in memory": (p) => p.memory_bits,
  "delay, ns": (p) => p.delay_ps / 1000,
  "energy a MAC, fJ": (p) => p.mac_fj,
  "encoder area a lane, µm²": (p) => p.encoder_area && p.encoder_area / p.lanes,
  "decoder area a lane, µm²": (p) => p.decoder_area && p.decoder_area / p.lanes,
};

const STUDY_COSTS = {
  "area × memory, of FP8": (p) => p.area * p.memory,
  "area, of FP8": (p) => p.area,
  "memory, of FP8": (p) => p.memory,
  "delay, ns": (p) => p.delay_ps / 1000,
};

const ALL = "all families";

// Draws points by their cost and QSNR, with the line of those that no other beats in both.
// `how` has name and of (the cost), classOf, named (whether its name is shown) and facts of a point.
// Tab reaches one point; the arrow keys go from it to the next in cost, and Enter compares it above.
function drawPoints(plot, detail, all, how) {
  const costOf = how.of;
  const points = all.filter((point) => costOf(point)).sort((p, q) => costOf(p) - costOf(q) || q.qsnr_db - p.qsnr_db);
  const horizontal = axisOf(how.name, points.map(costOf), true);
  const at = frame(`QSNR against ${how.name}`, horizontal, axisOf("QSNR, dB", points.map((p) => p.qsnr_db)));
  const best = [];
  for (const p of points) if (!best.length || p.qsnr_db > best[best.length - 1].qsnr_db) best.push(p);
  const line = best.map((p) => `${at.x(costOf(p))},${at.y(p.qsnr_db)}`).join(" ");
  at.root.append(svg("polyline", { class: "frontier", points: line }));
  const placed = points
    .filter(how.named)
    .map((p) => ({ x: at.x(costOf(p)) - 7, y: at.y(p.qsnr_db) + 4, width: 14 }));
  const dots = points.map((point, i) => {
    const where = { cx: at.x(costOf(point)), cy: at.y(point.qsnr_db), r: how.named(point) ? 7 : 4 };
    const text = `${point.format}: ${amount(costOf(point))} (${how.name}), ${point.qsnr_db.toFixed(1)} dB`;
    const spoken = { tabindex: i ? -1 : 0, role: "button", "aria-label": text };
    const dot = svg("circle", { ...where, ...spoken, class: how.classOf(point) });
    const choose = () => showPoint(detail, point, how.facts(point), dot);
    for (const event of ["mouseenter", "focus", "click"]) dot.addEventListener(event, choose);
    dot.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (event.key === "Enter") compareWith(point.format);
      if (!step || !dots[i + step]) return;
      event.preventDefault();
      dot.setAttribute("tabindex", -1);
      dots[i + step].setAttribute("tabindex", 0);
      dots[i + step].focus();
    });
    return dot;
  });
  const [named, others] = [true, false].map((wanted) => dots.filter((_, i) => how.named(points[i]) === wanted));
  at.root.append(...others, ...named);
  for (const p of points.filter(how.named)) {
    at.root.append(label(p.format, at.x(costOf(p)), at.y(p.qsnr_db), placed, at.width));
  }
  plot.replaceChildren(at.root);
}

function showPoint(detail, point, facts, dot) {
  for (const other of dot.parentNode.querySelectorAll("circle.chosen")) other.classList.remove("chosen");
  dot.classList.add("chosen");
  const copy = make("button", { type: "button" }, "Copy");
  copy.addEventListener("click", () => navigator.clipboard?.writeText(point.command));
  const compare = make("button", { type: "button" }, "Compare above");
  compare.addEventListener("click", () => compareWith(point.format));
  detail.replaceChildren(
    make("b", {}, point.format),
    make("p", {}, facts),
    make("div", { class: "row" }, [make("code", {}, point.command), copy, compare]),
  );
}

// Puts a format, by its name or string, into the right panel.
function compareWith(name) {
  const known = Object.hasOwn(CATALOG, name);
  byId("format-b").value = known ? name : COMPOSED;
  if (!known) byId("string-b").value = name;
  update();
  byId("encode").scrollIntoView();
  byId("format-b").focus({ preventScroll: true });
}

const ours = (point) => (point.family === "AXS-6" ? "ours" : "");

function showCosts() {
  const name = byId("axis").value;
  const facts = (p) =>
    `${p.qsnr_db.toFixed(2)} dB, ${amount(p.bits)} bits a value (${amount(p.memory_bits)} in memory). ` +
    `A dot product of ${p.lanes} lanes: ${amount(p.dot_area)} µm², ${amount(p.delay_ps / 1000)} ns` +
    `${p.mac_fj ? `, ${amount(p.mac_fj)} fJ a MAC` : ""}.`;
  const how = { name, of: BLOCK_COSTS[name], classOf: ours, named: () => true, facts };
  drawPoints(byId("scatter"), byId("point"), MEASURED.costs, how);
}

function showStudy() {
  const { points, lanes, command } = MEASURED.pareto;
  const name = byId("study-axis").value;
  const family = byId("family").value;
  const chosen = (p) => family === ALL || p.family === family;
  const energy = ({ format }) => {
    const found = MEASURED.costs.find((each) => each.format === format && each.mac_fj);
    return found ? ` A MAC of its block dot product takes ${amount(found.mac_fj)} fJ.` : "";
  };
  const facts = (p) =>
    `${p.family}. ${p.qsnr_db.toFixed(2)} dB. A dot product of ${lanes} lanes has ${amount(p.area)} of FP8's area ` +
    `and takes ${amount(p.delay_ps / 1000)} ns; 256 values in memory, ${amount(p.memory)} of FP8's ` +
    `(${amount(p.memory * 8)} bits a value).${energy(p)}`;
  const all = points.map((p) => ({ ...p, command: command.replaceAll("FORMAT", p.format) }));
  const named = (p) => (family === ALL ? p.named : chosen(p) && p.named);
  const classOf = (p) => (chosen(p) ? ours(p) : "other");
  drawPoints(byId("study"), byId("study-point"), all, { name, of: STUDY_COSTS[name], classOf, named, facts });
}

function showPoints() {
  const columns = {
    format: (p) => p.format,
    bits: (p) => p.bits,
    "in memory": (p) => p.memory_bits,
    "QSNR dB": (p) => p.qsnr_db,
    lanes: (p) => p.lanes,
    "area µm²": (p) => p.dot_area,
    "delay ps": (p) => p.delay_ps,
    "fJ a MAC": (p) => p.mac_fj,
    "encoder µm²": (p) => p.encoder_area,
    "decoder µm²": (p) => p.decoder_area,
  };
  const cell = (x) => (x === null ? "-" : typeof x === "number" ? amount(x) : x);
  const rows = MEASURED.costs.map((p) => Object.values(columns).map((of) => cell(of(p))));
  byId("points").replaceChildren(...tableParts(Object.keys(columns), rows));
}

function startCosts() {
  byId("axis").append(...options(Object.keys(BLOCK_COSTS)));
  byId("axis").addEventListener("change", showCosts);
  const { points, formats, lanes } = MEASURED.pareto;
  byId("study-text").textContent =
    `${points.length.toLocaleString("en")} of the ${formats.toLocaleString("en")} formats of the Pareto study, ` +
    `each measured by synthesis: QSNR of 10,000 vectors against a dot product of ${lanes} lanes with the accumulator ` +
    "of the shared-microexponents paper, and 256 values in memory lines of 64 bytes, over those of FP8.";
  byId("study-axis").append(...options(Object.keys(STUDY_COSTS)));
  byId("family").append(...options([ALL, ...new Set(points.map((p) => p.family))]));
  for (const id of ["study-axis", "family"]) byId(id).addEventListener("change", showStudy);
  showCosts();
  showPoints();
  showStudy();
}

startEncoding();
startCosts();
startAccumulators();
byId("footer").replaceChildren(...MEASURED.sources.map((source) => make("p", {}, source)));
window.addEventListener("resize", () => {
  update();
  showCosts();
  showStudy();
  showLines();
});
