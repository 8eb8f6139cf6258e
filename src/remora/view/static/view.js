// The page's own script. It moves along the turns, follows live runs, and asks the server where something came from.
// All HTML comes from our own server, which escapes everything; no text of a stream is ever made into HTML here.
"use strict";

const policy = window.trustedTypes
  ? trustedTypes.createPolicy("remora", { createHTML: (html) => html })
  : { createHTML: (html) => html };
const byId = (id) => document.getElementById(id);
const say = (text) => { byId("said").textContent = text; };
const fill = (place, html) => { place.innerHTML = policy.createHTML(html); };
const element = (html) => { const made = document.createElement("div"); fill(made, html); return made; };

async function ask(path, values, signal) {
  const answer = await fetch(`${path}?${new URLSearchParams(values)}`, { signal, credentials: "same-origin" });
  const text = await answer.text();
  if (answer.ok) return text;
  if (answer.status === 403) { location.reload(); }
  throw new Error(new DOMParser().parseFromString(policy.createHTML(text), "text/html").querySelector(".warning")?.textContent || `The server answered ${answer.status}`);
}

// Theme: by the system until the button is used.
const stored = (() => { try { return localStorage.getItem("remora-theme"); } catch { return null; } })();
if (stored) document.documentElement.dataset.theme = stored;
function switchTheme() {
  const dark = getComputedStyle(document.documentElement).colorScheme === "dark"
    || (!document.documentElement.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches);
  const next = dark ? "light" : "dark";
  document.documentElement.dataset.theme = next;
  try { localStorage.setItem("remora-theme", next); } catch { /* a page without storage keeps the system's theme */ }
}

// The time line of one agent.
const travel = document.querySelector(".travel");
const exported = document.documentElement.dataset.exported === "1";
const state = { turn: 0, last: 0, asking: null, known: new Map() };
const agentPath = () => `/a/${travel.dataset.agent}`;

function showWhere() {
  const slider = byId("turn");
  slider.max = state.last;
  slider.value = state.turn;
  slider.setAttribute("aria-valuetext", `turn ${state.turn} of ${state.last}`);
  byId("where").textContent = `turn ${state.turn} of ${state.last}`;
  byId("previous").href = `?turn=${Math.max(state.turn - 1, 0)}`;
  byId("next").href = `?turn=${Math.min(state.turn + 1, state.last)}`;
  const picture = document.querySelector("#timeline svg");
  const places = (picture.dataset.places || "").split(" ").filter(Boolean).map(Number);
  const now = picture.querySelector(".now");
  let column = -1;
  places.forEach((first, at) => { if (first <= state.turn) column = at; });
  const width = 1000 / Math.max(places.length, 1), broad = Math.min(width, 100);
  now.setAttribute("x", column < 0 ? 0 : column * width + (width - broad) / 2);
  now.setAttribute("width", column < 0 ? 0 : broad);
}

function shownTurn(turn) {
  if (!exported) return null;
  const all = [...document.querySelectorAll(".tracks")];
  const wanted = all.filter((each) => Number(each.dataset.turn) <= turn).pop() || all[0];
  all.forEach((each) => { each.hidden = each !== wanted; });
  return wanted;
}

async function go(turn, { seq = null, fresh = false } = {}) {
  turn = Math.max(0, Math.min(state.last, turn));
  const changed = turn !== state.turn || fresh;
  state.turn = turn;
  showWhere();
  if (exported) {
    shownTurn(turn);
  } else if (changed) {
    state.asking?.abort();
    const asking = state.asking = new AbortController();
    const place = byId("tracks");
    place.classList.add("loading");
    try {
      const html = (!fresh && state.known.get(turn)) || await ask(`${agentPath()}/turn`, { turn }, asking.signal);
      remember(turn, html);
      keepOpen(place, () => fill(place, html));
      history.replaceState(null, "", `?turn=${turn}`);
      say(`turn ${turn} of ${state.last}`);
    } catch (error) {
      if (error.name === "AbortError") return;
      showPanel(null, error.message);
    }
    place.classList.remove("loading");
  }
  if (seq !== null) flash(seq);
}

function remember(turn, html) {
  state.known.delete(turn);
  if (turn < state.last) state.known.set(turn, html);
  if (state.known.size > 40) state.known.delete(state.known.keys().next().value);
}

