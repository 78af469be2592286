package plan

import (
	"maps"
	"slices"
	"strings"

	"belfry/config"
	"belfry/pkg/store/policy"
)

// WhyNoRoute returns the reason why HTTP does not offer an operation of a store; "" if it does.
func WhyNoRoute(s *config.Store, op policy.Op) string {
	if s.Expose == nil {
		return "the store has no expose"
	}
	r := s.Expose.Restrict
	restricted := map[policy.Op]bool{policy.Create: r.Create, policy.Get: r.Get, policy.Update: r.Update,
		policy.Delete: r.Delete}
	switch {
	case op == policy.List && !s.Expose.List:
		return "the store has no expose.list"
	case restricted[op]:
		return "the store has expose.restrict." + string(op)
	}
	return ""
}

// StoreRights are the rights to the operations on the objects of a store over HTTP.
type StoreRights struct {
	Store      string
	Operations []Right // in that of Operations()
	// of get, to read files, and of update, to change them; empty in a store with routes, which have the same rights
	Files []Right
}

// Right is the right to an operation.
type Right struct {
	Operation policy.Op
	Who       string // one of the constants below
	Open      bool   // everyone: there is no rule
}

// The values of Right.Who.
const (
	Everyone      = "everyone"
	AnyUser       = "any user"
	Owner         = "owner"
	OwnerOrPublic = "owner or public" // the owner, and everyone if the field public of the object is true
	ByRule        = "rule"
	Nobody        = "nobody"
	NoRoute       = "no route"
)

// Operations returns the operations of a store in the order in which they are shown.
func Operations() []policy.Op {
	return []policy.Op{policy.Create, policy.Get, policy.List, policy.Update, policy.Delete}
}

// Rights returns the rights to each store of a configuration that is not internal.
func Rights(c *config.Config) (all []StoreRights) {
	for _, name := range slices.Sorted(maps.Keys(c.Stores)) {
		if config.Internal(name) {
			continue
		}
		s := c.Stores[name]
		r := StoreRights{Store: name}
		for _, op := range Operations() {
			right := rightOf(s, op)
			if WhyNoRoute(s, op) != "" {
				right = Right{Operation: op, Who: NoRoute}
			}
			r.Operations = append(r.Operations, right)
		}
		for _, op := range []policy.Op{policy.Get, policy.Update} {
			if s.Expose == nil && offersFiles(c, s, op) {
				r.Files = append(r.Files, rightOf(s, op))
			}
		}
		all = append(all, r)
	}
	return all
}

// WritableIdents names the rules by which clients can create, change or delete idents, which are the logins of users.
func WritableIdents(c *config.Config) (all []string) {
	s := c.Stores[c.Authentication.IdentStore]
	for _, op := range []policy.Op{policy.Create, policy.Update, policy.Delete} {
		who := rightOf(s, op).Who
		if WhyNoRoute(s, op) == "" && (who == Everyone || who == AnyUser) {
			all = append(all, "stores."+s.Name+".policy: "+who+" may "+string(op)+
				" idents, and so log in as other users: allow this only to admins, or to nobody")
		}
	}
	return all
}

// rightOf returns the right to an operation by the policy of a store.
func rightOf(s *config.Store, op policy.Op) Right {
	r := Right{Operation: op, Who: ByRule}
	switch rule := ruleOf(s.Policy, op); {
	case rule != "":
		r.Who = whoOf(rule, op)
	case !s.Policy.Owner:
		r.Who, r.Open = Everyone, true
	case op == policy.Create:
		r.Who = AnyUser
	case op == policy.Get || op == policy.List:
		r.Who = OwnerOrPublic
	default:
		r.Who = Owner
	}
	return r
}

// ruleOf returns the expression of an operation, "" for none. The default of list is the expression of get.
func ruleOf(p config.Policy, op policy.Op) string {
	switch op {
	case policy.Create:
		return p.Create
	case policy.Update:
		return p.Update
	case policy.Delete:
		return p.Delete
	case policy.List:
		if p.List != "" {
			return p.List
		}
	}
	return p.Get
}

// whoOf describes for whom usual expressions are true.
func whoOf(rule string, op policy.Op) string {
	if rule == config.LeftOut {
		return Nobody
	}
	switch strings.Join(strings.Fields(rule), "") {
	case "true":
		return Everyone
	case "false":
		return Nobody
	case "user!=null", "null!=user":
		return AnyUser
	case "isOwner":
		if op == policy.Create { // they become the owners of the objects that they create
			return AnyUser
		}
		return Owner
	}
	return ByRule
}

// isOffered reports whether there is a route for an operation, or a route of files that its rule restricts.
func isOffered(c *config.Config, s *config.Store, op policy.Op) bool {
	return WhyNoRoute(s, op) == "" || s.Expose == nil && offersFiles(c, s, op)
}

// offersFiles reports whether a binary service has routes that the rule of an operation restricts: get for reading
// files, update for changing them.
func offersFiles(c *config.Config, s *config.Store, op policy.Op) bool {
	if config.Internal(s.Name) || s.Name == c.Authentication.IdentStore {
		return false
	}
	for _, b := range c.Binaries {
		served := len(b.Map[s.Name].Names) > 0 || takesAnywhere(b, s)
		if served &&
			(op == policy.Get && !b.Restrict.Get || op == policy.Update && (!b.Restrict.Create || !b.Restrict.Delete)) {
			return true
		}
	}
	return false
}

// takesAnywhere reports whether a binary service accepts files in any property of a store.
func takesAnywhere(b *config.Binary, s *config.Store) bool {
	return len(b.Map) == 0 && (s.Expose != nil || s.Ruled())
}

// LeftOut returns the operations that clients can request, but that are denied because the policy of a store does not
// name them.
func LeftOut(c *config.Config, s *config.Store) (all []string) {
	for _, op := range Operations() {
		asked := isOffered(c, s, op) ||
			op == policy.Delete && s.Name == c.Authentication.UserStore && c.Authentication.Deletion.Enabled
		if asked && ruleOf(s.Policy, op) == config.LeftOut {
			all = append(all, string(op))
		}
	}
	return all
}
