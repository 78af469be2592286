package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// isoFolder is the folder of the files in Debian's package iso-codes, relative to
// the root.
const isoFolder = "usr/share/iso-codes/json"

// fetchTimeout limits the download of the package.
const fetchTimeout = time.Minute

// findISO returns the folder of the files of iso-codes: those installed, those
// fetched before, or those of the package as apt gets it now. Nothing is
// installed, and no rights are needed.
func findISO(ctx context.Context, cache string) (string, error) {
	for _, root := range []string{"/", cache} {
		if folder := filepath.Join(root, isoFolder); hasISO(folder) {
			return folder, nil
		}
	}
	if err := fetchISO(ctx, cache); err != nil {
		return "", err
	}
	folder := filepath.Join(cache, isoFolder)
	if !hasISO(folder) {
		return "", fmt.Errorf("the package iso-codes has no %s/iso_3166-2.json", isoFolder)
	}
	return folder, nil
}

func hasISO(folder string) bool {
	for _, name := range []string{"iso_3166-1.json", "iso_3166-2.json"} {
		if _, err := os.Stat(filepath.Join(folder, name)); err != nil {
			return false
		}
	}
	return true
}

// fetchISO downloads the package, unpacks it next to the cache and renames it, so
// that the cache is complete if it exists.
func fetchISO(ctx context.Context, cache string) error {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	if err := os.MkdirAll(filepath.Dir(cache), 0o755); err != nil {
		return err
	}
	work, err := os.MkdirTemp(filepath.Dir(cache), "iso-codes-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	if err := tool(ctx, work, "apt-get", "download", "iso-codes"); err != nil {
		return err
	}
	packages, err := filepath.Glob(filepath.Join(work, "iso-codes_*.deb"))
	if err != nil || len(packages) != 1 {
		return errors.Join(err, fmt.Errorf("apt-get downloaded %d packages instead of one", len(packages)))
	}
	unpacked := filepath.Join(work, "unpacked")
	if err := tool(ctx, work, "dpkg-deb", "-x", packages[0], unpacked); err != nil {
		return err
	}
	if err := os.RemoveAll(cache); err != nil {
		return err
	}
	return os.Rename(unpacked, cache)
}

func tool(ctx context.Context, folder, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = folder
	if out, err := cmd.CombinedOutput(); err != nil {
		last := strings.TrimSpace(string(out))
		last = last[strings.LastIndexByte(last, '\n')+1:]
		return fmt.Errorf("%s: %w %s", name, err, last)
	}
	return nil
}

// moduleRoot returns the folder of go.mod, at or above the working directory.
func moduleRoot() (string, error) {
	folder, err := os.Getwd()
	for err == nil {
		if _, missing := os.Stat(filepath.Join(folder, "go.mod")); missing == nil {
			return folder, nil
		}
		if folder == filepath.Dir(folder) {
			err = errors.New("no go.mod here or above: run the demo within the project")
		}
		folder = filepath.Dir(folder)
	}
	return "", err
}
