package decode

import (
	"cmp"
	"reflect"
	"strings"
)

// Policy says what a program that runs does with a changed value when it reads its file again. The tag reload of a key
// has it: "live", "restart", "live unless CONDITION", where a Condition makes it "restart", or "refused=COMMAND".
type Policy string

// The policies of a reload.
const (
	Live    Policy = "live"    // a reload applies the value
	Restart Policy = "restart" // a reload is refused; the next start applies the value
	Refused Policy = "refused" // a reload is refused, and a restart does not suffice: run Change.Command first
)

// Condition reports, about a key that two configurations have different values of, whether the change needs a restart.
type Condition[T any] func(path string, before, now *T) bool

// PolicyOf returns the policy of a key of a struct, as its tag or that of the section says it; "" if there is no such
// key. The path of an entry of a map has that of adding or removing one.
func PolicyOf[T any](path string) string {
	return policyWithin(reflect.TypeFor[T](), strings.Split(strings.ReplaceAll(path, "[]", ""), "."), "")
}

func policyWithin(t reflect.Type, path []string, inherited string) string {
	if len(path) == 0 || t.Kind() != reflect.Struct {
		return inherited
	}
	for _, k := range layoutOf(t, "").keys {
		of, rest, entry := k.follow(path)
		if of == nil {
			continue
		}
		own := cmp.Or(k.reload, inherited)
		if entry {
			own = cmp.Or(k.presence, own)
		}
		if found := policyWithin(of, rest, own); found != "" {
			return found
		}
	}
	return ""
}

// NamesPath reports whether the value of a key of a struct is the path of a file or folder. The key is as the keys from
// the root, without indexes of lists.
func NamesPath[T any](keys []string) bool { return namesPathWithin(reflect.TypeFor[T](), keys) }

func namesPathWithin(t reflect.Type, keys []string) bool {
	if len(keys) == 0 || t.Kind() != reflect.Struct {
		return false
	}
	for _, k := range layoutOf(t, "").keys {
		of, rest, _ := k.follow(keys)
		if of != nil && (len(rest) == 0 && k.Format.Use != 0 || namesPathWithin(of, rest)) {
			return true
		}
	}
	return false
}

// follow returns the type to which a path leads by a key, and the rest of the path within it. Without the key at its
// beginning, the type is nil. entry says that the path ends with the name of an entry of a map.
func (k *Key) follow(path []string) (of reflect.Type, rest []string, entry bool) {
	switch k.Name {
	case path[0]:
		rest = path[1:]
	case "*":
		rest = path
	default:
		return nil, nil, false
	}
	of = k.typ
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice || of.Kind() == reflect.Map {
		if of.Kind() == reflect.Map && len(rest) > 0 {
			rest = rest[1:]
			entry = len(rest) == 0
		}
		of = of.Elem()
	}
	return of, rest, entry
}
