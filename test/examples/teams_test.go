package examples

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	_ "belfry/test/backing" // marks a package that needs more than Go; make test-unit skips it
	"belfry/test/process"
)

var shellBlock = regexp.MustCompile("(?s)```sh\n(.*?)```\n(?:```\n(.*?)```\n)?")

// The commands of the page do as it says, pasted one block after the other into one shell.
func TestThePageOfTeams(t *testing.T) {
	t.Parallel()
	const folder = "../../examples/teams"
	page, err := os.ReadFile(filepath.Join(folder, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	server := process.ServePlain(t, filepath.Join(folder, "belfry.yaml"), "--data", t.TempDir(), "--listen",
		"127.0.0.1:0")
	blocks := shellBlock.FindAllStringSubmatch(string(page), -1)
	if len(blocks) < 5 {
		t.Fatalf("the page has %d blocks of commands", len(blocks))
	}
	const mark = "-- next --"
	var commands, want strings.Builder
	for _, block := range blocks {
		commands.WriteString(block[1] + "echo '" + mark + "'\n")
		want.WriteString(block[2] + mark + "\n")
	}
	const address = "http://127.0.0.1:8080"
	if !strings.Contains(commands.String(), address) {
		t.Fatalf("the commands have no %s", address)
	}
	shell := exec.CommandContext(t.Context(), "bash")
	shell.Dir = t.TempDir() // of the cookies
	shell.Stdin = strings.NewReader(strings.ReplaceAll(commands.String(), address, server.URL))
	var complaints strings.Builder
	shell.Stderr = &complaints
	out, err := shell.Output()
	if err != nil || string(out) != want.String() {
		t.Errorf("the page says\n%s\nand the output is\n%s\n%v\n%s", &want, out, err, &complaints)
	}
}
