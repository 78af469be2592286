package count

import "testing"

func TestOf(t *testing.T) {
	for got, want := range map[string]string{
		Of(0, "object"):                         "0 objects",
		Of(int64(1), "object"):                  "1 object",
		Of(uint64(2), "object"):                 "2 objects",
		Of(1, "entry", "entries"):               "1 entry",
		Of(2, "entry", "entries"):               "2 entries",
		Of(11, "service of x", "services of x"): "11 services of x",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
