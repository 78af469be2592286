package config

// Policy holds the CEL expressions that authorize operations. An empty expression
// is that of the owner policy when Owner is set, and otherwise allows everyone.
type Policy struct {
	Owner                             bool
	Create, Get, Update, Delete, List string
}

// LeftOut is the expression of an operation that a policy does not name: it denies everyone. Whoever is shown it reads why.
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

// readPolicy reads a word or expressions. What these leave out is denied, unless the file says otherwise: who lists the
// operations that some may do does not expect that everyone may do the others. An empty policy is refused: it says
// nothing.
func readPolicy(s *section) Policy {
	var p Policy
	if s.isScalar("policy") {
		word := ""
		decode(s, "policy", &word, ownerPolicy)
		return Policy{Owner: word != ""}
	}
	x := s.section("policy")
	for _, of := range p.named() {
		decode(x, of.operation, of.rule, parseNonEmpty)
	}
	decode(x, "list", &p.List, parseNonEmpty)
	others := "deny"
	decode(x, "default", &others, oneOf("deny", "allow"))
	x.rejectUnknown()
	if s.has("policy") && len(x.keys) == 0 {
		s.problem("policy", "is empty; expected owner, or an expression for one of create, get, update, delete, list; without policy everyone may do everything, and {default: allow} says so")
	}
	if !s.has("policy") || others == "allow" {
		return p
	}
	for _, of := range p.named() {
		if *of.rule == "" {
			*of.rule = LeftOut
		}
	}
	return p
}

func ownerPolicy(text string) (string, error) {
	if text != "owner" {
		return "", expected("owner, or one expression each for create, get, update, delete, list", fragment{"enum": []string{"owner"}})
	}
	return text, nil
}
