// The page of the metrics endpoint: asks the daemon's JSON routes and shows what they answer. Everything that a client,
// a model or an upstream sent becomes a text node; no string is ever parsed as HTML.
"use strict";

const POLL_MS = 2000;
const HISTORY = 90; // points of the curve: three minutes
const DECISIONS_KEPT = 500;
const PAGE_ROWS = 100;

// ---- elements ----

function h(name, properties, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "class") element.className = value;
    else if (key === "value") element.value = value;
    else element.setAttribute(key, value === true ? "" : value);
  }
  append(element, children);
  return element;
}

function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
}

function fill(element, ...children) {
  element.replaceChildren();
  append(element, children);
  return element;
}

function panel(title, controls, ...body) {
  return h("section", { class: "panel" }, h("div", { class: "head" }, h("h2", {}, title), controls), body);
}

// On a phone a row becomes a block, and each of its figures stands behind its column's title.
function table(columns, rows) {
  for (const row of rows)
    [...row.children].forEach((cell, i) => cell.setAttribute("data-title", columns[i][0]));
  return h("table", {},
    h("thead", {}, h("tr", {}, columns.map(([title, kind]) => h("th", { class: kind, scope: "col" }, title)))),
    h("tbody", {}, rows));
}

function badge(verdict, hollow) {
  const known = ["pass", "repair", "wait", "ask", "refuse", "halt"].includes(verdict);
  return h("span", { class: "verdict" + (known ? " " + verdict : "") + (hollow ? " would" : "") }, verdict);
}

// ---- values ----

const whole = new Intl.NumberFormat();
const count = (n) => whole.format(n || 0);
const percent = (part, of) => of ? Math.round(100 * part / of) + " %" : "–";
const rate = (n) => n >= 100 ? count(Math.round(n)) : n.toFixed(1);
const pretty = (value) => JSON.stringify(value, null, 2);
const sum = (object) => Object.values(object || {}).reduce((a, b) => a + b, 0);

function duration(s) {
  if (s >= 172800) return Math.floor(s / 86400) + " days";
  if (s >= 7200) return Math.floor(s / 3600) + " h " + Math.floor(s % 3600 / 60) + " min";
  if (s >= 120) return Math.floor(s / 60) + " min";
  return Math.floor(s) + " s";
}

function micro(us) {
  if (us >= 1e6) return (us / 1e6).toFixed(2) + " s";
  if (us >= 1000) return (us / 1000).toFixed(us >= 1e4 ? 0 : 1) + " ms";
  return (us < 10 ? us.toFixed(1) : Math.round(us)) + " µs";
}

function clock(ts) {
  const date = new Date(ts);
  return isNaN(date) ? String(ts) : date.toLocaleTimeString([], { hour12: false });
}

// ---- the daemon ----

const TOKEN_KEY = "toolgate-token";
const state = {
  status: null, at: -Infinity, rates: null, history: [], error: null, needsToken: false,
  decisions: [], next: 0, started: 0, sessions: null,
};

class Refused extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

// The token travels in a header that only this script sets, so no other page can make a browser send it.
async function api(route, body) {
  const headers = {}, token = sessionStorage.getItem(TOKEN_KEY);
  if (token) headers.Authorization = "Bearer " + token;
  if (body) headers["Content-Type"] = "application/json";
  const response = await fetch("api/" + route, {
    method: body ? "POST" : "GET", headers, body: body && JSON.stringify(body), cache: "no-store", credentials: "omit",
  });
  if (!response.ok) throw new Refused(response.status, (await response.text()).trim());
  return response.json();
}

function computeRates(before, after, seconds) {
  if (!before || before.started_ms !== after.started_ms || seconds <= 0) return null;
  const verdicts = {};
  for (const [name, n] of Object.entries(after.counters.verdicts))
    verdicts[name] = Math.max(0, (n - (before.counters.verdicts[name] || 0)) / seconds);
  const calls = sum(verdicts);
  return { calls, verdicts, refused: calls - (verdicts.pass || 0) };
}

async function askStatus() {
  const status = await api("status.json"), at = performance.now();
  if (state.status && state.status.started_ms !== status.started_ms) state.history = [];
  if (at - state.at < POLL_MS / 2) return; // asked out of turn: too soon for a rate
  state.rates = computeRates(state.status, status, (at - state.at) / 1000);
  state.status = status;
  state.at = at;
  if (state.rates) state.history = state.history.concat([state.rates]).slice(-HISTORY);
}

