// Draws the comparison and the report. All that comes from the data goes in as text.

const KNOWN = ["auto", "hybrid", "quantile", "kmeans", "optimal", "uniform", "shared", "auto-bins"];
const PRINTED = {wide: 650, column: 420}; // widths of charts on paper, in pixels
const FONT = {fontSize: "11px", fontFamily: "inherit"};
const TIP = {fontSize: 12, lineHeight: 1.25, stroke: "var(--quiet)"};
const QUIET = {fill: "var(--quiet)"};

// ---- small things

/** An element with properties, attributes (names with a dash, and role) and children; strings become text. */
function el(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(properties)) {
    if (key.includes("-") || key === "role") node.setAttribute(key, value);
    else node[key] = value;
  }
  node.append(...children.flat().filter((child) => child != null && child !== false));
  return node;
}

const colorOf = (method) => `var(--${KNOWN.includes(method) ? method : "other"})`;

function swatch(method) {
  const node = el("span", {className: "swatch", "aria-hidden": "true"});
  node.style.setProperty("--color", colorOf(method));
  return node;
}

const DIGITS = new Intl.NumberFormat("en", {maximumFractionDigits: 20});

/** A number with the digits that it came with. */
function number(value) {
  if (value == null) return "—";
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e15 || size < 1e-4)) return String(value).replace("-", "−");
  return DIGITS.format(value).replace("-", "−");
}

/** How the values of a column are written: dates are held as seconds since 1970. */
function writer({is_date, low, high}) {
  if (!is_date) return number;
  const length = high - low > 5 * 86400 ? 10 : 16;
  return (seconds) => {
    if (seconds == null) return "—";
    const date = new Date(1000 * seconds);
    return Number.isNaN(date.getTime()) ? number(seconds) : date.toISOString().slice(0, length).replace("T", " ");
  };
}

const rounded = (value, digits = 3) => (value == null ? "—" : number(Number(value.toPrecision(digits))));

/** As many digits in every row of a table. */
function even(value, digits) {
  const isPlain = value != null && Math.abs(value) < 1e6 && Math.abs(value) >= 1e-3;
  return isPlain ? value.toPrecision(digits).replace("-", "−") : rounded(value, digits);
}

function percent(share) {
  if (share == null) return "—";
  if (share !== 0 && Math.abs(share) < 1e-6) return "≈ 0 %";
  return `${rounded(100 * share, Math.abs(share) >= 1e-3 ? 3 : 2)} %`;
}

const signed = (value) => (value == null ? "—" : `${value > 0 ? "+" : ""}${value.toFixed(1).replace("-", "−")} %`);

const plural = (n, one) => `${number(n)} ${one}${n === 1 ? "" : "s"}`;

const spaced = (name) => name.replaceAll("_", " ");

function facts(pairs) {
  const shown = pairs.filter(([, value]) => value != null);
  const pair = ([key, value]) => el("div", {}, el("dt", {}, key), el("dd", {}, value));
  return el("dl", {className: "facts"}, shown.map(pair));
}

/** A table in a box of its own that scrolls; the first cell of each row is its head. */
function table(label, heads, rows, className = "") {
  const row = ({cells, className: rowClass = ""}) =>
    el("tr", {className: rowClass}, cells.map((cell, i) => el(i ? "td" : "th", i ? {} : {scope: "row"}, cell)));
  return el("div", {className: "scroll", tabIndex: 0, role: "region", "aria-label": label},
    el("table", {className},
      el("thead", {}, el("tr", {}, heads.map((head) => el("th", {scope: "col"}, head)))),
      el("tbody", {}, rows.map(row))));
}

const figure = (label, className = "") => el("figure", {className, role: "img", "aria-label": label});

const items = (className, sentences) => el("ul", {className}, sentences.map((said) => el("li", {}, said)));

// ---- the head

