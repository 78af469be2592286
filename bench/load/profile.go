package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"belfry/test/kit"
)

// profiled runs measured while belfry records a CPU profile, if one is
// requested.
func (b *bench) profiled(ctx context.Context, s *server, name string, seconds int, measured func() error) error {
	if b.profile == "" || s.name != "belfry" {
		return measured()
	}
	done := make(chan error, 1)
	go func() { done <- b.takeProfile(ctx, s, name, seconds) }()
	return errors.Join(measured(), <-done)
}

func (b *bench) takeProfile(ctx context.Context, s *server, name string, seconds int) error {
	res, err := kit.Control(ctx, s.data, fmt.Sprintf("/debug/pprof/profile?seconds=%d", seconds))
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	f, err := os.Create(filepath.Join(b.profile, name+".prof"))
	if err != nil {
		return err
	}
	_, err = io.Copy(f, res.Body)
	return errors.Join(err, f.Close())
}
