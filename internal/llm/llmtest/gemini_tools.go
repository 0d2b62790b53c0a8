package llmtest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

var geminiName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}$`)

const geminiNameRule = "Invalid function name. Must start with a letter or an underscore. Must be alphanumeric (a-z, A-Z, 0-9), underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 64."

// checkGeminiTools checks tools and toolConfig, and says whether functions are
// declared.
func checkGeminiTools(r *geminiRequest, third bool) (functions bool, no *refusal) {
	names, hosted := map[string]bool{}, ""
	for i, raw := range r.Tools {
		at := fmt.Sprintf("tools[%d]", i)
		if no := unknown(raw, at, "functionDeclarations googleSearch googleSearchRetrieval codeExecution urlContext googleMaps fileSearch computerUse"); no != nil {
			return false, no
		}
		var t map[string]json.RawMessage
		if err := json.Unmarshal(raw, &t); err != nil || len(t) == 0 {
			return false, bad("%s: at least one tool is required", at)
		}
		for _, k := range sortedKeys(t) {
			if k != "functionDeclarations" {
				hosted = k
			}
		}
		if t["functionDeclarations"] == nil {
			continue
		}
		var list []json.RawMessage
		if json.Unmarshal(t["functionDeclarations"], &list) != nil || len(list) == 0 {
			return false, bad("* GenerateContentRequest.%s.function_declarations: must not be empty", at)
		}
		for k, raw := range list {
			if no := checkDeclaration(raw, fmt.Sprintf("%s.function_declarations[%d]", at, k), names); no != nil {
				return false, no
			}
		}
	}
	return len(names) > 0, checkToolConfig(r, len(names) > 0, hosted, third)
}

func checkDeclaration(raw json.RawMessage, at string, names map[string]bool) *refusal {
	if no := unknown(raw, at, "name description parameters parametersJsonSchema response responseJsonSchema behavior"); no != nil {
		return no
	}
	var d struct {
		Name        string
		Description string
		Parameters  json.RawMessage
	}
	if err := json.Unmarshal(raw, &d); err != nil {
		return bad("Invalid value at '%s': %v", at, err)
	}
	switch {
	case !geminiName.MatchString(d.Name):
		return bad("* GenerateContentRequest.%s.name: %s", at, geminiNameRule)
	case names[d.Name]:
		return bad("Duplicate function declaration found: %s", d.Name)
	}
	names[d.Name] = true
	if d.Parameters == nil {
		return nil
	}
	if why := checkGeminiSchema(d.Parameters, at+".parameters", true); why != "" {
		return bad("* GenerateContentRequest.%s", why)
	}
	return nil
}

func checkToolConfig(r *geminiRequest, functions bool, hosted string, third bool) *refusal {
	var c struct {
		FunctionCallingConfig            *struct{ Mode string }
		IncludeServerSideToolInvocations bool
	}
	if r.ToolConfig != nil {
		if no := unknown(r.ToolConfig, "tool_config", "functionCallingConfig retrievalConfig includeServerSideToolInvocations"); no != nil {
			return no
		}
		if err := json.Unmarshal(r.ToolConfig, &c); err != nil {
			return bad("Invalid value at 'tool_config': %v", err)
		}
	}
	f := c.FunctionCallingConfig
	switch {
	case f != nil && !slices.Contains([]string{"AUTO", "ANY", "NONE", "VALIDATED"}, f.Mode):
		return bad("Invalid value at 'tool_config.function_calling_config.mode'")
	case f != nil && !functions:
		return bad("Function calling config is set without function_declarations.")
	case functions && hosted != "" && !third:
		return bad("Built-in tools ({%s}) and Function Calling cannot be combined in the same request.", hosted)
	case functions && hosted != "" && !c.IncludeServerSideToolInvocations:
		return bad("Please enable tool_config.include_server_side_tool_invocations to use Built-in tools with Function calling.")
	}
	return nil
}

type geminiSchema struct {
	Type       string
	Format     string
	Enum       []json.RawMessage
	Items      json.RawMessage
	Properties map[string]json.RawMessage
	Required   []string
	AnyOf      []json.RawMessage
}

// checkGeminiSchema says what the API refuses in a Schema object. Only the root
// has to have properties when it is an object: further in, the API takes less.
func checkGeminiSchema(raw json.RawMessage, at string, root bool) string {
	if no := unknown(raw, at, "type format title description nullable enum items maxItems minItems properties required minProperties maxProperties minLength maxLength pattern anyOf minimum maximum propertyOrdering default example"); no != nil {
		return no.message
	}
	var s geminiSchema
	if err := json.Unmarshal(raw, &s); err != nil {
		return fmt.Sprintf("%s: %v", at, err)
	}
	kind := strings.ToUpper(s.Type)
	switch {
	case kind == "" && s.AnyOf == nil:
		return at + ".type: must be specified"
	case kind != "" && !slices.Contains([]string{"STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL"}, kind):
		return fmt.Sprintf("%s.type: Invalid value (type.googleapis.com/google.ai.generativelanguage.v1beta.Type), %q", at, s.Type)
	case root && kind == "OBJECT" && len(s.Properties) == 0:
		return at + ".properties: should be non-empty for OBJECT type"
	case s.Properties != nil && kind != "OBJECT":
		return at + ".properties: only allowed for OBJECT type"
	case kind == "ARRAY" && s.Items == nil:
		return at + ".items: missing field."
	case s.Items != nil && kind != "ARRAY":
		return at + ".items: only allowed for ARRAY type"
	case s.Enum != nil && kind != "STRING":
		return at + ".enum: only allowed for STRING type"
	}
	for i, e := range s.Enum {
		if len(e) < 3 || e[0] != '"' {
			return fmt.Sprintf("%s.enum[%d]: cannot be empty", at, i)
		}
	}
	if formats := map[string][]string{"STRING": {"enum", "date-time"}, "NUMBER": {"float", "double"}, "INTEGER": {"int32", "int64"}}[kind]; s.Format != "" && !slices.Contains(formats, s.Format) {
		return fmt.Sprintf("%s.format: only %s are supported for %s type", at, strings.Join(formats, " and "), kind)
	}
	for i, name := range s.Required {
		if s.Properties[name] == nil {
			return fmt.Sprintf("%s.required[%d]: property is not defined", at, i)
		}
	}
	return checkGeminiInner(&s, at)
}

func checkGeminiInner(s *geminiSchema, at string) string {
	for _, name := range sortedKeys(s.Properties) {
		if why := checkGeminiSchema(s.Properties[name], at+".properties["+name+"]", false); why != "" {
			return why
		}
	}
	for i, one := range s.AnyOf {
		if why := checkGeminiSchema(one, fmt.Sprintf("%s.any_of[%d]", at, i), false); why != "" {
			return why
		}
	}
	if s.Items != nil {
		return checkGeminiSchema(s.Items, at+".items", false)
	}
	return ""
}