function head({comparison, report}) {
  const verdicts = [
    comparison && [`Trained: ${comparison.library_title} with the bins of each method`, comparison.verdict],
    report && ["Not trained: what the bins keep of each column", report.verdict],
  ].filter(Boolean);
  const notes = [...new Set([...(comparison?.notes ?? []), ...(report?.notes ?? [])])];
  return el("header", {className: "head"},
    el("p", {className: "brand"}, "boostbins: where the bins of gradient-boosted trees go, and what that is worth"),
    el("h1", {}, (comparison ?? report).title),
    facts([
      ["rows", number((comparison ?? report).rows)],
      ["columns", number(comparison?.columns ?? report.columns.length)],
      ["target", report?.target ?? comparison?.target],
      ["library", comparison && `${comparison.library_title} ${comparison.library_version}`],
      ["task", comparison?.task],
      ["metric", comparison && spaced(comparison.metric)],
      ["splits", comparison && number(comparison.splits)],
    ]),
    el("div", {className: "verdicts"}, verdicts.map(([title, sentences]) => [
      verdicts.length > 1 && el("h2", {}, title),
      sentences.map((sentence) => el("p", {}, sentence)),
    ]).flat(2)),
    notes.length > 0 && el("div", {className: "notes"}, "Notes", items("", notes)));
}

// ---- the comparison

function comparisonPart(comparison) {
  const level = `${Math.round(100 * comparison.confidence)} %`;
  const error = `${comparison.less_is_better ? "the" : "1 −"} ${spaced(comparison.metric)}`;
  const chart = figure(`Change of the error by method, with ${level} intervals; the table below has the numbers`);
  const draw = (width) => chart.replaceChildren(changeChart(comparison, width));
  onWidth(chart, draw);
  addEventListener("beforeprint", () => draw(PRINTED.wide));
  addEventListener("afterprint", () => draw(chart.clientWidth));
  return el("section", {},
    el("h2", {}, `The error, compared with ${comparison.library_title}’s own bins`),
    el("p", {className: "lead"},
      `Left is better: the error, which is ${error}, is lower. Lines are ${level} intervals that are right for all of `
      + "them at once (simultaneous), of splits that overlap (by Nadeau and Bengio’s correction). Small dots are the "
      + `single splits. The shaded band, ±${number(comparison.matters)} %, is too little to matter. `
      + `The table’s intervals of a score are ${level} each.`),
    comparison.table.some(isChange) && el("div", {className: "panel"}, chart),
    el("div", {className: "panel"}, comparisonTable(comparison)),
    comparison.snippet && snippet(comparison.snippet));
}

const isChange = (row) => row.meaning !== "" && row.change != null;

function changeChart({table: rows, scores, matters, library_title}, width) {
  const changed = rows.filter(isChange);
  const base = new Map(scores.filter((s) => s.method === "native").map((s) => [`${s.split} ${s.max_bins}`, s.error]));
  const splits = scores
    .map((s) => ({...s, change: 100 * (s.error / base.get(`${s.split} ${s.max_bins}`) - 1)}))
    .filter((s) => s.method !== "native" && Number.isFinite(s.change));
  const budgets = [...new Set(changed.map((row) => row.max_bins))];
  const methods = [...new Set(changed.map((row) => row.method))];
  const color = (row) => `var(--${["better", "worse"].includes(row.meaning) ? row.meaning : "neutral"})`;
  const fill = (row) => (row.meaning === "unclear" ? "var(--surface)" : color(row));
  const at = {y: "method", fy: "max_bins"};
  const said = (row) => [
    `${row.method}, ${row.max_bins} bins: ${row.meaning}`,
    `change ${signed(row.change)}`,
    `interval ${signed(row.change_low)} to ${signed(row.change_high)}`,
    `score ${even(row.score, 4)}`,
  ].join("\n");
  return Plot.plot({
    width, style: FONT, marginLeft: 76, marginRight: 64, marginTop: 40, marginBottom: 40,
    height: 76 + budgets.length * (methods.length * 34 + 30),
    x: {
      label: "change of the error, in %", labelAnchor: "center", labelArrow: "none", tickFormat: number,
      ticks: Math.max(4, Math.round(width / 110)), nice: true, inset: 6,
    },
    y: {domain: methods, label: null, tickSize: 0, type: "point", padding: 0.6},
    fy: {domain: budgets, axis: null, padding: 0.18},
    marks: [
      Plot.rect(budgets, {fy: (d) => d, x1: -matters, x2: matters, fill: "var(--neutral)", fillOpacity: 0.14}),
      Plot.gridX({stroke: "var(--line)", strokeOpacity: 1}),
      Plot.ruleX([0], {stroke: "var(--ink)", strokeWidth: 1.2}),
      Plot.text(budgets, {
        fy: (d) => d, text: (d) => `${d} bins`, frameAnchor: "top-left", dx: -70, dy: -14, fontWeight: 600,
      }),
      Plot.text(budgets.slice(0, 1), {
        fy: (d) => d, x: 0, text: () => `${library_title}’s own bins`, frameAnchor: "top", dy: -14, ...QUIET,
      }),
      Plot.ruleY(changed, {
        ...at, x1: "change_low", x2: "change_high", stroke: color, strokeWidth: 2.5, strokeLinecap: "round",
      }),
      Plot.dot(splits, {...at, x: "change", dy: 9, r: 2, fillOpacity: 0.75, ...QUIET}),
      Plot.dot(changed, {...at, x: "change", r: 5, stroke: color, strokeWidth: 2, fill}),
      Plot.text(changed, {
        ...at, text: "meaning", frameAnchor: "right", dx: 10, textAnchor: "start", fill: color, fontWeight: 600,
      }),
      Plot.tip(changed, Plot.pointer({...at, x: "change", title: said, maxRadius: 60, ...TIP})),
    ],
  });
}

