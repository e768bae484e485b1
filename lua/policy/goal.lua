-- What the user's words ask for: wants_all reads whether they want everything, newest which candidates they mean.

local builtins = ...
local raise = builtins.raise -- an error at the line of the policy that called
local M = {}

local function set_of(words)
  local set = {}
  for word in words:gmatch "%S+" do set[word] = true end
  return set
end

local TEXT_MAX_BYTES = 20000 -- of what the user said, or of one string of a candidate

-- Curly apostrophes and quotes, dashes, the ellipsis, the non-breaking space.
local TYPOGRAPHY = { { "\226\128\153", "'" }, { "\226\128[\152\156\157]", " " }, { "\226\128[\147\148\166]", ", " },
                     { "\194\160", " " }, { "%-%-+", ", " } }

-- The words of a text in lower case. Hyphens and apostrophes inside of a word belong to it ("all-day", "don't");
-- other punctuation ends a clause and is a word of its own, ",".
local function words_of(text)
  local words = {}
  text = text:sub(1, TEXT_MAX_BYTES):lower()
  for _, each in ipairs(TYPOGRAPHY) do text = text:gsub(each[1], each[2]) end
  for word, sign in text:gmatch "([%w\128-\255]*[%w\128-\255'%-]*)([^%w\128-\255]?)" do
    word = word:gsub("^['%-]+", ""):gsub("['%-]+$", "")
    if word ~= "" then words[#words + 1] = word end
    if sign:find "[,.;:!?()\n]" and words[#words] ~= "," then words[#words + 1] = "," end
  end
  return words
end

-- ---- wants_all -----------------------------------------------------------------------------------------------

-- What asks for everything, by language. `whole`: only before one of `sets`, for "the whole document" is about one thing.
-- `idioms`: phrases with such a word that do not ask for everything. <when>: a time that recurs; <count>: a number.
local LANGUAGES = {
  { every = "all every each everyone everybody everything entirety", whole = "whole entire",
    sets = [[list lists set history team inbox catalog catalogue database collection table archive log backlog group class
             company family lot folder directory fleet crew staff department board queue portfolio batch series bunch]],
    nots = "not no never without none nor neither cannot hardly",
    idioms = {
      "at all", "after all", "above all", "first of all", "best of all", "most of all", "worst of all", "least of all",
      "last of all", "all right", "all of a sudden", "all in all", "once and for all", "by all means", "all along",
      "all over again", "all the same", "all the more", "all the better", "all the best", "all the time", "all the way",
      "all too", "all set", "all good", "all ok", "all okay", "all fine", "all clear", "all done", "all about", "all day",
      "all night", "all morning", "all afternoon", "all evening", "all day long", "all i need", "all i want", "all i know",
      "all we need", "all we want", "that's all", "that is all", "that will be all", "this is all", "you all", "we all",
      "hi all", "hello all", "hey all", "dear all", "thanks all", "morning all", "hi everyone", "hello everyone",
      "hey everyone", "dear everyone", "thanks everyone", "morning everyone", "hi everybody", "hello everybody",
      "hey everybody", "each other", "every other", "every so often", "every now and then", "every time", "each time",
      "every <when>", "each <when>", "every <count>", "as a whole", "on the whole", "whole number", "whole numbers",
      "whole wheat", "whole grain", "whole milk", "everything ok", "everything okay", "everything fine", "everything good",
      "everything alright", "thanks for everything", "all together", "all told", "all alone", "is that all",
      "every once in a while", "a whole lot", "a whole new", "the whole point",
    } },
  { every = "alle alles allen aller jede jeder jedes jeden jedem sämtliche sämtlichen sämtlicher",
    whole = "ganze ganzen gesamte gesamten",
    sets = "liste team abteilung sammlung tabelle datenbank gruppe ordner verlauf posteingang",
    nots = "nicht kein keine keinen keiner ohne nie niemals",
    idioms = { "vor allem", "alles klar", "alles gut", "alles gute", "alles in ordnung", "alles in allem", "ein für alle mal",
               "hallo alle", "danke für alles", "danke alle", "das ist alles", "das wäre alles", "alle <count>", "jeden <when>",
               "jede <when>", "jedes <when>", "jedes mal", "auf jeden fall", "in jedem fall", "aller art", "alle zusammen" } },
  { every = "todos todas", whole = "toda", sets = "lista base tabla colección carpeta historia",
    nots = "no sin nunca ningún ninguna tampoco",
    idioms = { "hola a todos", "gracias a todos", "buenos días a todos", "todos los <when>", "todas las <when>",
               "de todas formas", "de todos modos", "todas formas" },
    phrases = { "todo lo", "todo el mundo", "cada uno", "cada una" } },
  { every = "tous toutes chacun chacune", whole = "toute", sets = "liste équipe base table collection histoire",
    nots = "ne pas sans jamais aucun aucune",
    idioms = { "bonjour à tous", "merci à tous", "salut à tous", "tous les <when>", "toutes les <when>", "toutes les <count>",
               "tous les <count>", "en tous cas" }, phrases = { "tout le monde", "tout ce" } },
}

-- Chinese has no spaces: looked for as they are. `nots` stand before them, `but` are longer words with other meanings.
local CHINESE = { every = { "所有", "全部", "每个", "每一个", "一切", "全体" }, nots = { "不", "不是", "不要", "不用", "别", "并非", "没有" },
                  but = { "所有权", "所有者", "每个月", "每个星期", "每个小时" } }

local EVERYTHING, WHOLE, SETS, IDIOMS, NEGATIONS, PHRASES = {}, {}, {}, {}, {}, {}
for _, language in ipairs(LANGUAGES) do
  for into, words in pairs { [EVERYTHING] = language.every, [WHOLE] = language.whole, [SETS] = language.sets,
                             [NEGATIONS] = language.nots } do
    for word in words:gmatch "%S+" do into[word] = true end
  end
  for _, idiom in ipairs(language.idioms) do IDIOMS[#IDIOMS + 1] = idiom end
  for _, phrase in ipairs(language.phrases or {}) do PHRASES[#PHRASES + 1] = phrase end
end

local KINDS = {
  ["<when>"] = set_of [[second minute hour day week weekday weekend fortnight month quarter year morning noon afternoon
                        evening night monday tuesday wednesday thursday friday saturday sunday third fourth fifth
                        tag morgen abend montag dienstag mittwoch donnerstag freitag samstag sonntag woche monat jahr stunde
                        días noches semanas meses años horas mañanas lunes martes jueves viernes
                        jours nuits semaines mois ans matins soirs heures]],
  ["<count>"] = set_of [[two three four five six seven eight nine ten twelve fifteen twenty thirty few couple zwei drei vier
                         fünf deux trois quatre cinq]],
}

local INSTEAD = { instead = "of", rather = "than" }
-- "don't forget anyone", "not only", "no limit": these cancel the negation before them.
local OMISSIONS = set_of "forget miss skip omit leave lose drop exclude ignore overlook stop limit only just merely"
local REACH = 3 -- words from a negation to what it negates, in the same clause

-- Idioms by their first word, as lists of words.
local idioms = {}
for _, idiom in ipairs(IDIOMS) do
  local list = words_of(idiom:gsub("<", "kind"):gsub(">", "kind"))
  for at, word in ipairs(list) do
    local kind = word:match "^kind(%a+)kind$"
    if kind then list[at] = KINDS["<" .. kind .. ">"] end
  end
  idioms[list[1]] = idioms[list[1]] or {}
  table.insert(idioms[list[1]], list)
end

local function fits(word, pattern)
  if type(pattern) == "string" then return word == pattern end
  return pattern[word] or (pattern == KINDS["<count>"] and word:find "^%d+$" ~= nil)
end

local function begins(words, at, idiom)
  for i, pattern in ipairs(idiom) do
    if not words[at + i - 1] or not fits(words[at + i - 1], pattern) then return false end
  end
  return true
end

-- The positions of words that are part of an idiom.
local function idiomatic(words)
  local used = {}
  for at, word in ipairs(words) do
    for _, idiom in ipairs(idioms[word] or {}) do
      if begins(words, at, idiom) then
        for i = 1, #idiom do used[at + i - 1] = true end
      end
    end
  end
  return used
end

local function is_negated(words, at)
  for before = at - 1, math.max(1, at - REACH), -1 do
    local word = words[before]
    if word == "," or word == "but" or OMISSIONS[word] then return false end
    if NEGATIONS[word] or word:find "n't$" then return words[before - 1] ~= "why" end -- "why not all?" proposes it
    if INSTEAD[word] and words[before + 1] == INSTEAD[word] then return true end
  end
  return false
end

-- "the whole list" is all of it, "the whole document" one thing.
local function is_whole_set(words, at)
  return WHOLE[words[at]] and (SETS[words[at + 1] or ","] or SETS[words[at + 2] or ","] and words[at + 1] ~= ",")
end

local phrases = {}
for i, phrase in ipairs(PHRASES) do phrases[i] = words_of(phrase) end

local function begins_phrase(words, at)
  for _, phrase in ipairs(phrases) do
    if begins(words, at, phrase) then return true end
  end
  return false
end

local function asks_in_chinese(text)
  for _, word in ipairs(CHINESE.but) do text = text:gsub(word, "") end
  for _, no in ipairs(CHINESE.nots) do
    for _, word in ipairs(CHINESE.every) do text = text:gsub(no .. word, "") end
  end
  for _, word in ipairs(CHINESE.every) do
    if text:find(word, 1, true) then return true end
  end
  return false
end

function M.wants_all(goal)
  if type(goal) ~= "string" then return false end
  local words = words_of(goal)
  local used = idiomatic(words)
  for at, word in ipairs(words) do
    local price = word == "each" and (words[at + 1] or ",") == "," -- "for 5 each"
    local owner = word:match "^(.*)'s?$" or "" -- "everyone's"
    local asks = EVERYTHING[word] or EVERYTHING[owner] or is_whole_set(words, at) or begins_phrase(words, at)
    if asks and not used[at] and not price and not is_negated(words, at) then return true end
  end
  return asks_in_chinese(goal:sub(1, TEXT_MAX_BYTES))
end

-- ---- newest --------------------------------------------------------------------------------------------------

local TEXTS_MAX, DEPTH_MAX = 200, 4 -- of one item

-- Words that say nothing about which item is meant. Shorter ones without a digit are left out by their length.
local PLAIN = set_of [[
  the and for with from that this these those there here what when where which who whom whose why how are was were been
  being has have had does did not you your our ours his her hers its they them their mine all any every some can could
  would should will shall may might must please show find get give tell list look open read send see want need about
  into onto over under then than also just but only new newest latest last recent recently most first current one ones
]]

-- The word's stem by its plural alone: "invoices" and "invoice" are one, and so are "parties" and "party".
local function stem(word)
  word = word:gsub("'s?$", "")
  if #word > 4 and word:find "ies$" then
    word = word:sub(1, -4) .. "y"
  elseif #word > 4 and word:find "es$" then
    word = word:sub(1, -3)
  elseif #word > 3 and word:find "[^siu]s$" then
    word = word:sub(1, -2)
  end
  return (#word > 3 and word:gsub("e$", ""):gsub("i$", "y") or word)
end

local function add_words(text, into)
  for _, word in ipairs(words_of(text)) do
    for part in word:gmatch "[^%-]+" do
      if (#part > 2 or part:find "%d") and not PLAIN[part] then into[stem(part)] = true end
    end
  end
end

-- All strings of the item, except its field.
local function add_texts(value, but, into, left, depth)
  if type(value) == "string" and left.texts > 0 then
    left.texts = left.texts - 1
    add_words(value, into)
  elseif type(value) == "table" and depth < DEPTH_MAX then
    for key, inner in pairs(value) do
      if key ~= but then add_texts(inner, nil, into, left, depth + 1) end
    end
  end
end

local function relevance(item, field, wanted)
  local words, shared = {}, 0
  add_texts(item, field, words, { texts = TEXTS_MAX }, 0)
  for word in pairs(wanted) do
    if words[word] then shared = shared + 1 end
  end
  return shared
end

-- What the field compares by: a number, also of a string ("12"); seconds for a time; else the string as it is.
local function rank_of(value)
  if type(value) == "number" then return value, false end
  if type(value) ~= "string" then return nil end
  local number, time = tonumber(value), builtins.time(value)
  return number or time or value, not number and time ~= nil
end

local EPOCH_MS = 1e11 -- an epoch from here on counts milliseconds

-- The items that have the field. Beside ISO date-times, numbers are epochs in seconds or milliseconds.
local function candidates(list, field)
  local found, times = {}, false
  for at, item in ipairs(list) do
    local rank, is_time = rank_of(type(item) == "table" and item[field])
    if rank ~= nil then found[#found + 1] = { item = item, at = at, rank = rank } end
    times = times or is_time
  end
  for _, each in ipairs(found) do
    if times and type(each.rank) == "number" and each.rank >= EPOCH_MS then each.rank = each.rank / 1000 end
  end
  return found
end

-- Those that share most words with the goal; all of them if none shares any.
local function most_relevant(found, field, goal)
  local wanted, most, kept = {}, 0, {}
  add_words(goal, wanted)
  if next(wanted) == nil then return found end
  for _, each in ipairs(found) do
    each.shared = relevance(each.item, field, wanted)
    most = math.max(most, each.shared)
  end
  for _, each in ipairs(found) do
    if each.shared == most then kept[#kept + 1] = each end
  end
  return kept
end

function M.newest(list, field, goal)
  if type(list) ~= "table" or type(field) ~= "string" or (goal ~= nil and type(goal) ~= "string") then
    raise("newest: expected (list, field, goal), got (" .. builtins.kind(list) .. ", " .. builtins.kind(field)
          .. (goal ~= nil and ", " .. builtins.kind(goal) or "") .. ")")
  end
  local found = candidates(list, field)
  if goal then found = most_relevant(found, field, goal) end
  local best
  for _, each in ipairs(found) do
    if not best or (type(each.rank) == type(best.rank) and each.rank > best.rank) then best = each end
  end
  if best then return best.item, best.at end
end

return M
