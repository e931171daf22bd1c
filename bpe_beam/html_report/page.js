"use strict";
const $ = (id) => document.getElementById(id);
const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const DATA = JSON.parse($("data").textContent);
const number = (value) => value.toLocaleString("en-US");
const make = (tag, text, className) => {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (className) element.className = className;
  return element;
};
document.documentElement.classList.add("js");

// ---- light and dark ----

for (const input of all("input[name=theme]")) {
  input.addEventListener("change", () => {
    if (input.value === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = input.value;
  });
}

// ---- text of tokens; html_report/visible.py has the same rules ----

const HIDDEN = /[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}]/gu;
const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).toUpperCase().padStart(2, "0")).join(" ");
const visible = (token) => {
  if (typeof token !== "string") return `<${hex(token)}>`;
  const text = token.replace(HIDDEN, (character) => {
    const code = character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
    return character === "\n" ? "⏎" : `<U+${code}>`;
  });
  return /^\p{Mn}/u.test(text) ? `◌${text}` : text;
};
const bytesOf = (token) => (typeof token === "string" ? new TextEncoder().encode(token) : Uint8Array.from(token));
const keyOf = (bytes) => Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");

// ---- the tokens of a tokenizer, unpacked when they are needed ----

const packed = all("script.table");
const tables = new Map();
const unpack = async (which) => {
  const bytes = Uint8Array.from(atob(packed[which].textContent), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const table = JSON.parse(await new Response(stream).text());
  const size = table.text.length;
  const order = Array.from({ length: size }, (_, at) => at);
  order.sort((a, b) => table.count[b] - table.count[a] || a - b);
  table.place = new Array(size);
  order.forEach((at, place) => { table.place[at] = place + 1; });
  table.total = table.count.reduce((sum, count) => sum + count, 0);
  table.id = (at) => (table.ids ? table.ids[at] : at);
  if (table.rank) {
    let rank = 0;
    table.split.forEach((split, at) => { if (split) table.rank[at] = rank += table.rank[at]; });
  }
  return table;
};
const tableOf = (which) => {
  if (!tables.has(which)) tables.set(which, unpack(which));
  return tables.get(which);
};
const positions = (table) => {
  if (!table.positions) {
    table.positions = new Map();
    table.text.forEach((text, at) => {
      const key = keyOf(bytesOf(text));
      if (!(table.kinds[at] & 1) && !table.positions.has(key)) table.positions.set(key, at);
    });
  }
  return table.positions;
};
const parts = (table, at) => {
  if (!table.split || !table.split[at]) return null;
  if (table.made[at]) return table.made[at];
  const key = keyOf(bytesOf(table.text[at]));
  const known = positions(table);
  return [known.get(key.slice(0, table.split[at])), known.get(key.slice(table.split[at]))];
};
const kindsOf = (table, at) => DATA.kinds.filter((_, bit) => table.kinds[at] & (1 << bit));
const facts = (table, at) => [
  ["Id", String(table.id(at))],
  ["Bytes", hex(bytesOf(table.text[at]))],
  ["Occurs", table.total ? `${number(table.count[at])} (${(100 * table.count[at] / table.total).toPrecision(3)} %)` : number(table.count[at])],
  ["Rank", `${number(table.place[at])} of ${number(table.text.length)}`],
  ...(table.split && table.split[at] ? [["Merge", number(table.rank[at] + 1)]] : []),
  ...(kindsOf(table, at).length ? [["Kind", kindsOf(table, at).join(", ")]] : []),
];

// ---- what is shown beside the pointer or the focus ----

const tip = $("tip");
const showTip = (target, text) => {
  tip.textContent = text;
  tip.hidden = false;
  placeTip(target);
};
const placeTip = (target) => {
  const box = target.getBoundingClientRect();
  const own = tip.getBoundingClientRect();
  const left = Math.min(Math.max(4, box.left), document.documentElement.clientWidth - own.width - 4);
  const above = box.top - own.height - 6;
  tip.style.left = `${left}px`;
  tip.style.top = `${above > 4 ? above : box.bottom + 6}px`;
};
const hideTip = () => { tip.hidden = true; shown = null; };
let shown = null;
const tipFor = async (target) => {
  const mark = target.closest?.(".chart [role=graphics-symbol][aria-label]");
  if (mark) { shown = mark; return showTip(mark, mark.getAttribute("aria-label")); }
  const token = target.closest?.(".tokens > [data-t]");
  if (!token) return hideTip();
  shown = token;
  const table = await tableOf(tokenizerOf(token));
  const at = Number(token.dataset.t);
  const text = facts(table, at).map(([name, value]) => `${name}: ${value}`).join("\n");
  token.setAttribute("aria-describedby", "tip");
  if (shown === token) showTip(token, text);
};
const tokenizerOf = (token) => Number(token.closest("[data-number]").dataset.number);
document.addEventListener("pointerover", (event) => tipFor(event.target));
document.addEventListener("focusin", (event) => tipFor(event.target));
document.addEventListener("scroll", () => { if (!tip.hidden && shown) placeTip(shown); }, { capture: true, passive: true });
document.addEventListener("keydown", (event) => { if (event.key === "Escape") hideTip(); });

// ---- tokens of samples: one stop of the tab key a text, arrow keys within ----

const ready = new WeakSet();
const prepareTokens = (group) => {
  if (ready.has(group)) return;
  ready.add(group);
  for (const [at, token] of [...group.children].entries()) {
    token.setAttribute("role", "button");
    token.tabIndex = at ? -1 : 0;
    if (!token.textContent.trim()) token.setAttribute("aria-label", "blank");
  }
};
all(".tokens").forEach(prepareTokens);
document.addEventListener("keydown", (event) => {
  const token = event.target.closest?.(".tokens > [data-t]");
  if (!token) return;
  const moves = { ArrowRight: token.nextElementSibling, ArrowLeft: token.previousElementSibling,
    Home: token.parentElement.firstElementChild, End: token.parentElement.lastElementChild };
  const next = moves[event.key];
  if (next) {
    event.preventDefault();
    token.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  } else if (event.key === "Enter" || event.key === " ") {
    event.preventDefault();
    openToken(tokenizerOf(token), Number(token.dataset.t));
  }
});
document.addEventListener("click", (event) => {
  const token = event.target.closest?.(".tokens > [data-t]");
  if (token) openToken(tokenizerOf(token), Number(token.dataset.t));
});

// ---- a token and the tree of its merges ----

const branch = (table, at) => {
  const item = make("li");
  const node = make("span", visible(table.text[at]), "node");
  const both = parts(table, at);
  node.append(make("small", both ? `merge ${number(table.rank[at] + 1)}` : `id ${table.id(at)}`));
  item.append(node);
  if (both) {
    const list = make("ul");
    for (const one of both) if (one !== undefined) list.append(branch(table, one));
    item.append(list);
  }
  return item;
};
const treeOf = (table, at) => {
  const tree = make("ul", undefined, "tree");
  tree.append(branch(table, at));
  return tree;
};
const openToken = async (which, at) => {
  const table = await tableOf(which);
  hideTip();
  $("token-title").textContent = visible(table.text[at]);
  const list = $("token-facts");
  list.replaceChildren();
  for (const [name, value] of facts(table, at)) list.append(make("dt", name), make("dd", value));
  $("tree-title").hidden = !parts(table, at);
  $("token-tree").replaceChildren(...(parts(table, at) ? [treeOf(table, at)] : []));
  $("token").showModal();
};

// ---- panels of one tokenizer ----

for (const select of all("select[data-panels]")) {
  const panels = all(`[data-panel="${select.dataset.panels}"]`);
  const choose = () => panels.forEach((panel) => { panel.hidden = panel.dataset.number !== select.value; });
  all(".panel-title", document).forEach((title) => title.classList.add("hidden"));
  select.addEventListener("change", choose);
  choose();
}

// ---- tables that sort and filter ----

const valueOf = (row, column) => {
  const cell = row.cells[column];
  const text = cell.dataset.v ?? cell.textContent.trim();
  const value = Number(text.replace(/[,%]/g, "").trim());
  return text !== "" && !Number.isNaN(value) ? value : text;
};
const compare = (a, b) => {
  if (typeof a === "number" && typeof b === "number") return a - b;
  if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
  return a < b ? -1 : a > b ? 1 : 0;
};
const sortButton = (heading, onSort) => {
  const button = make("button", heading.textContent);
  button.type = "button";
  heading.replaceChildren(button);
  button.addEventListener("click", () => {
    const current = heading.getAttribute("aria-sort");
    const first = heading.classList.contains("number") ? "descending" : "ascending";
    const next = !current ? first : current === "ascending" ? "descending" : "ascending";
    for (const other of heading.parentElement.cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", next);
    onSort(next === "ascending" ? 1 : -1);
  });
};
for (const table of all("table[data-sort]")) {
  [...table.tHead.rows[0].cells].forEach((heading, column) => sortButton(heading, (sign) => {
    const rows = [...table.tBodies[0].rows];
    rows.sort((a, b) => sign * compare(valueOf(a, column), valueOf(b, column)));
    table.tBodies[0].append(...rows);
  }));
}
for (const input of all("input[data-filter]")) {
  const body = $(input.dataset.filter).tBodies[0];
  const count = document.querySelector(`[data-count="${input.dataset.filter}"]`);
  const filter = () => {
    const wanted = input.value.toLowerCase();
    let left = 0;
    for (const row of body.rows) {
      row.hidden = !(row.cells[0].dataset.v ?? row.cells[0].textContent).toLowerCase().includes(wanted);
      left += !row.hidden;
    }
    count.textContent = `${number(left)} of ${number(body.rows.length)}`;
  };
  input.addEventListener("input", filter);
  filter();
}

// ---- costs ----

$("width")?.addEventListener("input", () => {
  const width = $("width").valueAsNumber;
  if (!(width >= 1)) return;
  $("embedding").textContent = `Embedding of width ${number(width)}, parameters`;
  for (const cell of all("[data-ids]")) {
    const millions = { minimumFractionDigits: 1, maximumFractionDigits: 1 };
    cell.textContent = `${(cell.dataset.ids * width / 1e6).toLocaleString("en-US", millions)} M`;
  }
});

// ---- figures by source ----

if ($("source-figure")) {
  const table = $("source-table");
  const rows = new Map([...table.tBodies[0].rows].map((row, at) => [row, at]));
  $("source-figure").addEventListener("change", () => {
    const figure = DATA.sources[$("source-figure").value];
    const most = Math.max(...figure.values.flat().filter((value) => value !== null), 0);
    for (const [row, at] of rows) {
      figure.values.forEach((values, which) => {
        const value = values[at];
        const cell = row.cells[2 + which];
        cell.dataset.v = value ?? "";
        cell.children[0].style.setProperty("--w", `${most && value ? 100 * value / most : 0}%`);
        cell.children[1].textContent = value === null ? "–" : figure.share ? `${(100 * value).toFixed(1)} %`
          : figure.integer ? number(value) : value.toFixed(3);
      });
    }
    table.caption.textContent = `Figures by source: ${figure.title}`;
    for (const heading of table.tHead.rows[0].cells) heading.removeAttribute("aria-sort");
  });
}

// ---- all tokens ----

const PAGE = 50;
const explorer = { which: 0, key: "count", sign: -1, page: 0, found: [] };
const SORTS = {
  id: (table) => (a, b) => a - b,
  text: (table) => (a, b) => compare(visible(table.text[a]), visible(table.text[b])),
  length: (table) => (a, b) => table.lengths[a] - table.lengths[b],
  count: (table) => (a, b) => table.count[a] - table.count[b],
  place: (table) => (a, b) => table.place[a] - table.place[b],
};
const matching = async (table) => {
  const typed = $("token-search").value;
  const kind = $("token-kind").value;
  const found = [];
  const id = /^#\d+$/.test(typed) ? Number(typed.slice(1)) : null;
  const wanted = typed.toLowerCase();
  const asHex = /^([0-9a-f]{2})( [0-9a-f]{2})*$/i.test(typed.trim()) ? keyOf(typed.trim().split(" ").map((byte) => parseInt(byte, 16))) : null;
  let others = [];
  if (kind === "only") {
    others = (await Promise.all(packed.map((_, which) => which).filter((which) => which !== explorer.which).map(tableOf))).map(positions);
  }
  table.text.forEach((text, at) => {
    if (id !== null) { if (table.id(at) !== id) return; }
    else if (typed) {
      const shownText = typeof text === "string" ? text.toLowerCase() : "";
      const byBytes = asHex !== null && asHex.length > 1 - (typeof text !== "string") && keyOf(bytesOf(text)).includes(asHex);
      if (!shownText.includes(wanted) && !byBytes && !visible(text).toLowerCase().includes(wanted)) return;
    }
    if (kind === "only") {
      const key = keyOf(bytesOf(text));
      if (others.some((known) => known.has(key))) return;
    } else if (kind !== "" && !(table.kinds[at] & (1 << Number(kind)))) return;
    found.push(at);
  });
  return found;
};
let asked = 0;
const search = async () => {
  const mine = ++asked;
  const table = await tableOf(explorer.which);
  if (!table.lengths) table.lengths = table.text.map((text) => bytesOf(text).length);
  const found = await matching(table);
  if (mine !== asked) return;
  const order = SORTS[explorer.key](table);
  found.sort((a, b) => explorer.sign * order(a, b) || a - b);
  explorer.found = found;
  explorer.page = 0;
  showPage(table);
};
const showPage = (table) => {
  const { found, page } = explorer;
  const rows = found.slice(page * PAGE, (page + 1) * PAGE).map((at) => {
    const row = make("tr");
    const token = make("td");
    const button = make("button", visible(table.text[at]));
    button.type = "button";
    if (!button.textContent.trim()) button.setAttribute("aria-label", "blank");
    button.addEventListener("click", () => openToken(explorer.which, at));
    token.append(button);
    for (const kind of kindsOf(table, at)) token.append(make("span", kind, "kind"));
    row.append(make("td", table.id(at), "number"), token, make("td", hex(bytesOf(table.text[at])), "mono"),
      make("td", table.lengths[at], "number"), make("td", number(table.count[at]), "number"), make("td", number(table.place[at]), "number"));
    return row;
  });
  $("token-table").tBodies[0].replaceChildren(...rows);
  const last = Math.max(1, Math.ceil(found.length / PAGE));
  $("token-page").textContent = `${number(found.length)} tokens, page ${number(page + 1)} of ${number(last)}`;
  $("token-back").disabled = page === 0;
  $("token-next").disabled = page + 1 >= last;
};
const turn = (by) => async () => { explorer.page += by; showPage(await tableOf(explorer.which)); };
$("token-back").addEventListener("click", turn(-1));
$("token-next").addEventListener("click", turn(1));
$("token-search").addEventListener("input", search);
$("token-kind").addEventListener("change", search);
$("token-tokenizer")?.addEventListener("change", (event) => { explorer.which = Number(event.target.value); search(); });
for (const heading of all("#token-table th[data-key]")) {
  sortButton(heading, (sign) => { Object.assign(explorer, { key: heading.dataset.key, sign }); search(); });
  if (heading.dataset.key === "count") heading.setAttribute("aria-sort", "descending");
}

// ---- the merges of a word: BPE, one merge after another ----

const encode = (table, text) => {
  const known = positions(table);
  let tokens = Array.from(new TextEncoder().encode(text), (byte) => known.get(String.fromCharCode(byte)));
  const whole = table.whole ? known.get(keyOf(new TextEncoder().encode(text))) : undefined;
  if (whole !== undefined) return [whole];
  if (tokens.includes(undefined)) return null;
  if (!table.pairs) {
    table.pairs = new Map();
    table.split.forEach((split, at) => { if (split) table.pairs.set(parts(table, at).join(), at); });
  }
  for (;;) {
    let best = -1;
    let least = Infinity;
    for (let at = 0; at + 1 < tokens.length; at++) {
      const made = table.pairs.get(`${tokens[at]},${tokens[at + 1]}`);
      if (made !== undefined && table.rank[made] < least) { least = table.rank[made]; best = at; }
    }
    if (best < 0) return tokens;
    tokens.splice(best, 2, table.pairs.get(`${tokens[best]},${tokens[best + 1]}`));
  }
};
const showForest = async () => {
  const which = Number($("forest-tokenizer")?.value ?? 0);
  const text = [...$("forest-word").value].slice(0, 100).join("");
  const table = await tableOf(which);
  let tokens = null;
  let note = "";
  if (table.encodes) {
    tokens = encode(table, text);
    if (!tokens) note = "The vocabulary lacks a byte of this word.";
  } else {
    const word = DATA.words[which]?.[text];
    const at = positions(table).get(keyOf(new TextEncoder().encode(text)));
    tokens = word ?? (at === undefined ? null : [at]);
    if (!tokens) note = "Of this tokenizer, choose a word of the list, or type a token.";
  }
  if (tokens) note = `${number(tokens.length)} token${tokens.length === 1 ? "" : "s"}. The text is taken as one word; in running text most words begin with a space.`;
  $("forest-note").textContent = note;
  const forest = make("div", undefined, "forest");
  for (const token of tokens ?? []) forest.append(treeOf(table, token));
  $("forest").replaceChildren(forest);
};
$("forest-word").value = DATA.first_word;
$("forest-word").addEventListener("input", showForest);
$("forest-tokenizer")?.addEventListener("change", showForest);

// The tables are unpacked when someone comes near them: the page opens at once.
const near = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    if (!entry.isIntersecting) continue;
    near.unobserve(entry.target);
    if (entry.target === $("explorer")) search();
    else showForest();
  }
}, { rootMargin: "600px" });
near.observe($("explorer"));
near.observe($("forest-card"));