function comparisonTable({table: rows, metric, less_is_better}) {
  const interval = (low, high, show) =>
    low != null && el("span", {className: "interval"}, `${show(low)} to ${show(high)}`);
  const score = (value) => even(value, 4);
  const scores = `${spaced(metric)} (${less_is_better ? "less" : "more"} is better)`;
  const heads = ["method", "bins", scores, "change of the error", "meaning", "seconds per fit", "time ratio"];
  return table("Scores by method", heads, rows.map((row, i) => {
    const isNative = row.meaning === "";
    return {
      className: row.max_bins === rows[i - 1]?.max_bins ? "" : "group",
      cells: [
        isNative ? row.method : [swatch(row.method), row.method],
        number(row.max_bins),
        [score(row.score), interval(row.score_low, row.score_high, score)],
        isNative ? "" : [signed(row.change), interval(row.change_low, row.change_high, signed)],
        el("span", {className: row.meaning}, row.meaning),
        even(row.seconds, 3),
        `${row.time_ratio == null ? "—" : row.time_ratio.toFixed(2)} ×`,
      ],
    };
  }));
}

function snippet(text) {
  const code = el("pre", {tabIndex: 0}, text);
  const button = el("button", {type: "button"}, "Copy");
  const said = el("span", {className: "hidden-label", role: "status"});
  button.onclick = async () => {
    try {
      await navigator.clipboard.writeText(text);
    } catch { // a frame, e.g. of a notebook, may not write to the clipboard
      getSelection().selectAllChildren(code);
      document.execCommand("copy");
    }
    button.textContent = said.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 2000);
  };
  return el("div", {className: "panel code"}, el("h3", {}, "The change"), button, said, code);
}

/** Call back when the width of an element becomes known, and whenever it changes. */
function onWidth(node, callback) {
  let width = 0;
  new ResizeObserver(() => {
    if (node.clientWidth !== width && !matchMedia("print").matches) {
      width = node.clientWidth;
      callback(width);
    }
  }).observe(node);
}

// ---- the report

/** How columns are ordered: from the largest key, which may follow other settings; or by name, without one. */
const SORTS = {
  gain: {title: "gain by k-means", key: (column, {budget}) => gain(column, budget), follows: ["budget"]},
  lost: {
    title: "lost by the chosen method",
    key: (column, {budget, method}) => column.binned[budget][method].lost,
    follows: ["budget", "method"],
  },
  skew: {title: "skew", key: (column) => (column.skew == null ? null : Math.abs(column.skew))},
  missing: {title: "missing", key: (column) => column.missing},
  distinct: {title: "distinct values", key: (column) => column.distinct},
  name: {title: "name"},
};

function gain(column, budget) {
  const {quantile, kmeans} = column.binned[budget];
  return (quantile.lost ?? 0) - (kmeans.lost ?? 0);
}