async function askDecisions() {
  const answer = await api("decisions.json?after=" + state.next);
  if (answer.started_ms !== state.started) {
    state.decisions = [];
    state.started = answer.started_ms;
  }
  state.next = answer.next;
  if (!answer.records.length) return false;
  state.decisions = answer.records.reverse().concat(state.decisions).slice(0, DECISIONS_KEPT);
  return true;
}

// ---- views ----

const main = document.getElementById("main");
let view = null;

/* ---- live ---- */

function curve(history) {
  const space = "http://www.w3.org/2000/svg", svg = document.createElementNS(space, "svg");
  const width = Math.max(history.length, 12) - 1;
  svg.setAttribute("viewBox", "0 0 " + width + " 26");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("aria-hidden", "true");
  const most = Math.max(1e-9, ...history.map((point) => point.calls));
  for (const [name, of] of [["calls", (p) => p.calls], ["refused", (p) => p.refused]]) {
    const path = document.createElementNS(space, "path");
    path.setAttribute("class", name);
    path.setAttribute("d", history.map((point, i) =>
      (i ? "L" : "M") + i + " " + (25 - 23 * of(point) / most).toFixed(1)).join(""));
    svg.append(path);
  }
  return svg;
}

function figure(label, value, unit, more, bad) {
  return h("div", { class: "figure" + (bad ? " bad" : "") }, h("div", { class: "label" }, label),
    h("div", { class: "value" }, value, unit && h("small", {}, " " + unit)),
    more instanceof Node ? more : h("div", { class: "more" }, more || ""));
}

function verdictsInWords(verdicts) {
  const parts = Object.entries(verdicts).filter(([name, n]) => n > 0 && name !== "pass");
  return parts.map(([name, n]) => name + " " + rate(n)).join(", ");
}

// The figures of a phone: one line, which a tap unfolds; what is wrong comes first.
function foldedFigures() {
  const status = state.status, rates = state.rates, counters = status.counters, ledger = status.ledger;
  const calls = sum(counters.verdicts), dropped = (status.decisions || {}).dropped;
  const down = (status.upstreams || []).filter((one) => one.state === "down" || one.state === "failed").length;
  return [
    ledger.on_outage !== undefined && !ledger.connected && [h("span", { class: "warn" }, "ledger down"), " · "],
    down > 0 && [h("span", { class: "warn" }, count(down) + " down"), " · "],
    dropped > 0 && [h("span", { class: "warn" }, count(dropped) + " dropped"), " · "],
    (rates ? rate(rates.calls) : "–") + "/s · " + percent(calls - (counters.verdicts.pass || 0), calls) + " not passed · "
      + count(counters.loops) + (counters.loops === 1 ? " loop" : " loops"),
  ];
}

function figures() {
  const status = state.status, rates = state.rates, counters = status.counters;
  const upstreams = status.upstreams || [], up = upstreams.filter((one) => one.state === "up" || one.state === "ready");
  const calls = sum(counters.verdicts), refused = calls - (counters.verdicts.pass || 0);
  const chains = counters.chains || {}, ended = sum(chains), decisions = status.decisions || {}, sinks = decisions.sinks || [];
  const ledger = status.ledger, remote = ledger.on_outage !== undefined;
  return [
    figure("Calls", rates ? rate(rates.calls) : "–", "per second", curve(state.history)),
    figure("Not passed", rates ? percent(rates.refused, rates.calls) : "–", "now",
      rates && rates.refused ? verdictsInWords(rates.verdicts) : percent(refused, calls) + " of " + count(calls) + " since the start"),
    figure("Recovery", percent(chains.success || 0, ended), "", ended ? "of " + count(ended) + " repair chains passed"
      : "no repair chain has ended"),
    figure("Loops", count(counters.loops), "found", count(counters.calls_saved) + " calls saved"
      + (counters.calls_not_saved ? ", " + count(counters.calls_not_saved) + " more in shadow" : "")),
    figure("Upstreams", upstreams.length ? up.length + " of " + upstreams.length : "none", upstreams.length ? "up" : "",
      upstreams.filter((one) => !up.includes(one)).map((one) => one.name + ": " + one.state).join(", "),
      up.length < upstreams.length && upstreams.some((one) => one.state === "down" || one.state === "failed")),
    remote ? figure("Ledger", ledger.connected ? micro(ledger.median_us) : "down", ledger.connected ? "median" : "",
      ledger.connected ? "Redis, slowest " + micro(ledger.worst_us) : ledger.why_away, !ledger.connected)
      : figure("Ledger", count(ledger.sessions), "sessions", "of this daemon alone"),
    figure("Decision log", count(decisions.dropped), "dropped", sinks.length ? count(sinks.reduce((n, one) => n + one.written, 0)) + " written"
      : "not written: decisions are off", decisions.dropped > 0),
  ];
}

