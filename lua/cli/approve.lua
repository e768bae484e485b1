-- toolgate approve: lets a call run once that a policy has asked about.
return require "decide" ("toolgate/approve", {
  name = "approve", summary = "let a call run once that a policy has asked about",
  about = [[
Approves a call that waits (toolgate approvals): when the agent makes it again within 5 minutes, in the
same session with the same arguments, it runs, once. For operators, and never for the process that
made the call.]],
  example = "  toolgate approve 5891b5b522d5df08",
})