function reportPart(report) {
  const state = {search: "", sort: "gain", method: "kmeans", budget: String(report.max_bins[0]), axis: "linear"};
  const list = el("div", {className: "list"});
  const count = el("output", {className: "count", "aria-live": "polite"});
  const cards = report.columns.map((column) => new Card(column, report, state));
  const cardOf = new Map(cards.map((card) => [card.node, card]));
  const near = new Set(); // the cards that are in sight, or almost
  const drawNear = () => near.forEach((card) => card.draw());
  let shown = [];

  const observer = new IntersectionObserver((entries) => {
    for (const {target, isIntersecting} of entries) near[isIntersecting ? "add" : "delete"](cardOf.get(target));
    drawNear();
  }, {rootMargin: "300px 0px"});
  const arrange = () => {
    shown = arranged(cards, state);
    list.replaceChildren(...shown.map((card) => card.node));
    if (!shown.length) list.append(el("p", {className: "card"}, `No column has “${state.search}” in its name.`));
    const all = plural(cards.length, "column");
    count.textContent = shown.length === cards.length ? all : `${number(shown.length)} of ${all}`;
    observer.disconnect();
    near.clear();
    shown.forEach((card) => observer.observe(card.node)); // it reports, and so draws, what is in sight now
  };
  const change = (name, value) => {
    state[name] = value;
    const isNewList = name === "search" || name === "sort";
    if (isNewList || SORTS[state.sort].follows?.includes(name)) arrange();
    else drawNear();
    if (isNewList && list.getBoundingClientRect().top < 0) list.scrollIntoView();
  };
  onWidth(list, drawNear);
  addEventListener("beforeprint", () => shown.forEach((card) => card.draw(true)));
  addEventListener("afterprint", drawNear);
  arrange();
  return el("section", {},
    el("h2", {}, "The columns"),
    el("p", {className: "lead"},
      `${plural(report.rows, "row")}; nothing is trained here. Lost is the part of a column’s variance that lies `
      + "within bins, where no tree can split. Grey bars are the rows; the tinted bands over them are the bins of the "
      + "chosen method. Below are the cuts of every method."),
    toolbar(report, state, change, count),
    list);
}

function arranged(cards, state) {
  const wanted = state.search.trim().toLowerCase();
  const found = cards.filter(({column}) => column.name.toLowerCase().includes(wanted));
  const {key} = SORTS[state.sort];
  const {compare} = new Intl.Collator("en", {numeric: true});
  if (!key) return found.sort((a, b) => compare(a.column.name, b.column.name));
  return d3.sort(found, (card) => -(key(card.column, state) ?? -Infinity));
}

function toolbar(report, state, change, count) {
  const many = report.columns.length > 1;
  const search = el("input", {type: "search", id: "search", placeholder: "part of a name", autocomplete: "off"});
  search.oninput = () => change("search", search.value);
  const sort = el("select", {onchange: () => change("sort", sort.value)},
    Object.entries(SORTS).map(([value, {title}]) => el("option", {value}, title)));
  const radio = (name, value) =>
    el("input", {type: "radio", name, value, checked: state[name] === value, onchange: () => change(name, value)});
  const choice = (title, name, options) => options.length > 1 && el("fieldset", {className: "choice"},
    el("legend", {}, title),
    el("div", {}, options.map(([value, ...label]) => el("label", {}, radio(name, value), ...label))));
  const hasAxes = report.columns.some((column) => column.histograms.length > 1);
  return el("div", {className: "toolbar", role: "group", "aria-label": "Which columns, and how"},
    many && el("div", {className: "search"}, el("div", {}, el("label", {htmlFor: "search"}, "Search"), count), search),
    many && el("label", {className: "field sort"}, el("span", {}, "Sort by"), sort),
    choice("Bins of", "method", report.methods.map((method) => [method, swatch(method), method])),
    choice("At most", "budget", report.max_bins.map((n) => [String(n), `${n} bins`])),
    hasAxes && choice("Axis", "axis", [["linear", "linear"], ["log", "log"]]));
}

/** A column: its name at once, all else when it comes into sight. */
class Card {
  constructor(column, report, state) {
    Object.assign(this, {column, report, state, drawn: ""});
    this.node = el("article", {className: "card"}, el("h3", {}, column.name));
  }

  draw(isPrinted = false) {
    const {method, budget, axis} = this.state;
    const key = [method, budget, axis, isPrinted || this.node.clientWidth].join(" ");
    if (key === this.drawn) return;
    this.drawn = key;
    const {column, report} = this;
    const binned = column.binned[budget];
    const bins = binsOf(column, binned[method]);
    const isOpen = this.node.querySelector("details")?.open ?? false;
    const chart = figure(`Distribution of ${column.name}, and its bins by ${method}, at most ${budget}`, "distribution");
    this.node.replaceChildren(
      el("header", {}, el("h3", {}, column.name), gainSaid(column, budget)),
      el("div", {className: "body"},
        el("div", {},
          keyNumbers(column, budget),
          column.spotted[budget].length > 0 && items("spotted", column.spotted[budget]),
          costTable(report.methods, binned, method)),
        column.histograms.length
          ? el("div", {}, chart, everyBin(bins, method, report.target, isOpen), choicePart(binned))
          : el("p", {className: "nothing"}, whyNoChart(column))));
    if (column.histograms.length) {
      const histogram = column.histograms[axis === "log" ? 1 : 0] ?? column.histograms[0];
      const width = isPrinted ? PRINTED.column : chart.clientWidth;
      chart.append(columnChart({column, histogram, bins, binned, method, report, width, isPrinted}));
    }
  }
}

