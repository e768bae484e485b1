-- What needs attention, of an answer of toolgate/status: a function for each kind of problem, in the order in which they
-- are printed, which returns lines. A problem takes one line that names the fix, so that nobody has to look for it.
local ui = require "ui"

local function each(list, say)
  local lines = {}
  for _, item in ipairs(list or {}) do lines[#lines + 1] = say(item) end
  return lines
end

local function one(bad, form, ...) return bad and { ui.format(form, ...) } or {} end

local function of_generation(a, name) return a.generation and a.generation[name] end

return {
  function(a) return each(a.quarantined, function(q)
    return ui.format("%s is quarantined: %s; %s (%s)", q.file, q.why, q.fix, q.list)
  end) end,
  function(a) return each(a.policy_faults, function(f)
    return ui.format("the policy of %s has failed %s, last: %s", f.tool or f.gateway, ui.count(f.count, "time"), f.last)
  end) end,
  function(a) return each(a.busy, function(b)
    return ui.format("%s is busy to uid %d for another %d s: its policy used up its time in several calls in a row; make its "
                     .. "hooks faster", b.tool, b.uid, b.left_s)
  end) end,
  function(a) return each(of_generation(a, "unmatched"), function(u)
    return ui.format("%s guards no tool: %s", u.file, u.why or "waits for its upstream")
  end) end,
  function(a) return each(of_generation(a, "shadow_expired"), function(x) return ui.format("%s: %s", x.file, x.why) end) end,
  function(a) return of_generation(a, "warnings") or {} end,
  function(a) return a.lists and a.lists.warnings or {} end,
  function(a)
    local more = a.lists and a.lists.more_warnings or 0
    return one(more > 0, "%d more prompts and resources are left out", more)
  end,
  function(a) return each(a.decisions and a.decisions.sinks, function(s)
    return s.why and "the decision log cannot write: " .. s.why
  end) end,
  function(a)
    local lost = a.decisions and a.decisions.dropped or 0
    return one(lost > 0, "the decision log has lost %s since the daemon started", ui.count(lost, "record"))
  end,
  function(a)
    local lost = a.log_lines_dropped or 0
    return one(lost > 0, "the log has lost %s since the daemon started: its disk is full, or what reads it (the journal, a "
                         .. "pipe) stands still or is too slow", ui.count(lost, "line"))
  end,
  function(a)
    local c = a.commands or {}
    return one((c.refused or 0) > 0, "%s of one user were refused: %d may wait, and each user has a share",
               ui.count(c.refused or 0, "command"), c.most or 0)
  end,
  function(a)
    local m = a.metrics or {}
    return one((m.over_share or 0) > 0, "%s of one user to the endpoint were closed: of %d at once each user has a share",
               ui.count(m.over_share or 0, "connection"), m.most or 0)
  end,
  function(a) return each(a.upstreams, function(u)
    return u.sandbox_missing and ui.format("the upstream %s runs without %s", u.name, u.sandbox_missing)
  end) end,
  function(a)
    local lost = a.pins and a.pins.lost or {}
    return one(#lost > 0, "the state folder has lost the accepted definitions of %s: toolgate pins", ui.count(#lost, "upstream"))
  end,
  function(a)
    local pending, held = a.pins and a.pins.pending or 0, a.pins and a.pins.held or 0
    return one(pending > 0, "%s of tools, %d of them neither listed nor callable: toolgate pins",
               ui.count(pending, "changed definition"), held)
  end,
  function(a) return each(a.problems, function(p)
    return ui.format("%s, %s, last by %s: %s", p.code, ui.count(p.count, "time"), p.client, p.last)
  end) end,
}
