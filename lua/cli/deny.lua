-- toolgate deny: declines a call that a policy has asked about.
return require "decide" ("toolgate/deny", {
  name = "deny", summary = "decline a call that a policy has asked about",
  about = [[
Denies a call that waits (toolgate approvals): made again within 5 minutes, it is refused as
`declined`. For operators, and never for the process that made the call.]],
  example = "  toolgate deny 5891b5b522d5df08",
})