function whyNoChart(column) {
  const {rows, missing, low, high} = column;
  if (missing === rows) return "Every value is missing: there is nothing to bin.";
  if (low == null) return "No value is finite: there is nothing to bin.";
  if (low === high) return `Every value is ${writer(column)(low)}: there is nothing to bin.`;
  return "The range is too wide to draw.";
}

function gainSaid(column, budget) {
  return el("p", {title: "The part of the variance that quantile bins lose and k-means bins keep"},
    "gain by k-means ", el("strong", {}, percent(gain(column, budget))));
}

function keyNumbers(column, budget) {
  const {low, high} = column;
  const offset = Math.max(Math.abs(low), Math.abs(high)) / (high - low);
  const more = offset < Infinity ? Math.ceil(Math.log10(Math.max(1, offset))) : 2;
  const digits = Math.min(17, 4 + more); // so that the ends differ
  const said = column.is_date ? writer(column) : (value) => rounded(value, digits);
  return facts([
    ["range", low == null ? "—" : `${said(low)} to ${said(high)}`],
    ["mean", said(column.mean)],
    ["distinct", `${column.is_exact ? "" : "≥ "}${number(column.distinct)}`],
    ["skew", rounded(column.skew)],
    ...(column.shares[budget] ? [["bins it needs", `${number(column.shares[budget].bins)}, if ${budget} on average`]] : []),
    ["missing", column.missing ? `${number(column.missing)} (${percent(column.missing / column.rows)})` : "none"],
  ]);
}

function costTable(methods, binned, chosen) {
  const heads = ["method", "bins", "lost", "largest bin", "values in it"];
  const rows = methods.map((method) => {
    const {weight, lost, largest_bin, hidden} = binned[method];
    return {
      className: method === chosen ? "chosen" : "",
      cells: [[swatch(method), method], number(weight.length), percent(lost), percent(largest_bin), number(hidden)],
    };
  });
  return table("What the bins cost, by method", heads, rows, "costs");
}

/** What auto chose and why: how much more of the target each candidate explains than the usual one, and by chance. */
function choicePart(binned) {
  const choice = Object.values(binned).find((found) => found.choice)?.choice;
  if (!choice) return null;
  const {chosen, usual, why, explained, noise} = choice;
  const candidates = d3.sort(Object.keys(explained), (name) => -explained[name]).map((name) => ({
    name, share: explained[name], more: explained[name] - explained[usual], chance: 3 * (noise[name] ?? 0),
  }));
  const said = el("p", {}, "auto chose ", el("strong", {}, chosen), candidates.length ? `, which ${why}.` : `: ${why}.`);
  if (!candidates.length) return el("div", {className: "auto"}, said);
  const chart = figure(`What each candidate explains of the target, compared with ${usual}, and by chance`);
  chart.append(choiceChart(candidates, chosen, usual));
  return el("div", {className: "auto"}, said, chart);
}

function choiceChart(candidates, chosen, usual) {
  const color = ({name}) => (name === chosen ? "var(--auto)" : "var(--quiet)");
  const weight = ({name}) => (name === chosen ? 700 : 400);
  const y = {y: "name"};
  const [low, high] = d3.extent(candidates.flatMap(({more, chance}) => [more, chance, -chance]));
  const x = {domain: low < high ? [low, high] : [-1, 1], range: [98, 266]};
  return Plot.plot({
    width: 330, height: 46 + 17 * candidates.length, style: FONT,
    marginLeft: 92, marginRight: 58, marginTop: 4, marginBottom: 34,
    x: {
      ...x, label: `explained, compared with ${usual}; grey: within chance`, labelAnchor: "center", labelArrow: "none",
      ticks: apart([0, ...d3.ticks(...x.domain, 3)], Plot.scale({x}), 54), tickFormat: percent,
    },
    y: {domain: candidates.map(({name}) => name), label: null, axis: null, type: "band", padding: 0.3},
    marks: [
      Plot.barX(candidates, {...y, x1: ({chance}) => -chance, x2: "chance", fill: "var(--bars)", fillOpacity: 0.5}),
      Plot.ruleX([0], {stroke: "var(--quiet)"}),
      Plot.dot(candidates, {...y, x: "more", r: 4, fill: color}),
      Plot.text(candidates, {
        ...y, text: "name", frameAnchor: "left", dx: -8, textAnchor: "end", fill: color,
        fontWeight: weight,
      }),
      Plot.text(candidates, {
        ...y, text: ({share}) => percent(share), frameAnchor: "right", dx: 54, textAnchor: "end", fill: color,
      }),
    ],
  });
}

