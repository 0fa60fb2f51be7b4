"use strict";
// Keys, comments beside their lines, and the news that something has changed.  The page works
// without all of it.

const main = () => document.getElementById("main");
const items = () => [...document.querySelectorAll("[data-item]")];
let current = null; // the edit's id, or the address of the batch

function mark(item) {
  for (const one of document.querySelectorAll(".current")) one.classList.remove("current");
  if (!item) return;
  current = item.dataset.edit ?? item.querySelector("a").href;
  item.classList.add("current");
  const focus = item.querySelector("a, input");
  let place = item;
  if (item.dataset.edit !== undefined) {
    const own = row => row.dataset.edits.split(" ").includes(item.dataset.edit);
    const rows = [...document.querySelectorAll("[data-edits]")].filter(own);
    for (const row of rows) row.classList.add("current");
    place = rows[0] ?? item;
  }
  if (focus) focus.focus({ preventScroll: true });
  place.scrollIntoView({ block: "center" });
}

function step(by) {
  const all = items();
  const at = all.findIndex(item => item.classList.contains("current"));
  mark(all[Math.min(Math.max(at < 0 ? (by > 0 ? 0 : all.length - 1) : at + by, 0), all.length - 1)]);
}

function go(id) {
  const button = document.getElementById(id);
  if (button) { button.focus(); button.scrollIntoView({ block: "nearest" }); }
}

function chosen() {
  const boxes = [...document.querySelectorAll("input[name=edit][type=checkbox]")];
  return boxes.some(box => box.checked !== box.defaultChecked);
}

const keys = {
  j: () => step(1),
  k: () => step(-1),
  a: () => go(chosen() ? "accept-chosen" : "accept"),
  d: () => go("discard"),
  u: () => { location.href = "/"; },
  "?": () => { location.href = "/help"; },
  x: () => {
    const box = document.querySelector("[data-edit].current input");
    if (box) box.checked = !box.checked;
  },
  c: () => {
    const row = document.querySelector(".diff .current");
    const link = row && [...row.querySelectorAll("[data-line]")].pop();
    if (link) comment(link); else go("words");
  },
};

document.addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape" && document.activeElement) document.activeElement.blur();
  const writing = event.target.closest("textarea, select, input:not([type=checkbox])");
  if (writing || !Object.hasOwn(keys, event.key)) return;
  event.preventDefault();
  keys[event.key]();
});

function comment(link) {
  const form = document.getElementById("send-back");
  if (!form) return;
  const { path, side, line } = link.dataset;
  const after = link.closest("tr");
  const known = after.nextElementSibling;
  if (known && known.classList.contains("words")) { known.querySelector("textarea").focus(); return; }
  const row = document.createElement("tr");
  row.className = "words";
  const cell = row.insertCell();
  cell.colSpan = 4;
  const label = document.createElement("label");
  label.textContent = `Comment on ${side} line ${line} of ${path}`;
  const text = document.createElement("textarea");
  text.name = "words";
  text.setAttribute("form", form.id);
  label.append(text);
  const place = Object.entries({ path, side, line }).map(([name, value]) => {
    const input = document.createElement("input");
    Object.assign(input, { type: "hidden", name, value });
    input.setAttribute("form", form.id);
    return input;
  });
  cell.append(...place, label);
  after.after(row);
  text.focus();
}

document.addEventListener("click", event => {
  const link = event.target.closest("[data-line]");
  if (!link || !document.getElementById("send-back")) return;
  event.preventDefault();
  comment(link);
});

// What a person has begun is never taken away: the page is then said to be old, and not replaced.
function begun() {
  const texts = [...document.querySelectorAll("textarea, main input:not([type])")];
  const boxes = [...document.querySelectorAll("main input[type=checkbox]")];
  return boxes.some(box => box.checked !== box.defaultChecked) || texts.some(text => text.value !== text.defaultValue);
}

// One after the other: an answer that is late must not take the place of a newer one.
let asked = Promise.resolve();
function hear() { asked = asked.then(renew).catch(() => {}); }

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
  const top = scrollY;
  main().replaceWith(document.adoptNode(made.getElementById("main")));
  live.textContent = "";
  const again = items().find(item => (item.dataset.edit ?? item.querySelector("a").href) === current);
  if (again) { mark(again); }
  scrollTo(0, top);
}

const version = document.documentElement.dataset.version;
if (version) {
  const source = new EventSource(`/changes?since=${encodeURIComponent(version)}`);
  source.onmessage = hear;
}
