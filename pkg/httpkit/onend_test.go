package httpkit_test

import (
	"context"
	"testing"

	"belfry/pkg/httpkit"
)

func TestStoppingWaitsForACallThatHasBegun(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	begun, finish, finished := make(chan struct{}), make(chan struct{}), false
	stop := httpkit.OnEnd(ctx, func() {
		close(begun)
		<-finish
		finished = true
	})
	end()
	<-begun
	go close(finish)
	stop()
	if !finished {
		t.Error("it did not wait")
	}
}

func TestNothingIsCalledAfterStopping(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	httpkit.OnEnd(ctx, func() { t.Error("it was called") })()
	end()
}