/** The bins of a method with their ends, which are the column's own at both ends. */
function binsOf(column, {cuts, weight, distinct, target}) {
  const {low, high, is_exact} = column;
  const said = writer(column);
  const total = d3.sum(weight);
  const inside = (x) => Math.min(Math.max(x, low), high);
  return weight.map((rows, i) => ({
    low: i ? inside(cuts[i - 1]) : low,
    high: i < cuts.length ? inside(cuts[i]) : high,
    cuts: [cuts[i - 1], cuts[i]],
    said,
    rows,
    share: total ? rows / total : 0,
    distinct: distinct[i],
    isExact: is_exact,
    target: target?.[i],
  }));
}

function rangeSaid({cuts: [low, high], said}) {
  if (low == null && high == null) return "every value";
  if (low == null) return `x ≤ ${said(high)}`;
  return high == null ? `x > ${said(low)}` : `${said(low)} < x ≤ ${said(high)}`;
}

const distinctSaid = (bin) => `${bin.isExact ? "" : "≥ "}${number(bin.distinct)}`;

function binSaid(bin, target) {
  return [
    rangeSaid(bin),
    `${plural(bin.rows, "row")} (${percent(bin.share)})`,
    `${distinctSaid(bin)} distinct ${bin.distinct === 1 ? "value" : "values"}`,
    ...(target != null && bin.target != null ? [`mean of ${target}: ${rounded(bin.target, 5)}`] : []),
  ].join("\n");
}

/** The numbers of all bins for those who cannot hover; made when it is opened. */
function everyBin(bins, method, target, isOpen) {
  const withTarget = (cells, last) => (target == null ? cells : [...cells, last]);
  const heads = withTarget(["bin", "rows", "share", "distinct"], `mean of ${target}`);
  const row = (bin) => ({
    cells: withTarget(
      [rangeSaid(bin), number(bin.rows), percent(bin.share), distinctSaid(bin)], rounded(bin.target, 5)),
  });
  const summary = el("summary", {}, `${plural(bins.length, "bin")} of ${method}, as a table`);
  const details = el("details", {className: "every-bin", open: isOpen}, summary);
  details.ontoggle = () => {
    if (!details.open || details.querySelector("table")) return;
    details.append(table(`Bins of ${method}`, heads, bins.map(row)));
  };
  return details;
}

// ---- a column's chart

/** One picture of three parts with a common x: rows, the target's mean, cuts. Its y are pixels. */
function columnChart({column, histogram, bins, binned, method, report, width, isPrinted}) {
  const margin = {left: Math.min(76, 14 + 7 * d3.max(report.methods, (name) => name.length)), right: 16};
  const parts = layout(report, isPrinted);
  const {axis: type, constant, edges, weight} = histogram;
  const range = [margin.left, width - margin.right];
  const x = {type, domain: [column.low, column.high], range, ...(type === "symlog" && {constant})};
  const xOf = Plot.scale({x});
  const color = colorOf(method);
  const bars = d3.zip(edges, edges.slice(1), weight).filter(([, , rows]) => rows > 0);
  const rows = rowsScale(bars.map((bar) => bar[2]), parts.rows);
  const {top, bottom} = parts.rows;
  return Plot.plot({
    width, height: parts.height, style: FONT, x: {...x, label: null}, y: {type: "identity", axis: null},
    marginLeft: margin.left, marginRight: margin.right, marginTop: 0, marginBottom: 24,
    marks: [
      axisAt(rows.ticks, rows.apply, "rows per bar", top, margin),
      Plot.rect(bars, {x1: "0", x2: "1", y1: bottom, y2: (bar) => rows.apply(bar[2]), fill: "var(--bars)"}),
      Plot.rect(bandsOf(bins, xOf), {x1: "low", x2: "high", y1: top, y2: bottom, fill: color, fillOpacity: "tint"}),
      Plot.ruleY([bottom], {stroke: "var(--quiet)"}),
      parts.target && targetMarks(binned, bins, color, report.target, parts.target, margin),
      report.methods.map((name, i) =>
        cutMarks(column, binned[name].cuts, name, name === method, parts.cuts.top + i * parts.cuts.step)),
      Plot.axisX({anchor: "bottom", stroke: "var(--quiet)", ...(column.is_date ? dateTicks(column, xOf, width) : ticksOf(xOf, width))}),
      !isPrinted && hoverMarks(bins, xOf, color, report.target, parts, width),
    ].filter(Boolean),
  });
}

