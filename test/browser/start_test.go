package browser

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"

	"belfry/test/kit/programs"
)

// TestAChromiumThatCrashesOnStartIsStartedAgain starts one whose first start ends as a crash does.
func TestAChromiumThatCrashesOnStartIsStartedAgain(t *testing.T) {
	chromium, err := programs.Chromium()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	crashed, path := filepath.Join(folder, "crashed"), filepath.Join(folder, "chromium")
	script := fmt.Sprintf("#!/bin/sh\nif [ ! -e %[1]q ]; then : > %[1]q; echo 'Segmentation fault' >&2; exit 139; "+
		"fi\nexec %[2]q \"$@\"\n", crashed, chromium)
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	tab := openProgram(t, path)
	sum, err := chromedp.Run(tab, chromedp.Evaluate[int](`1 + 1`))
	if err != nil || sum != 2 {
		t.Errorf("the second Chromium computes %d, %v", sum, err)
	}
	if _, err := os.Stat(crashed); err != nil {
		t.Errorf("the first one has not been started: %v", err)
	}
}
