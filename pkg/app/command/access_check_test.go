package command

import (
	"bytes"
	"testing"

	"belfry/pkg/store/access"
	"belfry/pkg/store/policy"
)

func TestAccessCheckPrintsTheRulesOfFields(t *testing.T) {
	decided := func(allowed bool, rule, reason string) *policy.FieldDecision {
		return &policy.FieldDecision{Allowed: allowed, Rule: rule, Reason: reason}
	}
	const open = "none: everyone may"
	answer := &Answer{Explanation: access.Explanation{
		Decision: policy.Decision{Allowed: true, Operation: policy.Update, Rule: "user != null",
			Parts: []policy.Part{{Text: "user != null", Value: "true", Decides: true}, {Text: "object.pin == 1",
				Private: true}}},
		Fields: []access.FieldAccess{
			{Field: "created", Read: decided(true, open, ""), Write: decided(false, "kept by the server", ""),
				Ignored: true},
			{Field: "phone", Read: decided(false, "isOwner", ""), Write: decided(true, open, "")},
			{Field: "role", Write: decided(false, "user.role == 'admin'", "no such key: role"), Given: true},
			{Field: "updated", Read: decided(true, open, ""), Write: decided(false, "kept by the server", ""),
				Ignored: true},
		},
	}}
	var out bytes.Buffer
	(&accessFlags{User: "bob", Store: "People", Op: "update", UUID: "ann"}).write(&out, answer)
	const want = `denied: update People ann, bob
  rule of update  user != null
  result          true
  refused         the field role
parts of the rule
  user != null     true, decides
  object.pin == 1  private
fields
  created, updated  read; is ignored when sent (kept by the server)
  phone             hidden (isOwner); may be written
  role              may not be written (user.role == 'admin'), since it can't be evaluated: no such key: role
`
	if out.String() != want {
		t.Errorf("%s, want\n%s", out.String(), want)
	}
}