/** Bins in two tints by turns; those too narrow to tell apart become one dark band. */
function bandsOf(bins, xOf) {
  const bands = [];
  for (const {low, high} of bins) {
    const isNarrow = Math.abs(xOf.apply(high) - xOf.apply(low)) < 1.5;
    const last = bands.at(-1);
    if (isNarrow && last?.isNarrow) last.high = high;
    else bands.push({low, high, isNarrow, tint: isNarrow ? 0.33 : last?.tint === 0.1 ? 0.25 : 0.1});
  }
  return bands;
}

/** Where the parts of a chart are; on paper they are lower, for three columns on a page. */
function layout(report, isPrinted) {
  const rows = {top: 22, bottom: isPrinted ? 96 : 142};
  const below = rows.bottom + 30;
  const target = report.target == null ? null : {top: below, bottom: below + (isPrinted ? 42 : 72)};
  const top = (target ?? rows).bottom + 14;
  const step = 17;
  const bottom = top + step * report.methods.length;
  return {rows, target, cuts: {top, step, bottom}, height: bottom + 26};
}

/** A scale on which one row can be seen beside a million. */
function rowsScale(rows, {top, bottom}) {
  const most = d3.max(rows);
  const least = Math.max(d3.min(rows), most / 1e6);
  const scale = Plot.scale({y: {type: "symlog", constant: least, domain: [0, most], range: [bottom, top]}});
  const powers = powersOfTen(least, most);
  return {...scale, ticks: apart(powers.length > 1 ? [0, ...powers] : d3.ticks(0, most, 4), scale, 15)};
}

/** From the largest to the smallest. */
function powersOfTen(low, high) {
  return d3.range(Math.ceil(Math.log10(low)), Math.log10(high) + 1e-9).map((k) => Number(`1e${k}`)).reverse();
}

/** Ticks in their order, without those that are too near to one before. */
function apart(ticks, scale, gap) {
  const kept = [];
  for (const tick of ticks) {
    if (kept.every((other) => Math.abs(scale.apply(other) - scale.apply(tick)) >= gap)) kept.push(tick);
  }
  return kept;
}

const compact = (value) => {
  const size = Math.abs(value);
  return d3.format(size >= 1e15 || (size > 0 && size < 1e-3) ? "~e" : size >= 1e3 ? "~s" : "~g")(value);
};

function axisAt(ticks, apply, label, top, {left}) {
  return [
    Plot.ruleY(ticks, {y: apply, stroke: "var(--line)"}),
    Plot.text(ticks, {y: apply, text: compact, frameAnchor: "left", dx: -6, textAnchor: "end", ...QUIET}),
    Plot.text([label], {
      y: top - 14, frameAnchor: "left", dx: -left, lineWidth: 25, textOverflow: "ellipsis", ...QUIET,
    }),
  ];
}

/** The ticks of an x axis: powers of ten if it is logarithmic and has some. */
function ticksOf(scale, width) {
  const [low, high] = scale.domain;
  const wanted = Math.max(3, Math.floor(width / 90));
  if (scale.type !== "linear") {
    const sizes = powersOfTen(scale.constant ?? low, Math.max(-low, high));
    const powers = [0, ...sizes, ...sizes.map((size) => -size)].filter((tick) => tick >= low && tick <= high);
    const ticks = apart(powers, scale, 44);
    if (ticks.length > 1) return {ticks, tickFormat: compact};
  }
  const most = Math.max(-low, high);
  const kind = most >= 1e15 || most < 1e-3 ? "~e" : most >= 1e4 ? "~s" : undefined;
  const format = d3.tickFormat(low, high, wanted, kind);
  const every = d3.ticks(low, high, wanted);
  const ticks = apart(every, scale, Math.max(44, 8 * d3.max(every, (tick) => format(tick).length)));
  return {ticks, tickFormat: (tick) => (tick === 0 ? "0" : format(tick))};
}

