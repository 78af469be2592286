package config

import "belfry/config/decode"

// Policy holds the CEL expressions that authorize operations. An empty expression
// is that of the owner policy when Owner is set, and otherwise allows everyone.
type Policy struct {
	Owner  bool   `word:"true" is:"owner"`
	Create string `key:"create" is:"expression"`
	Get    string `key:"get" is:"expression"`
	Update string `key:"update" is:"expression"`
	Delete string `key:"delete" is:"expression"`
	List   string `key:"list" is:"expression"`

	_ struct{} `key:"default" is:"one deny allow" default:"deny"`
}

// LeftOut is the expression of an operation that a policy does not name: it denies everyone. Its comment explains why
// to readers of the expression.
const LeftOut = "false // the policy does not name this operation"

// LeftOut returns the operations that are denied because the policy does not name them.
func (p Policy) LeftOut() (all []string) {
	for _, of := range p.named() {
		if *of.rule == LeftOut {
			all = append(all, of.operation)
		}
	}
	return all
}

// named are the operations that everyone may do, or nobody, where a policy has no rule for them. A list is what get
// allows.
func (p *Policy) named() []operationRule {
	return []operationRule{{"create", &p.Create}, {"get", &p.Get}, {"update", &p.Update}, {"delete", &p.Delete}}
}

type operationRule struct {
	operation string
	rule      *string
}

// Validate denies the operations that expressions leave out, unless the file says otherwise: who lists the operations
// that some may do does not expect that everyone may do the others. An empty policy is refused: it says nothing.
func (p *Policy) Validate(s *decode.Section) {
	switch {
	case !s.IsSet():
		return
	case len(s.Keys()) == 0:
		s.Problem("", "is empty; expected owner, or an expression for one of create, get, update, delete, list; "+
			"without policy everyone may do everything, and {default: allow} says so")
	case s.Value("default") == "allow":
		return
	}
	for _, of := range p.named() {
		if *of.rule == "" {
			*of.rule = LeftOut
		}
	}
}