// A part that was folded or unfolded by hand stays so in the next turn.
const folds = new Map();
function keepOpen(place, change) {
  const scroll = window.scrollY;
  change();
  place.querySelectorAll("details.part").forEach((each) => {
    const name = each.querySelector(".name").textContent;
    if (folds.has(name)) each.open = folds.get(name);
  });
  window.scrollTo(0, scroll);
}

function flash(seq) {
  const card = [...document.querySelectorAll(`[id="s${seq}"]`)].find((each) => each.offsetParent !== null);
  if (!card) return;
  document.querySelectorAll(".flash").forEach((each) => each.classList.remove("flash"));
  card.classList.add("flash");
  card.scrollIntoView({ block: "center" });
  card.focus({ preventScroll: true });
}

// The panel: where something comes from, and whether a line was seen.
function showPanel(html, text = "") {
  const panel = byId("panel");
  if (html === null) { byId("panel-body").textContent = text; } else { fill(byId("panel-body"), html); }
  if (!panel.open) panel.showModal();
}

async function inPanel(path, values) {
  try { showPanel(await ask(path, values)); } catch (error) { showPanel(null, error.message); }
}

function why(button) {
  if (button.dataset.seq && exported) return jumpTo(Number(button.dataset.seq));
  if (exported) return undefined;
  const item = button.closest("li, .one").textContent.slice(0, 2000);
  return inPanel(`${agentPath()}/explain`, { key: button.dataset.key, before: button.dataset.before, item });
}

function jumpTo(seq) {
  const card = document.querySelector(`[id="s${seq}"]`);
  const tracks = card?.closest(".tracks");
  return tracks ? go(Number(tracks.dataset.turn), { seq }) : showPanel(null, "This event is not in the exported page.");
}

function wasSeen(line) {
  document.querySelectorAll(".asked").forEach((each) => each.classList.remove("asked"));
  line.classList.add("asked");
  if (!exported) return inPanel(`${agentPath()}/seen`, { seq: line.closest(".lines").dataset.seq, line: line.textContent });
  return showPanel(null, line.title || "The next prompt does not show this line.");
}

// Outputs by windows: at most eight are kept in the page.
async function window_(button, values) {
  const output = button.closest(".output");
  const html = await ask(`${agentPath()}/output`, { seq: button.dataset.seq, part: button.dataset.part, ...values });
  const made = element(html).querySelector(".window");
  output.insertBefore(made, output.querySelector(".more"));
  const all = output.querySelectorAll(".window");
  if (all.length > 8) all[0].remove();
  const more = output.querySelector("[data-more]");
  if (more && made.dataset.end) {
    more.dataset.more = made.dataset.end;
    const left = Number(made.dataset.size) - Number(made.dataset.end);
    more.hidden = left <= 0;
    more.nextElementSibling.textContent = left > 0 ? `${left.toLocaleString("en")} bytes are folded` : "This is the end.";
  }
  return made;
}

async function find(input) {
  const words = input.value;
  const from = input.dataset.words === words ? Number(input.dataset.at) + 1 : 0;
  const made = await window_(input, { at: from, q: words });
  input.dataset.words = words;
  input.dataset.at = made.dataset.found || "-1";
  markWords(made, words);
  (made.querySelector("mark") || made).scrollIntoView({ block: "center" });
}

function markWords(place, words) {
  place.querySelectorAll("li").forEach((line) => {
    const at = line.textContent.toLowerCase().indexOf(words.toLowerCase());
    if (!words || at < 0) return;
    const text = line.textContent;
    const mark = document.createElement("mark");
    mark.textContent = text.slice(at, at + words.length);
    line.replaceChildren(text.slice(0, at), mark, text.slice(at + words.length));
  });
}

// Live: events of one agent, or the list of all.
function followAgent() {
  const source = new EventSource(`${agentPath()}/live?after=${travel.dataset.lastSeq}`);
  let due = null;
  const refresh = async () => {
    due = null;
    const line = await ask(`${agentPath()}/timeline`, {});
    const wasLast = state.turn >= state.last;
    fill(byId("timeline"), line);
    state.last = Number(document.querySelector("#timeline svg").dataset.last);
    const follow = byId("follow").checked && wasLast;
    await go(follow ? state.last : state.turn, { fresh: follow || state.turn === state.last });
  };
  source.addEventListener("event", () => { due ??= setTimeout(refresh, 150); });
  source.addEventListener("end", () => {
    source.close();
    clearTimeout(due);
    const follows = byId("follow").checked && state.turn >= state.last;
    location.replace(follows ? agentPath() : `${agentPath()}?turn=${state.turn}`);
  });
}

