package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
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
	data, err := os.ReadFile(filepath.Join(s.data, "belfry.lock"))
	if err != nil {
		return err
	}
	var holder struct{ Control, Token string }
	if err := json.Unmarshal(data, &holder); err != nil {
		return err
	}
	url := fmt.Sprintf("%s/debug/pprof/profile?seconds=%d", holder.Control, seconds)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+holder.Token)
	res, err := http.DefaultClient.Do(req)
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
