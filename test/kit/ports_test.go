package kit

import (
	"net"
	"testing"
)

func TestNoPortIsGivenTwice(t *testing.T) {
	given := map[int]bool{}
	for range 500 {
		port := FreePort(t)
		if given[port] {
			t.Fatalf("%d is given twice", port)
		}
		given[port] = true
	}
}

func TestAPortInUseIsNotGiven(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	if err := reserve(t, l.Addr().String()); err == nil {
		t.Error("it was reserved")
	}
}
