-- json_schema_2020_12_tool: a fixture tool of the MCP conformance suite; its schema must reach the client unchanged.
return tool "json_schema_2020_12_tool" {
  description = "Tool with JSON Schema 2020-12 features",
  effects     = "read",
  schema      = json [[{
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
      "address": {
        "$anchor": "addressDef",
        "type": "object",
        "properties": { "street": { "type": "string" }, "city": { "type": "string" } }
      }
    },
    "properties": {
      "name": { "type": "string" },
      "address": { "$ref": "#/$defs/address" },
      "contactMethod": { "type": "string", "enum": ["phone", "email"] },
      "phone": { "type": "string" },
      "email": { "type": "string" }
    },
    "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
    "if": { "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"] },
    "then": { "required": ["phone"] },
    "else": { "required": ["email"] },
    "additionalProperties": false
  }]],
  run = function(args) return args end,
}
