package driver_test

import (
	"bytes"
	"slices"
	"testing"

	"belfry/pkg/store/driver"
)

func encode(parts [][]byte) (b []byte) {
	for _, part := range parts {
		b = driver.AppendPartEnd(driver.AppendPart(b, part))
	}
	return b
}

func TestPartEncodingIsStable(t *testing.T) {
	if got, want := encode([][]byte{{'a', 0x00, 0xff}, {}}), []byte("a\x00\xff\xff\x00\x01\x00\x01"); !bytes.Equal(got,
		want) {
		t.Errorf("the encoding is %q, want %q", got, want)
	}
}

func FuzzPartsKeepTheirOrder(f *testing.F) {
	f.Add([]byte("a"), []byte("b"), []byte("a\x00"), []byte(""))
	f.Add([]byte("\x00"), []byte("\x01"), []byte(""), []byte("\xff"))
	f.Fuzz(func(t *testing.T, a, b, c, d []byte) {
		one, other := [][]byte{a, b}, [][]byte{c, d}
		if got, want := bytes.Compare(encode(one), encode(other)),
			slices.CompareFunc(one, other, bytes.Compare); got != want {
			t.Errorf("%q and %q compare as %d, want %d", one, other, got, want)
		}
	})
}