function dateTicks(column, scale, width) {
  const dates = scale.domain.map((seconds) => new Date(1000 * seconds));
  const wanted = Math.max(2, Math.floor(width / 130));
  const ticks = apart(d3.utcTicks(...dates, wanted).map((date) => date / 1000), scale, 90);
  return {ticks, tickFormat: writer(column)};
}

function targetMarks(binned, bins, color, target, {top, bottom}, margin) {
  // The same for all methods, so that they can be compared.
  const [low, high] = d3.extent(Object.values(binned).flatMap((found) => found.target));
  if (low == null) return null;
  const domain = low < high ? d3.nice(low, high, 3) : [low - 1, high + 1];
  const scale = Plot.scale({y: {domain, range: [bottom, top]}});
  const means = bins.filter((bin) => bin.target != null).map((bin) => {
    const y = scale.apply(bin.target);
    return [bin.low, y, bin.high, y];
  });
  return [
    axisAt(apart(d3.ticks(...domain, 3), scale, 14), scale.apply, `mean of ${target}`, top, margin),
    strokes(means, {stroke: color, strokeWidth: 2, strokeLinecap: "round"}),
  ];
}

/** Straight strokes as one line with gaps: an element for each of a thousand would be slow. */
function strokes(ends, options) {
  const points = ends.flatMap(([x1, y1, x2, y2]) => [[x1, y1], [x2, y2], [NaN, NaN]]);
  return Plot.line(points, {strokeLinejoin: "miter", strokeLinecap: "butt", ...options});
}

function cutMarks(column, cuts, method, isChosen, top) {
  const stroke = colorOf(method);
  const inside = cuts.filter((cut) => cut >= column.low && cut <= column.high);
  const weight = isChosen ? {strokeWidth: 1.4} : {strokeWidth: 0.9, strokeOpacity: 0.7};
  const name = method.length > 11 ? `${method.slice(0, 10)}…` : method;
  return [
    strokes(inside.map((cut) => [cut, top + 1, cut, top + 14]), {stroke, ...weight}),
    Plot.text([name], {
      y: top + 7.5, frameAnchor: "left", dx: -8, textAnchor: "end", fill: stroke, fontWeight: isChosen ? 700 : 400,
    }),
  ];
}

/** Plot finds the point next to the pointer; a wide bin's middle may be far, so each pixel is a point. */
function hoverMarks(bins, xOf, color, target, parts, width) {
  const highs = bins.slice(0, -1).map((bin) => bin.high);
  const [left, right] = xOf.range;
  const reach = Math.min(120, width / 2); // of a tip that is to stay on a phone
  const points = d3.range(left, right + 1).map((pixel) => {
    const at = xOf.invert(pixel);
    const shown = xOf.invert(Math.min(Math.max(pixel, reach), width - reach));
    return {at, shown, ...bins[d3.bisectLeft(highs, at)]};
  });
  const place = width > 480 ? {x: "at", preferredAnchor: "left"} : {x: "shown", anchor: "top"};
  const title = (bin) => binSaid(bin, target);
  return [
    Plot.rect(points, Plot.pointerX({
      px: "at", x1: "low", x2: "high", y1: parts.rows.top, y2: parts.cuts.bottom,
      fill: color, fillOpacity: 0.22, stroke: color,
    })),
    Plot.tip(points, Plot.pointerX({px: "at", y: parts.rows.bottom - 34, title, ...place, ...TIP})),
  ];
}

// ---- all of it

async function unpacked() {
  const bytes = Uint8Array.from(atob(document.getElementById("data").textContent), (char) => char.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
}

try {
  const data = await unpacked();
  const {comparison, report} = data;
  const parts = [head(data), comparison && comparisonPart(comparison), report && reportPart(report)];
  document.getElementById("page").append(...parts.filter(Boolean));
} catch (error) {
  const said = `The page could not be drawn; it needs a browser of 2023 or later. (${error})`;
  document.getElementById("page").append(el("p", {className: "problem"}, said));
  throw error;
}
