package natsapi

import "testing"

func TestWaitingRequestsAreBoundedBySize(t *testing.T) {
	a := newAdmission(1, 10, 100)
	if !a.admit(1_000) {
		t.Fatal("a single request may exceed the limit, or it could never be executed")
	}
	if a.admit(1) {
		t.Error("admitted beyond the limit of bytes")
	}
	a.release(1_000)
	if !a.admit(60) || !a.admit(40) {
		t.Fatal("refused within the limit of bytes")
	}
	if a.admit(1) {
		t.Error("admitted beyond the limit of bytes")
	}
	a.release(40)
	if !a.admit(1) {
		t.Error("refused once a request has been released")
	}
}
