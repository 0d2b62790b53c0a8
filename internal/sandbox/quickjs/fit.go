package quickjs

import (
	"encoding/json"
	"fmt"

	"capstan/internal/sandbox"
)

// refit is the failure that a program gets in place of a reply with more
// bytes than limit in one of its two parts. What the reply says of the call is
// kept, and whether the call itself went well: it is not to be repeated then.
func refit(r sandbox.Reply, limit int) sandbox.Reply {
	var said struct{ CallID, Name, Tool, Code, File, Message string }
	_ = json.Unmarshal(r.Value, &said) // of what is not JSON nothing is known
	fail := struct {
		Message string `json:"message"`
		Tool    string `json:"tool"`
		CallID  string `json:"callId"`
		Code    string `json:"code"`
	}{Tool: said.Name, CallID: said.CallID, Code: "OUTPUT_LIMIT"}
	if r.OK {
		fail.Message = fmt.Sprintf("the call was done, but its result is longer than the sandbox takes: %d bytes of text and %d of values, and each may have %d", len(r.Text), len(r.Value), limit)
	} else {
		fail.Tool, fail.Code = said.Tool, said.Code
		if fail.Code == "" {
			fail.Code = "TOOL_FAILED"
		}
		fail.Message = fmt.Sprintf("the call failed, and its message is longer than the sandbox takes, with %d bytes", len(r.Value))
		if begins := said.Message[:min(len(said.Message), 1000, limit/8)]; begins != "" { // each byte can become six
			fail.Message += "; it begins: " + begins
		}
	}
	if said.File != "" {
		fail.Message += "; the whole is in " + said.File
	}
	b, err := json.Marshal(fail)
	if err != nil {
		panic(err) // strings only
	}
	return sandbox.Reply{Value: b}
}
