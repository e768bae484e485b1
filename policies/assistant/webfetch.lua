-- WebFetch: what a coding assistant reads from the web, hooked by `toolgate hook`. Addresses of the own network, where
-- metadata services and admin pages are, are refused.
-- Shows: a refusal by the host of an address.

local function host_of(url)
  local host = url:lower():match "^%a[%w+.-]*://([^/?#]*)"
  host = host and (host:match "@([^@]*)$" or host)
  return host and ((host:match "^%[(.-)%]") or host:match "^([^:]*)")
end

local function is_own(host)
  local a, b = host:match "^(%d+)%.(%d+)%.%d+%.%d+$"
  a, b = tonumber(a), tonumber(b)
  return host == "localhost" or host:find "%.local$" or host:find "%.internal$" or host == "::1" or host:find "^f[cd]%x%x:"
    or (a and (a == 127 or a == 10 or a == 0 or (a == 192 and b == 168) or (a == 169 and b == 254)
               or (a == 172 and b >= 16 and b <= 31)))
end

return tool "WebFetch" {
  description = "Read a page of the web.",
  effects = "read",
  schema = json [[{"type":"object","properties":{
    "url":{"type":"string","description":"The address"}},"required":["url"]}]],

  check = function(args)
    local host = host_of(args.url)
    if not host or host == "" then
      return refuse("no_address", "this is no address of the web", "Give a whole address: https://host/path")
    end
    if is_own(host) then
      return refuse("own_network", "'" .. host .. "' is in the own network", "Use a public address, or ask the user.")
    end
  end,

  examples = {
    { "a page", args = { url = "https://example.com/a", prompt = "What is it?" }, gives = "pass" },
    { "no address", args = { prompt = "x" }, gives = "repair" },
    { "not an address", args = { url = "example" }, gives = "refuse no_address" },
    { "a metadata service", args = { url = "http://169.254.169.254/latest/meta-data" }, gives = "refuse own_network" },
    { "behind a name", args = { url = "http://me@localhost:8080/" }, gives = "refuse own_network" },
  },
}
