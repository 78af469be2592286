package pages

import "testing"

// Sizes are in the units of file managers, and a file of the size that is shown is accepted.
func TestSizesAreForPeople(t *testing.T) {
	for n, want := range map[int64]string{5 << 20: "5 MB", 1 << 20: "1 MB", 1_500_000: "1464 KB", 512 << 10: "512 KB",
		900: "900 B"} {
		if is := sizeOf(n); is != want {
			t.Errorf("%d: %q, want %q", n, is, want)
		}
	}
}
