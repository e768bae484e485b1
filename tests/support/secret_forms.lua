-- Forms in which a secret stands in a call's arguments: what no record may show, and what looks like one and is none. `@`
-- is the secret; each row has one of its own.
local json = require("cjson").new()

local function text(form) return { command = form } end

return {
  hidden = {
    -- by a member's name
    { password = "@" }, { Password = "@" }, { db_password = "@" }, { ["db.password"] = "@" }, { passwd = "@" }, { pwd = "@" },
    { passphrase = "@" }, { passcode = "@" }, { secret = "@" }, { client_secret = "@" }, { clientSecret = "@" },
    { token = "@" }, { access_token = "@" }, { refreshToken = "@" }, { api_key = "@" }, { apiKey = "@" }, { ["API Key"] = "@" },
    { ["api.key"] = "@" }, { ["X-API-Key"] = "@" }, { private_key = "@" }, { authorization = "@" }, { auth = "@" },
    { auth = { user = "ana", pass = "@" } }, { cookie = "@" }, { pin = "@" }, { otp = "@" }, { cvv = "@" },
    { credentials = { "@" } }, { headers = { Authorization = "Bearer @" } },
    -- by what its neighbour says
    { env = { { name = "API_KEY", value = "@" } } }, { headers = { { key = "Authorization", value = "@" } } },
    { header = { name = "X-Api-Key", value = "@" } }, { params = { { param = "password", val = "@" } } },
    { headers = { { "Authorization", "@" } } }, { argv = { "login", "--password", "@" } },
    { argv = { "curl", "--token", "@", "x.org" } }, { argv = { "mysql", "--password=@" } },
    -- in a command
    text "mysql --password @ -h db", text "mysql --password=@ -h db", text "mysql -u ana -p@ db",
    text "sshpass -p@ ssh host", text "PGPASSWORD=@ psql", text "export DB_PASSWORD='@'; run", text "curl -u ana:@ https://x.org",
    text 'curl --user "ana:@" https://x.org', text "curl -H 'Authorization: Basic @' x.org", text 'curl -H "X-Api-Key: @" x.org',
    text "docker login --password '@' -u ana", text "aws configure set aws_secret_access_key=@", text "api key: @",
    text "api.key=@", text "secret key = @", text "set -e; TOKEN=@; run",
    -- in an address
    text "git clone https://ana:@@host.org/r.git", text "postgres://u:@@db:5432/x", text "https://x.org/?token=@&b=1",
    text "redis://:@@cache:6379/0",
    -- in other languages
    text "<login><password>@</password></login>", text "<apiKey>@</apiKey>", text '<add key="ApiKey" value="@"/>',
    text "CREATE USER ana IDENTIFIED BY '@'", text "ALTER USER ana WITH PASSWORD '@'", text "SET PASSWORD = '@'",
    text "ALTER ROLE ana PASSWORD  '@' LOGIN", text "password: @\nuser: ana", text "[db]\npassword = @",
    text '{"password":"@","a":1}', text '{\\"password\\":\\"@\\"}', text 'x = {"name": "API_KEY", "value": "@"',
    text "requests.get(u, auth=('ana', 1), token='@')", { note = json.encode { env = { { name = "TOKEN", value = "@" } } } },
    -- by its own form
    text "the header is bearer @0123456789", text "-----BEGIN RSA PRIVATE KEY-----\n@\n-----END RSA PRIVATE KEY-----",
    text "use sk-proj-@0123456789abcdef", text "ghp_@0123456789012345678901234567890123",
  },
  -- { arguments, what is left of the secret after it is encoded }
  encoded = {
    { text "curl -H 'X: Basic YW5hOnpvckdsdWI3Nw=='", "YW5hOnpvckdsdWI3Nw" }, -- ana:zorGlub77
    { text "Proxy uses basic YW5hOnpvckdsdWI3Nw== here", "YW5hOnpvckdsdWI3Nw" },
    { { argv = { "mysql", "-u", "ana", "-pzorGlub77x" } }, "zorGlub77x" },
  },
  shown = {
    { name = "limit", value = "@" }, { name = "token_count", value = "@" }, { fields = { "email", "@" } }, { spin = "@" },
    { pinned = "@" }, { author = "@" }, { argv = { "ls", "--sort", "@" } }, { argv = { "run", "--no-token", "--@" } },
    text "docker run -p80:@ image", text "mkdir -p @", text "basic authentication of @", text "<title>@</title>",
    text "ORDER BY '@'", text "the '@' of it", text "<add key=\"Timeout\" value=\"@\"/>", text "primary key: @",
    text "a based @", text "key: @", text "it's '@'",
  },
}