function problemLine(problem) {
  return h("li", {}, problem.path && h("code", {}, problem.path), problem.path && " ", problem.detail || problem.message || problem.code,
    problem.hint && h("div", { class: "soft" }, problem.hint));
}

// What the model was told: the reason as a whole, or each problem.
function told(decision) {
  const messages = decision.messages || [];
  if (!messages.length && !decision.detail && !decision.code) return null;
  return h("div", { class: "block told" }, h("ul", { class: "plain" },
    messages.length ? [messages.map(problemLine), decision.hint && h("li", { class: "soft" }, decision.hint)]
      : h("li", {}, decision.detail || decision.code, decision.hint && h("div", { class: "soft" }, decision.hint))));
}

function times(us) {
  const parts = Object.entries(us).filter(([name, n]) => name !== "total" && typeof n === "number" && n > 0);
  if (!parts.length) return null;
  const bar = h("div", { class: "times" }), known = ["queue", "schema", "policy", "ledger", "upstream"];
  for (const [name, n] of parts) {
    const part = h("span", { class: known.includes(name) ? "part-" + name : "" });
    part.style.flexGrow = n;
    bar.append(part);
  }
  return [bar, h("div", { class: "row soft" }, parts.map(([name, n]) =>
    h("span", {}, h("span", { class: "key part-" + (known.includes(name) ? name : "other") }), name + " " + micro(n))))];
}

function group(title, ...content) {
  const shown = content.flat().filter((one) => one !== undefined && one !== null && one !== false);
  return shown.length ? h("div", { class: "group" }, h("h3", {}, title), shown) : null;
}

