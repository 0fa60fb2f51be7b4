"use strict";
// Keys, folds, comments on lines, and the news that something has changed.  The page works without.

const one = (query, within = document) => within.querySelector(query);
const all = (query, within = document) => [...within.querySelectorAll(query)];
const seen = node => node.offsetParent !== null;
const root = document.documentElement;

const wide = matchMedia("(min-width: 1000px)");
const fit = () => { root.dataset.view = wide.matches ? "split" : "unified"; };
if (!root.dataset.view) fit();
wide.addEventListener("change", fit);

async function fill(place, address) {
  if (place.dataset.busy) return null;
  place.dataset.busy = "1";
  const answer = await fetch(address, { headers: { "x-part": "1" } });
  if (!answer.ok) throw new Error(answer.statusText);
  const made = document.createElement("template");
  made.innerHTML = await answer.text();
  const first = one("code", made.content);
  place.replaceWith(made.content);
  placeDrafts();
  return first;
}

async function unfold(button) {
  const fold = button.form, query = new URLSearchParams(new FormData(fold, button));
  select(await fill(fold, `${fold.action}?${query}`));
}

const load = link => fill(link.closest("p"), link.href);

const near = new IntersectionObserver(entries => {
  for (const entry of entries) if (entry.isIntersecting) load(entry.target).catch(() => {});
}, { rootMargin: "800px" });
function watch() {
  for (const link of all("[data-near]")) near.observe(link);
  for (const picture of all(".pictures img")) {
    const pixels = () => picture.nextElementSibling.append(`, ${picture.naturalWidth} × ${picture.naturalHeight}`);
    picture.decode().then(pixels, () => {});
  }
}

let current = null, anchor = null;

function select(node, extend = false) {
  for (const old of all(".current")) old.classList.remove("current");
  if (!node) return;
  if (!extend) anchor = node;
  current = node;
  for (const line of span()) line.classList.add("current");
  const focus = node.matches("code, [data-thread]") ? node : one("a", node) ?? one("input", node) ?? node;
  if (focus === node) node.tabIndex = -1;
  focus.focus({ preventScroll: true });
  node.scrollIntoView({ block: "center" });
}

function span() {
  if (!current || !anchor || current === anchor || !current.matches("code")) return current ? [current] : [];
  const { side, line } = current.dataset, other = +anchor.dataset.line;
  const [from, to] = [Math.min(+line, other), Math.max(+line, other)];
  return all(`code[data-side=${side}]`, current.closest("section"))
    .filter(code => +code.dataset.line >= from && +code.dataset.line <= to);
}

const rows = () => all("[data-change]").filter(seen);
const hunks = () => all(".run").map(run => one("code", run)).filter(code => code && seen(code));
const files = () => all("section[data-path]");
const threads = () => all("[data-thread]:not([data-state=resolved])").filter(seen);

function step(list, by) {
  if (!list.length) return;
  const at = list.findIndex(node => node === current || node.contains(current));
  if (at >= 0) return select(list[Math.min(Math.max(at + by, 0), list.length - 1)]);
  const past = node => node.compareDocumentPosition(current ?? document.body) & Node.DOCUMENT_POSITION_PRECEDING;
  select(by > 0 ? list.find(past) ?? list[0] : list.findLast(node => !past(node)) ?? list.at(-1));
}

function widen(by) {
  if (!current?.matches("code")) return;
  const { side } = current.dataset;
  const lines = all(`code[data-side=${side}]`, current.closest("section")).filter(seen);
  const next = lines[lines.indexOf(current) + by];
  if (next) select(next, true);
}

function press(query) {
  const control = all(query).find(seen);
  if (control) { control.focus(); control.scrollIntoView({ block: "nearest" }); }
}

function below(line) {
  // Everything behind the line goes into a block of its own, so that words stand right below it.
  const block = line.parentElement, side = node => node.dataset.side ?? node.className;
  const column = name => [...block.children].filter(node => side(node) === name);
  const at = column(side(line)).indexOf(line);
  const rest = block.cloneNode(false);
  rest.append(...["base", "new"].flatMap(name => column(name).slice(at + 1)));
  if (rest.children.length) block.after(rest);
  return block;
}

