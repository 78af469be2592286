package record_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"belfry/pkg/account/record"
)

// Whoever adds a field to a record decides what becomes of it when somebody gets an account back.
func TestWhatIsLeftOfAnAccountIsKnownForEachField(t *testing.T) {
	fields := 0
	for _, kind := range []reflect.Type{
		reflect.TypeFor[record.User](), reflect.TypeFor[record.Ident](), reflect.TypeFor[record.Session](),
		reflect.TypeFor[record.Token](),
		reflect.TypeFor[record.Mailbox](), reflect.TypeFor[record.Tries](), reflect.TypeFor[record.Devices](),
		reflect.TypeFor[record.Exports](),
	} {
		for _, f := range reflect.VisibleFields(kind) {
			if _, stored := f.Tag.Lookup("record"); !stored {
				continue
			}
			fields++
			fates := strings.Split(f.Tag.Get("left"), ", ")
			if len(fates) != 4 || slices.ContainsFunc(fates, func(fate string) bool {
				return !slices.Contains([]string{"stays", "ends", "is set", "undoes", "otherwise"}, fate)
			}) {
				t.Errorf("what becomes of %s.%s is not said of each act: %q", kind, f.Name, fates)
			}
		}
	}
	if fields < 70 {
		t.Errorf("the records have %d fields only", fields)
	}
}
