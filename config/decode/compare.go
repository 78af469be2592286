package decode

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Change is a difference between two configurations: a value, or a section that one of them does not have.
type Change struct {
	Path    string // of the key, such as stores.Books.indexes
	Policy  Policy
	Command string // of a policy Refused: what makes the change
}

// Changes returns the differences between what two files were read into, sorted by their paths. Defaults are filled in,
// so a key that follows another one by default differs as well. Of a section that is added or removed, its own path is
// there and none of its keys.
func Changes[T any](before, now *Document, conditions map[string]Condition[T]) []Change {
	was, is := before.into.(*T), now.into.(*T)
	c := &comparison{restarts: func(path, condition string) bool { return conditions[condition](path, was, is) }}
	c.section("", reflect.ValueOf(was).Elem(), reflect.ValueOf(is).Elem(), "", "")
	slices.SortFunc(c.found, func(a, b Change) int { return cmp.Compare(a.Path, b.Path) })
	return c.found
}

// comparison walks through two structs by the keys that their types declare.
type comparison struct {
	restarts func(path, condition string) bool
	found    []Change
}

// section compares two structs. reload is what the tag of the section says.
func (c *comparison) section(path string, a, b reflect.Value, without, reload string) {
	l := layoutOf(a.Type(), without)
	if w := l.word; w != nil && w.Name == "" {
		c.value(path, w, a.FieldByIndex(w.index), b.FieldByIndex(w.index), reload)
	}
	variant, same := "", true
	for i := range l.keys {
		k := &l.keys[i]
		if k.index == nil || k.variant != "" && (!same || k.variant != variant) {
			continue
		}
		x, y := a.FieldByIndex(k.index), b.FieldByIndex(k.index)
		if k.of != "" {
			variant, same = x.String(), x.String() == y.String()
		}
		at := path
		if k.Name != "*" {
			at = Join(path, k.Name)
		}
		c.value(at, k, x, y, cmp.Or(k.reload, reload))
	}
}

func (c *comparison) value(path string, k *Key, a, b reflect.Value, reload string) {
	switch kind := a.Kind(); {
	case reflect.DeepEqual(a.Interface(), b.Interface()):
	case kind == reflect.Pointer && (a.IsNil() || b.IsNil()):
		c.add(path, cmp.Or(k.presence, reload))
	case kind == reflect.Pointer:
		c.section(path, a.Elem(), b.Elem(), k.without, reload)
	case k.isSection(a.Type()):
		c.section(path, a, b, k.without, reload)
	case kind == reflect.Map:
		c.entries(path, k, a, b, reload)
	case kind == reflect.Slice && a.Len()+b.Len() == 0:
	case kind != reflect.Slice || !k.isSection(a.Type().Elem()) || a.Len() != b.Len():
		c.add(path, reload)
	default:
		for i := range a.Len() {
			c.section(fmt.Sprintf("%s[%d]", path, i), a.Index(i), b.Index(i), "", reload)
		}
	}
}

// entries compares two maps.
func (c *comparison) entries(path string, k *Key, a, b reflect.Value, reload string) {
	var all []string
	for _, name := range append(a.MapKeys(), b.MapKeys()...) {
		all = append(all, name.String())
	}
	slices.Sort(all)
	for _, name := range slices.Compact(all) {
		at := Join(path, name)
		x, y := a.MapIndex(reflect.ValueOf(name)), b.MapIndex(reflect.ValueOf(name))
		if x.IsValid() && y.IsValid() {
			c.value(at, k, x, y, reload)
		} else {
			c.add(at, cmp.Or(k.presence, reload))
		}
	}
}

func (c *comparison) add(path, reload string) {
	change := Change{Path: path}
	usual, condition, conditional := strings.Cut(reload, " unless ")
	command, refused := strings.CutPrefix(reload, string(Refused)+"=")
	switch {
	case refused:
		change.Policy, change.Command = Refused, command
	case conditional && c.restarts(change.Path, condition):
		change.Policy = Restart
	default:
		change.Policy = Policy(usual)
	}
	c.found = append(c.found, change)
}