function comment() {
  const form = document.getElementById("send-back"), lines = span();
  const isEarlier = one("[data-since][aria-current]:not([data-since=all])") && lines[0]?.dataset.side === "base";
  if (!form || !lines.length || !lines[0].matches?.("code") || isEarlier) return press("#words");
  write(lines[0], lines.at(-1)).focus();
}

function write(first, last) {
  const { side, line: from } = first.dataset, { line } = last.dataset;
  const fields = { path: first.closest("section").dataset.path, side, from, line };
  const same = all(".words").find(words => JSON.stringify(place(words)) === JSON.stringify(fields));
  const words = same ?? one(".words", one("template").content).cloneNode(true);
  for (const input of all("input", words)) input.value = fields[input.name];
  one("span", words).textContent = `Comment on ${side} ${from === line ? `line ${line}` : `lines ${from} to ${line}`} of ${fields.path}`;
  if (!same) below(last).after(words);
  return one("textarea", words);
}

const place = words => Object.fromEntries(all("input", words).map(input => [input.name, input.value]));

function placeDrafts() {
  for (const words of all("#send-back .words")) {
    const { path, side, line } = place(words);
    const section = files().find(file => file.dataset.path === path);
    const last = section && one(`code[data-side="${side}"][data-line="${line}"]`, section);
    if (last) below(last).after(words);
  }
}

function send(what, fields) {
  fetch(`/batch/${root.dataset.id}/${what}`, { method: "POST", body: new URLSearchParams(fields), redirect: "manual", keepalive: true });
}

// Half a comment is kept: a reload or a restart loses no word.
const late = new Map();
document.addEventListener("input", event => {
  const text = event.target.closest("textarea[name=words], textarea[name=reply], #words");
  if (!text) return;
  const thread = text.closest("[data-thread]")?.dataset.thread ?? "", words = text.closest(".words");
  const about = words ? place(words) : { thread };
  clearTimeout(late.get(text));
  late.set(text, setTimeout(() => send("draft", { ...about, words: text.value }), 400));
});

document.addEventListener("change", event => {
  if (!event.target.matches("[data-viewed]")) return;
  const box = event.target, section = box.closest("section");
  section.classList.toggle("folded", box.checked);
  send("viewed", { key: box.form.key.value, viewed: box.checked ? "1" : "" });
  const link = one("[data-fetch]", section);
  if (!box.checked && link) load(link).catch(() => {});
  one("[data-count]").textContent = all("[data-viewed]:checked").length;
});

function viewNext() {
  const section = current?.closest("section[data-path]") ?? files()[0];
  const box = section && one("[data-viewed]", section);
  if (box && !box.checked) box.click();
  const next = files().find(file => one("[data-viewed]:not(:checked)", file));
  if (next) select(one(".run code", next) ?? next);
}

// The number is in the margin of its line.
const isNumber = event => event.target.matches?.("code[data-line]") && event.offsetX < 64;
let pressed = null;
document.addEventListener("pointerdown", event => {
  pressed = isNumber(event) && document.getElementById("send-back") ? event.target : null;
});
document.addEventListener("pointerup", event => {
  if (!pressed || !isNumber(event)) return;
  const far = event.target.dataset.side === pressed.dataset.side ? event.target : pressed;
  if (event.shiftKey && current?.matches("code")) select(far, true);
  else { select(pressed); if (far !== pressed) select(far, true); }
  comment();
});

const keys = {
  j: () => step(rows().length ? rows() : hunks(), 1),
  k: () => step(rows().length ? rows() : hunks(), -1),
  J: () => widen(1),
  K: () => widen(-1),
  "]": () => step(files(), 1),
  "[": () => step(files(), -1),
  n: () => one("a[rel=next]")?.click(),
  p: () => one("a[rel=prev]")?.click(),
  m: () => step(threads(), 1),
  M: () => step(threads(), -1),
  v: viewNext,
  o: () => one("[data-unfold], [data-fetch]", current?.closest("section") ?? document)?.click(),
  O: () => all("[data-unfold][data-all], [data-fetch]", current?.closest("section")).forEach(it => it.click()),
  s: () => { root.dataset.view = root.dataset.view === "split" ? "unified" : "split"; },
  x: () => one("input[type=checkbox]", current?.closest("[data-change]"))?.click(),
  c: comment,
  a: () => press(all("input[name=edit]").some(box => box.checked !== box.defaultChecked) ? "#accept-chosen" : "[data-decide=accept]"),
  b: () => press("[data-decide=send-back]"),
  d: () => press("[data-decide=discard]"),
  f: () => { location.hash = location.hash === "#tree" ? "#main" : "#tree"; },
  u: () => { location.href = "/"; },
  "/": () => press("[type=search]"),
  "?": () => one("dialog").showModal(),
};

