package hold

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"belfry/pkg/errs"
)

func lockData(t *testing.T, folder string) *DataLock {
	t.Helper()
	lock, err := LockData(folder, "serve")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(lock.Unlock)
	return lock
}

func TestADataFolderBelongsToOneProcess(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "made", "on", "the", "way")
	lock := lockData(t, folder)
	if info, err := os.Stat(folder); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("other users can read the folder: %v, %v", info, err)
	}
	if info, err := os.Stat(filepath.Join(folder, LockFile)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("others can read the token: %v, %v", info, err)
	}

	_, err := LockData(folder, "verify")
	var held *Held
	if !errors.As(err, &held) || !errors.Is(err, errs.Unavailable) {
		t.Fatalf("taken twice: %v", err)
	}
	if held.Holder.PID != os.Getpid() || held.Holder.Doing != "serve" || held.Folder != folder {
		t.Errorf("%+v", held)
	}
	for _, want := range []string{folder, "in use by belfry serve, process ", held.Holder.Host, "--data"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
	lock.Unlock()
	lockData(t, folder)
}

// The content that a dead process left in the lock file is ignored, whatever it is.
func TestAStaleLockFileIsIgnored(t *testing.T) {
	for name, content := range map[string]string{
		"empty": "", "garbage": "\x00\xff{", "half": `{"pid":12`, "of another kind": `[1]`,
		"whole": `{"pid":1,"host":"h","started":"2026-01-02T03:04:05Z","doing":"serve","control":"http://127.0.0.1:1","token":"t"}`,
	} {
		folder := t.TempDir()
		path := filepath.Join(folder, LockFile)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		lock, err := LockData(folder, "serve")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if h := ReadHolder(path); h.PID != os.Getpid() || h.Control != "" || h.Token != "" {
			t.Errorf("%s: what was there shines through: %+v", name, h)
		}
		lock.Unlock()
	}
}

// A lock file can be damaged while its holder runs. Then no holder is named, and no
// token is sent to another process.
func TestAnUnreadableHolderIsUnknown(t *testing.T) {
	good := Holder{PID: 7, Host: "h", Doing: "serve", Control: "http://127.0.0.1:5", Token: "t"}
	good.Started = good.Started.AddDate(2026, 0, 0)
	with := func(change func(*Holder)) string {
		h := good
		change(&h)
		data, err := json.Marshal(h)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	folder := t.TempDir()
	lockData(t, folder)
	held := func(content string) *Held {
		t.Helper()
		if err := os.WriteFile(filepath.Join(folder, LockFile), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := LockData(folder, "verify")
		var held *Held
		if !errors.As(err, &held) {
			t.Fatalf("%s: %v", content, err)
		}
		return held
	}
	if h := held(with(func(*Holder) {})).Holder; h.Control != good.Control || h.Token != good.Token {
		t.Errorf("a good one is not read: %+v", h)
	}
	for _, content := range []string{
		"", "garbage", "null", `{"pid":"x"}`, `{"pid":1}`,
		with(func(h *Holder) { h.PID = -1 }), with(func(h *Holder) { h.Doing = "" }),
		with(func(h *Holder) { h.Host = "" }),
	} {
		if h := held(content); h.Holder != (Holder{}) || !strings.Contains(h.Error(), "in use by another process") {
			t.Errorf("%s: %v", content, h)
		}
	}
	for _, control := range []string{
		"", "::::", "http://example.com:80", "http://10.0.0.1:80", "https://127.0.0.1:80", "http://127.0.0.1",
		"http://u:p@127.0.0.1:80", "http://127.0.0.1:80/x", "file:///etc/passwd",
	} {
		if h := held(with(func(h *Holder) { h.Control = control })).Holder; h.Control != "" || h.Token != "" ||
			h.PID != 7 {
			t.Errorf("%s: %+v", control, h)
		}
	}
}

func TestAFolderThatCannotBeLockedIsReported(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	occupied := filepath.Join(folder, "occupied")
	if err := os.MkdirAll(filepath.Join(occupied, LockFile), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{file, filepath.Join(file, "below"), occupied} {
		if _, err := LockData(folder, "serve"); !errors.Is(err, errs.Unavailable) ||
			!strings.Contains(err.Error(), folder) || !strings.Contains(err.Error(), "--data") {
			t.Errorf("%s: %v", folder, err)
		}
	}
}