function facts(pairs) {
  const shown = pairs.filter(([, value]) => value !== undefined && value !== null && value !== "");
  return h("dl", {}, shown.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}

function decisionDetail(d) {
  const would = decided(d) === d ? null : d.would, result = d.result || {};
  return panel(h("span", {}, h("span", { class: "badges" }, badges(d)), " ", d.tool || "unknown tool"),
    h("button", { type: "button", onclick: () => openPlayground(d) }, "Try in playground"),
    h("div", { class: "body" },
      group("What the model was told", told(d)),
      would && group("Not enforced: it would have been", h("div", {}, badge(would.verdict, true), " ",
        h("span", { class: "soft" }, would.error_class || "")), told(would)),
      group("Arguments", d.arguments !== undefined ? h("pre", { class: "block" }, pretty(d.arguments))
        : h("div", { class: "soft" }, d.arguments_hash ? "hash " + d.arguments_hash : "none recorded"),
      d.masked && d.masked.length ? h("div", { class: "soft" }, "masked: " + d.masked.join(", ")) : null),
      d.rewrites && d.rewrites.length ? group("Rewritten before the call", h("pre", { class: "block" }, pretty(d.rewrites))) : null,
      group("Result", result.value !== undefined ? h("pre", { class: "block" }, pretty(result.value)) : null,
        result.class && h("div", { class: "soft" }, result.class + (result.bytes === undefined ? "" : ", " + count(result.bytes) + " bytes"))),
      d.us && group("Time: " + micro(d.us.total || 0), times(d.us)),
      facts([["time", new Date(d.ts).toLocaleString()], ["session", d.session], ["turn", d.turn], ["user", d.user],
        ["class", d.error_class], ["code", d.code], ["answer", answered(d)], ["decided by", d.stage || (would || {}).stage],
        ["of the policy", d.by || (would || {}).by], ["upstream", d.upstream],
        ["attempt", d.attempt && d.attempt + (d.attempts_left === undefined ? "" : ", " + d.attempts_left + " left")],
        ["repair chain", d.chain], ["repeats", d.repeats || null], ["without progress", d.no_progress || null],
        ["mode", d.policy_mode], ["generation", d.generation], ["call", d.decision_id]])));
}

// Of mode shadow what was not enforced, else what was decided.
const decided = (d) => d.would && typeof d.would === "object" ? d.would : d;

function matches(decision, wanted) {
  const would = decided(decision), shadow = would !== decision;
  if (wanted.verdict === "not" ? decision.verdict === "pass" && !shadow : wanted.verdict === "shadow" ? !shadow
    : wanted.verdict && decision.verdict !== wanted.verdict && (!shadow || would.verdict !== wanted.verdict)) return false;
  if (!wanted.text) return true;
  return [decision.tool, decision.session, decision.user, decision.answer, decision.answered_by, would.code, would.error_class,
    would.detail].some((value) => value !== undefined && String(value).toLowerCase().includes(wanted.text));
}

function reason(d) {
  const of = decided(d), first = (of.messages || [])[0];
  if (of.detail) return String(of.detail).replace(/\s+/g, " ");
  return first ? (first.path ? first.path + ": " : "") + (first.detail || first.message || first.code) : "";
}

// A record of an operator's answer to a policy's question; of a call, what was answered and by whom.
const ANSWERS = { "toolgate/approve": "approved", "toolgate/deny": "denied" };
const answered = (d) => ANSWERS[d.method] ? ANSWERS[d.method] + " by " + d.user
  : d.answer ? d.answer + " by " + (d.answered_by || "the user") : "";

function badges(d) {
  const would = decided(d);
  if (ANSWERS[d.method]) return h("span", { class: "verdict " + (d.method === "toolgate/deny" ? "refuse" : "pass") }, ANSWERS[d.method]);
  return [badge(d.verdict), would !== d && [" ", badge(would.verdict || "would", true)]];
}

function liveView() {
  const tiles = h("div", { class: "figures" }), line = h("button", { type: "button", class: "line", "aria-expanded": "false",
    onclick: () => line.setAttribute("aria-expanded", String(fold.classList.toggle("open"))) });
  const fold = h("div", { class: "fold" }, line, tiles), list = h("div", { class: "scroll tall" }), side = h("div", { class: "detail" });
  const wanted = { verdict: "", text: "" };
  let paused = false, shown = null, chosen = null;

  function choose(decision) {
    chosen = decision;
    fill(side, decisionDetail(decision));
    if (matchMedia("(max-width: 560px)").matches) side.scrollIntoView(); // it is below the list
    for (const row of list.querySelectorAll("tr.pick")) row.setAttribute("aria-selected", String(row.decision === decision));
  }
  function row(d) {
    const element = h("tr", { class: decided(d) === d ? "pick" : "pick shadow", tabindex: "0", onclick: () => choose(d),
      onkeydown: (event) => { if (event.key === "Enter") choose(d); } },
      h("td", { class: "time" }, clock(d.ts)), h("td", { class: "badges" }, badges(d)),
      h("td", { class: "name", title: d.tool }, d.tool || "–"), h("td", { class: "name hide-narrow", title: d.session }, d.session),
      h("td", { class: "reason", title: reason(d) }, decided(d).code && !ANSWERS[d.method] && [h("code", {}, decided(d).code), " "],
        answered(d) && [answered(d), " "], reason(d)),
      h("td", { class: "number hide-narrow" }, d.us ? micro(d.us.total || 0) : ""));
    element.decision = d;
    element.setAttribute("aria-selected", String(d === chosen));
    return element;
  }
  function draw() {
    const rows = (paused ? shown : state.decisions).filter((d) => matches(d, wanted));
    fill(list, rows.length ? table([["Time"], ["Verdict"], ["Tool"], ["Session", "hide-narrow"], ["Reason"], ["Took", "number hide-narrow"]],
      rows.map(row)) : h("p", { class: "empty" }, state.decisions.length ? "No decision matches." : "No call yet."));
  }
  const pause = h("button", { type: "button", "aria-pressed": "false", onclick: () => {
    paused = !paused;
    shown = state.decisions;
    pause.setAttribute("aria-pressed", String(paused));
    pause.textContent = paused ? "Resume" : "Pause";
    draw();
  } }, "Pause");
  const which = h("select", { "aria-label": "Verdict", onchange: () => { wanted.verdict = which.value; draw(); } },
    [["", "all verdicts"], ["not", "not passed"], ["pass", "pass"], ["repair", "repair"], ["wait", "wait"], ["ask", "ask"],
      ["refuse", "refuse"], ["halt", "halt"], ["shadow", "not enforced"]].map(([value, label]) => h("option", { value }, label)));
  const search = h("input", { type: "search", placeholder: "tool, session, code", "aria-label": "Filter",
    oninput: () => { wanted.text = search.value.trim().toLowerCase(); draw(); } });
  fill(side, panel("Decision", null, h("p", { class: "empty" }, "Choose a decision to see its arguments and what the model was told.")));
  fill(main, fold, h("div", { class: "split" }, panel("Decisions", [which, search, pause], list), side));
  draw();
  return {
    poll: askDecisions,
    update(changed) {
      fill(tiles, figures());
      fill(line, foldedFigures());
      if (changed && !paused) draw();
    },
  };
}

/* ---- tools ---- */

function toolRow(row, choose) {
  const tool = row.counts || {}, ended = sum(tool.chains);
  const codes = Object.entries(tool.codes || {}).sort((a, b) => b[1] - a[1]).slice(0, 3);
  return h("tr", { class: "pick", tabindex: "0", onclick: choose, onkeydown: (event) => { if (event.key === "Enter") choose(); } },
    h("td", { class: "name", title: row.tool }, row.tool), h("td", { class: "name hide-narrow soft", title: row.origin }, row.origin),
    h("td", { class: row.mode === "enforce" ? "" : "soft" }, row.mode), h("td", { class: "number" }, count(tool.calls)),
    h("td", { class: "number" }, count(tool.refused), tool.would && h("span", { class: "soft" }, " + " + count(tool.would) + " in shadow")), h("td", { class: "number" }, percent(tool.refused, tool.calls)),
    h("td", { class: "number" }, percent((tool.chains || {}).success || 0, ended)),
    h("td", { class: "words hide-narrow soft" }, codes.map(([code, n]) => code + " " + count(n)).join(", ")));
}

function toolsView() {
  const wanted = { q: "", sort: "calls", offset: 0 }, list = h("div", { class: "scroll" }), pages = h("div", { class: "row" });
  let asked = 0;

  async function draw() {
    const mine = ++asked;
    const answer = await api("tools.json?" + new URLSearchParams({ ...wanted, limit: PAGE_ROWS }));
    if (mine !== asked) return;
    const columns = [["Tool"], ["From", "hide-narrow"], ["Mode"], ["Calls", "number"], ["Refused", "number"], ["Share", "number"],
      ["Recovered", "number"], ["Most frequent", "hide-narrow"]];
    fill(list, answer.tools.length ? table(columns, answer.tools.map((tool) => toolRow(tool, () => openPlayground({ tool: tool.tool }))))
      : h("p", { class: "empty" }, wanted.q ? "No tool matches." : "This generation has no tools."));
    const last = Math.min(answer.total, wanted.offset + PAGE_ROWS);
    const move = (label, by, usable) => h("button", { type: "button", disabled: !usable, onclick: () => { wanted.offset += by; refresh(); } }, label);
    fill(pages, h("span", { class: "soft" }, answer.total ? count(wanted.offset + 1) + "–" + count(last) + " of " + count(answer.total) : ""),
      answer.total > PAGE_ROWS && [move("Previous", -PAGE_ROWS, wanted.offset > 0), move("Next", PAGE_ROWS, last < answer.total)]);
  }
  const refresh = () => draw().catch(report);
  const search = h("input", { type: "search", placeholder: "name", "aria-label": "Search tools",
    oninput: () => { wanted.q = search.value.trim(); wanted.offset = 0; refresh(); } });
  const order = h("select", { "aria-label": "Order", onchange: () => { wanted.sort = order.value; wanted.offset = 0; refresh(); } },
    [["calls", "most calls"], ["refused", "most refused"], ["name", "name"]].map(([value, label]) => h("option", { value }, label)));
  fill(main, panel("Tools", [search, order, pages], list));
  return { poll: draw, update() {} };
}

/* ---- sessions ---- */

function sessionRow(one) {
  const loop = one.loop || {};
  return h("tr", {}, h("td", { class: "name", title: one.session }, one.session),
    h("td", { class: "soft hide-narrow" }, one.anonymous ? "anonymous" : one.uid === undefined ? "shared" : "uid " + one.uid),
    h("td", { class: "number" }, count(one.calls)), h("td", { class: "number" }, count(one.refusals)),
    h("td", { class: "number hide-narrow" }, count(one.no_progress)),
    h("td", { class: "words" }, one.loop && ["the same call ", count(loop.times), " times", loop.tool && [": ", h("code", {}, loop.tool)],
      h("span", { class: loop.code && !loop.not_enforced ? "warn" : "soft" }, !loop.code ? ", let run so far"
        : (loop.not_enforced ? " let run in shadow: " : loop.halted ? " told to end the run: " : " refused: ") + loop.code)]),
    h("td", { class: "time" }, duration(Math.max(0, (Date.now() - one.last_ms) / 1000)) + " ago"));
}

function sessionsView() {
  const columns = [["Session"], ["Of", "hide-narrow"], ["Calls", "number"], ["Refused", "number"], ["Nothing new", "number hide-narrow"], ["Loop"], ["Last call"]];
  const part = (title, list, total, none) => panel(title, h("span", { class: "soft" }, total > list.length ? "the first " + list.length + " of " + count(total) : ""),
    list.length ? h("div", { class: "scroll" }, table(columns, list.map(sessionRow))) : h("p", { class: "empty" }, none));
  return {
    async poll() { state.sessions = await api("sessions.json"); },
    update() {
      const s = state.sessions, refused = s.refusals.sessions.filter((one) => one.refusals);
      fill(main, part("In a loop", s.in_a_loop.sessions, s.in_a_loop.in_loop, "No session is in a loop."),
        part("Most refusals", refused, refused.length, "No call has been refused."),
        part("Recent", s.recent.sessions, s.recent.known, "No session yet."));
    },
  };
}

/* ---- health ---- */

// What needs a person, each as [what, why, what to do].
function attention(status) {
  const found = [], reload = status.reload, ledger = status.ledger;
  if (reload && !reload.ok) found.push(["The last reload failed; the generation before it serves.", reload.errors, "correct the files; they are read again by themselves, or with toolgate reload"]);
  for (const one of status.upstreams || []) {
    if (one.state === "down" || one.state === "failed") found.push(["Upstream " + one.name + " is down.", one.last_error, one.next_try_ms !== undefined ? "next try in " + Math.ceil(one.next_try_ms / 1000) + " s" : ""]);
    else if (one.breaker === "open") found.push(["Upstream " + one.name + " is not called after failures.", one.last_error, ""]);
  }
  if (ledger.on_outage !== undefined && !ledger.connected) found.push(["The ledger's Redis is down.", ledger.why_away, "until then: on_outage = \"" + ledger.on_outage + "\""]);
  for (const warning of ledger.warnings || []) found.push(["The ledger warns.", warning, ""]);
  if (status.decisions && status.decisions.dropped) found.push([count(status.decisions.dropped) + " decisions were not written.", (status.decisions.sinks || []).map((one) => one.why).find(Boolean), ""]);
  for (const q of status.quarantined || []) found.push([q.file + " is quarantined.", q.why, q.fix]);
  for (const fault of status.policy_faults || []) found.push(["The policy of " + (fault.tool || fault.gateway) + " failed " + count(fault.count) + " times.", fault.last, ""]);
  for (const e of status.generation.shadow_expired || []) found.push([e.file + " still enforces nothing.", e.why, "toolgate shadow says whether it is safe to enforce"]);
  for (const u of status.generation.unmatched || []) if (u.why) found.push([u.file + " guards no tool.", u.why, ""]);
  for (const p of status.problems || []) found.push([p.code + ", " + count(p.count) + " times, last by " + p.client + ".", p.last, ""]);
  return found;
}

function upstreamRow(one) {
  return h("tr", {}, h("td", { class: "name", title: one.name }, one.name), h("td", { class: "soft" }, one.kind),
    h("td", { class: one.state === "down" || one.state === "failed" ? "warn" : "" }, one.state), h("td", { class: "number" }, count(one.tools)),
    h("td", { class: "number" }, count(one.calls)), h("td", { class: "number" }, count(one.in_flight)), h("td", { class: "number" }, count(one.failures)),
    h("td", { class: "words soft" }, one.last_error ? h("span", {}, one.last_error, one.last_error_s_ago !== undefined && " (" + duration(one.last_error_s_ago) + " ago)") : ""));
}

function healthView() {
  return {
    poll: null,
    update() {
      const s = state.status, g = s.generation, found = attention(s), warnings = g.warnings || [], ledger = s.ledger;
      fill(main,
        panel("Needs attention", null, found.length ? h("div", { class: "body" }, h("ul", { class: "plain" }, found.map(([what, why, fix]) =>
          h("li", {}, h("div", { class: "warn" }, what), why && h("pre", { class: "soft" }, why), fix && h("div", {}, fix)))))
          : h("p", { class: "empty" }, "Nothing. Policies, upstreams and ledger work.")),
        h("div", { class: "halves" },
          panel("Generation " + g.number, null, h("div", { class: "body" },
            facts([["hash", h("code", {}, g.hash)], ["tools", count(g.tools)], ["policies", count(g.policies)],
              ["last reload", s.reload && new Date(s.reload.at_ms).toLocaleString() + (s.reload.ok ? "" : ", failed")],
              ["socket", s.socket], ["daemon", s.version + ", process " + s.pid + ", up " + duration(s.uptime_s)]]),
            warnings.length ? h("details", {}, h("summary", {}, count(g.warning_count) + " warnings about tools"),
              h("pre", { class: "soft" }, warnings.concat(g.warning_count > warnings.length ? ["… toolgate status has all"] : []).join("\n"))) : null)),
          panel("Ledger", null, h("div", { class: "body" }, ledger.on_outage !== undefined ? facts([["address", ledger.address],
            ["server", ledger.server], ["state", ledger.connected ? "connected" : "down: " + ledger.why_away],
            ["master", ledger.master], ["requests", count(ledger.by_redis) + " to Redis, " + count(ledger.by_stand_in) + " counted here, " + count(ledger.uncounted) + " uncounted, " + count(ledger.refused) + " refused"],
            ["time", "median " + micro(ledger.median_us) + ", slowest " + micro(ledger.worst_us)], ["outages", count(ledger.outages)]])
            : facts([["engine", "local, of this daemon alone"], ["sessions", count(ledger.sessions)], ["memory", count(ledger.bytes) + " bytes"],
              ["evicted", count(ledger.forgotten)]])))),
        panel("Upstreams", null, s.upstreams && s.upstreams.length ? h("div", { class: "scroll" }, table([["Name"], ["Kind"], ["State"], ["Tools", "number"],
          ["Calls", "number"], ["In flight", "number"], ["Failed", "number"], ["Last error"]], s.upstreams.map(upstreamRow)))
          : h("p", { class: "empty" }, "No upstream is configured.")));
    },
  };
}

/* ---- playground ---- */

let prefill = null;

function openPlayground(decision) {
  prefill = { tool: decision.tool, arguments: decision.arguments, user: decision.user };
  if (location.hash === "#playground") show();
  else location.hash = "#playground";
}

function checkResult(answer) {
  const stages = answer.trace || [], passed = answer.verdict === "pass";
  const decided = passed ? -1 : stages.findIndex((one) => one.decision !== "pass" && !one.decision.startsWith("pass"));
  return panel(h("span", {}, badge(answer.verdict), " ", answer.error_class || ""), null, h("div", { class: "body" },
    group("Stages", h("ol", { class: "stages" }, stages.map((one, i) => h("li", { class: i === decided ? "decided" : decided >= 0 && i > decided ? "later" : "" },
      h("code", {}, one.stage), h("span", {}, one.decision), h("span", { class: "soft" }, micro(one.us)))))),
    answer.text ? group("What the model reads", h("pre", { class: "block told" }, answer.text)) : null,
    answer.rewrites && answer.rewrites.length ? group("Rewritten", h("pre", { class: "block" }, pretty(answer.rewrites))) : null,
    answer.arguments !== undefined ? group(passed ? "Arguments as the tool would get them" : "Arguments", h("pre", { class: "block" }, pretty(answer.arguments))) : null));
}

function playgroundView() {
  const given = prefill || {};
  prefill = null;
  const tool = h("input", { list: "tool-names", autocomplete: "off", spellcheck: "false", value: given.tool || "" });
  const names = h("datalist", { id: "tool-names" });
  const input = h("textarea", { spellcheck: "false", value: given.arguments === undefined ? "" : pretty(given.arguments) });
  const user = h("input", { autocomplete: "off", value: given.user || "" }), goal = h("input", { autocomplete: "off" });
  const about = h("div", { class: "group" }), answer = h("div", {}), button = h("button", { type: "submit", class: "first" }, "Check");
  const sample = h("button", { type: "button", onclick: () => describe(true).catch(report) }, "Sample arguments");
  let filled = "";
  const none = () => fill(answer, panel("Verdict", null, h("p", { class: "empty" }, "Check a call to see what each stage decides and what the model would read.")));

  async function suggest() {
    const found = await api("tools.json?" + new URLSearchParams({ q: tool.value.trim(), sort: "name", offset: 0, limit: 20 }));
    fill(names, found.tools.map((one) => h("option", { value: one.tool })));
    if (found.tools.some((one) => one.tool === tool.value.trim())) await describe(false);
  }
  async function describe(replace) {
    const name = tool.value.trim();
    fill(about);
    if (!name) return;
    const found = await api("tool.json?" + new URLSearchParams({ name })).catch((why) => {
      if (why.status === 404) return null;
      throw why;
    });
    if (!found || tool.value.trim() !== name) return;
    if (replace || !input.value.trim() || input.value === filled) // never over what a person typed
      input.value = filled = pretty(found.sample === undefined ? {} : found.sample);
    fill(about, found.description && h("p", { class: "soft" }, found.description),
      h("details", {}, h("summary", {}, "Input schema"), h("pre", { class: "block" }, pretty(found.input_schema))));
  }
  async function check(event) {
    event.preventDefault();
    button.disabled = true;
    try {
      const call = { tool: tool.value.trim(), arguments: JSON.parse(input.value.trim() || "{}") };
      if (user.value.trim()) call.user = user.value.trim();
      if (goal.value.trim()) call.goal = goal.value.trim();
      fill(answer, checkResult(await api("check.json", call)));
    } catch (why) {
      fill(answer, panel("No verdict", null, h("div", { class: "body warn" }, why instanceof SyntaxError ? "The arguments are not JSON: " + why.message : why.message)));
      if (why.status === 401) report(why);
    }
    button.disabled = false;
  }
  tool.addEventListener("input", () => suggest().catch(report));
  none();
  fill(main, h("div", { class: "halves" },
    panel("Call", null, h("form", { class: "body", onsubmit: check },
      h("label", {}, "Tool", tool), names, about, h("label", {}, "Arguments", input),
      h("div", { class: "row" }, h("label", {}, "As user", user), h("label", {}, "Goal of the session", goal)),
      h("div", { class: "row" }, button, sample),
      h("p", { class: "soft" }, "A dry run: no tool runs, nothing is counted, and the ledger is not asked, so budgets and loops do not apply."))), answer));
  suggest().catch(report);
  return { poll: null, update() {} };
}

// ---- the page ----

const VIEWS = { live: liveView, tools: toolsView, sessions: sessionsView, health: healthView, playground: playgroundView };

function show() {
  const name = VIEWS[location.hash.slice(1)] ? location.hash.slice(1) : "live";
  for (const link of document.querySelectorAll("nav a")) {
    if (link.hash === "#" + name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (state.needsToken) return;
  main.replaceChildren();
  view = VIEWS[name]();
  refresh();
}

function showFrame() {
  const status = state.status, notice = document.getElementById("notice"), pill = document.getElementById("state");
  notice.hidden = !state.error;
  notice.textContent = state.error || "";
  if (!status) return;
  const found = attention(status).length;
  pill.className = "state " + (state.error ? "" : found ? "bad" : "well");
  pill.textContent = state.error ? "not connected" : found ? (found === 1 ? "1 thing needs" : found + " things need") + " attention" : "all well";
  document.title = (found ? "(" + found + ") " : "") + "toolgate";
  fill(document.getElementById("footer"), "toolgate " + status.version + ", up " + duration(status.uptime_s) + ", generation " + status.generation.number
    + ". This page changes nothing in the daemon.");
}

function askToken(why) {
  const input = h("input", { type: "password", autocomplete: "off" });
  fill(main, panel("Token", null, h("form", { class: "body", onsubmit: (event) => {
    event.preventDefault();
    sessionStorage.setItem(TOKEN_KEY, input.value.trim());
    state.needsToken = false;
    state.error = null;
    show();
  } }, h("p", {}, why), h("label", {}, "Token (the content of token_file)", input), h("div", { class: "row" }, h("button", { class: "first", type: "submit" }, "Open")),
  h("p", { class: "soft" }, "It stays in this tab and is sent to this daemon only."))));
  input.focus();
}

function report(why) {
  if (why.status === 401) {
    const tried = sessionStorage.getItem(TOKEN_KEY);
    sessionStorage.removeItem(TOKEN_KEY);
    if (!state.needsToken) {
      state.needsToken = true;
      view = null;
      askToken(tried ? "The daemon does not accept this token." : "What users sent is shown only with the token.");
    }
    return;
  }
  state.error = why.status ? why.message : "The daemon does not answer; trying again.";
  showFrame();
}

async function refreshOnce() {
  const mine = view;
  try {
    await askStatus();
    const changed = mine.poll ? await mine.poll() : true;
    state.error = null;
    if (mine === view) mine.update(changed);
    showFrame();
  } catch (why) {
    report(why);
  }
}

// One at a time; a view that was changed in between asks once more.
let refreshing = false, again = false;
async function refresh() {
  again = true;
  if (refreshing) return;
  refreshing = true;
  while (again && view && !state.needsToken) {
    again = false;
    await refreshOnce();
  }
  refreshing = false;
}

window.addEventListener("hashchange", show);
document.addEventListener("visibilitychange", () => { if (!document.hidden) refresh(); });
setInterval(() => { if (!document.hidden) refresh(); }, POLL_MS);
show();