document.addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape" && document.activeElement) document.activeElement.blur();
  if (event.target.closest("textarea, select, input:not([type=checkbox])")) return;
  if (!Object.hasOwn(keys, event.key)) return;
  event.preventDefault();
  keys[event.key]();
});

document.addEventListener("click", event => {
  const button = event.target.closest("[data-unfold]"), link = event.target.closest("[data-fetch]");
  if (button) { event.preventDefault(); unfold(button).catch(() => button.form.submit()); }
  if (link) { event.preventDefault(); load(link).catch(() => { location.href = link.href; }); }
});

document.addEventListener("change", event => {
  const group = event.target.closest("[data-group]");
  if (group && event.target.matches("[data-whole]")) {
    for (const box of all("input[name=chosen]", group)) box.checked = event.target.checked;
  }
  count();
});

function count() {
  const shown = one("[data-bar=several] output");
  if (shown) shown.textContent = `${all("input[name=chosen]:checked").length} chosen`;
}

document.addEventListener("input", event => {
  if (!event.target.matches("[type=search]")) return;
  const words = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const row of all("[data-change]")) {
    const text = row.textContent.toLowerCase();
    row.hidden = !words.every(word => text.includes(word));
  }
  for (const group of all("[data-group]")) group.hidden = !one("[data-change]:not([hidden])", group);
});

// What a person has begun is never taken away: the page is then said to be old, and not replaced.
function begun() {
  const texts = all("textarea, main input:not([type]), main input[type=search]");
  const boxes = all("main input[type=checkbox]:not([data-viewed])");
  return boxes.some(box => box.checked !== box.defaultChecked) || texts.some(text => text.value !== text.defaultValue);
}

// A page is read anew for its own change alone; a list is about all of them.
// One after the other: an answer that is late must not take the place of a newer one.
let asked = Promise.resolve();
function hear(message) {
  const { ids, waiting, other } = JSON.parse(message.data), { id } = root.dataset;
  one("[data-waiting]").textContent = waiting;
  if (id ? ids.includes(id) : ids.length || other) asked = asked.then(renew).catch(() => {});
}

async function renew() {
  const answer = await fetch(location.href, { headers: { accept: "text/html" } });
  if (!answer.ok) return;
  const made = new DOMParser().parseFromString(await answer.text(), "text/html");
  const live = document.getElementById("live");
  if (begun()) {
    const link = document.createElement("a");
    link.href = location.href;
    link.textContent = "Something has changed: look again";
    live.replaceChildren(link);
    return;
  }
  root.dataset.version = made.documentElement.dataset.version;
  const top = scrollY, id = current?.closest("[data-change]")?.dataset.change;
  document.getElementById("main").replaceWith(document.adoptNode(made.getElementById("main")));
  live.textContent = "";
  const again = all("[data-change]").find(row => row.dataset.change === id);
  if (again) select(again);
  scrollTo(0, top);
  watch();
  placeDrafts();
}

const version = root.dataset.version;
if (version) {
  const source = new EventSource(`/changes?${new URLSearchParams({ since: version, id: root.dataset.id ?? "" })}`);
  source.onmessage = hear;
}

function ago() {
  for (const time of all("time")) {
    const passed = Math.max(0, (Date.now() - new Date(time.dateTime)) / 1000);
    const [unit, size] = [["days", 86400], ["hours", 3600], ["min", 60], ["s", 1]].find(([, size]) => passed >= 2 * size) ?? ["s", 1];
    time.textContent = `${Math.floor(passed / size)} ${unit} ago`;
    time.title = new Date(time.dateTime).toLocaleString();
  }
}
setInterval(ago, 30_000);
ago();
watch();
count();
placeDrafts();
