package object

import "testing"

func TestPointerEscapesTheField(t *testing.T) {
	if got, want := Pointer("a/b~1"), "/a~1b~01"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestUnescapeTokenReversesEscapeToken(t *testing.T) {
	for _, name := range []string{"", "a", "/", "~", "~1", "~01", "~~//", "a/b~c"} {
		if got := UnescapeToken(EscapeToken(name)); got != name {
			t.Errorf("%q became %q", name, got)
		}
	}
}