function followList(rows) {
  const source = new EventSource(`/live?${rows.dataset.query}`);
  source.addEventListener("changed", async () => {
    if (!rows.contains(document.activeElement)) {
      fill(rows, await ask("/", { ...Object.fromEntries(new URLSearchParams(rows.dataset.query)), part: "rows" }));
    }
  });
}

async function copy(button) {
  await navigator.clipboard.writeText(button.dataset.copy);
  say("Copied.");
  button.textContent = "copied";
  setTimeout(() => { button.textContent = "copy"; }, 1200);
}

document.addEventListener("click", (event) => {
  const at = (selector) => event.target.closest?.(selector);
  let found;
  if ((found = at("[data-theme-switch]"))) switchTheme();
  else if (at("[data-close]") || event.target === byId("panel")) byId("panel").close();
  else if ((found = at("[data-copy]"))) copy(found);
  else if ((found = at("[data-go]")) && travel && !event.ctrlKey && !event.metaKey) {
    event.preventDefault();
    byId("panel").close();
    go(Number(found.dataset.go), { seq: found.dataset.at ? Number(found.dataset.at) : null });
  } else if ((found = at(".why"))) why(found);
  else if ((found = at("[data-more]"))) window_(found, { at: found.dataset.more });
  else if ((found = at("#timeline a, .step")) && travel && !event.ctrlKey && !event.metaKey) {
    event.preventDefault();
    go(found.id === "previous" ? state.turn - 1 : found.id === "next" ? state.turn + 1 : Number(found.dataset.turn));
  } else if ((found = at(".track .lines li")) && !String(getSelection())) wasSeen(found);
});

// The lines of an output by keyboard: up and down, Enter asks. Returns whether the key was used.
function moveLine(event) {
  const lines = event.target.closest?.(".lines");
  if (!lines || !["ArrowUp", "ArrowDown", "Enter"].includes(event.key)) return false;
  const here = event.target.closest("li");
  if (event.key === "Enter") { if (here) wasSeen(here); return Boolean(here); }
  const next = here ? (event.key === "ArrowDown" ? here.nextElementSibling : here.previousElementSibling) : lines.firstElementChild;
  if (next) { next.tabIndex = -1; next.focus(); }
  return true;
}

document.addEventListener("keydown", (event) => {
  if (moveLine(event)) { event.preventDefault(); return; }
  const typing = event.target.matches?.("input:not([type=range]), textarea, select");
  if (event.target.matches?.("[data-find]") && event.key === "Enter") { event.preventDefault(); find(event.target); }
  if (!travel || typing || event.ctrlKey || event.metaKey || event.altKey || byId("panel").open) return;
  const steps = { ArrowLeft: state.turn - 1, ArrowRight: state.turn + 1, Home: 0, End: state.last, PageUp: state.turn - 10, PageDown: state.turn + 10 };
  const isPage = event.key.startsWith("Page") && !event.target.matches?.("input[type=range]");
  if (event.key in steps && !isPage) { event.preventDefault(); go(steps[event.key]); }
});

document.addEventListener("toggle", (event) => {
  if (event.target.matches?.("details.part") && event.isTrusted) folds.set(event.target.querySelector(".name").textContent, event.target.open);
}, true);

document.addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll("[data-submit]").forEach((input) => input.addEventListener("change", () => input.form.submit()));
  const rows = byId("rows");
  if (rows) followList(rows);
  if (!travel) return;
  state.last = Number(document.querySelector("#timeline svg").dataset.last);
  state.turn = Number(byId("turn").value);
  byId("turn").addEventListener("input", (event) => go(Number(event.target.value)));
  showWhere();
  shownTurn(state.turn);
  if (location.hash.startsWith("#s")) flash(Number(location.hash.slice(2)));
  if (travel.dataset.live && !exported) followAgent();
});
